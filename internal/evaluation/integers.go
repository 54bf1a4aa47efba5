package evaluation

import "math/bits"

// muldiv is a*b/c rounded down, for a, b >= 0, c > 0 and a quotient that fits.
func muldiv[A, B, C ~int64](a A, b B, c C) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// apportion splits total over dst in proportion to weights, exactly: each part is
// its share rounded down or up, and they add up to total. Without any weight
// nothing is given.
func apportion[T, W ~int64](dst []T, weights []W, total T) {
	var sum W
	for _, w := range weights {
		sum += w
	}
	clear(dst)
	if sum <= 0 {
		return
	}
	var upTo W
	var given T
	for i, w := range weights {
		upTo += w
		next := T(muldiv(total, upTo, sum))
		dst[i] = next - given
		given = next
	}
}
