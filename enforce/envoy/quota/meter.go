package quota

import (
	"math/bits"
	"time"

	"subak/allocator"
)

// meter turns the reports of one bucket into its demand, and into counts for the
// limiter that come evenly rather than in lumps: what a report says of an interval
// is told over as long a time, so that the demand meter behind the limiter sees
// a rate.
//
// Each report is a difference: it is counted when it arrives, once. What a stream
// lost is not known; what a new stream reports first it reports for the first time.
type meter struct {
	started bool
	last    int64          // when the newest report came that ended an interval; lease clock
	gap     int64          // ns between the two newest
	busy    int64          // when one that was not zero came last
	carry   int64          // units not yet part of an interval
	demand  allocator.Rate // units/s
	used    allocator.Rate // what the split goes by: demand within an eighth
	// untold counts, and until when they are to be told.
	admitted, refused int64
	toldAt, toldBy    int64
}

const (
	gapMin   = int64(50 * time.Millisecond)
	gapMax   = int64(time.Minute)
	countMax = int64(1) << 40 // units in one report
)

// units bounds a count of requests from outside and turns it into units.
func units(n uint64, cost int64) int64 {
	if n > uint64(countMax/cost) {
		return countMax
	}
	return int64(n) * cost
}

// report takes one report. elapsed is what it says about its own interval,
// believed for the first one only and within bounds.
func (m *meter) report(now int64, admitted, refused, elapsed, cost int64) {
	n := admitted + refused
	if n > 0 {
		m.busy = now
	}
	m.admitted = min(m.admitted+admitted, countMax)
	m.refused = min(m.refused+refused, countMax)
	m.carry = min(m.carry+n, countMax)
	gap := now - m.last
	if !m.started {
		m.started = true
		m.busy = now // what is new is not idle
		m.last, m.toldBy = now, now
		m.gap = min(max(elapsed, int64(time.Second)), gapMax)
		m.follow(m.gap, cost)
		return
	}
	if gap < gapMin {
		return // part of the next one: what is divided by almost nothing is noise
	}
	m.gap = min(gap, gapMax)
	m.last, m.toldAt, m.toldBy = now, now, now+m.gap
	m.follow(m.gap, cost)
}

// follow brings demand up to date: a change beyond chance at once, a small one
// slowly.
func (m *meter) follow(gap, cost int64) {
	n := m.carry
	m.carry = 0
	fresh := perSecond(n*unit, gap)
	// Three sigma of n units that came by cost, and one request.
	square := int64(min(mulDiv(uint64(n), uint64(9*cost), 1), 1<<62))
	noise := perSecond(min(isqrt(square)+cost, countMax)*unit, gap)
	if diff := fresh - m.demand; max(diff, -diff) > noise {
		m.demand = fresh
	} else {
		m.demand += diff / 8
	}
	if diff := m.demand - m.used; max(diff, -diff) > m.used/8 {
		m.used = m.demand
	}
}

// tell returns what of the counts is due to be told by now.
func (m *meter) tell(now int64) (admitted, refused int64) {
	if now >= m.toldBy {
		admitted, refused = m.admitted, m.refused
	} else if part := now - m.toldAt; part > 0 {
		rest := uint64(m.toldBy - m.toldAt)
		admitted = int64(mulDiv(uint64(m.admitted), uint64(part), rest))
		refused = int64(mulDiv(uint64(m.refused), uint64(part), rest))
	}
	m.admitted -= admitted
	m.refused -= refused
	m.toldAt = now
	return admitted, refused
}

// rest returns all that was not told yet.
func (m *meter) rest() (admitted, refused int64) {
	admitted, refused = m.admitted, m.refused
	m.admitted, m.refused = 0, 0
	return admitted, refused
}

// silent reports whether reports have stopped: three intervals, and three
// seconds, without one.
func (m *meter) silent(now int64) bool {
	return now-m.last > max(3*m.gap, int64(3*time.Second))
}

// mulDiv returns a*b/c rounded down, and 2^62 where that is more or c is 0.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return 1 << 62
	}
	q, _ := bits.Div64(hi, lo, c)
	return min(q, 1<<62)
}

func isqrt(n int64) int64 {
	if n <= 0 {
		return 0
	}
	x := int64(1) << ((bits.Len64(uint64(n)) + 1) / 2)
	for {
		y := (x + n/x) / 2
		if y >= x {
			return x
		}
		x = y
	}
}
