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
	agreed  int64
	waiting undecided
	said    []ledger.Section // of the newest row, and their hash
	hash    uint32
}

type sighting struct {
	heard ledger.Heard
	hash  uint32
}

func (w *trail) note(h ledger.Heard, hash uint32) {
	w.rows[w.next%heardBack] = sighting{h, hash}
	w.next++
}

// find looks from the newest row back: that is the one asked for, as a rule. A row
// that this node was spared, or lost, had the content of the rows before and after
// it if those are alike.
func (w *trail) find(h ledger.Heard) (uint32, bool) {
	after := w.at(1)
	for i := 1; i <= heardBack; i++ {
		s := w.at(i)
		switch {
		case s.heard == h:
			return s.hash, true
		case s.heard.Inc != h.Inc:
			return 0, false
		case s.heard.Seq < h.Seq:
			return s.hash, i > 1 && s.hash == after.hash
		}
		after = s
	}
	return 0, false
}

// at is the i-th newest.
func (w *trail) at(i int) *sighting { return &w.rows[(w.next-i+heardBack)%heardBack] }

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
	t := c.trailOf(r.Node)
	if t.said != nil && alike(t.said, r.Sections) {
		return t.hash
	}
	t.said, t.hash = r.Sections, c.hashOf(r)
	return t.hash
}

func (c *Core) hashOf(r *ledger.Row) uint32 {
	c.content = c.content[:0]
	for i := range r.Sections {
		c.content = append(c.content, r.Sections[i].Ceiling)
		c.content = append(c.content, r.Sections[i].Demand...)
	}
	return contentHash(c.dir.Name(r.Node), c.content)
}

// viewHash is the digest of the views as of when they changed last.
type viewHash struct {
	due bool
	sum uint32
}

// digest is the digest of the present view, this node's next row included.
func (c *Core) digest() uint32 {
	if c.viewHash.due {
		c.viewHash = viewHash{sum: c.sumViews()}
	}
	return c.viewHash.sum
}

func (c *Core) sumViews() (sum uint32) {
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

// compare judges the digest of a row that was just merged. Where the rows it rests
// on have not all arrived, it is judged again when the next row of its publisher
// comes.
func (c *Core) compare(now int64, r *ledger.Row) {
	t := c.trailOf(r.Node)
	own := c.rowHash(r)
	t.note(ledger.Heard{Inc: r.Inc, Seq: r.Seq}, own)
	if w := t.waiting; w.row != nil {
		c.judge(now, w.row, w.hash)
		t.waiting = undecided{}
	}
	if r.Heard != nil && !c.judge(now, r, own) {
		c.trailOf(r.Node).waiting = undecided{r, own}
	}
}

// undecided is a row that could not be judged yet, and its content's hash.
type undecided struct {
	row  *ledger.Row
	hash uint32
}

// judge compares the digest of a row with what this node held of the rows that
// its publisher had heard. It reports false if one of them is not here.
func (c *Core) judge(now int64, r *ledger.Row, sum uint32) (decided bool) {
	live := c.budgets[0].View.Live // as of the last pass
	for i, m := range c.epoch.Roster {
		if m.ID == r.Node || !live[i] || int(m.ID) >= len(r.Heard) {
			continue
		}
		hash, ok := c.trailOf(m.ID).find(r.Heard[m.ID])
		if !ok {
			return false // older than remembered, or not arrived here: no word of agreement
		}
		sum += hash
	}
	if sum == r.Digest {
		c.trailOf(r.Node).agreed = now
	}
	return true
}

// Agrees reports whether a peer's rows matched within the last term.
func (c *Core) Agrees(now int64, id ledger.NodeID) bool {
	at := c.trailOf(id).agreed
	return at != 0 && now-at <= c.cfg.Term.Nanoseconds()
}
