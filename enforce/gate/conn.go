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
type guarded struct {
	net.Conn
	server   *Server
	framing  framing // of the one reader at a time
	bad      bool    // likewise
	hijacked atomic.Bool
}

// Read implements net.Conn. At a fault it hands on what came before, and then
// nothing but an error, which net/http answers with 400.
func (c *guarded) Read(p []byte) (int, error) {
	if c.bad {
		return 0, errFraming
	}
	n, err := c.Conn.Read(p)
	if n == 0 || c.hijacked.Load() {
		return n, err
	}
	if good := c.framing.check(p[:n]); good < n || c.framing.fault != "" {
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
