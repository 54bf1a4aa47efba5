package quota

import (
	"cmp"
	"math/bits"
	"slices"

	"subak/allocator"
)

// fill splits total max-min: out[i] gets min(want[i], level) with the level at
// which total is used up or everybody has what it wants. It is exact: what rounding
// leaves over goes to those that want most, and of two alike to the later one.
func fill(out, want []allocator.Rate, total allocator.Rate) {
	order := make([]int, len(want))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(want[a], want[b]) })
	for n, i := range order {
		out[i] = max(0, min(want[i], total/allocator.Rate(len(order)-n)))
		total -= out[i]
	}
}

// due is what each of a pot's parties may have of total: its demand, max-min,
// and of what nobody asks for a part in proportion to demand.
func due(demand []allocator.Rate, total allocator.Rate) []allocator.Rate {
	out := make([]allocator.Rate, len(demand))
	fill(out, demand, total)
	spare, sum := total, allocator.Rate(0)
	for i := range out {
		spare -= out[i]
		sum += demand[i]
	}
	if spare <= 0 || sum <= 0 {
		return out
	}
	for i := range out { // spare means that out is demand, so sum is at most total
		hi, lo := bits.Mul64(uint64(spare), uint64(demand[i]))
		q, _ := bits.Div64(hi, lo, uint64(sum))
		out[i] += allocator.Rate(q)
	}
	return out
}
