package evaluation

import (
	"subak/allocator"
	"subak/internal/contention"
	"subak/testbed/topology"
)

// contended is a contention scenario as a Trace.
type contended struct {
	trace    *contention.Trace
	at, last int
}

// Contended returns the first cycles of a contention scenario as a trace.
func Contended(s *contention.Scenario, t topology.Topology, limit int64, seed uint64, cycles int) (Trace, error) {
	trace, err := s.Trace(t, limit, seed)
	if err != nil {
		return nil, err
	}
	return Cycles(trace, 0, cycles), nil
}

// Cycles returns some cycles of a scenario's demand, from first on.
func Cycles(t *contention.Trace, first, cycles int) Trace {
	return &contended{trace: t, at: first, last: first + cycles}
}

func (c *contended) Nodes() int   { return c.trace.Nodes() }
func (c *contended) Classes() int { return contention.Classes }

func (c *contended) Next(demand, legit []allocator.Rate) (bool, error) {
	if c.at == c.last {
		return false, nil
	}
	c.trace.Cycle(c.at, demand)
	c.trace.Legit(c.at, legit)
	c.at++
	return true, nil
}

// ContendedSpec is the budget that the scenarios are made for: 60 % reserved for the
// high class, shared in proportion, and 40 % for the low one, shared max-min.
func ContendedSpec(t topology.Topology, limit int64) *allocator.Spec {
	budget := allocator.Rate(limit) * allocator.Unit
	high := allocator.Rate(muldiv(budget, int64(contention.ReserveHighPPM), allocator.Whole))
	return &allocator.Spec{
		Budget: budget, Weights: t.Weights(),
		Classes: []allocator.ClassSpec{
			{Name: "confirmed", Reservation: high, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole, Rule: allocator.Proportional},
			{Name: "uncleared", Reservation: budget - high, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole, Rule: allocator.MaxMin},
		},
	}
}
