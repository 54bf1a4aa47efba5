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
	rem  []uint64 // remainders of the shares being rounded
	pick []uint64 // candidates for the next larger remainder
	hist [1 << wideBits]uint32

	vals []Rate // proportions built by the caller of addShare

	wet   []wet  // cells still rising in a water-fill
	level []Rate // and their rounded level

	passes int // passes over cells by selection and water-filling, for tests of law 10
}

func newScratch(n int) *scratch {
	return &scratch{
		rem: make([]uint64, n), pick: make([]uint64, n), vals: make([]Rate, n),
		wet: make([]wet, n), level: make([]Rate, n),
	}
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
	round := s.newRounding(len(v), uint64(sum))
	left := round.floors(out, v, t)
	round.finish(out[:len(v)], left)
}

// A rounding is one largest-remainder split under way: it collects remainders
// below mod and their histogram, then hands out the units that are left.
type rounding struct {
	s     *scratch
	mod   uint64
	shift uint // the histogram counts remainders by rem >> shift
	width uint // and has 1 << width buckets
}

func (s *scratch) newRounding(n int, mod uint64) rounding {
	width := uint(narrowBits)
	if n > narrowCells {
		width = wideBits
	}
	clear(s.hist[:1<<width])
	shift := max(bits.Len64(mod), int(width)) - int(width)
	return rounding{s, mod, uint(shift), width}
}

// floors adds floor(v[i]*t/mod) to every out[i] and returns how much of t that
// leaves. It needs t < mod < 2^63 and the sum of v equal to mod.
//
// There is no division per cell. With r = floor(t * 2^64 / mod), the high word
// of v*r is the quotient or one less: v*t/mod - v*r/2^64 < v/2^64 < 1. The
// remainder, computed modulo 2^64, tells which, as it is below 2*mod < 2^64.
func (p *rounding) floors(out, v []Rate, t uint64) uint64 {
	mod, shift := p.mod, p.shift&63
	r, _ := bits.Div64(t, 0, mod)
	left := t
	out, rem, hist := out[:len(v)], p.s.rem[:len(v)], &p.s.hist
	for i, x := range v {
		q, _ := bits.Mul64(uint64(x), r)
		rest := uint64(x)*t - q*mod
		if rest >= mod {
			q++
			rest -= mod
		}
		out[i] += Rate(q)
		rem[i] = rest
		hist[rest>>shift&(1<<wideBits-1)]++
		left -= q
	}
	return left
}

// finish adds one unit to the left cells with the largest remainders.
func (p *rounding) finish(out []Rate, left uint64) {
	if left == 0 {
		return
	}
	rem := p.s.rem[:len(out)]
	least, cut := p.selectLargest(rem, uint32(left))
	bumpFrom(out[:cut], rem[:cut], least)
	bumpFrom(out[cut:], rem[cut:], least+1)
}

// bumpFrom adds one to every cell whose remainder is at least least.
func bumpFrom(out []Rate, rem []uint64, least uint64) {
	rem = rem[:len(out)]
	for i := range out {
		_, below := bits.Sub64(rem[i], least, 0)
		out[i] += Rate(1 - below)
	}
}
