package gate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// answer passes a backend's answer on.
func (x *exchange) answer(b *backend, res *http.Response) {
	if res.StatusCode == http.StatusSwitchingProtocols {
		x.tunnel(b, res)
		return
	}
	defer res.Body.Close()
	h := x.w.Header()
	x.copyFields(h, res.Header)
	announced := announce(h, res.Trailer)
	if announced > 0 && x.in.ProtoMajor < 2 && x.in.Method != http.MethodHead {
		delete(h, "Content-Length") // HTTP/1 has trailers after chunks only
	}
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // or net/http guesses one from the body
	}
	x.w.WriteHeader(res.StatusCode)
	if err := x.relay(res, announced > 0); err != nil {
		// The status is out. What is left is to break the connection off, so that
		// nobody takes the part for the whole.
		x.pool.cut(b, err)
		panic(http.ErrAbortHandler)
	}
	trail(h, res.Trailer, announced)
}

// copyFields passes on the backend's fields that are end to end, and adds ours.
// What the backend says of its own quotas stays: RateLimit is a list.
func (x *exchange) copyFields(h, from http.Header) {
	for name, v := range endToEnd(from) {
		if !hopByHop(name) {
			h[name] = v
		}
	}
	g := x.pool.gate
	if !g.cfg.QuietAdmitted && x.d.to != nil {
		policy, limit := h["Ratelimit-Policy"], h["Ratelimit"]
		g.quota(h, x.d)
		if g.cfg.Headers == HeadersIETF && len(policy)+len(limit) > 0 {
			h["Ratelimit-Policy"] = append(h["Ratelimit-Policy"], policy...)
			h["Ratelimit"] = append(h["Ratelimit"], limit...)
		}
	}
	g.debug(h, x.d)
}

// announce names the trailers that will follow, and returns how many.
func announce(h http.Header, trailer http.Header) int {
	if len(trailer) == 0 {
		return 0
	}
	names := make([]string, 0, len(trailer))
	for name := range trailer {
		names = append(names, name)
	}
	h["Trailer"] = []string{strings.Join(names, ", ")}
	return len(names)
}

// trail sends the trailers, the unannounced ones too.
func trail(h, trailer http.Header, announced int) {
	for name, v := range trailer {
		if len(trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = v
	}
}

// Who ended a response that was under way.
var (
	errClient = errors.New("the client is gone or takes nothing")
	errEgress = errors.New("no egress in time")
)

// cut counts a response that ends too early.
func (p *pool) cut(b *backend, err error) {
	switch {
	case errors.Is(err, errClient):
		p.gate.tally.cutByClient.Add(1)
	case errors.Is(err, errEgress):
		p.gate.tally.cutByEgress.Add(1)
	default:
		p.gate.tally.cutByBackend.Add(1)
		p.log.Debug("backend broke off its answer", "listener", p.gate.cfg.Name, "backend", b.name, "err", err)
	}
}

// relay copies a body. One of unknown length is a stream: what comes is flushed
// at once.
func (x *exchange) relay(res *http.Response, trailers bool) error {
	out := outlet{x: x, ctx: x.in.Context(), to: x.w, stream: res.ContentLength < 0 || eventStream(res.Header)}
	if x.in.ProtoMajor >= 2 && x.pool.gate.limits.WriteStall > 0 {
		out.stall = x.pool.gate.limits.WriteStall
	}
	if out.stream || trailers || out.stall > 0 {
		out.control = http.NewResponseController(x.w)
	}
	if out.stream || trailers {
		if err := out.flush(); err != nil { // the head, and chunks rather than a length
			return errClient
		}
	}
	if res.ContentLength == 0 || x.in.Method == http.MethodHead {
		return out.end()
	}
	buf := x.pool.buffer()
	defer x.pool.buffers.Put(buf)
	for {
		n, err := res.Body.Read((*buf)[:out.room()])
		if n > 0 {
			if werr := out.write((*buf)[:n]); werr != nil {
				return werr
			}
		}
		switch {
		case err == io.EOF:
			return out.end()
		case err != nil && x.in.Context().Err() != nil:
			return errClient
		case err != nil:
			return err
		}
	}
}

func eventStream(h http.Header) bool {
	ct := h["Content-Type"]
	return len(ct) > 0 && strings.HasPrefix(ct[0], "text/event-stream")
}

// outlet is where a body goes: within the egress budget, and never waiting for
// the client longer than the write stall. For HTTP/1 the connection sees to that
// (conn.go). A stream of HTTP/2 is held up by its own window too, so its writes
// have deadlines of their own.
type outlet struct {
	x       *exchange
	ctx     context.Context // ends a wait for egress
	to      io.Writer
	stream  bool
	stall   time.Duration // 0 where the connection's own is enough
	control *http.ResponseController
}

// room is how much to read at once.
func (o *outlet) room() int {
	if p := o.x.d.egress; p != nil {
		return p.piece(bufferBytes)
	}
	return bufferBytes
}

func (o *outlet) write(p []byte) error {
	for len(p) > 0 {
		n := len(p)
		if pace := o.x.d.egress; pace != nil {
			var err error
			if n, err = pace.take(o.ctx, n, o.x.pool.gate.limits.WriteStall); err != nil {
				return err
			}
		}
		o.deadline(true)
		if _, err := o.to.Write(p[:n]); err != nil {
			return errClient
		}
		p = p[n:]
	}
	if o.stream {
		if err := o.flush(); err != nil {
			return errClient
		}
	}
	o.deadline(false)
	return nil
}

func (o *outlet) flush() error {
	if o.control == nil {
		return nil
	}
	return o.control.Flush()
}

// end leaves a deadline for what the server itself has still to send.
func (o *outlet) end() error {
	o.deadline(true)
	return nil
}

func (o *outlet) deadline(on bool) {
	if o.stall <= 0 {
		return
	}
	var t time.Time
	if on {
		t = time.Now().Add(o.stall)
	}
	_ = o.control.SetWriteDeadline(t)
}
