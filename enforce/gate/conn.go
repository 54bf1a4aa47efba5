package gate

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// steady is a client's connection whose writes cannot wait for the client for
// ever. It owns the write deadline: the one that net/http clears after each
// answer is left alone, so that a busy connection sets a timer about once per
// stall limit and not at each write.
type steady struct {
	net.Conn
	server  *Server
	stall   time.Duration // 0 for ever
	renewal atomic.Int64  // nanoseconds after the server's begin
	closed  atomic.Bool
}

// Write implements net.Conn. It fails when the client has taken less than all of
// p after between one and one and a half times the stall limit.
func (c *steady) Write(p []byte) (int, error) {
	if c.stall > 0 {
		now := time.Since(c.server.begin)
		if int64(now) >= c.renewal.Load() {
			c.renewal.Store(int64(now + c.stall/2))
			if err := c.Conn.SetWriteDeadline(c.server.begin.Add(now + c.stall + c.stall/2)); err != nil {
				return 0, err
			}
		}
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn; it clears none.
func (c *steady) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && c.stall > 0 {
		return nil
	}
	c.renewal.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *steady) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite lets net/http say goodbye before it closes.
func (c *steady) CloseWrite() error { return closeWrite(c.Conn) }

// Close implements net.Conn.
func (c *steady) Close() error {
	if !c.closed.Swap(true) {
		c.server.open.Add(-1)
	}
	return c.Conn.Close()
}

func closeWrite(c net.Conn) error {
	if cw, ok := c.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return nil
}

var errFraming = errors.New("gate: the connection's framing is ambiguous")

// guarded is an HTTP/1 connection whose framing is checked before net/http reads
// it, until it is hijacked. In clear text it may turn out to be HTTP/2.
//
// While a handler runs net/http reads a byte ahead to see whether the client is gone,
// and calls that read off by a deadline in the past: two goroutines and five calls of
// the system or the runtime for each request. A server that only answers checks has its
// answer before that could matter, so there such a read finds nothing, at once.
type guarded struct {
	net.Conn
	server   *Server
	framing  framing // of the one reader at a time
	bad      bool    // likewise
	hijacked atomic.Bool
	settled  atomic.Bool // all that was read are whole requests of HTTP/1
}

// Read implements net.Conn. At a fault it hands on what came before, and then
// nothing but an error, which net/http answers with 400.
func (c *guarded) Read(p []byte) (int, error) {
	if c.bad {
		return 0, errFraming
	}
	if len(p) == 1 && c.unwatched() {
		return 0, nil
	}
	n, err := c.Conn.Read(p)
	if n == 0 || c.hijacked.Load() {
		return n, err
	}
	good := c.framing.check(p[:n])
	if c.server.unwatched {
		c.settled.Store(c.framing.between())
	}
	if good < n || c.framing.fault != "" {
		c.bad = true
		c.server.misframed.Add(1)
		c.server.debug("connection refused for its framing", "peer", c.RemoteAddr().String(), "fault", c.framing.fault)
		if good == 0 {
			return 0, errFraming
		}
		return good, nil
	}
	return n, err
}

// unwatched reports whether nobody needs to know now that the client is gone. Between
// two requests net/http reads more than one byte at a time.
func (c *guarded) unwatched() bool {
	return c.server.unwatched && c.settled.Load() && !c.hijacked.Load()
}

// SetReadDeadline implements net.Conn. A read that found nothing at once need not be
// called off: settled cannot change before net/http, which sets this deadline, reads on.
func (c *guarded) SetReadDeadline(t time.Time) error {
	if c.server.unwatched && !t.IsZero() && t.Before(c.server.begin) && c.unwatched() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite lets net/http say goodbye before it closes.
func (c *guarded) CloseWrite() error { return closeWrite(c.Conn) }

// Close implements net.Conn.
func (c *guarded) Close() error {
	if c.hijacked.Load() {
		c.server.forget(c)
	}
	return c.Conn.Close()
}

// guardedTLS also tells net/http about the TLS below.
type guardedTLS struct {
	guarded
	tls *tls.Conn
}

// ConnectionState tells net/http what Request.TLS is.
func (c *guardedTLS) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }
