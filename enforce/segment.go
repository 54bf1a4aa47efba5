package enforce

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"subak/allocator"
)

// Step is one stretch of a step-down schedule: the rates in force until the
// instant Until (lease clock, exclusive). Total bounds the node, Classes[k]
// bounds class k; the classes normally add up to Total.
type Step struct {
	Until   int64
	Total   allocator.Rate
	Classes []allocator.Rate
	// Carvable is how much of class k other data planes may hold (Carve), where
	// that is not Classes[k]. What they hold already they keep.
	Carvable []allocator.Rate
}

const (
	// MaxRate is the highest rate a bucket can hold, 10^11 units per second;
	// higher ones are enforced as this one.
	MaxRate allocator.Rate = 100_000_000_000 * allocator.Unit

	// MaxCost is the highest cost a request can have, in units; above it no
	// bucket could ever hold enough.
	MaxCost = capMax / 1_000_000

	unit = int64(allocator.Unit) // micro-units in one unit

	// shift is the number of fraction bits of a line's slope. MaxRate x 2^36
	// / 10^9 just fits in 63 bits; at 1 unit per second the slope is exact to
	// 1.5e-8.
	shift    = 36
	fracMask = 1<<shift - 1

	// gainMax bounds the credit one segment can grant and capMax a bucket's
	// size. C-U is at most gainMax+capMax plus the refunds in flight: well
	// within a signed word.
	gainMax = 1 << 61
	capMax  = 1 << 60

	// spanMax bounds how long a chain of segments lives before it is anchored
	// again at the present.
	spanMax = int64(time.Hour)
)

// line is one bucket's credit as a function of time inside one segment:
// C(t) = c0 + (mult*(t-t0) >> shift), in micro-units.
type line struct {
	c0   uint64
	mult uint64 // micro-units per ns, shift fraction bits, rounded down
	cap  uint64 // tokens kept at most; what stripes can hold is not in it
	frac uint64 // fraction of a micro-unit left over at t0; < 2^shift
	rate allocator.Rate
	// Units of a class that each stripe can hold: if leases are let, and now.
	wide, lease int64
}

// at returns the credit dt nanoseconds after the segment's start. It leaves the
// carried fraction out: at most one micro-unit too little.
func (ln *line) at(dt int64) uint64 {
	hi, lo := bits.Mul64(ln.mult, uint64(dt))
	return ln.c0 + (hi<<(64-shift) | lo>>shift)
}

// half returns the tokens that a lender keeps.
func (ln *line) half() uint64 { return ln.cap - ln.cap/2 }

// point is a line's exact state at one instant.
type point struct{ credit, frac uint64 }

// pointAt carries credit and fraction dt nanoseconds on. A gain above gainMax
// is cut to it: every cap is below, so the bucket is full either way.
func (ln *line) pointAt(dt int64) point {
	hi, lo := bits.Mul64(ln.mult, uint64(max(dt, 0)))
	lo, carry := bits.Add64(lo, ln.frac, 0)
	hi += carry
	if hi >= gainMax>>(64-shift) {
		return point{credit: ln.c0 + gainMax}
	}
	return point{ln.c0 + (hi<<(64-shift) | lo>>shift), lo & fracMask}
}

// segment is a stretch of constant rates, immutable once linked. lines[0] is
// the budget, lines[1+k] class k.
type segment struct {
	t0, until int64
	lines     []line
	next      *segment
	// rest is what the schedule says from until on, where the chain was cut
	// short (next is nil); its first step is the one in force at until.
	rest []Step
	// leased is the set of classes that have leases; then exact is the segment
	// without.
	leased uint64
	exact  *segment
}

// points returns the exact state of every bucket at the instant t.
func (s *segment) points(t int64) []point {
	ps := make([]point, len(s.lines))
	for i := range s.lines {
		ps[i] = s.lines[i].pointAt(t - s.t0)
	}
	return ps
}

// shape is what turns a rate into a bucket.
type shape struct {
	burst   time.Duration
	largest int64 // units; the least cap of a bucket that has a rate
	lending bool  // classes lend tokens to one another
	cores   int   // stripes of each class
}

// least returns the smallest cap, in units, that bucket b may have in a step.
// Where classes lend, half a class's bucket must pay for a request of the owner,
// and so must what lending leaves in the budget's. Two requests are within the
// bound: below two, at least as many class buckets are below one.
func (sh shape) least(st *Step, b int) int64 {
	if !sh.lending {
		return sh.largest
	}
	active := 0
	for _, r := range st.Classes {
		if r > 0 {
			active++
		}
	}
	if b == 0 && active < 2 {
		return sh.largest
	}
	return 2 * sh.largest
}

// capOf returns the cap, in micro-units, of a bucket of rate r and at least least
// units.
func (sh shape) capOf(r allocator.Rate, least int64) uint64 {
	if r <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(r), uint64(sh.burst))
	c := uint64(capMax)
	if hi < uint64(time.Second) {
		c, _ = bits.Div64(hi, lo, uint64(time.Second))
	}
	return min(max(c, uint64(least*unit)), capMax)
}

func slope(r allocator.Rate) uint64 {
	hi, lo := bits.Mul64(uint64(r), 1<<shift)
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return q
}

// chain links the segments of a cleaned schedule, starting at t0 with the given
// credit. It stops where the credit granted could grow past gainMax, and leaves
// the remaining steps in the last segment.
func (sh shape) chain(from []point, t0 int64, steps []Step) *segment {
	limit := t0 + span(steps)
	if limit < t0 {
		limit = math.MaxInt64
	}
	var head, tail *segment
	for i, st := range steps {
		s := &segment{t0: t0, until: min(st.Until, limit), lines: make([]line, len(from))}
		for b := range s.lines {
			r := st.rateOf(b)
			s.lines[b] = line{
				c0: from[b].credit, frac: from[b].frac,
				mult: slope(r), cap: sh.capOf(r, sh.least(&st, b)), rate: r,
			}
		}
		for k := range len(s.lines) - 1 {
			s.lines[1+k].wide = sh.wide(s.lines, k)
		}
		if head == nil {
			head = s
		} else {
			tail.next = s
		}
		tail = s
		if s.until == limit {
			s.rest = steps[i:]
			if st.Until == limit && i+1 < len(steps) {
				s.rest = steps[i+1:]
			}
			break
		}
		from, t0 = s.points(s.until), s.until
	}
	return head
}

// rateOf returns the rate of bucket b: 0 is the budget, 1+k class k.
func (st *Step) rateOf(b int) allocator.Rate {
	if b == 0 {
		return st.Total
	}
	return st.Classes[b-1]
}

// span returns how many nanoseconds may pass before the fastest bucket of the
// schedule has been granted gainMax.
func span(steps []Step) int64 {
	var fastest allocator.Rate
	for i := range steps {
		fastest = max(fastest, steps[i].Total, slices.Max(steps[i].Classes))
	}
	if fastest == 0 {
		return spanMax
	}
	hi, lo := bits.Mul64(gainMax, uint64(time.Second))
	if hi >= uint64(fastest) {
		return spanMax
	}
	ns, _ := bits.Div64(hi, lo, uint64(fastest))
	return int64(min(ns, uint64(spanMax)))
}

// clean copies a schedule into the form chain relies on: instants strictly
// rising and after now, exactly classes class rates, every rate within [0,
// MaxRate], the last step without end. Past the end of what the caller gave,
// nothing is granted.
func clean(now int64, steps []Step, classes int) []Step {
	out := make([]Step, 0, len(steps)+1)
	rates := make([]allocator.Rate, (len(steps)+1)*classes)
	last := now
	for _, st := range steps {
		if st.Until <= last {
			continue
		}
		cs := rates[:classes:classes]
		rates = rates[classes:]
		for k := range min(classes, len(st.Classes)) {
			cs[k] = min(max(st.Classes[k], 0), MaxRate)
		}
		out = append(out, Step{Until: st.Until, Total: min(max(st.Total, 0), MaxRate), Classes: cs, Carvable: cleanCarvable(st.Carvable, classes)})
		last = st.Until
	}
	if last != math.MaxInt64 || len(out) == 0 {
		out = append(out, Step{Until: math.MaxInt64, Classes: rates[:classes:classes]})
	}
	return out
}
