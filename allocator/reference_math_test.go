package allocator

import (
	"math/big"
	"sort"
)

// The arithmetic of the reference (see refAllocate): largest remainder and
// water-filling from their definitions, with big integers.

func bigOf(r Rate) *big.Int { return big.NewInt(int64(r)) }

func bigSum(v []*big.Int) *big.Int {
	sum := new(big.Int)
	for _, x := range v {
		sum.Add(sum, x)
	}
	return sum
}

func bigMin(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func bigMax(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func sub(a, b *big.Int) *big.Int  { return new(big.Int).Sub(a, b) }
func plus(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }

// positive is max(x, 0).
func positive(x *big.Int) *big.Int { return bigMax(x, new(big.Int)) }

// refRemainder is largest remainder as in the textbook.
func refRemainder(total *big.Int, v []*big.Int) []*big.Int {
	out, rem := make([]*big.Int, len(v)), make([]*big.Int, len(v))
	sum := bigSum(v)
	left := new(big.Int).Set(total)
	order := make([]int, len(v))
	for i := range v {
		out[i], rem[i], order[i] = new(big.Int), new(big.Int), i
		if sum.Sign() > 0 {
			out[i].DivMod(new(big.Int).Mul(v[i], total), sum, rem[i])
		}
		left.Sub(left, out[i])
	}
	sort.SliceStable(order, func(x, y int) bool { return rem[order[x]].Cmp(rem[order[y]]) > 0 })
	for _, i := range order {
		if left.Sign() > 0 {
			out[i].Add(out[i], big.NewInt(1))
			left.Sub(left, big.NewInt(1))
		}
	}
	return out
}

// refClamped splits total into parts clamp(level*weight, lo, hi), rounded by
// largest remainder over the parts strictly between. It tries every level at
// which a part starts or stops to move and solves for the level between. lo
// must fit into total and total into hi.
func refClamped(total *big.Int, weight, lo, hi []*big.Int) []*big.Int {
	at := func(level *big.Rat, i int) *big.Rat {
		x := new(big.Rat).Mul(level, new(big.Rat).SetInt(weight[i]))
		if l := new(big.Rat).SetInt(lo[i]); x.Cmp(l) < 0 {
			return l
		}
		if h := new(big.Rat).SetInt(hi[i]); x.Cmp(h) > 0 {
			return h
		}
		return x
	}
	below := new(big.Rat) // the highest stop whose parts add up to at most total
	for i := range weight {
		if weight[i].Sign() == 0 {
			continue
		}
		for _, edge := range []*big.Int{lo[i], hi[i]} {
			level := new(big.Rat).SetFrac(edge, weight[i])
			sum := new(big.Rat)
			for j := range weight {
				sum.Add(sum, at(level, j))
			}
			if sum.Cmp(new(big.Rat).SetInt(total)) <= 0 && level.Cmp(below) > 0 {
				below = level
			}
		}
	}
	out, free := make([]*big.Int, len(weight)), make([]*big.Int, len(weight))
	left := new(big.Int).Set(total)
	for i := range weight {
		x := new(big.Rat).Mul(below, new(big.Rat).SetInt(weight[i]))
		free[i] = new(big.Int)
		switch {
		case weight[i].Sign() == 0 || x.Cmp(new(big.Rat).SetInt(lo[i])) < 0:
			out[i] = lo[i]
		case x.Cmp(new(big.Rat).SetInt(hi[i])) >= 0:
			out[i] = hi[i]
		default:
			out[i], free[i] = new(big.Int), weight[i]
			continue
		}
		left.Sub(left, out[i])
	}
	for i, x := range refRemainder(left, free) {
		out[i] = plus(out[i], x)
	}
	return out
}

// refFill is water-filling of want by weight; what does not fit is returned.
func refFill(total *big.Int, want, weight []*big.Int) (out []*big.Int, left *big.Int) {
	hi, lo := make([]*big.Int, len(want)), make([]*big.Int, len(want))
	for i := range want {
		lo[i], hi[i] = new(big.Int), new(big.Int)
		if weight[i].Sign() > 0 {
			hi[i] = want[i]
		}
	}
	fits := bigMin(total, bigSum(hi))
	return refClamped(fits, weight, lo, hi), sub(total, fits)
}
