package allocator

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Errors of Allocate and SetCeilings. The state and the output are as before.
var (
	ErrShape    = errors.New("allocator: wrong number of cells")
	ErrNegative = errors.New("allocator: negative rate")
	ErrOverflow = errors.New("allocator: rates add up to 2^63 or more")
)

// Allocator computes targets for one budget. Make it with New. It keeps no
// state from one cycle to the next but the ceilings set by SetCeilings. One
// goroutine owns it: the methods share scratch memory.
type Allocator struct {
	spec    Spec   // the configuration, with private copies of the slices used here
	n, k    int    // locations, user-visible classes
	weights []Rate // scaled, see scaledWeights

	// Configured cells, class-major: [k*n+i].
	confBase []Rate
	confPark []Rate // by class

	// In force: as configured, or scaled to the ceilings.
	base          []Rate
	park          []Rate
	floors        []Rate // nil if no cell has one
	limits        []Rate // caps, the largest rate for none; nil if no cell has one
	ceilings      []Rate // nil when the configured bases are in force
	confFloors    []Rate
	classes       []class
	classIndex    []int  // user-visible class to its place in classes
	insured       bool   // classes[1] is the insurance of class 0
	insurance     []Rate // by location: its demand, then its allocation
	clamped       []Rate // demand within floors and caps; nil without them
	maxSafe       uint64 // demands below this cannot overflow a sum
	parked        Rate
	s             *scratch
	moves         *moves    // who lent to whom; recorded for Explain only
	roomScratch   []Rate    // by location, scratch of addWithinCaps
	ask           [5][]Rate // by class, scratch of lendInProportion
	column        [3][]Rate // by class, scratch of Split and SetCeilings
	reservedRates []Rate    // configured reservations, the fallback proportions
}

// class is one class of the class level: its limits, fixed between changes of
// the bases, and its sums in the cycle under way.
type class struct {
	name     string
	rule     Rule
	preempts bool

	base      []Rate // the cells in force, a part of Allocator.base
	reserve   Rate   // R
	held      Rate   // R without the park: the sum of base cells
	lendMax   Rate
	borrowMax Rate
	protect   Rate // what preemption must leave
	floor     Rate // sum of floors in force

	met   Rate // M: sum of min(demand, base)
	unmet Rate // D: sum of (demand - base)+
	spare Rate // E = R - M
	room  Rate // what cells can hold beyond their met demand; only with caps

	want           Rate // what it asks of other classes
	lent, borrowed Rate
	quota          Rate // Q: what the class gets
}

// New builds an allocator. It returns all faults of the specification.
func New(s Spec) (*Allocator, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("allocator: %w", err)
	}
	n, k := len(s.Weights), len(s.Classes)
	a := &Allocator{spec: s, n: n, k: k, s: newScratch(max(n, k+1)), insured: s.InsurancePPM > 0}
	a.spec.Classes = append([]ClassSpec(nil), s.Classes...)
	a.weights = scaledWeights(s.Weights)
	a.spec.Weights, a.spec.Floors, a.spec.Caps = nil, nil, nil
	a.layOutCells(&s)
	a.layOutClasses()
	a.restoreBases()
	return a, nil
}

// scaledWeights scales the weights by a power of two, so that their sum has 62
// bits. This changes no proportion and no order of remainders, but makes the
// level of a water-fill less than 1 as a rule, which saves a division a round.
func scaledWeights(weights []int64) []Rate {
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	shift := max(0, bits.LeadingZeros64(sum)-2)
	out := make([]Rate, len(weights))
	for i, w := range weights {
		out[i] = Rate(w << shift)
	}
	return out
}

// layOutCells copies floors and caps and splits the reservations into bases.
func (a *Allocator) layOutCells(s *Spec) {
	n, k := a.n, a.k
	a.confBase, a.confPark = make([]Rate, n*k), make([]Rate, k)
	a.base, a.park = make([]Rate, n*k), make([]Rate, k)
	floors, limits := make([]Rate, n*k), make([]Rate, n*k)
	anyFloor, anyCap := false, false
	for c := range k {
		for i := range n {
			floors[c*n+i], limits[c*n+i] = s.floor(c, i), s.limit(c, i)
			anyFloor = anyFloor || floors[c*n+i] > 0
			anyCap = anyCap || limits[c*n+i] < math.MaxInt64
		}
		row := a.row(a.confBase, c)
		a.confPark[c] = splitWithin(row, a.weights, floors[c*n:c*n+n], limits[c*n:c*n+n], s.Classes[c].Reservation)
	}
	if anyFloor {
		a.confFloors, a.floors = floors, make([]Rate, n*k)
	}
	if anyCap {
		a.limits = limits
	}
	if anyFloor || anyCap {
		a.clamped = make([]Rate, n*k)
	}
	a.maxSafe = uint64(1) << (63 - bits.Len(uint(n*(k+1))))
}

// layOutClasses lists the classes of the class level: the configured ones, with
// the insurance right below class 0.
func (a *Allocator) layOutClasses() {
	a.classIndex, a.roomScratch = make([]int, a.k), make([]Rate, a.n)
	a.reservedRates = make([]Rate, a.k)
	for j := range a.column {
		a.column[j] = make([]Rate, a.k)
	}
	for k := range a.spec.Classes {
		c := &a.spec.Classes[k]
		a.classIndex[k] = len(a.classes)
		a.reservedRates[k] = c.Reservation
		a.classes = append(a.classes, class{name: c.Name, rule: c.Rule, preempts: c.Preempts})
		if k == 0 && a.insured {
			a.classes = append(a.classes, class{name: c.Name + " insurance", rule: c.Rule})
			a.insurance = make([]Rate, a.n)
		}
	}
	for j := range a.ask {
		a.ask[j] = make([]Rate, len(a.classes))
	}
}

// row is class k's part of a class-major vector.
func (a *Allocator) row(v []Rate, k int) []Rate { return v[k*a.n : k*a.n+a.n : k*a.n+a.n] }

// Classes is the number of classes K.
func (a *Allocator) Classes() int { return a.k }

// Nodes is the number of locations N.
func (a *Allocator) Nodes() int { return a.n }

// Base is the configured base of a cell: the largest-remainder split of the
// class's reservation by weight, within floor and cap. Ceilings do not change it.
func (a *Allocator) Base(k, i int) Rate { return a.confBase[k*a.n+i] }

// NodeBase is the configured base of location i over all classes. All node
// bases and all parks add up to the budget.
func (a *Allocator) NodeBase(i int) Rate {
	var sum Rate
	for k := range a.k {
		sum += a.confBase[k*a.n+i]
	}
	return sum
}

// Park is what the caps of class k keep out of every configured cell. No
// location owns it; it can be lent to other classes.
func (a *Allocator) Park(k int) Rate { return a.confPark[k] }

// BaseInForce is the base of a cell in force: as configured, or scaled to the
// location's ceiling.
func (a *Allocator) BaseInForce(k, i int) Rate { return a.base[k*a.n+i] }

// Parked is what the last Allocate could place in no cell, because of caps.
func (a *Allocator) Parked() Rate { return a.parked }

// Allocate computes the target of every cell from its demand. Both vectors are
// class-major, [k*N+i], and must not overlap. The targets and Parked add up to
// the budget, or to the sum of ceilings, exactly (law 1).
//
// It fails, leaving target as it was, with ErrShape, ErrNegative, or
// ErrOverflow if the demand, insurance included, adds up to 2^63 or more. It allocates nothing and
// takes O(KN + K^2).
func (a *Allocator) Allocate(target, demand []Rate) error {
	if len(target) != a.n*a.k || len(demand) != a.n*a.k {
		return ErrShape
	}
	if err := a.measure(demand); err != nil {
		return err
	}
	a.entitle()
	if a.clamped != nil {
		demand = a.clamped
	}
	a.parked = 0
	if a.insured {
		a.placeInsurance()
	}
	for k := range a.k {
		a.parked += a.place(k, a.row(target, k), a.row(demand, k))
	}
	return nil
}

// measure is pass 1: it validates the demand, brings it within floors and caps,
// and sums it up by class.
func (a *Allocator) measure(demand []Rate) error {
	var all uint64
	if a.clamped != nil {
		for k := range a.k {
			all |= a.clamp(k, a.row(demand, k))
		}
	}
	cells := demand
	if a.clamped != nil {
		cells = a.clamped
	}
	for k, j := range a.classIndex {
		c, d := &a.classes[j], a.row(cells, k)
		var seen uint64
		c.met, c.unmet, seen = needs(d, c.base)
		c.spare = c.reserve - c.met
		all |= seen
		if a.limits != nil && a.spec.Mode == Paper {
			c.room = a.roomFor(k, d)
		}
	}
	// A set bit at or above maxSafe is a negative demand or one so large that
	// the sums need a closer look.
	if a.insured {
		a.measureInsurance(a.row(demand, 0))
	}
	if all >= a.maxSafe {
		return a.checkSum(demand)
	}
	return nil
}

// needs sums what the cells need of their own base and beyond it, and ORs the
// demands together. Inlined, the loop would keep its
// sums in memory.
//
//go:noinline
func needs(demand, base []Rate) (met, unmet Rate, seen uint64) {
	base = base[:len(demand)]
	var all Rate
	for i, d := range demand {
		met += min(d, base[i])
		all += d
		seen |= uint64(d)
	}
	return met, all - met, seen
}

// checkSum reports a negative demand or a sum of 2^63 or more.
func (a *Allocator) checkSum(demand []Rate) error {
	var sum Rate
	for _, d := range demand {
		if d < 0 {
			return ErrNegative
		}
		if d > math.MaxInt64-sum {
			return ErrOverflow
		}
		sum += d
	}
	if a.insured && a.classes[1].unmet > math.MaxInt64-sum {
		return ErrOverflow
	}
	return nil
}

// clamp writes class k's demand within floors and caps, and sums the room that
// caps leave.
func (a *Allocator) clamp(k int, demand []Rate) (seen uint64) {
	out := a.row(a.clamped, k)
	for _, d := range demand {
		seen |= uint64(d)
	}
	copy(out, demand)
	if a.floors != nil {
		for i, f := range a.row(a.floors, k) {
			out[i] = max(out[i], f)
		}
	}
	if a.limits != nil {
		for i, l := range a.row(a.limits, k) {
			out[i] = min(out[i], l)
		}
	}
	return seen
}

// measureInsurance computes what the insurance of class 0 asks for.
func (a *Allocator) measureInsurance(demand []Rate) {
	c := &a.classes[1]
	c.met, c.unmet, c.spare = 0, 0, 0
	for i, d := range demand {
		want := partOf(max(0, d), a.spec.InsurancePPM, math.MaxInt64)
		if a.limits != nil {
			want = min(want, a.limits[i]-a.clamped[i])
		}
		a.insurance[i] = want
		c.unmet += want
	}
}
