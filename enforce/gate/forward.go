package gate

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync"

	"subak/enforce/answer"
)

// exchange is one admitted request on its way to a backend and back. It is one
// allocation, and is not reused: the transport may hold on to parts of it after
// the answer (lesson of every proxy that pooled its requests).
type exchange struct {
	pool *pool
	w    http.ResponseWriter
	in   *http.Request
	d    decision

	out    *http.Request
	url    url.URL
	body   inbound
	trace  httptrace.ClientTrace
	fields [3]string // values of the forwarding fields

	mu    sync.Mutex // guards w against an informational answer that comes late
	final bool       // the attempt is over, guarded by mu
}

// forward sends an admitted request to the backend whose turn it is, to another
// one if that cannot be reached, and passes the answer on.
func (p *pool) forward(w http.ResponseWriter, r *http.Request, f *facts, d decision, trusted bool) {
	x := &exchange{pool: p, w: w, in: r, d: d}
	x.prepare(f, trusted)
	defer x.body.end()
	b := p.pick(nil)
	for left := p.gate.retries; ; left-- {
		res, err := x.send(b, f)
		if err == nil {
			p.answered(b, res.StatusCode)
			x.answer(b, res)
			return
		}
		next := b
		if again := x.failed(b, err); again && left > 0 {
			next = p.pick(b)
		}
		if next == b { // a refused connection is refused again
			x.apologise(err)
			return
		}
		b = next
		p.gate.tally.retried.Add(1)
	}
}

// send makes one attempt. Informational answers are passed on while it waits.
func (x *exchange) send(b *backend, f *facts) (*http.Response, error) {
	x.target(b, f)
	x.late(false)
	res, err := b.transport.RoundTrip(x.out)
	x.late(true)
	return res, err
}

// late says whether an informational answer would be.
func (x *exchange) late(yes bool) {
	x.mu.Lock()
	x.final = yes
	x.mu.Unlock()
}

// informational passes on a 1xx answer. It runs on the transport's goroutine.
func (x *exchange) informational(code int, header textproto.MIMEHeader) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.final {
		return nil // the handler may be gone
	}
	h := x.w.Header()
	if code != http.StatusContinue { // that one is made here, of nothing
		for name, v := range header {
			if !hopByHop(name) {
				h[name] = v
			}
		}
	}
	x.w.WriteHeader(code)
	clear(h)
	return nil
}

// failed notes what an attempt that got no answer says of the backend, and
// reports whether another one may be made: only if no connection was made, so
// that nothing can have been seen of the request, whatever its method. (A kept
// connection that turns out to be closed is the transport's affair: it sends
// again what is idempotent and has no body.)
func (x *exchange) failed(b *backend, err error) (again bool) {
	gone := x.in.Context().Err() != nil
	if gone {
		x.body.settle()
	}
	if gone || x.body.fault() != nil {
		return false
	}
	b.failures.Add(1)
	x.pool.log.Debug("backend failed", "listener", x.pool.gate.cfg.Name, "backend", b.name, "err", err)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		x.pool.unreachable(b, err)
		return !x.body.begun()
	}
	x.pool.soft(b, "it does not answer", err)
	return false
}

// apologise answers for a backend that did not, or for a client that did not
// send its body.
func (x *exchange) apologise(err error) {
	if fault := x.body.fault(); fault != nil {
		x.pool.gate.tally.badBodies.Add(1)
		x.w.Header()["Connection"] = []string{"close"}
		answer.Problem(x.w, fault.status, fault.detail)
		return
	}
	if x.in.Context().Err() != nil {
		x.pool.gate.tally.gone.Add(1)
		x.w.WriteHeader(http.StatusBadGateway) // nobody is there to read it
		return
	}
	var timeout net.Error
	var op *net.OpError
	if errors.As(err, &timeout) && timeout.Timeout() && !errors.As(err, &op) {
		answer.Problem(x.w, http.StatusGatewayTimeout, "the backend did not answer in time")
		return
	}
	answer.Problem(x.w, http.StatusBadGateway, "the backend could not be reached")
}

// context is the incoming request's, with the trace that informational answers
// come by.
func (x *exchange) context() context.Context {
	x.trace.Got1xxResponse = x.informational
	return httptrace.WithClientTrace(x.in.Context(), &x.trace)
}
