package gate

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// patience keeps the read deadlines of a server's connections. net/http sets and
// clears two of them around every request, for the head and for idleness; both lie
// so far off that a quick client never meets them, and setting and stopping the
// runtime's timers takes one part in twenty of a small answer's CPU. So a deadline
// that lies beyond the next look, which is a second away, is only noted; each look
// hands those to the kernel's poller that are due before the one after it. A
// deadline is met as exactly as without, but for a process that was paused: then up
// to a look late.
//
// The zero value is ready. Looks are made while there are connections.
type patience struct {
	begin  time.Time    // set before the first connection
	coarse atomic.Int64 // time of the last look, nanoseconds after begin

	mu   sync.Mutex // guards the following; locked before a connection's
	all  map[*patient]struct{}
	over chan struct{} // ends the looks; nil while there are none
}

const lookEvery = time.Second

// patient is one connection. Its read deadline may be set by several goroutines.
type patient struct {
	net.Conn
	of *patience

	mu sync.Mutex
	// want and armed are the deadline set, and the one that the poller has, in
	// nanoseconds after begin; 0 is none. Guarded by mu.
	want, armed int64
}

// keep takes a connection in until it is closed.
func (p *patience) keep(c net.Conn) *patient {
	k := &patient{Conn: c, of: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[*patient]struct{}{}
	}
	p.all[k] = struct{}{}
	if p.over == nil {
		p.over = make(chan struct{})
		p.coarse.Store(int64(time.Since(p.begin)))
		go p.look(p.over)
	}
	return k
}

func (p *patience) look(over <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		p.coarse.Store(int64(time.Since(p.begin)))
		p.mu.Lock()
		for c := range p.all {
			c.mu.Lock()
			_ = c.arm() // fails on one that is being closed
			c.mu.Unlock()
		}
		p.mu.Unlock()
	}
}

// drop forgets a connection, and ends the looks with the last.
func (p *patience) drop(c *patient) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, c)
	if len(p.all) == 0 && p.over != nil {
		close(p.over)
		p.over = nil
	}
}

// SetReadDeadline implements net.Conn.
func (c *patient) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = 0
	if !t.IsZero() {
		c.want = max(1, int64(t.Sub(c.of.begin)))
	}
	return c.arm()
}

// arm tells the poller what it must know before the look after next. c.mu is held.
func (c *patient) arm() error {
	soon := c.want
	if soon > c.of.coarse.Load()+2*int64(lookEvery) {
		soon = 0
	}
	if soon == c.armed {
		return nil
	}
	c.armed = soon
	if soon == 0 {
		return c.Conn.SetReadDeadline(time.Time{})
	}
	return c.Conn.SetReadDeadline(c.of.begin.Add(time.Duration(soon)))
}

// SetDeadline implements net.Conn.
func (c *patient) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite lets net/http say goodbye before it closes.
func (c *patient) CloseWrite() error { return closeWrite(c.Conn) }

// Close implements net.Conn.
func (c *patient) Close() error {
	c.of.drop(c)
	return c.Conn.Close()
}
