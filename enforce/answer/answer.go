// Package answer words what a client is told of its quota over HTTP: the quota
// fields of every answer, and the answer of a refusal. The doors and the
// middleware share it, so that a client sees the same whichever it meets.
//
// # Model
//
// A refusal is a status (429 unless a proxy wants another), Retry-After in whole
// seconds, the quota fields that were chosen, and a problem document (RFC 9457)
// of the RateLimit draft's type quota-exceeded. What does not depend on the
// request is rendered once, by [NewClass].
//
// # Units
//
// Fields are in whole units and whole seconds, as the drafts want it: counts
// rounded down, times rounded up and at least one second, because a client told
// "0" comes back at once.
//
// # Concurrency
//
// A Class is immutable. Nothing here reads a clock or keeps anything.
package answer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"subak/enforce"
)

// Fields selects the quota fields of answers.
type Fields uint8

// The choices.
const (
	IETF    Fields = iota // RateLimit and RateLimit-Policy lists
	Draft03               // RateLimit-Limit, -Remaining, -Reset
	X                     // X-RateLimit-Limit, -Remaining, -Reset
	Off
)

// QuotaExceeded is the registered problem type of the RateLimit draft.
const QuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// StatusField carries the status that the client should get, where a proxy wants
// another one (nginx: lesson O24).
const StatusField = "X-Subak-Status"

// Class answers for one class of a budget.
type Class struct {
	policy   string // its name as a structured string, quotes included
	statuses []int
	bodies   []body // by statuses
}

// NewClass renders what is always the same. Refusals have one of the statuses;
// none means 429.
func NewClass(budget, class string, statuses ...int) *Class {
	if len(statuses) == 0 {
		statuses = []int{http.StatusTooManyRequests}
	}
	c := &Class{policy: quote(budget + "/" + class), statuses: statuses}
	for _, status := range statuses {
		c.bodies = append(c.bodies, render(map[string]any{
			"type":              QuotaExceeded,
			"title":             "Request cannot be satisfied as assigned quota has been exceeded",
			"status":            status,
			"detail":            fmt.Sprintf("budget %q has no capacity left for class %q at this node", budget, class),
			"violated-policies": []string{budget + "/" + class},
			"budget":            budget,
			"class":             class,
		}))
	}
	return c
}

// Refusal is one answer of no.
type Refusal struct {
	// Status is one of NewClass's; another counts as the first of them. Where it
	// is not 429, StatusField says 429.
	Status int
	// Wait is how long until the request could pass, Jitter what is added to it
	// for the client, in whole seconds, so that refused clients do not come back
	// together.
	Wait, Jitter time.Duration
	Quota        enforce.Quota
	Fields       Fields
}

// Refuse writes a whole refusal. Fields that are set already are sent too.
func (c *Class) Refuse(w http.ResponseWriter, r Refusal) {
	h := w.Header()
	secs := Seconds(r.Wait)
	h["Retry-After"] = []string{strconv.FormatInt(secs+int64(r.Jitter/time.Second), 10)}
	c.fields(h, r.Fields, r.Quota, 0, secs) // nothing remains for this request, whatever there is
	at := 0
	for i, s := range c.statuses {
		if s == r.Status {
			at = i
		}
	}
	if c.statuses[at] != http.StatusTooManyRequests {
		h[StatusField] = []string{"429"}
	}
	c.bodies[at].write(w, c.statuses[at])
}

// Admit writes the quota fields of a request that passes.
func (c *Class) Admit(h http.Header, f Fields, q enforce.Quota) {
	c.fields(h, f, q, q.Tokens, Seconds(q.Full))
}

// fields writes the quota fields. The keys are in canonical form.
func (c *Class) fields(h http.Header, f Fields, q enforce.Quota, left, reset int64) {
	switch f {
	case Off:
	case Draft03:
		triple(h, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", q.Cap, left, reset)
	case X:
		triple(h, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", q.Cap, left, reset)
	default:
		var buf [96]byte
		b := append(append(buf[:0], c.policy...), ";q="...)
		b = append(strconv.AppendInt(b, q.Cap, 10), ";w="...)
		h["Ratelimit-Policy"] = []string{string(strconv.AppendInt(b, window(q), 10))}
		b = append(append(buf[:0], c.policy...), ";r="...)
		b = append(strconv.AppendInt(b, left, 10), ";t="...)
		h["Ratelimit"] = []string{string(strconv.AppendInt(b, reset, 10))}
	}
}

func triple(h http.Header, limit, remaining, reset string, l, r, t int64) {
	h[limit] = []string{strconv.FormatInt(l, 10)}
	h[remaining] = []string{strconv.FormatInt(r, 10)}
	h[reset] = []string{strconv.FormatInt(t, 10)}
}

// window returns the seconds in which the class earns its bucket once over.
func window(q enforce.Quota) int64 {
	if q.Rate <= 0 {
		return 1
	}
	micro := q.Cap * 1_000_000
	return max(1, (micro-1)/int64(q.Rate)+1)
}

// Seconds rounds up, to one at least: Retry-After: 0 invites a hammer.
func Seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// Problem answers with a generic problem document.
func Problem(w http.ResponseWriter, status int, detail string) {
	render(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	}).write(w, status)
}

// body is a problem document with its length.
type body struct {
	json   []byte
	length string
}

func render(doc map[string]any) body {
	b, err := json.Marshal(doc)
	if err != nil {
		panic("answer: problem document: " + err.Error()) // strings and numbers only
	}
	return body{append(b, '\n'), strconv.Itoa(len(b) + 1)}
}

func (b body) write(w http.ResponseWriter, status int) {
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["Content-Length"] = []string{b.length}
	h["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(b.json) // the client may be gone
}

// quote makes a structured-field string (RFC 9651, 3.3.3). Names are validated
// elsewhere; what cannot be in one is dropped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		if c == '"' || c == '\\' {
			b.WriteByte('\\')
		}
		if c >= 0x20 && c < 0x7f {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
