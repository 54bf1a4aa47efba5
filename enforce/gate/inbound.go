package gate

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// inbound is a client's body on its way to the backend. The transport reads it on
// a goroutine of its own, which may outlive the handler.
type inbound struct {
	src     io.ReadCloser // nil without a body
	control *http.ResponseController
	http2   bool
	stall   time.Duration // 0 for ever
	left    int64         // bytes still allowed
	started atomic.Bool
	hurried atomic.Bool // the wait for the client was ended by settle
	bad     atomic.Pointer[bodyFault]

	reading sync.Mutex // held while src is read

	mu      sync.Mutex // guards ended, and deadlines after the handler's return
	ended   bool
	whole   bool      // all of it was read
	renewal time.Time // when the deadline is to be set anew; HTTP/1

	from, to http.Header // trailers: the client's, and those passed on
}

// bodyFault is what is wrong with a client's body, as an answer to it.
type bodyFault struct {
	status int
	detail string
}

func (f *bodyFault) Error() string { return f.detail }

func (b *inbound) init(x *exchange) {
	lim := &x.pool.gate.limits
	b.src, b.stall, b.http2 = x.in.Body, lim.BodyStall, x.in.ProtoMajor >= 2
	b.left = lim.BodyBytes
	if b.left == 0 {
		b.left = 1<<63 - 1
	}
	b.control = http.NewResponseController(x.w)
	// An answer may come before the body ends, and must not wait for it.
	_ = b.control.EnableFullDuplex() // HTTP/2 always is
}

// begun reports whether anything was asked of the body.
func (b *inbound) begun() bool { return b.started.Load() }

// fault is what went wrong with the body, nil if nothing did.
func (b *inbound) fault() *bodyFault { return b.bad.Load() }

// Read implements io.Reader.
func (b *inbound) Read(p []byte) (int, error) {
	b.started.Store(true)
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.over() {
		return 0, http.ErrBodyReadAfterClose
	}
	b.deadline(true)
	n, err := b.src.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.blame(&bodyFault{http.StatusRequestEntityTooLarge, "the body is too large"})
	}
	if err == nil {
		if b.http2 {
			b.deadline(false)
		}
		return n, nil
	}
	switch {
	case err == io.EOF:
		b.deadline(false)
		b.finish()
		b.mu.Lock()
		b.whole = true
		b.mu.Unlock()
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded) && b.hurried.Load():
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, b.blame(&bodyFault{http.StatusRequestTimeout, "the body did not come in time"})
	case errors.Is(err, http.ErrBodyReadAfterClose):
		return n, err
	}
	return n, b.blame(&bodyFault{http.StatusBadRequest, "the body is malformed or was cut off"})
}

// Close implements io.Closer. The transport closes what it gives up; the body
// may still be needed for another attempt, so it is end that closes it.
func (b *inbound) Close() error { return nil }

// end is called when the handler returns: nobody may read or set deadlines then.
// net/http reads some of what is left, so that the connection can be used again;
// that has a deadline too, and of a bad body nothing more is waited for. (Closing
// the body here would read as well, and hold up an answer that came early.)
func (b *inbound) end() {
	if b.src == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	switch {
	case b.whole:
	case b.fault() != nil:
		_ = b.control.SetReadDeadline(longAgo())
	case b.stall > 0:
		_ = b.control.SetReadDeadline(time.Now().Add(b.stall))
	}
}

func (b *inbound) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

func longAgo() time.Time { return time.Unix(1, 0) }

// settle waits until a read that is under way has come to its end, and ends it if
// it waits for the client. A request's context is canceled by the failure of its
// connection before the read that failed can say why.
func (b *inbound) settle() {
	if !b.begun() {
		return
	}
	if !b.reading.TryLock() {
		b.hurried.Store(true)
		_ = b.control.SetReadDeadline(longAgo())
		b.reading.Lock()
	}
	b.reading.Unlock()
}

func (b *inbound) blame(f *bodyFault) error {
	b.bad.CompareAndSwap(nil, f)
	return f
}

// deadline bounds the wait for the next bytes, or ends that. In HTTP/1 it is set
// anew only when a third of it is used up, and then half as long again, so that a
// busy body costs no timer; in HTTP/2 one that passes while nobody reads would
// end the stream, so it is set for each read.
func (b *inbound) deadline(on bool) {
	if b.stall <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
	case !on:
		b.renewal = time.Time{}
		_ = b.control.SetReadDeadline(time.Time{})
	case b.http2:
		_ = b.control.SetReadDeadline(time.Now().Add(b.stall))
	default:
		if now := time.Now(); now.After(b.renewal) {
			b.renewal = now.Add(b.stall / 2)
			_ = b.control.SetReadDeadline(now.Add(b.stall + b.stall/2))
		}
	}
}

// trailers prepares the trailers to pass on: those that were announced and that
// nobody could take for something that the request was judged by (RFC 9110,
// 6.5.1). Their values come with the end of the body.
func (b *inbound) trailers(g *Gate, announced http.Header) http.Header {
	b.from, b.to = announced, make(http.Header, len(announced))
	for name := range announced {
		if trailing(name) && !slices.Contains(g.judged, name) && !g.twin(name) {
			b.to[name] = nil
		}
	}
	if len(b.to) == 0 {
		return nil
	}
	return b.to
}

// finish fills the trailers in, on the goroutine that will send them.
func (b *inbound) finish() {
	for name := range b.to {
		b.to[name] = b.from[name]
	}
}

// trailing reports whether a field may be a trailer: not one that frames, routes,
// authenticates or modifies the request.
func trailing(name string) bool {
	switch name {
	case "Host", "Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Authorization", "Cookie", "Set-Cookie",
		"Cache-Control", "Expect", "Max-Forwards", "Pragma", "Range":
		return false
	}
	return !hopByHop(name) && !forwarding(name) && !strings.HasPrefix(name, "If-")
}
