// Package httplimit is net/http middleware over [limit]: it judges each request
// before the handler sees it, and refuses in the words of a Subak listener: 429
// with Retry-After, the RateLimit fields and an application/problem+json body
// (package answer).
//
// # Model
//
// [New] makes a wrapper for handlers. What a request is charged to is the
// program's to say, by [Config.Class] for all or [Config.Classify] for each: it
// knows who asks and what that costs. A request is charged when it comes; what
// its handler then does, and whether it fails, changes nothing.
//
// A handler, and everything made here, is safe for concurrent use.
package httplimit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"subak/enforce/answer"
	"subak/enforce/limit"
)

// Config says what requests are charged to, and how refusals look.
type Config struct {
	// Class is charged where Classify is nil or names no class.
	Class *limit.Class
	// Classify returns the class to charge and the call to make of a request; nil
	// charges Class with a cost of 1. It must not read the body. A nil class means
	// Class, and where that is nil too, 403: a request that nobody knows what to
	// do with is never let through by default (lesson O26).
	Classify func(*http.Request) (*limit.Class, limit.Call)
	// Fields selects the quota fields of answers; the zero value is answer.IETF.
	Fields answer.Fields
	// QuietAdmitted leaves them off admitted answers.
	QuietAdmitted bool
	// RetryJitter adds up to this much at random to Retry-After, so that refused
	// clients do not come back together. Whole seconds.
	RetryJitter time.Duration
	// Refused, if set, is called with each request that is refused, before the
	// answer: to log or count it.
	Refused func(*http.Request, limit.Decision)
}

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Class == nil && c.Classify == nil {
		errs = append(errs, errors.New("httplimit: neither Class nor Classify is set"))
	}
	if c.Fields > answer.Off {
		errs = append(errs, fmt.Errorf("httplimit: Fields: no such choice: %d", c.Fields))
	}
	if c.RetryJitter < 0 {
		errs = append(errs, fmt.Errorf("httplimit: RetryJitter: %v is negative", c.RetryJitter))
	}
	return errors.Join(errs...)
}

// New returns a wrapper: wrap(next) is a handler that passes on what is admitted.
func New(cfg Config) (wrap func(next http.Handler) http.Handler, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &middleware{cfg: cfg}
	return func(next http.Handler) http.Handler { return handler{m, next} }, nil
}

// middleware is what the handlers of one wrapper share.
type middleware struct {
	cfg     Config
	answers sync.Map // *limit.Class to *answer.Class: bounded by the handles made
}

type handler struct {
	*middleware
	next http.Handler
}

// ServeHTTP judges one request.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	class, call := h.cfg.Class, limit.Call{}
	if h.cfg.Classify != nil {
		var other *limit.Class
		if other, call = h.cfg.Classify(r); other != nil {
			class = other
		}
	}
	if class == nil {
		answer.Problem(w, http.StatusForbidden, "no class is meant for this request")
		return
	}
	d := class.Decide(call)
	if !d.OK {
		h.refuse(w, r, class, d)
		return
	}
	if !h.cfg.QuietAdmitted && h.cfg.Fields != answer.Off {
		h.words(class).Admit(w.Header(), h.cfg.Fields, d.Quota())
	}
	h.next.ServeHTTP(w, r)
}

func (h handler) refuse(w http.ResponseWriter, r *http.Request, class *limit.Class, d limit.Decision) {
	if h.cfg.Refused != nil {
		h.cfg.Refused(r, d)
	}
	var jitter time.Duration
	if most := h.cfg.RetryJitter / time.Second; most > 0 {
		jitter = time.Duration(rand.Int64N(int64(most)+1)) * time.Second
	}
	h.words(class).Refuse(w, answer.Refusal{
		Wait: d.RetryAfter(), Jitter: jitter, Quota: d.Quota(), Fields: h.cfg.Fields,
	})
}

// words returns the rendered answers of a class.
func (m *middleware) words(c *limit.Class) *answer.Class {
	if a, ok := m.answers.Load(c); ok {
		return a.(*answer.Class)
	}
	a, _ := m.answers.LoadOrStore(c, answer.NewClass(c.Budget(), c.Name()))
	return a.(*answer.Class)
}
