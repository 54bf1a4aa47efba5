package allocator

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// LargestRemainder splits total in proportion to weights, exactly: each part is
// the proportional share rounded down, and the units that rounding leaves go
// one each to the largest remainders, ties to the lower index. The result adds
// up to total. It refuses a negative total or weight, and weights that add up
// to 0 (unless total is 0) or to 2^63 or more.
func LargestRemainder(total Rate, weights []int64) ([]Rate, error) {
	if total < 0 {
		return nil, fmt.Errorf("split %d: negative total", total)
	}
	v := make([]Rate, len(weights))
	var sum Rate
	for i, w := range weights {
		if w < 0 {
			return nil, fmt.Errorf("split %d: weight %d of index %d is negative", total, w, i)
		}
		if Rate(w) > math.MaxInt64-sum {
			return nil, errors.New("split: weights add up to 2^63 or more")
		}
		v[i] = Rate(w)
		sum += v[i]
	}
	if sum == 0 && total > 0 {
		return nil, fmt.Errorf("split %d: no weight above 0", total)
	}
	out := make([]Rate, len(weights))
	newScratch(len(weights)).addShare(out, v, total, sum)
	return out, nil
}

// scratch is the memory the kernels work in, sized once so that a cycle
// allocates nothing. Nothing in it outlives a kernel call.
type scratch struct {
	rem  []uint64 // remainders of the shares being rounded; longer, see selectFew
	pick []uint64 // candidates for the next larger remainder
	wide [1 << wideBits]uint32

	vals []Rate // proportions built by the caller of addShare

	wet   []wet  // cells still rising in a water-fill
	level []Rate // and their rounded level

	round rounding // the rounding under way

	passes int // passes over cells by selection and water-filling, for tests of law 10
}

func newScratch(n int) *scratch {
	s := &scratch{
		rem: make([]uint64, (n+7)/8*8), pick: make([]uint64, n), vals: make([]Rate, n),
		wet: make([]wet, n), level: make([]Rate, n),
	}
	s.round.s = s
	return s
}

// addShare adds to every out[i] its largest-remainder share of total in
// proportion to v[i]. sum must be the sum of v, below 2^63 and above 0 unless
// total is 0; out and v must not overlap.
func (s *scratch) addShare(out, v []Rate, total, sum Rate) {
	if total == 0 {
		return
	}
	t, whole := uint64(total), uint64(0)
	if total >= sum {
		whole = t / uint64(sum)
		t -= whole * uint64(sum)
		for i, x := range v {
			out[i] += x * Rate(whole)
		}
		if t == 0 {
			return
		}
	}
	round := s.newRounding(t, uint64(sum))
	given, late := round.floors(out, v)
	round.correct(out[:len(v)], given, late)
	round.finish(out[:len(v)])
}

// A rounding is one largest-remainder split under way: total times x over sum
// for every cell's x. The cells' remainders are in scratch, and left units are
// not handed out yet.
//
// It multiplies by num/den, num < den < 2^63, exactly and without dividing. With
// r = floor(num * 2^64 / den), the high word q of x*r is floor(x*num/den) or one
// less, as x*num/den - x*r/2^64 < x/2^64 < 1. The remainder x*num - q*den,
// computed modulo 2^64, tells which: it is below 2*den < 2^64. As q is rarely
// short, the loops only note (in the top bit of late) that some remainder
// reached den, and correct repairs those. They return what they gave out rather
// than write it to left, which keeps their registers to themselves.
type rounding struct {
	num, den, r uint64
	s           *scratch
	left        uint64
}

// newRounding starts to split total over cells whose values add up to sum, with
// total < sum < 2^63. It scales both by a power of two, and the remainders with
// them, so that the leading digit of a remainder is at a fixed place. The
// rounding stays in the scratch: to copy it right after writing it would stall.
func (s *scratch) newRounding(total, sum uint64) *rounding {
	shift := uint(bits.LeadingZeros64(sum)-1) & 63
	p := &s.round
	p.num, p.den, p.left = total<<shift, sum<<shift, total
	p.r, _ = bits.Div64(total, 0, sum)
	return p
}

// floors adds the rounded-down share of v[i] to every out[i]. What it returns is
// for correct.
func (p *rounding) floors(out, v []Rate) (given, late uint64) {
	out, rem := out[:len(v)], p.s.rem[:len(v)]
	num, den, r := p.num, p.den, p.r
	for i, x := range v {
		q, _ := bits.Mul64(uint64(x), r)
		rest := uint64(x)*num - q*den
		out[i] += Rate(q)
		rem[i] = rest
		given += q
		late |= den + ^rest // the top bit is set if rest >= den
	}
	return given, late
}

// deficitFloors sets every out[i] to min(demand, base) and the rounded-down
// share of (demand-base)+. What it returns is for correct.
func (p *rounding) deficitFloors(out, demand, base []Rate) (given, late uint64) {
	n := len(demand)
	out, base, rem := out[:n], base[:n], p.s.rem[:n]
	num, den, r := p.num, p.den, p.r
	for i, d := range demand {
		met := min(d, base[i])
		over := uint64(d - met)
		q, _ := bits.Mul64(over, r)
		out[i] = met + Rate(q)
		rest := over*num - q*den
		rem[i] = rest
		given += q
		late |= den + ^rest
	}
	return given, late
}

// correct accounts for the units given out and repairs quotients that are one
// short, if late says that there are any.
func (p *rounding) correct(out []Rate, given, late uint64) {
	p.left -= given
	if late>>63 == 0 {
		return
	}
	for i, rest := range p.s.rem[:len(out)] {
		if rest >= p.den {
			p.s.rem[i] -= p.den
			out[i]++
			p.left--
		}
	}
}

// finish adds one unit to the cells with the largest remainders.
func (p *rounding) finish(out []Rate) {
	if p.left == 0 {
		return
	}
	if len(out) <= fewCells {
		bumpSet(out, selectFew(p.s.rem, len(out), p.left))
		return
	}
	rem := p.s.rem[:len(out)]
	least, cut := p.s.selectLargest(rem, p.left)
	bumpFrom(out[:cut], rem[:cut], least)
	if cut < len(out) {
		bumpFrom(out[cut:], rem[cut:], least+1)
	}
}

// bumpFrom adds one to every cell whose remainder is at least least.
//
//go:noinline
func bumpFrom(out []Rate, rem []uint64, least uint64) {
	rem = rem[:len(out)]
	for i := range out {
		_, below := bits.Sub64(rem[i], least, 0)
		out[i] += Rate(1 - below)
	}
}

// excess is max(0, d-b) for rates of 0 or more. It is written without a branch,
// which demand would make unpredictable.
func excess(d, b Rate) Rate {
	x := d - b
	return x &^ (x >> 63)
}
