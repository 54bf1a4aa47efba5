package bound

import (
	"math"
	"math/bits"
)

// ring is a queue of admissions addressed by sequence number; admissions of one
// instant share an entry. It grows to what the longest window holds.
type ring struct {
	buf         []Admission // a power of two of them
	first, next uint64      // sequence numbers held: [first, next)
}

func (r *ring) at(seq uint64) Admission { return r.buf[seq&uint64(len(r.buf)-1)] }

func (r *ring) push(a Admission) {
	if r.next > r.first {
		last := &r.buf[(r.next-1)&uint64(len(r.buf)-1)]
		if last.At == a.At {
			last.Cost += a.Cost
			return
		}
	}
	if r.next-r.first == uint64(len(r.buf)) {
		r.grow()
	}
	r.buf[r.next&uint64(len(r.buf)-1)] = a
	r.next++
}

func (r *ring) grow() {
	bigger := make([]Admission, max(2*len(r.buf), 64))
	for s := r.first; s < r.next; s++ {
		bigger[s&uint64(len(bigger)-1)] = r.at(s)
	}
	r.buf = bigger
}

func (r *ring) dropBefore(seq uint64) { r.first = max(r.first, seq) }

// wide is an unsigned 128-bit number that saturates.
type wide struct{ hi, lo uint64 }

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a wide) plus(b wide) wide {
	lo, c := bits.Add64(a.lo, b.lo, 0)
	hi, c := bits.Add64(a.hi, b.hi, c)
	if c > 0 {
		return wide{math.MaxUint64, math.MaxUint64}
	}
	return wide{hi, lo}
}

// minus stops at zero.
func (a wide) minus(b wide) wide {
	if a.less(b) {
		return wide{}
	}
	lo, c := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, c)
	return wide{hi, lo}
}

func (a wide) atLeast(b wide) wide {
	if a.less(b) {
		return b
	}
	return a
}

// whole returns micro-unit nanoseconds in whole units, rounded down.
func (a wide) whole() int64 {
	if a.hi >= microNs {
		return math.MaxInt64
	}
	q, _ := bits.Div64(a.hi, a.lo, microNs)
	return int64(min(q, math.MaxInt64))
}

// units returns micro-unit nanoseconds in whole units, rounded up.
func (a wide) units() int64 {
	if a.hi >= microNs {
		return math.MaxInt64
	}
	q, rem := bits.Div64(a.hi, a.lo, microNs)
	if rem > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}
