package allocator

import (
	"fmt"
	"slices"
)

// Reason says why a cell got no more than it did.
type Reason uint8

const (
	// DemandMet: it got all it asked.
	DemandMet Reason = iota
	// CapReached: its own cap binds.
	CapReached
	// BorrowLimitReached: its class borrows all it may.
	BorrowLimitReached
	// LendLimitReached: other classes have capacity to spare that they may not lend.
	LendLimitReached
	// BudgetUsed: every class uses all it has; the class's part is shared out.
	BudgetUsed
	// Preempted: a higher class took part of what the class needs of its own.
	Preempted
)

// Flow is an amount that comes from or goes to a class.
type Flow struct {
	Class  int // index of the configured class; its insurance counts as class 0
	Name   string
	Amount Rate
}

// Explanation says how one cell came to its target. The class level moves sums
// of classes, not of cells, so a cell's part of a flow is its share by largest
// remainder. Always
//
//	Target = Kept + InClass + sum of Borrowed + sum of Seized + Insurance + Headroom
//	Base   >= Kept + GivenInClass + sum of Lent + Idle
//
// and the second is an equality unless preemption took from what it needs.
// All rates are in micro-units per second.
type Explanation struct {
	Class, Node int
	Name        string // of the class
	Demand      Rate   // what it asked
	Asked       Rate   // the same within floor and cap
	Base        Rate   // its own base in force

	Kept      Rate   // of its own base, for its own demand
	InClass   Rate   // of the unused base of its classmates
	Borrowed  []Flow // of other classes' unused base
	Seized    []Flow // by preemption
	Insurance Rate   // room above the demand of class 0
	Headroom  Rate   // capacity of the class that nobody asked for
	Target    Rate

	GivenInClass Rate   // of its unused base, to classmates
	Lent         []Flow // of its unused base, to other classes
	Idle         Rate   // of its unused base, to the headroom of the class
	Taken        Rate   // of its own need, by preemption

	Reason Reason
}

// Explain computes the allocation for demand and says how the cell of class k
// at location i came to its target. It returns the errors of Allocate and
// allocates memory; Parked is as after Allocate with this demand.
func (a *Allocator) Explain(k, i int, demand []Rate) (Explanation, error) {
	if k < 0 || k >= a.k || i < 0 || i >= a.n {
		return Explanation{}, fmt.Errorf("allocator: explain cell (%d, %d) of %d classes and %d locations", k, i, a.k, a.n)
	}
	a.moves = newMoves(len(a.classes))
	defer func() { a.moves = nil }()
	target := make([]Rate, a.n*a.k)
	if err := a.Allocate(target, demand); err != nil {
		return Explanation{}, err
	}
	j, cell := a.classIndex[k], k*a.n+i
	e := Explanation{
		Class: k, Node: i, Name: a.classes[j].name,
		Demand: demand[cell], Asked: demand[cell], Base: a.base[cell], Target: target[cell],
	}
	if a.clamped != nil {
		e.Asked = a.clamped[cell]
	}
	if k == 0 && a.insured {
		e.Insurance = a.insurance[i]
	}
	a.explainGains(&e, j)
	a.explainLoans(&e, j)
	e.Reason = a.reason(&e, j)
	return e, nil
}

// explainGains splits the target into its sources.
func (a *Allocator) explainGains(e *Explanation, j int) {
	need, got := min(e.Asked, e.Base), e.Target-e.Insurance
	e.Kept = min(need, got)
	e.Taken = need - e.Kept
	e.Headroom = max(0, got-e.Asked)
	n := len(a.classes)
	sources := make([]int64, 1+2*n)
	sources[0] = int64(a.moves.own[j])
	for v := range n {
		sources[1+v] = int64(a.moves.lent[v*n+j])
		sources[1+n+v] = int64(a.moves.seized[v*n+j])
	}
	parts := shares(got-e.Kept-e.Headroom, sources)
	e.InClass = parts[0]
	e.Borrowed = a.flows(parts[1 : 1+n])
	e.Seized = a.flows(parts[1+n:])
}

// explainLoans splits the cell's unused base into its uses.
func (a *Allocator) explainLoans(e *Explanation, j int) {
	n := len(a.classes)
	uses := make([]int64, 2+n)
	uses[0] = int64(a.moves.own[j])
	spare := a.classes[j].reserve - a.classes[j].met - a.moves.own[j]
	for v := range n {
		x := a.moves.lent[j*n+v]
		if j == 0 && a.insured && v == 1 {
			x += a.moves.own[1]
		}
		uses[2+v] = int64(x)
		spare -= x
	}
	uses[1] = int64(spare)
	parts := shares(e.Base-min(e.Asked, e.Base), uses)
	e.GivenInClass, e.Idle = parts[0], parts[1]
	e.Lent = a.flows(parts[2:])
}

// shares is LargestRemainder over amounts that are known to be valid; without
// any, the first takes all.
func shares(total Rate, amounts []int64) []Rate {
	if !slices.ContainsFunc(amounts, func(x int64) bool { return x > 0 }) {
		out := make([]Rate, len(amounts))
		out[0] = total
		return out
	}
	out, err := LargestRemainder(total, amounts)
	if err != nil {
		panic(fmt.Sprintf("allocator: explaining %d over %v: %v", total, amounts, err))
	}
	return out
}

// flows lists the positive amounts by configured class.
func (a *Allocator) flows(amounts []Rate) (out []Flow) {
	for k, j := range a.classIndex {
		x := amounts[j]
		if k == 0 && a.insured {
			x += amounts[1]
		}
		if x > 0 {
			out = append(out, Flow{k, a.classes[j].name, x})
		}
	}
	return out
}

// reason finds what stands in the way of a larger target.
func (a *Allocator) reason(e *Explanation, j int) Reason {
	c := &a.classes[j]
	switch {
	case e.Target >= e.Demand:
		return DemandMet
	case e.Target >= e.Asked:
		return CapReached
	case c.quota < c.met:
		return Preempted
	case c.want < c.unmet && c.borrowed >= c.borrowMax:
		return BorrowLimitReached
	}
	for v := range a.classes {
		if w := &a.classes[v]; v != j && w.spare > 0 {
			return LendLimitReached
		}
	}
	return BudgetUsed
}
