package allocator

import "math"

// Pass 2: from each class's quota to its cells.

// place writes class k's targets and returns what no cell of it can hold.
func (a *Allocator) place(k int, out, demand []Rate) (parked Rate) {
	c := &a.classes[a.classIndex[k]]
	got := c.quota - c.met
	surplus := got >= c.unmet
	switch {
	case surplus:
		copy(out, demand)
	case got >= 0:
		a.shareDeficits(c, out, demand, c.base, got)
	default:
		a.shareCut(c, k, out, demand)
	}
	if k == 0 && a.insured {
		for i, x := range a.insurance {
			out[i] += x
		}
	}
	if surplus {
		return a.addHeadroom(c, k, out, demand, got-c.unmet)
	}
	return 0
}

// shareDeficits gives every cell min(demand, base) and a share of got, which is
// less than the class's deficits add up to.
func (a *Allocator) shareDeficits(c *class, out, demand, base []Rate, got Rate) {
	out, base = out[:len(demand)], base[:len(demand)]
	if got == 0 { // nothing to share: the usual case in a class that lends
		for i, d := range demand {
			out[i] = min(d, base[i])
		}
		return
	}
	if c.rule == MaxMin {
		a.s.addDeficits(out, demand, base, a.weights, got)
		return
	}
	round := a.s.newRounding(uint64(got), uint64(c.unmet))
	given, late := round.deficitFloors(out, demand, base)
	round.correct(out, given, late)
	round.finish(out)
}

// shareCut shares a quota that preemption has cut below what the cells need of
// their own base: each keeps its floor, the rest goes by that need.
func (a *Allocator) shareCut(c *class, k int, out, demand []Rate) {
	need, base := a.s.vals[:a.n], c.base
	for i, d := range demand {
		f := Rate(0)
		if a.floors != nil {
			f = a.floors[k*a.n+i]
		}
		out[i] = f
		need[i] = min(d, base[i]) - f
	}
	a.shareBy(c, out, need, c.quota-c.floor, c.met-c.floor)
}

// shareBy adds to out the shares of total over v by the class's rule. sum is
// the sum of v, above total.
func (a *Allocator) shareBy(c *class, out, v []Rate, total, sum Rate) {
	if c.rule == MaxMin {
		a.s.addFill(out, v, a.weights, total)
		return
	}
	a.s.addShare(out, v, total, sum)
}

// placeInsurance turns the insurance's demand into its allocation.
func (a *Allocator) placeInsurance() {
	c := &a.classes[1]
	if c.quota >= c.unmet {
		return // all of it
	}
	ask := a.s.vals[:a.n]
	copy(ask, a.insurance)
	clear(a.insurance)
	a.shareBy(c, a.insurance, ask, c.quota, c.unmet)
}

// addHeadroom adds to class k's cells the capacity nobody in it demands, by the
// headroom rule, and returns what caps keep out.
func (a *Allocator) addHeadroom(c *class, k int, out, demand []Rate, spare Rate) (parked Rate) {
	if spare == 0 {
		return 0
	}
	base := c.base
	weight, sum := base, c.held
	switch a.spec.Headroom {
	case HeadroomOwnerKeeps:
		weight, sum = a.s.vals[:a.n], c.held-c.met
		for i, d := range demand {
			weight[i] = max(base[i]-d, 0)
		}
	case HeadroomByDemand:
		if asked := c.met + c.unmet; asked > 0 {
			weight, sum = demand, asked
		}
	}
	if a.limits == nil {
		if sum == 0 {
			return spare
		}
		a.s.addShare(out, weight, spare, sum)
		return 0
	}
	spare = a.addWithinCaps(k, out, weight, spare)
	if a.spec.Headroom == HeadroomByDemand && spare > 0 {
		spare = a.addWithinCaps(k, out, base, spare)
	}
	return spare
}

// addWithinCaps adds a share of total by weight to each of class k's cells, up
// to its cap, and returns what is left. Where owners keep their headroom a cell
// holds no more of it than its own unused base.
func (a *Allocator) addWithinCaps(k int, out, weight []Rate, total Rate) Rate {
	room := a.roomScratch
	for i, x := range out {
		room[i] = math.MaxInt64
		if a.limits != nil {
			room[i] = a.limits[k*a.n+i] - x
		}
		if a.spec.Headroom == HeadroomOwnerKeeps {
			room[i] = min(room[i], weight[i])
		}
	}
	return a.s.addFill(out, room, weight, total)
}

// roomFor sums what headroom the cells of class k can hold above demand, at
// most math.MaxInt64.
func (a *Allocator) roomFor(k int, demand []Rate) (sum Rate) {
	for i, d := range demand {
		b := a.base[k*a.n+i]
		room := a.limits[k*a.n+i] - d
		if a.spec.Headroom == HeadroomOwnerKeeps {
			room = min(room, max(b-d, 0))
		}
		if b > 0 || d > 0 && a.spec.Headroom == HeadroomByDemand {
			sum += min(room, math.MaxInt64-sum)
		}
	}
	return sum
}
