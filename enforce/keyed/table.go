package keyed

import (
	"math/bits"
	"sync/atomic"
)

const (
	ways     = 8   // buckets of one set
	perKey   = 2   // buckets for each key that a table is made for
	busy     = 1   // the key of a bucket that is being handed over
	attempts = 4   // lookups of one call
	setBytes = 192 // of one set
)

// MaxCap bounds Terms.Cap and Terms.Need.
const MaxCap = 1 << 60

// Terms are what buckets are judged by at one instant.
type Terms struct {
	Credit uint64 // what every bucket was ever granted; wraps around
	Cap    uint64 // what a bucket keeps at most, up to MaxCap
	Need   uint64 // what the request costs, 1..MaxCap
	// Late is the credit of the longest time for which a caller may have been
	// paused with its reading: a bucket may seem to have spent up to that much
	// more than was granted. Beyond it, and beyond Cap, the credit has gone around
	// since the bucket was used. Up to MaxCap.
	Late uint64
}

// Table is a bounded table of buckets. The zero value is unusable.
type Table struct {
	sets    []set
	evicted atomic.Int64
}

// set is eight buckets. A lookup reads the line of the keys and one of the two
// lines of the buckets.
type set struct {
	keys    [ways]atomic.Uint64 // 0 is none
	buckets [ways]bucket
}

type bucket struct {
	used atomic.Uint64 // credit spent
	// asked is the credit that everything offered would have spent, where that is
	// more than used; otherwise anything behind it.
	asked atomic.Uint64
}

// New returns a table for a number of keys, at least one.
func New(keys int) *Table {
	return &Table{sets: make([]set, max(1, (keys*perKey+ways-1)/ways))}
}

// Bytes is what the table weighs.
func (t *Table) Bytes() int { return len(t.sets) * setBytes }

// Evicted returns how many keys were forgotten for others.
func (t *Table) Evicted() int64 { return t.evicted.Load() }

// spend returns what a bucket's word becomes when it pays, and whether it holds
// enough.
func (c *Terms) spend(used uint64) (after uint64, ok bool) {
	if have := c.Credit - used; have > c.Cap && !c.inDebt(have) {
		used = c.Credit - c.Cap // what overflowed is gone
	}
	after = used + c.Need
	return after, int64(c.Credit-after) >= 0
}

// level returns what a bucket holds; negative in debt, to callers whose reading
// of the time is older than that of others.
func (c *Terms) level(used uint64) int64 {
	if have := c.Credit - used; have <= c.Cap || c.inDebt(have) {
		return int64(have)
	}
	return int64(c.Cap)
}

// idle orders buckets by what they were not asked for: full ones by how long, of
// which the one with the highest figure goes first.
func (c *Terms) idle(used uint64) uint64 {
	have := c.Credit - used
	if c.inDebt(have) {
		return 0
	}
	return have
}

// inDebt says whether a bucket has spent more than was granted.
func (c *Terms) inDebt(have uint64) bool { return -have-1 < max(c.Cap, c.Late) }

// home returns the set of a key, and the way at which to look first.
func (t *Table) home(key uint64) (*set, int) {
	hi, lo := bits.Mul64(key, uint64(len(t.sets)))
	return &t.sets[hi], int(lo >> (64 - 3))
}

// Ref is a bucket as it was found: it may have gone to another key since. The
// zero Ref has none.
type Ref struct {
	set *set
	way int
	key uint64
}

// find returns the bucket of a key, if it has one. If there are two, it is the
// one that everybody else finds.
func (t *Table) find(key uint64) (Ref, bool) {
	s, at := t.home(key)
	for i := range ways {
		w := (at + i) % ways
		if s.keys[w].Load() == key {
			return Ref{s, w, key}, true
		}
	}
	return Ref{}, false
}

// Outcome is what became of a charge.
type Outcome uint8

// The outcomes.
const (
	Taken Outcome = iota
	Short         // the bucket does not hold enough
	Gone          // the bucket is another key's by now; only a Ref's own Take says so
)

// Take charges the bucket of a key, which it makes if need be. The Ref is of the
// bucket that was charged or found short; it is zero where none could be made
// because others took it each time, which passes.
func (t *Table) Take(key uint64, c Terms) (Ref, Outcome) {
	for range attempts {
		r, ok := t.find(key)
		if !ok {
			if r, ok = t.install(key, &c); !ok {
				continue
			}
		}
		if out := r.Take(c); out != Gone {
			return r, out
		}
	}
	return Ref{}, Taken
}

// Take charges the bucket.
func (r Ref) Take(c Terms) Outcome {
	if r.set == nil {
		return Gone
	}
	b := &r.set.buckets[r.way]
	for {
		u := b.used.Load()
		if r.set.keys[r.way].Load() != r.key {
			return Gone
		}
		after, ok := c.spend(u)
		if !ok {
			return Short
		}
		if !b.used.CompareAndSwap(u, after) {
			continue
		}
		// Where refused work runs ahead, what is admitted goes on top of it.
		if a := b.asked.Load(); ahead(a, after-c.Need) {
			b.asked.CompareAndSwap(a, a+c.Need)
		}
		return Taken
	}
}

// Return gives back what a Take of the same Need took, once.
func (r Ref) Return(need uint64) {
	if r.set == nil {
		return
	}
	b := &r.set.buckets[r.way]
	for {
		u, a := b.used.Load(), b.asked.Load()
		if r.set.keys[r.way].Load() != r.key {
			return
		}
		if b.used.CompareAndSwap(u, u-need) {
			if ahead(a, u) {
				b.asked.CompareAndSwap(a, a-need)
			}
			return
		}
	}
}

// ahead says whether one word is ahead of another, by what one can be.
func ahead(a, u uint64) bool { return a-u-1 < 2*MaxCap }

// Return gives a key back what a Take of the same Need took, if it was not
// forgotten since.
func (t *Table) Return(key, need uint64) {
	if r, ok := t.find(key); ok {
		r.Return(need)
	}
}

// Ask is for work that its bucket would have paid for and that was refused by
// somebody else: it reports whether the bucket could have paid for this too if all
// such work had been admitted. So what a key asks for counts up to what its bucket
// gives, whatever it sends. It changes nothing that Take reads.
func (r Ref) Ask(c Terms) bool {
	if r.set == nil {
		return true
	}
	b := &r.set.buckets[r.way]
	for {
		a, u := b.asked.Load(), b.used.Load()
		if r.set.keys[r.way].Load() != r.key {
			return true
		}
		most := c.Credit - uint64(min(c.level(a), c.level(u)))
		after, ok := c.spend(most)
		if !ok || b.asked.CompareAndSwap(a, after) {
			return ok
		}
	}
}

// Ask is Ref.Ask for a key; one that has no bucket asks for the first time.
func (t *Table) Ask(key uint64, c Terms) bool {
	r, _ := t.find(key)
	return r.Ask(c)
}

// Level returns what the bucket of a key holds; of a key that has none, what
// its first request costs. It is negative in debt.
func (t *Table) Level(key uint64, c Terms) int64 {
	r, ok := t.find(key)
	if !ok {
		return int64(min(c.Need, c.Cap))
	}
	return c.level(r.set.buckets[r.way].used.Load())
}
