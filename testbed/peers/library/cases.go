package library

import (
	"subak/enforce"
	"subak/testbed/peers/measure"
)

const xtimeName = "x/time/rate"

// Cases are the library's cases, as claims are made of them.
func (s Scale) Cases() []measure.Case {
	all := []measure.Case{s.decision(), s.coarse(), s.cores(), s.refusals(), s.crowdedRefusals(), s.allocations()}
	return append(all, s.tenants()...)
}

// atMost is a claim that the first metric of side is at most bound of other's.
func atMost(id, what string, side, other int, bound float64) measure.Claim {
	return measure.Claim{ID: id, What: what, Metric: measure.Nanos, Side: side, Other: other, Bound: bound}
}

// noted is the same without a bound.
func noted(id, what string, side, other int) measure.Claim {
	c := atMost(id, what, side, other, 0)
	c.Sense = measure.NoBound
	return c
}

var nanos = []measure.Metric{measure.Nanos}

// decision is one decision on one goroutine.
func (s Scale) decision() measure.Case {
	ours := newSubject(precise(), high, enforce.LimiterConfig{})
	c := measure.Case{
		ID: "library/decision", What: "one decision, one goroutine, everything admitted", Show: nanos, Batches: s.Batches,
		Sides: []measure.Side{
			s.side("limit.Class.Allow", admits, ours.allow),
			s.side(xtimeName, admits, xtime(high, high)),
			s.side("Limiter.Decide", admits, ours.decide),
			s.side("uber-go/ratelimit", admits, pacer(high)),
			s.side("Limiter.DecideRequest", admits, ours.request),
		},
		Claims: []measure.Claim{
			atMost("library/decision", "class and budget charged, demand counted, beside x/time/rate's Allow", 0, 1, 0.45),
			atMost("library/decision-raw", "the same, clock and limiter asked directly", 2, 1, 0.45),
			noted("library/decision-request", "the same in the form that doors use", 4, 1),
			noted("library/decision-uber", "beside uber-go/ratelimit's Take, which never refuses", 0, 3),
		},
	}
	if l, err := gcra(high, high); err == nil {
		c.Claims = append(c.Claims, noted("library/decision-throttled", "beside throttled's RateLimit, one key in memory", 0, len(c.Sides)))
		c.Sides = append(c.Sides, s.side("throttled", admits, l))
	}
	return c
}

// Whether one of two figures that are almost equal is the smaller one takes more
// batches than a factor of two.
const closely = 4

// refusals compares decisions that refuse with those that admit.
func (s Scale) refusals() measure.Case {
	open := newSubject(precise(), high, enforce.LimiterConfig{})
	shut := newSubject(precise(), low, enforce.LimiterConfig{})
	return measure.Case{
		ID: "library/refusal", What: "one decision, one goroutine, everything refused", Show: nanos, Batches: closely * s.Batches,
		Sides: []measure.Side{
			s.side("ours, refused", refuses, shut.allow),
			s.side("ours, admitted", admits, open.allow),
			s.side(xtimeName+", refused", refuses, xtime(low, 1)),
		},
		Claims: []measure.Claim{
			atMost("library/refusal", "a refusal beside an admission", 0, 1, 1),
			noted("library/refusal-xtime", "a refusal beside one of x/time/rate", 0, 2),
		},
	}
}

// crowdedRefusals is the same on all cores.
func (s Scale) crowdedRefusals() measure.Case {
	open := newSubject(precise(), high, enforce.LimiterConfig{})
	shut := newSubject(precise(), low, enforce.LimiterConfig{})
	return measure.Case{
		ID: "library/cores-refusal", What: "one decision, all cores on one hot class, everything refused", Show: nanos, Batches: closely * s.Batches,
		Sides: []measure.Side{
			s.crowd("ours, refused", refuses, shut.allow),
			s.crowd("ours, admitted", admits, open.allow),
		},
		Claims: []measure.Claim{
			atMost("library/cores-refusal", "a refusal beside an admission, on all cores", 0, 1, 1),
		},
	}
}
