// Package answer words what a client is told of its quota over HTTP: the quota
// fields of every answer, and the answer of a refusal. The doors and the
// middleware share it, so that a client sees the same whichever it meets.
//
// # Model
//
// A refusal is status 429, Retry-After in whole seconds, the quota fields that were
// chosen, and a problem document (RFC 9457) of the RateLimit draft's type
// quota-exceeded. What does not depend on the request is rendered once, by
// [NewClass].
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

// Class answers for one class of a budget.
type Class struct {
	policy  string // its name as a structured string, quotes included
	refusal body
}

// NewClass renders what is always the same.
func NewClass(budget, class string) *Class {
	return &Class{policy: quote(budget + "/" + class), refusal: render(map[string]any{
		"type":              QuotaExceeded,
		"title":             "Request cannot be satisfied as assigned quota has been exceeded",
		"status":            http.StatusTooManyRequests,
		"detail":            fmt.Sprintf("budget %q has no capacity left for class %q at this node", budget, class),
		"violated-policies": []string{budget + "/" + class},
		"budget":            budget,
		"class":             class,
	})}
}

// Policy returns the name of the class's policy in the RateLimit fields, quoted.
func (c *Class) Policy() string { return c.policy }

// Document returns the problem document of a refusal. It is not to be changed.
func (c *Class) Document() []byte { return c.refusal.json }

// Refusal is one answer of no.
type Refusal struct {
	// Wait is how long until the request could pass, Jitter what is added to it
	// for the client, in whole seconds, so that refused clients do not come back
	// together.
	Wait, Jitter time.Duration
	Quota        enforce.Quota // not read where Fields is Off
	Fields       Fields
}

// Refuse writes a whole refusal. Fields that are set already are sent too.
func (c *Class) Refuse(w http.ResponseWriter, r Refusal) {
	c.Deny(w.Header(), r)
	c.refusal.write(w, http.StatusTooManyRequests)
}

// Deny writes what a refused client is told besides status and body.
func (c *Class) Deny(h http.Header, r Refusal) {
	secs := Seconds(r.Wait)
	h["Retry-After"] = []string{strconv.FormatInt(secs+int64(r.Jitter/time.Second), 10)}
	c.fields(h, r.Fields, &r.Quota, 0, secs) // nothing remains for this request, whatever there is
}

// Admit writes the quota fields of a request that passes.
func (c *Class) Admit(h http.Header, f Fields, q enforce.Quota) {
	c.fields(h, f, &q, q.Tokens, Seconds(q.Full))
}

// fields writes the quota fields. The keys are in canonical form.
func (c *Class) fields(h http.Header, f Fields, q *enforce.Quota, left, reset int64) {
	switch f {
	case Off:
	case Draft03:
		triple(h, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", q.Cap, left, reset)
	case X:
		triple(h, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", q.Cap, left, reset)
	default:
		var buf [192]byte
		b := append(append(buf[:0], c.policy...), ";q="...)
		b = append(strconv.AppendInt(b, q.Cap, 10), ";w="...)
		b = strconv.AppendInt(b, Window(*q), 10)
		n := len(b)
		b = append(append(b, c.policy...), ";r="...)
		b = append(strconv.AppendInt(b, left, 10), ";t="...)
		both := string(strconv.AppendInt(b, reset, 10)) // one string for two values
		v := []string{both[:n], both[n:]}
		h["Ratelimit-Policy"], h["Ratelimit"] = v[:1:1], v[1:]
	}
}

func triple(h http.Header, limit, remaining, reset string, l, r, t int64) {
	h[limit] = []string{strconv.FormatInt(l, 10)}
	h[remaining] = []string{strconv.FormatInt(r, 10)}
	h[reset] = []string{strconv.FormatInt(t, 10)}
}

// Window returns the seconds in which a class earns its bucket once over: w of
// the policy, where q is its cap.
func Window(q enforce.Quota) int64 {
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
