package library

import (
	"sync"

	"subak/enforce"
	"subak/testbed/peers/measure"
)

// coarse is one decision by the coarse clock, which a node uses when told to.
func (s Scale) coarse() measure.Case {
	ours := newSubject(coarse(), high, enforce.LimiterConfig{})
	return measure.Case{
		ID: "library/coarse", What: "one decision by the coarse clock, one goroutine, everything admitted", Show: nanos, Batches: s.Batches,
		Sides: []measure.Side{
			s.side("limit.Class.Allow", admits, ours.allow),
			s.side(xtimeName, admits, xtime(high, high)),
			s.side("Limiter.Decide", admits, ours.decide),
		},
		Claims: []measure.Claim{
			atMost("library/coarse", "the same by the coarse clock, beside x/time/rate's Allow", 0, 1, 0.20),
			atMost("library/coarse-raw", "clock and limiter asked directly", 2, 1, 0.20),
		},
	}
}

// cores is all cores on the same class of the same budget.
func (s Scale) cores() measure.Case {
	ours := newSubject(precise(), high, enforce.LimiterConfig{})
	quick := newSubject(coarse(), high, enforce.LimiterConfig{})
	return measure.Case{
		ID: "library/cores", What: "one decision, all cores on one hot class; wall time for each decision made by any of them", Show: nanos, Batches: s.Batches,
		Sides: []measure.Side{
			s.crowd("limit.Class.Allow", admits, ours.allow),
			s.crowd(xtimeName, admits, xtime(high, high)),
			s.crowd("coarse clock", admits, quick.allow),
			s.crowd("Limiter.Decide", admits, ours.decide),
		},
		Claims: []measure.Claim{
			atMost("library/cores", "all cores on one hot bucket, beside x/time/rate's Allow", 0, 1, 0.20),
			atMost("library/cores-coarse", "the same by the coarse clock", 2, 1, 0.20),
			noted("library/cores-raw", "the same, clock and limiter asked directly", 3, 1),
		},
	}
}

// allocations counts the allocations of every kind of decision.
func (s Scale) allocations() measure.Case {
	open := newSubject(precise(), high, enforce.LimiterConfig{})
	quick := newSubject(coarse(), high, enforce.LimiterConfig{})
	shut := newSubject(precise(), low, enforce.LimiterConfig{})
	keys := sync.OnceValue(func() *tenants { return newTenants(precise()) })
	c := measure.Case{ID: "library/allocs", What: "allocations of one decision", Show: []measure.Metric{measure.Value}, Once: true}
	for _, k := range []struct {
		name, what string
		l          loop
	}{
		{"admitted", "an admission", open.allow},
		{"refused", "a refusal", shut.allow},
		{"raw", "clock and limiter asked directly", open.decide},
		{"coarse", "an admission by the coarse clock", quick.allow},
		{"tenant", "an admission of a tenant by its name", func(n int) int { return keys().byName(n) }},
		{"handle", "an admission of a tenant through a held handle", func(n int) int { return keys().byHandle(n) }},
	} {
		c.Claims = append(c.Claims, measure.Claim{
			ID: "library/allocs-" + k.name, What: "allocations of " + k.what, Metric: measure.Value,
			Relation: measure.Alone, Side: len(c.Sides), Bound: 0, Unit: "allocs",
		})
		c.Sides = append(c.Sides, allocs(k.name, k.l))
	}
	return c
}
