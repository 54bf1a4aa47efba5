package allocator

import (
	"math/bits"
)

// Weighted water-filling: out[i] gets min(want[i], level*weight[i]) with the
// level at which the total is used up, rounded by largest remainder over the
// cells that the level leaves unsatisfied.
//
// The level is found by Newton's method from below: with F the satisfied cells
// at one level, the next is (total - sum of want in F) / (weight not in F). It
// rises until F stands still. Let W be the weight outside F and g the last rise:
// cells that join with weight share x of W lie within g of the new level, so
// the next rise is at most g*x/(1-x) while W becomes W(1-x), and W*W*g falls by
// the factor x(1-x) <= 1/4. It starts at no more than total*W and is at least 1
// while cells join. So there are at most 2 + log4(total*W) <= 65 rounds whatever
// the demand, and a handful in practice.

// wet is a cell that may stay unsatisfied.
type wet struct {
	want, weight Rate
	cell         int
}

// addDeficits sets every out[i] to min(demand, base) and its water-filled share
// of total over (demand-base)+, which must add up to more than total.
func (s *scratch) addDeficits(out, demand, base, weight []Rate, total Rate) {
	n := len(demand)
	out, base, weight, list := out[:n], base[:n], weight[:n], s.wet[:n]
	m, sum := 0, Rate(0)
	for i, d := range demand {
		over, w := excess(d, base[i]), weight[i]
		out[i] = d
		list[m] = wet{over, w, i}
		some := -over >> 63 // all ones if over > 0
		sum += w & some
		m -= int(some)
	}
	s.rise(out, list[:m], uint64(total), uint64(sum))
}

// addFill adds to out the water-filled share of total over v, weighted by
// weight. Cells of weight 0 take no part. It returns what v cannot hold.
func (s *scratch) addFill(out, v, weight []Rate, total Rate) Rate {
	var sum, held Rate
	m := 0
	for i, x := range v {
		if x = min(x, total); x == 0 || weight[i] == 0 {
			continue
		}
		s.wet[m] = wet{x, weight[i], i}
		m++
		sum += weight[i]
		held += min(x, total-held)
		out[i] += x
	}
	if held == total {
		s.rise(out, s.wet[:m], uint64(total), uint64(sum))
	}
	return total - held
}

// rise lowers the listed cells, which stand at full want in out, to the level
// that uses total exactly. sum is the sum of their weights; total is at most the
// sum of their wants. Both kinds of round drop the cells that the level
// satisfies; settle also finishes if there is none, so it is tried as soon as
// few dropped out.
func (s *scratch) rise(out []Rate, list []wet, total, sum uint64) {
	for few := false; len(list) > 0; {
		s.passes++
		var kept int
		var taken, weight uint64
		if few {
			kept, taken, weight = s.settle(out, list, total, sum)
			if kept == len(list) {
				return
			}
		} else {
			kept, taken, weight = sift(list, total, sum)
		}
		few = (len(list)-kept)*fewDropped <= kept
		list, total, sum = list[:kept], total-taken, sum-weight
	}
}

// fewDropped sets what share of the cells is few.
const fewDropped = 3

// level is total/sum as a whole part and a fraction.
func level(total, sum uint64) (whole uint64, part uint64) {
	if total < sum {
		return 0, total
	}
	whole = total / sum
	return whole, total - whole*sum
}

// sift moves the cells that want more than the level total/sum to the front and
// returns how many they are, and the wants and weights of the others. It may
// keep a cell that wants exactly what the level gives, rounded down.
func sift(list []wet, total, sum uint64) (kept int, taken, weight uint64) {
	whole, part := level(total, sum)
	r, _ := bits.Div64(part, 0, sum)
	for _, c := range list {
		q, _ := bits.Mul64(uint64(c.weight), r)
		q += uint64(c.weight) * whole
		list[kept] = c
		short := int64(q-uint64(c.want)) >> 63 // all ones if the cell wants more
		kept -= int(short)
		taken += uint64(c.want) &^ uint64(short)
		weight += uint64(c.weight) &^ uint64(short)
	}
	return kept, taken, weight
}

// settle rounds the level of the listed cells exactly and writes it to out,
// unless some cell wants no more than that: then it drops those as sift does.
func (s *scratch) settle(out []Rate, list []wet, total, sum uint64) (kept int, taken, weight uint64) {
	whole, part := level(total, sum)
	round := s.newRounding(part, sum)
	level := s.level[:len(list)]
	given, late := round.levels(level, list)
	round.correct(level, given, late)
	if addWhole(level, list, Rate(whole)) {
		round.finish(level)
		for j, c := range list {
			out[c.cell] += level[j] - c.want
		}
		return len(list), 0, 0
	}
	for j, c := range list {
		if c.want > level[j] {
			list[kept] = c
			kept++
		} else {
			taken += uint64(c.want)
			weight += uint64(c.weight)
		}
	}
	return kept, taken, weight
}

// levels sets level[j] to the fraction of the level times the weight of a cell,
// rounded down. What it returns is for correct.
func (p *rounding) levels(level []Rate, list []wet) (given, late uint64) {
	level, rem := level[:len(list)], p.s.rem[:len(list)]
	num, den, r := p.num, p.den, p.r
	for j := range list {
		w := uint64(list[j].weight)
		q, _ := bits.Mul64(w, r)
		rest := w*num - q*den
		rem[j] = rest
		level[j] = Rate(q)
		given += q
		late |= den + ^rest
	}
	return given, late
}

// addWhole adds the whole part of the level and reports whether all cells want
// more than that.
func addWhole(level []Rate, list []wet, whole Rate) (short bool) {
	all := Rate(-1)
	for j := range list {
		level[j] += list[j].weight * whole
		all &= level[j] - list[j].want
	}
	return all < 0
}
