package gate

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"subak/enforce"
	"subak/enforce/answer"
)

// Config describes one listener's gate. The zero value of every field but Name
// is usable; a gate without backends serves the check path only.
type Config struct {
	// Name labels the listener in metrics.
	Name string
	// Backends get what is admitted, in proportion to their weights.
	Backends []Backend
	// Check is the forward-auth endpoint.
	Check Check
	// TrustedHops is how many proxies in front of this listener append to
	// X-Forwarded-For. The client is that many entries from the right; further
	// left anyone may have written. 0 reads no forwarding header at all.
	TrustedHops int
	// TrustedPeers, if not empty, are the only peers that TrustedHops and rules
	// on headers hold for; from others no forwarding header is read, and a rule
	// on a header does not match.
	TrustedPeers []netip.Prefix
	// Headers selects the quota fields of responses.
	Headers HeaderMode
	// QuietAdmitted leaves them off admitted responses (about 0.4 us each).
	QuietAdmitted bool
	// OnUnknown says what happens to a request that no rule matches.
	OnUnknown Unknown
	// Default is its target under UnknownDefault.
	Default Target
	// Rules are tried in order; the first that matches decides.
	Rules []Rule
	// RetryBy says which requests of a client are taken for repetitions of one
	// another, so that retries of refused ones do not count as demand.
	RetryBy RetryBy
	// RetryJitter adds up to this much at random to Retry-After, so that
	// refused clients do not come back together. Whole seconds are sent.
	RetryJitter time.Duration
	// ResponseTimeout is how long a backend may take to start its answer:
	// 0 means a minute, negative forever.
	ResponseTimeout time.Duration
	// Debug adds the X-Subak-Decision field, which names the reason. It tells
	// clients how they are classified: not for the open internet.
	Debug bool
	// TLS, if not nil, makes this a listener for TLS, with HTTP/2 and HTTP/1.1.
	// Used by NewServer.
	TLS *TLS
	// Limits bound what clients may hold of this process.
	Limits Limits
	// Retry says when a request is tried at another backend.
	Retry Retry
	// Egress, if it names a budget, is a budget in bytes per second that the
	// bodies of responses are paced by, on top of what a request is charged. Its
	// Cost means nothing.
	Egress Target
	// Tenant says who a request is from, for classes that share out by tenant.
	Tenant TenantSource
}

// Backend is one upstream. Weight 0 means 1.
type Backend struct {
	URL    *url.URL // scheme http, https or h2c
	Weight int
}

// Check configures the forward-auth endpoint.
//
// The request to judge is described by X-Original-Method and X-Original-URI
// (nginx) or by X-Forwarded-Method, -Uri and -Host (Traefik, Caddy), which count
// only from a trusted hop: with TrustedHops 0 the check request is judged as it
// is. A request that carries both kinds is forged and is refused.
type Check struct {
	Enabled bool
	Path    string // "" means /v1/check
	// RefusalStatus is the status of a refusal: 403 for nginx, whose
	// auth_request turns anything but 2xx, 401 and 403 into a 500 (lesson
	// O24); 0 means 429.
	RefusalStatus int
	// AdmittedFields puts the quota fields on admitted answers too. Proxies hand
	// them to clients only when told to, and net/http takes about a microsecond
	// for them: 5 % of the requests that a node can answer.
	AdmittedFields bool
}

// Target is what a request is charged to. Cost is in units; 0 means 1.
type Target struct {
	Budget, Class string
	Cost          int64
}

// Rule sends the requests that Match describes to a target.
type Rule struct {
	Match  Match
	Target Target
	Egress Target       // zero means the listener's
	Tenant TenantSource // zero means the listener's
}

// Match is a conjunction; an empty field matches everything. In patterns, *
// stands for any run of characters, slashes included.
type Match struct {
	Methods []string          // any of them
	Path    string            // pattern; compared with the decoded normal form, but for %2F and %5C
	Host    string            // pattern; without port, case ignored
	Headers map[string]string // name to pattern; every value sent must match
	Network []netip.Prefix    // the client is in any of them
}

// HeaderMode selects the quota fields of responses.
type HeaderMode = answer.Fields

// The header modes.
const (
	HeadersIETF    = answer.IETF    // RateLimit and RateLimit-Policy lists
	HeadersDraft03 = answer.Draft03 // RateLimit-Limit, -Remaining, -Reset
	HeadersX       = answer.X       // X-RateLimit-Limit, -Remaining, -Reset
	HeadersOff     = answer.Off
)

// Unknown says what happens to a request that no rule matches.
type Unknown uint8

// The choices.
const (
	UnknownDefault Unknown = iota // charge the default target
	UnknownDeny                   // 403
	UnknownAllow                  // let it through uncharged
)

// RetryBy says what makes two requests the same one sent again.
type RetryBy uint8

// The choices.
const (
	// RetryByRequest: the same client address, method, host and URI.
	RetryByRequest RetryBy = iota
	// RetryByAddress: the same client address. It also takes many people behind
	// one address for one impatient person.
	RetryByAddress
	// RetryOff counts every request as demand.
	RetryOff
)

// Budget is one budget's limiter with its names.
type Budget struct {
	Name    string
	Classes []string // in the limiter's order
	Limiter *enforce.Limiter
}

// Budgets is a fixed set of budgets.
type Budgets []Budget

// Limiter implements enforce.Limits.
func (bs Budgets) Limiter(budget, class string) (*enforce.Limiter, int, bool) {
	for _, b := range bs {
		if b.Name == budget {
			k := slices.Index(b.Classes, class)
			return b.Limiter, k, k >= 0
		}
	}
	return nil, 0, false
}

// Deps are what a gate asks of the outside.
type Deps struct {
	Limits enforce.Limits
	// Missing, if set, is told of targets that Limits does not have, while the
	// gate is made; their rules then match nothing, so that requests go the way
	// of OnUnknown, and a missing default refuses. Nil makes them faults.
	Missing func(Target)
	// Now is the lease clock's reading, the same one the limiters' schedules
	// are given in.
	Now func() int64
	// Hash names a tenant by its value, with a secret seed and the same one at
	// every door of the node. nil means one of the gate's own.
	Hash func(string) uint64
	// Rand returns random bits for jitter; nil means none. Called concurrently.
	Rand func() uint64
	// Transport carries requests to backends; nil means a tuned one per backend.
	Transport http.RoundTripper
	// Log gets backend failures: the begin and end of an outage, and at debug
	// level each request that failed; nil discards.
	Log *slog.Logger
}

// Validate returns every fault of the configuration that does not depend on
// the limiters.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if c.TrustedHops < 0 {
		bad("trusted_hops", "%d is negative", c.TrustedHops)
	}
	if c.Headers > HeadersOff || c.OnUnknown > UnknownAllow || c.RetryBy > RetryOff {
		bad("headers, on_unknown or retry_by", "no such choice")
	}
	if len(c.Backends) == 0 && !c.Check.Enabled {
		bad("backends", "a listener without backends must enable check")
	}
	for i, b := range c.Backends {
		if err := b.validate(); err != nil {
			bad(fmt.Sprintf("backends[%d]", i), "%v", err)
		}
	}
	if p := c.Check.Path; p != "" && !strings.HasPrefix(p, "/") {
		bad("check.path", "%q must begin with /", p)
	}
	if s := c.Check.RefusalStatus; s != 0 && (s < 400 || s > 599) {
		bad("check.refusal_status", "%d is not an error status", s)
	}
	if err := c.Limits.validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Retry.Attempts > attemptsMax {
		bad("retry.attempts", "%d: want at most %d", c.Retry.Attempts, attemptsMax)
	}
	if c.TLS != nil {
		if err := c.TLS.Validate(); err != nil {
			bad("tls", "%v", err)
		}
	}
	if t := c.Tenant; t.Header != "" && t.Client {
		bad("tenant", "header and client at once")
	}
	for i, r := range c.Rules {
		if r.Tenant.Header != "" && r.Tenant.Client {
			bad(fmt.Sprintf("rules[%d].tenant", i), "header and client at once")
		}
		if r.Target.Cost < 0 || r.Target.Cost > enforce.MaxCost {
			bad(fmt.Sprintf("rules[%d].cost", i), "%d: want 1..%d", r.Target.Cost, int64(enforce.MaxCost))
		}
		if p := r.Match.Path; p != "" && p[0] != '/' && p[0] != '*' {
			bad(fmt.Sprintf("rules[%d].match.path", i), "%q must begin with / or *", p)
		}
	}
	return errors.Join(errs...)
}

func (b Backend) validate() error {
	switch {
	case b.URL == nil || b.URL.Host == "":
		return errors.New("url without a host")
	case b.URL.Scheme != "http" && b.URL.Scheme != "https" && b.URL.Scheme != "h2c":
		return fmt.Errorf("scheme %q: want http, https or h2c", b.URL.Scheme)
	case b.Weight < 0 || b.Weight > maxWeight:
		return fmt.Errorf("weight %d: want 1..%d", b.Weight, maxWeight)
	}
	return nil
}
