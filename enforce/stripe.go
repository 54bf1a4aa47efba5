package enforce

import (
	"runtime"
	"sync/atomic"
)

// The fast path. Cores that decide at the same time would fight for the words of
// a class and its budget. So each core counts on a stripe of its own, and where
// a class is wide and busy each core gets a lease: tokens charged to class and
// budget at once, which it spends without touching a line that another core
// writes. A decision is then one compare-and-swap and one add on the core's own
// line.
//
// Invariants:
//
//   - A lease was charged to class and budget at the reading from, by a segment.
//     It pays for decisions by readings from then to that segment's end, while the
//     segment is in force. Whatever changes the share replaces the segment, and so
//     ends all leases before it returns: a lowering is obeyed at once (trap 11),
//     and a step down by each decision's own reading (trap 9).
//   - While a segment has leases for a class, its caps are lower by all that
//     stripes can hold. So the bound is the one without leases: what is stranded
//     is inside the burst. Only readings that go back on one core, from before
//     a lease to after it, can move tokens between windows, by that much time.
//   - Leases begin while there is plenty in the bucket, and are called in before
//     anything is refused: no request is refused for a token that lies in another
//     core's stripe. A bucket that is small or runs dry is the words of class and
//     budget, and nothing else.
//   - Generations grow with every lease. Who reads the word, then from, span and
//     seg, and then swaps the word, has read what belongs to it.
//   - A token is in one place. Who swaps what is left of a lease for nothing has
//     it, and nobody else.

// stripe is one core's part of one class. Two lines, because the prefetcher pairs
// them.
type stripe struct {
	lease atomic.Uint64           // generation << leftBits | units left
	from  atomic.Int64            // the reading at which it was charged
	span  atomic.Uint64           // nanoseconds from there to its segment's end
	seg   atomic.Pointer[segment] // the segment by which it was charged
	tally
	drought

	filling  atomic.Bool  // somebody is at refill or refuseUntil
	mark     atomic.Int64 // admitted when busy last looked
	markedAt atomic.Int64 // the reading then
	_        [128 - 120]byte
}

// tally counts units. It shares the line of the lease: a core that has just won
// the word owns the line already.
type tally struct {
	admitted atomic.Int64 // offered for the first time
	refused  atomic.Int64 // likewise
	borrowed atomic.Int64
	again    struct{ admitted, refused atomic.Int64 } // retries
}

const (
	leftBits = 32
	leftMask = 1<<leftBits - 1

	stripesMax = 64 // stripes of a class; with more cores than that they share
)

// coresFor returns the number of stripes that a class has, a power of two.
func coresFor(cores int) int {
	if cores == 0 {
		cores = runtime.GOMAXPROCS(0)
	}
	n := 1
	for n < min(cores, stripesMax) {
		n *= 2
	}
	return n
}

// stripe returns this core's stripe of a class.
func (l *Limiter) stripe(class int) *stripe {
	core := procPin()
	procUnpin()
	return l.stripeOf(core, class)
}

// stripeOf is stripe for the number of a core. The fast paths call it themselves:
// to call two functions that the compiler cannot inline is better than three.
func (l *Limiter) stripeOf(core, class int) *stripe {
	return &l.stripes[(core&l.mask)<<(l.shift&63)+class]
}

// good reports whether the stripe's lease is good for cost, in units, and the word
// that pay must find unchanged.
func (c *stripe) good(l *Limiter, now, cost int64) (w uint64, ok bool) {
	w = c.lease.Load()
	return w, uint64(cost-1) < w&leftMask && // enough left, and a cost
		uint64(now-c.from.Load()) < c.span.Load() &&
		c.seg.Load() == l.seg.Load()
}

// pay takes cost from the lease that good has found, unless it has changed.
func (c *stripe) pay(w uint64, cost int64) bool {
	return c.lease.CompareAndSwap(w, w-uint64(cost))
}

// end takes what is left of the stripe's lease, in units, and tells by which
// segment it was charged.
func (c *stripe) end() (left int64, s *segment) {
	for {
		w := c.lease.Load()
		s = c.seg.Load()
		if c.lease.CompareAndSwap(w, w&^leftMask) {
			return int64(w & leftMask), s
		}
	}
}

// begin makes units, charged by s at now, the stripe's lease. The one before has
// ended, and filling is the caller's.
func (c *stripe) begin(s *segment, now, units int64) {
	c.from.Store(now)
	c.span.Store(uint64(s.until - now))
	c.seg.Store(s)
	c.lease.Store((c.lease.Load()>>leftBits+1)<<leftBits | uint64(units))
}
