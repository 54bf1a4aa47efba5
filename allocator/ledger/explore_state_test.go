package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"subak/allocator"
)

// Bounds of a small world. They size arrays, so that a state is one flat value.
const (
	mostNodes  = 3
	mostLives  = 8  // incarnations of one name are 1 to mostLives-1
	mailKept   = 2  // rows on their way from one node to another
	maxPathSeq = 62 // sequence numbers fit a 64-bit mask with the next one
)

// actor is one live process: the ledger and what its shell holds. An actor that
// is part of a state never changes again; a move works on a clone, so that states
// share the actors which a move left alone.
type actor struct {
	l       *Ledger
	plane   []Step // what the data plane enforces, by the process's own clock
	written uint64 // StoredVersion of what is on disk
}

// instant is one state of a small world: every process, every row that may still
// arrive, every disk.
type instant struct {
	t      int64 // real time in steps
	actors [mostNodes]*actor
	// mail[i][j] are the rows from i that j may yet get, oldest first. Delivery
	// does not remove a row (it may come twice); a row that is never delivered is
	// lost.
	mail [mostNodes][mostNodes][mailKept]*Row
	disk [mostNodes]*Stored
	// lives is how many incarnations each name has used.
	lives    [mostNodes]uint8
	crashes  int8  // still allowed
	edited   uint8 // set of the edits made
	greatest uint8 // index of the greatest epoch activated so far
}

func (p *actor) clone() *actor {
	return &actor{l: cloneLedger(p.l), plane: slices.Clone(p.plane), written: p.written}
}

// cloneLedger copies all that may change in l. Rows, epochs and the directory are
// immutable and shared. What it must cover is checked by
// TestExplorerCopiesAndTellsApartEveryField.
func cloneLedger(l *Ledger) *Ledger {
	c := *l
	c.market, c.plan = market{}, nil // scratch within one call
	c.books = make([]*book, len(l.books))
	for i, b := range l.books {
		c.books[i] = cloneBook(b)
	}
	c.layouts = make([]*layout, len(l.layouts))
	for i, y := range l.layouts {
		c.layouts[i] = cloneLayout(y, l.books, c.books)
	}
	c.peers = slices.Clone(l.peers)
	for k := range c.peers {
		if y := c.peers[k].layout; y != nil {
			c.peers[k].layout = c.layouts[slices.Index(l.layouts, y)]
		}
	}
	c.log.entries = slices.Clone(l.log.entries)
	c.position = slices.Clone(l.position)
	c.parent = slices.Clone(l.parent)
	c.wait = slices.Clone(l.wait)
	c.formerLent = slices.Clone(l.formerLent)
	c.lent = slices.Clone(l.lent)
	c.onDisk = slices.Clone(l.onDisk)
	c.distrusted = slices.Clone(l.distrusted)
	return &c
}

func cloneBook(b *book) *book {
	c := *b
	c.demand = slices.Clone(b.demand)
	c.in = slices.Clone(b.in)
	c.caps = slices.Clone(b.caps)
	c.want = slices.Clone(b.want)
	c.out = make([][]lentRow, len(b.out))
	for j := range b.out {
		c.out[j] = slices.Clone(b.out[j])
	}
	return &c
}

// cloneLayout copies y, whose accounts are among from, for a ledger with the
// accounts to.
func cloneLayout(y *layout, from, to []*book) *layout {
	c := *y
	c.books = make([]*book, len(y.books))
	for i, b := range y.books {
		if b != nil {
			c.books[i] = to[slices.Index(from, b)]
		}
	}
	return &c
}

// encoder writes a state in canonical form: two states with the same bytes behave
// alike for ever after. It leaves out what no rule looks at:
//
//   - Time: readings are written relative to the clock of their process, and
//     anything older than every wait counts as one age.
//   - Sequence numbers: rules only compare them for order and equality, and the
//     only new one is the successor of the newest. So each is written as its rank
//     among those of its life that are named anywhere in the state. A log entry
//     of a row that nobody has heard and nobody can hear any more is left out.
//   - Scratch, caches, and what every publication computes anew before use.
type encoder struct {
	w   *smallWorld
	s   *instant
	buf []byte
	// used[i][inc] has bit q set if row q of that life is named somewhere, heard
	// if somebody else names it as heard (or may come to).
	used, heard [mostNodes][mostLives]uint64
}

// key is the hash by which states are told apart.
type key [16]byte

func (x *encoder) key(w *smallWorld, s *instant) key {
	x.encode(w, s)
	sum := sha256.Sum256(x.buf)
	return key(sum[:16])
}

func (x *encoder) encode(w *smallWorld, s *instant) {
	x.w, x.s, x.buf = w, s, x.buf[:0]
	x.used, x.heard = [mostNodes][mostLives]uint64{}, [mostNodes][mostLives]uint64{}
	x.markAll()
	x.byte(uint8(s.crashes), s.edited, s.greatest)
	for i := range w.nodes {
		x.byte(s.lives[i])
		p := s.actors[i]
		x.flag(p != nil)
		if p != nil {
			x.actor(i, p)
		}
		if w.disks[i] && (p == nil || s.crashes > 0) { // else nobody reads it again
			x.stored(s.disk[i])
			x.flag(p != nil && p.written != p.l.version)
		}
		for j := range w.nodes {
			for _, r := range s.mail[i][j] {
				x.row(r)
			}
		}
	}
}

// markAll finds the sequence numbers that are named anywhere.
func (x *encoder) markAll() {
	for i := range x.w.nodes {
		for j := range x.w.nodes {
			for _, r := range x.s.mail[i][j] {
				x.markRow(r)
			}
		}
		p := x.s.actors[i]
		if p == nil {
			continue
		}
		l := p.l
		x.mark(l.cfg.Self, l.inc, l.seq)
		x.mark(l.cfg.Self, l.inc, l.seq+1)
		x.markRow(l.last)
		for k := range l.peers {
			x.markRow(l.peers[k].row)
			x.markRow(l.peers[k].full)
		}
		for _, b := range l.books {
			for _, c := range b.caps {
				x.mark(l.cfg.Self, l.inc, c.seq)
			}
			for j := range b.out {
				for _, e := range b.out[j] {
					x.mark(l.cfg.Self, l.inc, e.seq)
					x.mark(NodeID(j), e.hInc, e.hSeq)
				}
			}
		}
	}
}

func (x *encoder) mark(node NodeID, inc, seq uint64) { x.used[node][inc] |= 1 << seq }

// markRow also notes what the row tells its readers to be heard: its own number,
// which they will repeat, and those it lists.
func (x *encoder) markRow(r *Row) {
	if r == nil {
		return
	}
	x.mark(r.Node, r.Inc, r.Seq)
	x.heard[r.Node][r.Inc] |= 1 << r.Seq
	for k, h := range r.Heard {
		x.markHeard(NodeID(k), h)
	}
	if r.Only != nil {
		x.markHeard(r.Only.Of, r.Only.Heard)
	}
	for i := range r.Sections {
		for _, c := range r.Sections[i].Caps {
			x.mark(r.Node, r.Inc, c.Seq)
		}
	}
}

func (x *encoder) markHeard(k NodeID, h Heard) {
	x.mark(k, h.Inc, h.Seq)
	x.heard[k][h.Inc] |= 1 << h.Seq
}

func (x *encoder) byte(v ...byte)        { x.buf = append(x.buf, v...) }
func (x *encoder) num(v uint64)          { x.buf = binary.AppendUvarint(x.buf, v) }
func (x *encoder) rate(r allocator.Rate) { x.num(uint64(r)) }

func (x *encoder) flag(v bool) {
	if v {
		x.byte(1)
	} else {
		x.byte(0)
	}
}

// seq writes the rank of a sequence number; 0 stays 0.
func (x *encoder) seq(node NodeID, inc, seq uint64) {
	if seq == 0 {
		x.byte(0)
		return
	}
	x.byte(byte(1 + bits.OnesCount64(x.used[node][inc]&^1&(1<<seq-1))))
}

// age writes how long ago a reading was, up to most.
func (x *encoder) age(now, at, most int64) { x.num(uint64(min(now-at, most))) }

// left writes how long something still lasts, 0 if it is over.
func (x *encoder) left(now, end int64) {
	if end == math.MaxInt64 {
		now = 0 // for good
	}
	x.num(uint64(max(end-now, 0)))
}

func (x *encoder) epoch(id EpochID) { x.byte(x.w.index(id)) }

func (x *encoder) set(s nodeSet) {
	var m byte
	for k, in := range s {
		if in {
			m |= 1 << k
		}
	}
	x.byte(m)
}

func (x *encoder) ids(list []NodeID) {
	x.byte(byte(len(list)))
	for _, id := range list {
		x.byte(byte(id))
	}
}

func (x *encoder) actor(i int, p *actor) {
	l, now := p.l, x.w.clock(i, x.s.t)
	x.byte(byte(l.inc), byte(l.ownHigh))
	x.seq(l.cfg.Self, l.inc, l.seq)
	x.flag(l.superseded)
	x.flag(l.cfg.Stored != nil)
	if l.cfg.Stored != nil {
		x.byte(byte(l.cfg.Stored.Incarnation))
	}
	for k := range l.peers {
		q := &l.peers[k]
		x.row(q.row)
		x.flag(q.full == q.row)
		if q.full != q.row {
			x.row(q.full)
		}
		x.byte(byte(q.floor))
		if q.row != nil {
			x.age(now, q.at, x.w.longest)
		}
	}
	for _, e := range l.log.entries {
		if x.heard[l.cfg.Self][l.inc]>>e.seq&1 == 1 && now-e.at < x.w.longest {
			x.seq(l.cfg.Self, l.inc, e.seq)
			x.age(now, e.at, x.w.longest)
		}
	}
	x.byte(255)
	if l.last != nil {
		x.heards(l.last.Heard)
	}
	for _, b := range l.books {
		x.book(now, l, b)
	}
	x.standing(now, l)
	for _, st := range p.plane {
		if now < st.Until {
			x.left(now, st.Until)
			x.rate(st.Rate)
		}
	}
	x.byte(255)
}

// standing is the part of the state that is about epochs and the own life.
func (x *encoder) standing(now int64, l *Ledger) {
	x.byte(byte(len(l.books)), byte(l.listed))
	x.epoch(l.cur.ID)
	x.epoch(l.act)
	x.flag(l.strayed)
	x.flag(l.acked)
	if len(l.cur.Forced) > 0 && l.act != l.cur.ID {
		x.age(now, l.adoptedAt, x.w.longest)
	}
	x.set(l.wait)
	x.flag(l.proved)
	x.flag(l.recovering)
	x.flag(l.quarantine)
	x.num(uint64(l.quarTerm))
	if l.quarantine {
		x.age(now, l.startedAt, x.w.longest)
		x.ids(l.formerLent)
		x.flag(l.shortcut)
	}
	x.set(l.lent)
	x.set(l.onDisk)
	x.set(l.distrusted)
	x.flag(l.frozen)
	x.flag(l.held)
}

func (x *encoder) book(now int64, l *Ledger, b *book) {
	x.byte(byte(b.index + 1))
	x.rate(b.ceiling)
	for k := range b.in {
		if in := &b.in[k]; in.amount > 0 && now < in.end {
			x.rate(in.amount)
			x.left(now, in.end)
		} else {
			x.byte(0) // a loan that ended is none
		}
		x.seq(l.cfg.Self, l.inc, b.caps[k].seq)
		x.rate(b.caps[k].amount)
	}
	for j := range b.out {
		ended := false
		for _, e := range b.out[j] {
			if e.end <= now {
				ended = true // it counts for nothing but is still listed
				continue
			}
			x.seq(l.cfg.Self, l.inc, e.seq)
			x.byte(byte(e.hInc))
			x.seq(NodeID(j), e.hInc, e.hSeq)
			x.rate(e.amount)
			x.left(now, e.end)
		}
		x.byte(255)
		x.flag(ended)
	}
	x.loans(b.loans)
}
