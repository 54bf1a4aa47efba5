package core

import (
	"encoding/binary"
	"hash/fnv"

	"subak/allocator"
	"subak/allocator/ledger"
)

// Agreement is shown to operators; nothing is decided by it.
//
// A view is the set of rows a node allocates from, so its digest is the sum of
// the contents' hashes of those rows. Two nodes almost never hold the same rows
// at the same moment: some are always under way. But a row says which rows its
// publisher had heard. So a receiver adds up the hashes of exactly those and
// compares: equal means that the publisher allocates from the same facts as
// this node did when it held those rows.

// heardBack is how many rows of each node are remembered for that: seconds, at
// the highest rate of publication.
const heardBack = 64

// trail remembers the newest rows of one node.
type trail struct {
	rows [heardBack]sighting
	next int
	// agreed is when a row of the node last matched, lease clock; 0 for never.
	agreed int64
}

type sighting struct {
	heard ledger.Heard
	hash  uint32
}

func (w *trail) note(h ledger.Heard, hash uint32) {
	w.rows[w.next%heardBack] = sighting{h, hash}
	w.next++
}

// find looks from the newest row back: that is the one asked for, as a rule.
func (w *trail) find(h ledger.Heard) (uint32, bool) {
	for i := 1; i <= heardBack; i++ {
		s := &w.rows[(w.next-i+heardBack)%heardBack]
		if s.heard == h {
			return s.hash, true
		}
	}
	return 0, false
}

// trailOf returns the memory of a node's rows.
func (c *Core) trailOf(id ledger.NodeID) *trail {
	for int(id) >= len(c.trails) {
		c.trails = append(c.trails, trail{})
	}
	return &c.trails[id]
}

// contentHash condenses what a row brings to the allocation.
func contentHash(name string, content []allocator.Rate) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	var b [8]byte
	for _, r := range content {
		binary.BigEndian.PutUint64(b[:], uint64(r))
		_, _ = h.Write(b[:])
	}
	return h.Sum32()
}

// rowHash is the hash of a published row's content.
func (c *Core) rowHash(r *ledger.Row) uint32 {
	c.content = c.content[:0]
	for i := range r.Sections {
		c.content = append(c.content, r.Sections[i].Ceiling)
		c.content = append(c.content, r.Sections[i].Demand...)
	}
	return contentHash(c.dir.Name(r.Node), c.content)
}

// digest is the digest of the present view, this node's next row included.
func (c *Core) digest() (sum uint32) {
	for i, m := range c.epoch.Roster {
		c.content = c.content[:0]
		live := false
		for _, b := range c.budgets {
			live = b.View.Live[i]
			c.content = append(c.content, b.View.Ceilings[i])
			for k := range b.meters {
				c.content = append(c.content, b.View.Demand[k*len(b.Total)+i])
			}
		}
		if live {
			sum += contentHash(c.dir.Name(m.ID), c.content)
		}
	}
	return sum
}

// compare judges the digest of a row that was just merged.
func (c *Core) compare(now int64, r *ledger.Row) {
	own := c.rowHash(r)
	c.trailOf(r.Node).note(ledger.Heard{Inc: r.Inc, Seq: r.Seq}, own)
	sum := own
	live := c.budgets[0].View.Live // as of the last pass
	for i, m := range c.epoch.Roster {
		if m.ID == r.Node || !live[i] || int(m.ID) >= len(r.Heard) {
			continue
		}
		hash, ok := c.trailOf(m.ID).find(r.Heard[m.ID])
		if !ok {
			return // older than remembered, or not arrived here: no word of agreement
		}
		sum += hash
	}
	if sum == r.Digest {
		c.trailOf(r.Node).agreed = now
	}
}

// Agrees reports whether a peer's rows matched within the last term.
func (c *Core) Agrees(now int64, id ledger.NodeID) bool {
	at := c.trailOf(id).agreed
	return at != 0 && now-at <= c.cfg.Term.Nanoseconds()
}
