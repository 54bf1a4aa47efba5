package gossip

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// fakeNet is an in-memory network for synctest bubbles: delay, loss and cuts per
// directed pair of addresses, seeded. Everything waits on channels and timers.
type fakeNet struct {
	mu    sync.Mutex
	rng   *rand.Rand
	hosts map[string]*fakeTransport
	rule  func(src, dst string) link
	// shut says what does not get in at a host, whoever sends; what it sends and
	// the streams that it opens are not touched. nil for nothing.
	shut func(dst string) (packets, streams bool)
}

type link struct {
	delay time.Duration
	loss  float64
	cut   bool
}

func newFakeNet(seed uint64) *fakeNet {
	return &fakeNet{
		rng:   rand.New(rand.NewPCG(seed, 7)),
		hosts: make(map[string]*fakeTransport),
		rule:  func(string, string) link { return link{delay: 20 * time.Millisecond} },
	}
}

func (n *fakeNet) setRule(rule func(src, dst string) link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rule = rule
}

// way returns the link and whether this packet is lost on it.
func (n *fakeNet) way(src, dst string) (link, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.rule(src, dst)
	return l, l.cut || l.loss > 0 && n.rng.Float64() < l.loss
}

func (n *fakeNet) shutAt(dst string) (packets, streams bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shut == nil {
		return false, false
	}
	return n.shut(dst)
}

func (n *fakeNet) host(addr string) *fakeTransport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[addr]
}

// attach puts a new host at addr, in place of an earlier one.
func (n *fakeNet) attach(addr string) *fakeTransport {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := &fakeTransport{
		net: n, addr: addr,
		packets: make(chan *memberlist.Packet, 1024),
		streams: make(chan net.Conn),
		done:    make(chan struct{}),
	}
	n.hosts[addr] = t
	return t
}

type fakeTransport struct {
	net     *fakeNet
	addr    string
	packets chan *memberlist.Packet
	streams chan net.Conn
	once    sync.Once
	done    chan struct{}
}

func (t *fakeTransport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	a, err := net.ResolveUDPAddr("udp", t.addr)
	if err != nil {
		return nil, 0, err
	}
	return a.IP.To4(), a.Port, nil
}

func (t *fakeTransport) PacketCh() <-chan *memberlist.Packet { return t.packets }
func (t *fakeTransport) StreamCh() <-chan net.Conn           { return t.streams }

func (t *fakeTransport) Shutdown() error {
	t.once.Do(func() { close(t.done) })
	return nil
}

func (t *fakeTransport) up() bool {
	select {
	case <-t.done:
		return false
	default:
		return true
	}
}

func (t *fakeTransport) WriteTo(b []byte, addr string) (time.Time, error) {
	now := time.Now()
	l, lost := t.net.way(t.addr, addr)
	packets, _ := t.net.shutAt(addr)
	if lost || packets || !t.up() {
		return now, nil
	}
	p := &memberlist.Packet{Buf: append([]byte(nil), b...), From: fakeAddr(t.addr)}
	time.AfterFunc(l.delay, func() {
		to := t.net.host(addr)
		if to == nil || !to.up() {
			return
		}
		p.Timestamp = time.Now()
		select {
		case to.packets <- p:
		default: // the receive buffer is full
		}
	})
	return now, nil
}

func (t *fakeTransport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	to := t.net.host(addr)
	out, lostOut := t.net.way(t.addr, addr)
	back, lostBack := t.net.way(addr, t.addr)
	if _, streams := t.net.shutAt(addr); out.cut || back.cut || streams {
		return nil, t.fail(timeout, os.ErrDeadlineExceeded)
	}
	if lostOut || lostBack { // one SYN again
		time.Sleep(time.Second)
	}
	time.Sleep(out.delay + back.delay)
	if to == nil || !to.up() {
		return nil, t.fail(0, os.ErrClosed)
	}
	a, b := net.Pipe()
	near := &fakeConn{Conn: a, net: t.net, src: t.addr, dst: addr, closed: make(chan struct{})}
	far := &fakeConn{Conn: b, net: t.net, src: addr, dst: t.addr, closed: make(chan struct{})}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case to.streams <- far:
		return near, nil
	case <-to.done:
		return nil, t.fail(0, os.ErrClosed)
	case <-timer.C:
		return nil, t.fail(0, os.ErrDeadlineExceeded)
	}
}

func (t *fakeTransport) fail(after time.Duration, err error) error {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.done:
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

type fakeAddr string

func (a fakeAddr) Network() string { return "fake" }
func (a fakeAddr) String() string  { return string(a) }

// fakeConn delays writes and holds them while the link is cut.
type fakeConn struct {
	net.Conn
	net      *fakeNet
	src, dst string

	mu       sync.Mutex
	deadline time.Time
	once     sync.Once
	closed   chan struct{}
}

func (c *fakeConn) LocalAddr() net.Addr  { return fakeAddr(c.src) }
func (c *fakeConn) RemoteAddr() net.Addr { return fakeAddr(c.dst) }

func (c *fakeConn) SetDeadline(d time.Time) error {
	c.mu.Lock()
	c.deadline = d
	c.mu.Unlock()
	return c.Conn.SetDeadline(d)
}

func (c *fakeConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *fakeConn) Write(b []byte) (int, error) {
	l, _ := c.net.way(c.src, c.dst)
	wait := l.delay
	for {
		select {
		case <-time.After(wait):
		case <-c.closed:
			return 0, net.ErrClosed
		}
		if l, _ = c.net.way(c.src, c.dst); !l.cut {
			return c.Conn.Write(b)
		}
		c.mu.Lock()
		late := !c.deadline.IsZero() && time.Now().After(c.deadline)
		c.mu.Unlock()
		if late {
			return 0, fmt.Errorf("write to %s: %w", c.dst, os.ErrDeadlineExceeded)
		}
		wait = 100 * time.Millisecond
	}
}
