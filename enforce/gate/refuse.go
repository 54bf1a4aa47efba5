package gate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"subak/enforce"
)

// quotaExceeded is the registered problem type of the RateLimit draft.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// Fields of our own.
const (
	statusField   = "X-Subak-Status"   // the status a proxy should give the client
	decisionField = "X-Subak-Decision" // debug: why
)

// body is a problem document, made once per target.
type body struct {
	json   []byte
	length string
}

// quotaBody renders the refusal of one class (RFC 9457, and the RateLimit
// draft's quota-exceeded type with the policies violated).
func quotaBody(t *target) body {
	return render(map[string]any{
		"type":              quotaExceeded,
		"title":             "Request cannot be satisfied as assigned quota has been exceeded",
		"status":            http.StatusTooManyRequests,
		"detail":            fmt.Sprintf("budget %q has no capacity left for class %q at this node", t.budget, t.class),
		"violated-policies": []string{t.budget + "/" + t.class},
		"budget":            t.budget,
		"class":             t.class,
	})
}

func render(doc map[string]any) body {
	b, err := json.Marshal(doc)
	if err != nil {
		panic("gate: problem document: " + err.Error()) // strings and numbers only
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

// problem answers with a generic problem document made by this node.
func problem(w http.ResponseWriter, status int, detail string) {
	render(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	}).write(w, status)
}

// refuse answers a request that was not admitted.
func (g *Gate) refuse(w http.ResponseWriter, d decision) {
	if d.fault != "" {
		problem(w, http.StatusBadRequest, d.fault)
		return
	}
	if d.to == nil {
		problem(w, http.StatusForbidden, "no rule matches this request")
		return
	}
	g.refusalFields(w.Header(), d)
	d.to.refusal.write(w, http.StatusTooManyRequests)
}

// refusalFields writes what a refused client is told besides the body.
func (g *Gate) refusalFields(h http.Header, d decision) {
	secs := wholeSeconds(d.to.limiter.RetryAfterRequest(d.now, d.request))
	after := secs
	if j := uint64(g.cfg.RetryJitter / time.Second); j > 0 && g.deps.Rand != nil {
		after += int64(g.deps.Rand() % (j + 1))
	}
	h["Retry-After"] = []string{strconv.FormatInt(after, 10)}
	g.quota(h, d, secs)
	g.debug(h, d)
}

// quota writes the quota fields of one decision; reset is in seconds, and
// negative for "until the bucket is full".
func (g *Gate) quota(h http.Header, d decision, reset int64) {
	if g.cfg.Headers == HeadersOff || d.to == nil {
		return
	}
	q := d.to.limiter.QuotaRequest(d.now, d.request)
	left := q.Tokens
	if reset < 0 {
		reset = wholeSeconds(q.Full)
	} else {
		left = 0 // not enough for this request, whatever there is
	}
	var buf [192]byte
	switch g.cfg.Headers {
	case HeadersDraft03:
		triple(h, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", q.Cap, left, reset)
	case HeadersX:
		triple(h, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", q.Cap, left, reset)
	default:
		b := append(append(buf[:0], d.to.policy...), ";q="...)
		b = append(strconv.AppendInt(b, q.Cap, 10), ";w="...)
		b = strconv.AppendInt(b, window(q), 10)
		n := len(b)
		b = append(append(b, d.to.policy...), ";r="...)
		b = append(strconv.AppendInt(b, left, 10), ";t="...)
		both := string(strconv.AppendInt(b, reset, 10)) // one string for two values
		v := []string{both[:n], both[n:]}
		h["Ratelimit-Policy"], h["Ratelimit"] = v[:1:1], v[1:]
	}
}

// window returns the seconds in which the class earns its bucket once over.
func window(q enforce.Quota) int64 {
	if q.Rate <= 0 {
		return 1
	}
	micro := q.Cap * 1_000_000
	return max(1, (micro-1)/int64(q.Rate)+1)
}

func triple(h http.Header, limit, remaining, reset string, l, r, t int64) {
	h[limit] = []string{strconv.FormatInt(l, 10)}
	h[remaining] = []string{strconv.FormatInt(r, 10)}
	h[reset] = []string{strconv.FormatInt(t, 10)}
}

func (g *Gate) debug(h http.Header, d decision) {
	if !g.cfg.Debug {
		return
	}
	if d.to == nil {
		h[decisionField] = []string{"reason=unknown"}
		return
	}
	h[decisionField] = []string{fmt.Sprintf("budget=%q, class=%q, cost=%d, reason=%s, from=%d",
		d.to.budget, d.to.class, d.cost, d.verdict.Reason, d.verdict.From)}
}

// wholeSeconds rounds up, to one at least: Retry-After: 0 invites a hammer.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
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
