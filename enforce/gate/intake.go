package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
)

// intake is a listener that net/http accepts from. What it gives out is counted
// and bounded, and checked for its framing where it is HTTP/1. With TLS the
// handshake is done here, because only then is it known which of the two it is.
type intake struct {
	net.Listener
	server *Server
	ready  chan accepted // nil without TLS
	keeper patience
}

type accepted struct {
	conn net.Conn
	err  error
}

// Accept implements net.Listener.
func (in *intake) Accept() (net.Conn, error) {
	if in.ready == nil {
		c, err := in.next()
		if err != nil {
			return nil, err
		}
		return &guarded{Conn: c, server: in.server}, nil
	}
	select {
	case a := <-in.ready:
		return a.conn, a.err
	case <-in.server.stopped.Done():
		return nil, http.ErrServerClosed
	}
}

// next accepts a connection for which there is room.
func (in *intake) next() (*steady, error) {
	s := in.server
	for {
		c, err := in.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if n := s.open.Add(1); s.limits.Connections > 0 && n > int64(s.limits.Connections) {
			s.open.Add(-1)
			s.refused.Add(1)
			c.Close()
			continue
		}
		return &steady{Conn: in.keeper.keep(c), server: s, stall: s.limits.WriteStall}, nil
	}
}

// shakeHands accepts, and hands on what has shaken hands, until the server stops.
// An error of accept is net/http's to judge: it waits and asks again, or gives up.
func (in *intake) shakeHands() {
	config := in.server.files.TLS()
	for {
		c, err := in.next()
		if err == nil {
			go in.shake(c, config)
			continue
		}
		if !in.hand(accepted{err: err}) || errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// hand reports whether somebody took it.
func (in *intake) hand(a accepted) bool {
	select {
	case in.ready <- a:
		return true
	case <-in.server.stopped.Done():
		return false
	}
}

func (in *intake) shake(c *steady, config *tls.Config) {
	s := in.server
	ctx, cancel := context.WithTimeout(s.stopped, s.limits.HeaderTimeout)
	defer cancel()
	t := tls.Server(c, config)
	if err := t.HandshakeContext(ctx); err != nil {
		s.handshakes.Add(1)
		s.debug("TLS handshake failed", "peer", c.RemoteAddr().String(), "err", err)
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) && plain.Conn != nil && 'A' <= plain.RecordHeader[0] && plain.RecordHeader[0] <= 'Z' {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		}
		_ = c.Close()
		return
	}
	var conn net.Conn = t
	if t.ConnectionState().NegotiatedProtocol != "h2" {
		conn = &guardedTLS{guarded{Conn: t, server: s}, t}
	}
	if !in.hand(accepted{conn: conn}) {
		conn.Close()
	}
}
