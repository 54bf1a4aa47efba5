package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// maxInbound bounds accepted streams. Push/pulls last a few round trips, and
	// whoever is turned away comes again within seconds.
	maxInbound = 128
	// maxStreamBytes bounds what is read from one stream: the state blob and
	// the list of members fit, and an unauthenticated length of 20 MB does not.
	maxStreamBytes = MaxState + 2<<20
)

var errStreamTooLong = errors.New("gossip stream: over the limit")

// transport stands between memberlist and the network. It counts bytes, gives
// the advertised address, and knows every open stream, so that closing it ends
// memberlist's goroutines at once rather than after their time-outs.
type transport struct {
	inner   memberlist.Transport
	adv     netip.AddrPort // invalid: ask inner
	metrics *metrics
	dial    func(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error)

	ctx     context.Context
	cancel  context.CancelFunc
	streams chan net.Conn
	wg      sync.WaitGroup

	mu    sync.Mutex
	conns map[*trackedConn]struct{} // guarded by mu; nil once closed
	in    int                       // accepted ones among conns, guarded by mu
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// listen opens UDP and TCP sockets on bind. With port 0 it retries, because the
// free TCP port the kernel picks may be taken for UDP.
func listen(bind netip.AddrPort, logger *log.Logger) (*sockets, netip.AddrPort, error) {
	tries := 1
	if bind.Port() == 0 {
		tries = 10
	}
	var err error
	for range tries {
		var s *sockets
		if s, err = openSockets(bind, logger); err == nil {
			return s, netip.AddrPortFrom(bind.Addr(), s.port()), nil
		}
	}
	return nil, netip.AddrPort{}, fmt.Errorf("gossip listen on %v: %w", bind, err)
}

func newTransport(inner memberlist.Transport, adv netip.AddrPort, m *metrics) *transport {
	ctx, cancel := context.WithCancel(context.Background())
	t := &transport{
		inner: inner, adv: adv, metrics: m,
		ctx: ctx, cancel: cancel,
		streams: make(chan net.Conn),
		conns:   make(map[*trackedConn]struct{}),
	}
	t.dial = t.dialInner
	if s, real := inner.(*sockets); real {
		t.dial = dialTCP
		s.received.Store(&m.datagramBytes)
	}
	t.wg.Go(t.forward)
	return t
}

// forward passes accepted streams on, tracked.
func (t *transport) forward() {
	for {
		select {
		case c := <-t.inner.StreamCh():
			tracked, err := t.track(c, true)
			if err != nil {
				continue // closed by track
			}
			select {
			case t.streams <- tracked:
			case <-t.ctx.Done():
				_ = tracked.Close()
				return
			}
		case <-t.ctx.Done():
			return
		}
	}
}

func (t *transport) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	if !t.adv.IsValid() {
		return t.inner.FinalAdvertiseAddr(ip, port)
	}
	return t.adv.Addr().AsSlice(), int(t.adv.Port()), nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.inner.PacketCh() }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streams }

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	t.metrics.wireBytes.WithLabelValues("out", "udp").Add(float64(len(b)))
	if n, ok := t.inner.(memberlist.NodeAwareTransport); ok {
		return n.WriteToAddress(b, a)
	}
	return t.inner.WriteTo(b, a.Addr)
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	c, err := t.dial(t.ctx, a.Addr, timeout)
	if err != nil {
		return nil, err
	}
	return t.track(c, false)
}

// dialTCP ends when the transport closes.
func dialTCP(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	return d.DialContext(ctx, "tcp", addr)
}

func (t *transport) dialInner(_ context.Context, addr string, timeout time.Duration) (net.Conn, error) {
	return t.inner.DialTimeout(addr, timeout)
}

// Shutdown ends all streams and the network below. memberlist calls it before
// it stops its own readers; where there are none (it failed to start), what the
// network still delivers is emptied here, as its listeners wait for that.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	conns := t.conns
	t.conns = nil
	t.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close()
	}
	t.cancel()
	down := make(chan struct{})
	t.wg.Go(func() { t.drain(down) })
	err := t.inner.Shutdown()
	close(down)
	t.wg.Wait()
	return err
}

func (t *transport) drain(down <-chan struct{}) {
	for {
		select {
		case c := <-t.inner.StreamCh():
			_ = c.Close()
		case <-t.inner.PacketCh():
		case <-down:
			return
		}
	}
}

// track takes charge of a stream, or closes it.
func (t *transport) track(c net.Conn, accepted bool) (*trackedConn, error) {
	tc := &trackedConn{Conn: c, t: t, accepted: accepted, left: maxStreamBytes}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	if accepted {
		if t.in >= maxInbound {
			t.metrics.refused.WithLabelValues(reasonBusy).Inc()
			_ = c.Close()
			return nil, net.ErrClosed
		}
		t.in++
	}
	t.conns[tc] = struct{}{}
	return tc, nil
}

type trackedConn struct {
	net.Conn
	t        *transport
	accepted bool
	left     int // bytes that may still be read; one reader at a time
}

func (c *trackedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errStreamTooLong
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	c.t.metrics.wireBytes.WithLabelValues("in", "tcp").Add(float64(n))
	return n, err
}

func (c *trackedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.t.metrics.wireBytes.WithLabelValues("out", "tcp").Add(float64(n))
	return n, err
}

// Close may be called more than once.
func (c *trackedConn) Close() error {
	c.t.mu.Lock()
	if _, open := c.t.conns[c]; open {
		delete(c.t.conns, c)
		if c.accepted {
			c.t.in--
		}
	}
	c.t.mu.Unlock()
	return c.Conn.Close()
}
