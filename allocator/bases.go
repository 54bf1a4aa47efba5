package allocator

import (
	"math"
	"math/bits"
	"slices"
)

// Bases: what part of a class's reservation is each location's own.

// splitWithin splits total by weight with every part between its floor and its
// cap, rounded by largest remainder over the cells that neither binds. It
// returns what the caps cannot hold. The floors must add up to at most total.
//
// The part of a cell is clamp(level*weight, floor, cap). A cell leaves its floor
// at the level floor/weight and stops at cap/weight; going through these levels
// in order finds the one at which the parts add up to total.
func splitWithin(out, weights, floors, limits []Rate, total Rate) (park Rate) {
	var held Rate
	for _, l := range limits {
		held += min(l, total-held)
	}
	park = total - held
	total = held
	left, free := total, Rate(0)
	state := make([]cellState, len(out))
	for _, f := range floors {
		left -= f
	}
	for _, b := range breakpoints(weights, floors, limits) {
		if compareProducts(b.level, free, left, b.weight) >= 0 {
			break
		}
		if b.leaves {
			state[b.cell] = rising
			left += floors[b.cell]
			free += b.weight
		} else {
			state[b.cell] = atCap
			left -= limits[b.cell]
			free -= b.weight
		}
	}
	shares := make([]Rate, len(out))
	for i := range out {
		switch state[i] {
		case atFloor:
			out[i] = floors[i]
		case rising:
			out[i], shares[i] = 0, weights[i]
		case atCap:
			out[i] = limits[i]
		}
	}
	newScratch(len(out)).addShare(out, shares, left, free)
	return park
}

type cellState uint8

const (
	atFloor cellState = iota
	rising
	atCap
)

// A breakpoint is the level at which a cell leaves its floor or stops at its
// cap: level/weight, a fraction of the cell's floor or cap and its weight.
type breakpoint struct {
	level, weight Rate
	cell          int
	leaves        bool
}

// breakpoints returns all of them in order of level; at equal levels a cell
// leaves its floor before it stops.
func breakpoints(weights, floors, limits []Rate) []breakpoint {
	var points []breakpoint
	for i, w := range weights {
		points = append(points, breakpoint{floors[i], w, i, true})
		if limits[i] < math.MaxInt64 {
			points = append(points, breakpoint{limits[i], w, i, false})
		}
	}
	slices.SortStableFunc(points, func(a, b breakpoint) int {
		return compareProducts(a.level, b.weight, b.level, a.weight)
	})
	return points
}

// compareProducts compares a*b with c*d exactly.
func compareProducts(a, b, c, d Rate) int {
	hi1, lo1 := bits.Mul64(uint64(a), uint64(b))
	hi2, lo2 := bits.Mul64(uint64(c), uint64(d))
	switch {
	case hi1 < hi2 || hi1 == hi2 && lo1 < lo2:
		return -1
	case hi1 == hi2 && lo1 == lo2:
		return 0
	default:
		return 1
	}
}

// restoreBases puts the configured bases in force.
func (a *Allocator) restoreBases() {
	a.ceilings = a.ceilings[:0]
	copy(a.base, a.confBase)
	copy(a.park, a.confPark)
	copy(a.floors, a.confFloors)
	a.refreshClasses()
}

// SetCeilings puts the published ceilings of the live locations in force, one
// for each location, instead of the configured bases: the base cells of
// location i become its ceiling, split by largest remainder in proportion to
// its configured cells (or to the reservations if it has none), and the budget
// becomes the sum of ceilings. A location that is absent has ceiling 0. nil
// restores the configured bases.
//
// What follows, so that all laws keep holding: a class's reservation becomes
// the sum of its cells, and lend, borrow and protect are shares of that; a floor
// is the smaller of the configured one and the cell, as it is honoured out of
// the location's own base; what exceeds a cap goes to the class's park. The
// configured park is in no location's ceiling and so is not shared out.
//
// It fails, changing nothing, with ErrShape, ErrNegative or ErrOverflow. It
// allocates at the first call only, and does nothing if the ceilings are those
// in force.
func (a *Allocator) SetCeilings(ceilings []Rate) error {
	if ceilings == nil {
		if len(a.ceilings) > 0 {
			a.restoreBases()
		}
		return nil
	}
	if len(ceilings) != a.n {
		return ErrShape
	}
	var sum Rate
	for _, c := range ceilings {
		if c < 0 {
			return ErrNegative
		}
		if c > math.MaxInt64-sum {
			return ErrOverflow
		}
		sum += c
	}
	if slices.Equal(a.ceilings, ceilings) {
		return nil
	}
	a.ceilings = append(a.ceilings[:0], ceilings...)
	clear(a.park)
	for i, c := range ceilings {
		a.scaleNode(i, c)
	}
	a.refreshClasses()
	return nil
}

// scaleNode splits ceiling over location i's cells.
func (a *Allocator) scaleNode(i int, ceiling Rate) {
	conf, cells := a.column[0], a.column[1]
	sum := a.configured(conf, i)
	clear(cells)
	a.s.addShare(cells, conf, ceiling, sum)
	for k, x := range cells {
		c := k*a.n + i
		if a.limits != nil && x > a.limits[c] {
			a.park[k] += x - a.limits[c]
			x = a.limits[c]
		}
		a.base[c] = x
		if a.floors != nil {
			a.floors[c] = min(a.confFloors[c], x)
		}
	}
}

// configured copies location i's configured cells to col and returns their sum.
// A location without any takes the proportions of the reservations.
func (a *Allocator) configured(col []Rate, i int) (sum Rate) {
	for k := range col {
		col[k] = a.confBase[k*a.n+i]
		sum += col[k]
	}
	if sum == 0 {
		copy(col, a.reservedRates)
		sum = a.spec.Budget
	}
	return sum
}

// refreshClasses derives the limits of the classes from the bases in force.
func (a *Allocator) refreshClasses() {
	var budget Rate
	for k, j := range a.classIndex {
		c := &a.classes[j]
		c.held, c.floor, c.base = 0, 0, a.row(a.base, k)
		for _, x := range c.base {
			c.held += x
		}
		if a.floors != nil {
			for _, x := range a.row(a.floors, k) {
				c.floor += x
			}
		}
		c.reserve = c.held + a.park[k]
		budget += c.reserve
	}
	for k, j := range a.classIndex {
		c, s := &a.classes[j], &a.spec.Classes[k]
		c.lendMax = partOf(c.reserve, s.Lend, c.reserve)
		c.borrowMax = partOf(c.reserve, s.Borrow, budget)
		c.protect = partOf(c.reserve, s.Protect, c.reserve)
	}
}
