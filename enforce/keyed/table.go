package keyed

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

const (
	ways     = 8   // buckets of one set
	perKey   = 2   // buckets for each key that a table is made for
	busy     = 1   // the key of a bucket that is being handed over
	attempts = 4   // lookups of one call
	setBytes = 256 // of one set
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

// set is eight buckets. Half of a line each, so that who finds its bucket at the
// first look has read one line.
type set [ways]Bucket

// Bucket is one bucket, of whatever key has it.
type Bucket struct {
	key  atomic.Uint64 // 0 is none
	used atomic.Uint64 // credit spent
	// asked is the credit that everything offered would have spent, where that is
	// more than used; otherwise anything behind it.
	asked atomic.Uint64
	_     uint64
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
func (c Terms) spend(used uint64) (after uint64, ok bool) {
	if have := c.Credit - used; have > c.Cap && !c.inDebt(have) {
		used = c.Credit - c.Cap // what overflowed is gone
	}
	after = used + c.Need
	return after, int64(c.Credit-after) >= 0
}

// level returns what a bucket holds; negative in debt, to callers whose reading
// of the time is older than that of others.
func (c Terms) level(used uint64) int64 {
	if have := c.Credit - used; have <= c.Cap || c.inDebt(have) {
		return int64(have)
	}
	return int64(c.Cap)
}

// idle orders buckets by what they were not asked for: full ones by how long, of
// which the one with the highest figure goes first.
func (c Terms) idle(used uint64) uint64 {
	have := c.Credit - used
	if c.inDebt(have) {
		return 0
	}
	return have
}

// inDebt says whether a bucket has spent more than was granted.
func (c Terms) inDebt(have uint64) bool { return -have-1 < max(c.Cap, c.Late) }

// home returns the set of a key, and the way at which to look first.
func (t *Table) home(key uint64) (*set, int) {
	hi, lo := bits.Mul64(key, uint64(len(t.sets)))
	return &t.sets[hi], int(lo >> (64 - 3))
}

// find returns the bucket of a key, nil if it has none. If there are two, it is the
// one that everybody else finds.
func (t *Table) find(key uint64) *Bucket {
	s, at := t.home(key)
	for i := range ways {
		if b := &s[(at+i)%ways]; b.key.Load() == key {
			return b
		}
	}
	return nil
}

// Place remembers where a key's bucket was found, so that it need not be looked
// for. It is a hint, of whatever key in whatever table: what is found there is
// asked whether it is the table's, and the key's. The zero Place remembers nothing.
// Safe for concurrent use.
type Place struct{ bucket atomic.Pointer[Bucket] }

// Fetch has the bucket brought into the CPU's cache while the caller does other
// things, and waits for nothing.
func (p *Place) Fetch() { prefetch(unsafe.Pointer(p.bucket.Load())) }

// At returns the bucket at a place, nil where it is none of the table's. Its Take
// says whose it is.
func (t *Table) At(p *Place) *Bucket {
	b := p.bucket.Load()
	if uintptr(unsafe.Pointer(b))-uintptr(unsafe.Pointer(unsafe.SliceData(t.sets))) < uintptr(len(t.sets))*setBytes {
		return b
	}
	return nil
}

// First returns the bucket where a key is looked for first. Its Take says whose it
// is.
func (t *Table) First(key uint64) *Bucket {
	s, at := t.home(key)
	return &s[at]
}

// Remember makes p the place of a bucket, which may be nil.
func (p *Place) Remember(b *Bucket) { p.bucket.Store(b) }

// Outcome is what became of a charge.
type Outcome uint8

// The outcomes.
const (
	Taken Outcome = iota
	Short         // the bucket does not hold enough
	Gone          // the bucket is another key's by now; only a bucket's own Take says so
)

// Take charges the bucket of a key, which it makes if need be, and returns it. It
// is nil where none could be made because others took it each time, which passes.
func (t *Table) Take(key uint64, c Terms) (*Bucket, Outcome) {
	for range attempts {
		b := t.find(key)
		if b == nil {
			b = t.install(key, c)
		}
		if out := b.Take(key, c); out != Gone {
			return b, out
		}
	}
	return nil, Taken
}

// Take charges the bucket if it is still the key's. b may be nil.
func (b *Bucket) Take(key uint64, c Terms) Outcome {
	if b == nil {
		return Gone
	}
	for {
		u, a := b.used.Load(), b.asked.Load()
		if b.key.Load() != key {
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
		if ahead(a, after-c.Need) {
			b.asked.CompareAndSwap(a, a+c.Need)
		}
		return Taken
	}
}

// Return gives a key back what a Take of the same Need took, once, if the bucket
// is still the key's. b may be nil.
func (b *Bucket) Return(key, need uint64) {
	if b == nil {
		return
	}
	for {
		u, a := b.used.Load(), b.asked.Load()
		if b.key.Load() != key {
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
func (t *Table) Return(key, need uint64) { t.find(key).Return(key, need) }

// Ask is for work of a key that its bucket would have paid for and that was
// refused by somebody else: it reports whether the bucket could have paid for this
// too if all such work had been admitted. So what a key asks for counts up to what
// its bucket gives, whatever it sends. A key without a bucket asks for the first
// time. It changes nothing that Take reads.
func (t *Table) Ask(key uint64, c Terms) bool {
	b := t.find(key)
	return b == nil || b.ask(key, c)
}

func (b *Bucket) ask(key uint64, c Terms) bool {
	for {
		a, u := b.asked.Load(), b.used.Load()
		if b.key.Load() != key {
			return true
		}
		most := c.Credit - uint64(min(c.level(a), c.level(u)))
		after, ok := c.spend(most)
		if !ok || b.asked.CompareAndSwap(a, after) {
			return ok
		}
	}
}

// Level returns what the bucket of a key holds; of a key that has none, what
// its first request costs. It is negative in debt.
func (t *Table) Level(key uint64, c Terms) int64 {
	b := t.find(key)
	if b == nil {
		return int64(min(c.Need, c.Cap))
	}
	return c.level(b.used.Load())
}
