package scenario

import (
	"fmt"
	"slices"
	"time"

	"subak/allocator"
	"subak/internal/config"
	"subak/internal/contention"
	"subak/testbed/topology"
)

// Requests is a portion as requests/s.
func (s *Scenario) Requests(p config.Portion) float64 {
	if p.IsRate {
		return perSecond(p.Amount.Rate)
	}
	return s.Limit() * float64(p.Percent) / float64(config.Whole)
}

// Limit is that of the budget at the start, in requests/s.
func (s *Scenario) Limit() float64 { return perSecond(s.Budget.Limit.Rate) }

func perSecond(r allocator.Rate) float64 { return float64(r) / float64(allocator.Unit) }

// Every is how long each of the values of [Scenario.Rates] is offered: the cycle of
// a trace; 0 says that they are by phase.
func (s *Scenario) Every() time.Duration {
	if s.Trace == nil {
		return 0
	}
	return s.Trace.Cycle
}

// Rates is what is offered in requests/s: Rates[class*nodes+node][phase], of the
// phases of a resolved scenario ([Scenario.For]); with a Trace, by its cycles.
func (s *Scenario) Rates() ([][]float64, error) {
	t, err := s.Net()
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	if s.Trace != nil {
		return s.traceRates(t)
	}
	rates := make([][]float64, len(s.Budget.Classes)*len(t.Places))
	for i := range rates {
		rates[i] = make([]float64, len(s.Phases))
	}
	for p, phase := range s.Phases {
		for _, l := range slices.Concat(s.Load, phase.Load) {
			k := s.class(l.Class)
			for i, share := range s.divide(l, t) {
				rates[k*len(t.Places)+i][p] += share
			}
		}
	}
	return rates, nil
}

// class is the position of a class.
func (s *Scenario) class(name string) int {
	return slices.IndexFunc(s.Budget.Classes, func(c Class) bool { return c.Name == name })
}

// divide gives each node of t its part of a load.
func (s *Scenario) divide(l Load, t topology.Topology) []float64 {
	parts, sum := make([]float64, len(t.Places)), 0.0
	for i, p := range t.Places {
		switch {
		case len(l.Nodes) > 0 && !slices.Contains(l.Nodes, p.Name):
		case len(l.Nodes) == 0 && slices.Contains(s.Absent, p.Name):
		case l.Spread == Equally:
			parts[i] = 1
		default:
			parts[i] = float64(p.Weight)
		}
		sum += parts[i]
	}
	for i := range parts {
		parts[i] *= s.Requests(l.Rate) / sum
	}
	return parts
}

// traceRates is the demand of a contention scenario, by cycle.
func (s *Scenario) traceRates(t topology.Topology) ([][]float64, error) {
	trace, err := s.Contention(t)
	if err != nil {
		return nil, err
	}
	demand := make([]allocator.Rate, contention.Classes*len(t.Places))
	rates := make([][]float64, len(demand))
	for n := range s.Trace.Cycles {
		trace.Cycle(s.Trace.First+n, demand)
		for i, d := range demand {
			rates[i] = append(rates[i], perSecond(d))
		}
	}
	return rates, nil
}

// Contention is the trace at the nodes of t.
func (s *Scenario) Contention(t topology.Topology) (*contention.Trace, error) {
	trace, err := contention.New(s.Trace.Name, t, int64(s.Limit()), uint64(s.Seed))
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	if err := trace.Hasten(max(1, s.Trace.Hasten)); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return trace, nil
}
