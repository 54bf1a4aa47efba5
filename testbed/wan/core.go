//go:build linux

package wan

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// late is from when on a delivery counts as late.
const late = int64(time.Millisecond)

// table is the rules in force. It is never changed, only replaced.
type table struct {
	rules []Rule   // [src*hosts+dst]
	cuts  []uint32 // changes whenever the link is blocked
}

// core is the switch without its devices: told of packets and of the time, it
// says which packets are due. Only replace and snapshot may be called from
// another goroutine than the rest.
type core struct {
	hosts    int
	mtu      int
	capacity int // packets in flight at most
	links    []link
	nat      *nat // nil when no host has any
	queue    queue
	order    uint64
	free     [][]byte // buffers of length mtu
	counts   counts

	edit  sync.Mutex // one replace at a time
	table atomic.Pointer[table]
}

// counts is Stats while it grows.
type counts struct {
	received, delivered, lost, blocked, queueDrop, overflow, unroutable atomic.Int64
	malformed, refused, duplicated, reordered, late, lateMax, inFlight  atomic.Int64
	untranslated                                                        atomic.Int64
}

func newCore(hosts, mtu, capacity int, seed uint64) *core {
	c := &core{hosts: hosts, mtu: mtu, capacity: capacity}
	for src := range hosts {
		for dst := range hosts {
			c.links = append(c.links, newLink(seed, src, dst))
		}
	}
	c.table.Store(&table{rules: make([]Rule, hosts*hosts), cuts: make([]uint32, hosts*hosts)})
	return c
}

// replace puts rules in force, all at once: [src*hosts+dst].
func (c *core) replace(rules []Rule) error {
	c.edit.Lock()
	defer c.edit.Unlock()
	old := c.table.Load()
	if len(rules) != len(old.rules) {
		return fmt.Errorf("wan: %d rules for %d hosts", len(rules), c.hosts)
	}
	next := &table{rules: make([]Rule, len(rules)), cuts: slices.Clone(old.cuts)}
	for at, r := range rules {
		next.rules[at] = r.within()
		if r.Block {
			next.cuts[at]++
		}
	}
	c.table.Store(next)
	return nil
}

// receive takes a packet that host sent at now. What is kept is copied; the
// packet may be changed.
func (c *core) receive(host int, packet []byte, now int64) {
	c.counts.received.Add(1)
	src, dst, ok := ends(packet)
	if !ok || len(packet) > c.mtu {
		c.counts.malformed.Add(1)
		return
	}
	pass := true
	if c.nat != nil && src == host {
		dst, pass = c.nat.translate(host, packet)
	}
	switch {
	case !pass:
		c.counts.untranslated.Add(1)
	case dst < 0 || dst >= c.hosts:
		c.counts.unroutable.Add(1)
	case src != host:
		c.counts.malformed.Add(1)
	default:
		c.enter(src*c.hosts+dst, packet, now)
	}
}

// enter puts a packet on a link.
func (c *core) enter(at int, packet []byte, now int64) {
	t := c.table.Load()
	if len(c.queue) >= c.capacity {
		c.links[at].number++ // the fates of later packets stay theirs
		c.counts.overflow.Add(1)
		return
	}
	p := c.links[at].plan(&t.rules[at], now, len(packet))
	switch p.fate {
	case lost:
		c.counts.lost.Add(1)
	case blocked:
		c.counts.blocked.Add(1)
	case queueFull:
		c.counts.queueDrop.Add(1)
	case passed:
		if p.held {
			c.counts.reordered.Add(1)
		}
		for i := range p.copies {
			if len(c.queue) >= c.capacity {
				break // only a second copy, which nobody has counted yet
			}
			if i > 0 {
				c.counts.duplicated.Add(1)
			}
			c.order++
			c.queue.push(flight{due: p.due, order: c.order, link: at, cuts: t.cuts[at], data: c.keep(packet)})
		}
		c.counts.inFlight.Store(int64(len(c.queue)))
	}
}

// next takes out a packet that is due at now. False: none is, and wait is how
// many ns until one will be, negative when none is under way. The caller hands
// the bytes back to release.
func (c *core) next(now int64) (dst int, packet []byte, wait int64, ok bool) {
	for len(c.queue) > 0 {
		if wait := c.queue[0].due - now; wait > 0 {
			return 0, nil, wait, false
		}
		f := c.queue.pop()
		c.counts.inFlight.Store(int64(len(c.queue)))
		if f.cuts != c.table.Load().cuts[f.link] {
			c.counts.blocked.Add(1)
			c.release(f.data)
			continue
		}
		if over := now - f.due; over > late {
			c.counts.late.Add(1)
			c.counts.lateMax.Store(max(over, c.counts.lateMax.Load()))
		}
		return f.link % c.hosts, f.data, 0, true
	}
	return 0, nil, -1, false
}

// keep copies a packet into a buffer of its own.
func (c *core) keep(packet []byte) []byte {
	var b []byte
	if n := len(c.free); n > 0 {
		b, c.free = c.free[n-1], c.free[:n-1]
	} else {
		b = make([]byte, c.mtu)
	}
	return b[:copy(b[:c.mtu], packet)]
}

// release takes a buffer back.
func (c *core) release(b []byte) { c.free = append(c.free, b[:c.mtu]) }

// snapshot reads the counts.
func (c *core) snapshot() Stats {
	n := &c.counts
	return Stats{
		Received: n.received.Load(), Delivered: n.delivered.Load(),
		Lost: n.lost.Load(), Blocked: n.blocked.Load(), QueueDrop: n.queueDrop.Load(),
		Overflow: n.overflow.Load(), Unroutable: n.unroutable.Load(),
		Malformed: n.malformed.Load(), Untranslated: n.untranslated.Load(), Refused: n.refused.Load(),
		Duplicated: n.duplicated.Load(), Reordered: n.reordered.Load(),
		Late: n.late.Load(), LateMax: time.Duration(n.lateMax.Load()), InFlight: n.inFlight.Load(),
	}
}
