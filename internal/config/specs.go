package config

import (
	"cmp"
	"math/big"
	"slices"

	"subak/allocator"
)

// split divides total over parts exactly, by largest remainder with ties to the
// lower index. The parts must not be negative and not all zero.
func split(total allocator.Rate, parts []int64) []allocator.Rate {
	sum := new(big.Int)
	for _, p := range parts {
		sum.Add(sum, big.NewInt(p))
	}
	out := make([]allocator.Rate, len(parts))
	remainders := make([]big.Int, len(parts))
	order := make([]int, len(parts))
	left := total
	for i, p := range parts {
		n := new(big.Int).Mul(big.NewInt(p), big.NewInt(int64(total)))
		n.QuoRem(n, sum, &remainders[i])
		out[i], order[i] = allocator.Rate(n.Int64()), i
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(remainders[b].Cmp(&remainders[a]), cmp.Compare(a, b))
	})
	for _, i := range order[:left] {
		out[i]++
	}
	return out
}
