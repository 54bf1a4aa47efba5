// Package through plays the contention scenarios through the protocol: whole nodes
// in virtual time, every request decided by a node's own limiter, loans under leases,
// gossip as late as between the cities (package timed, Contest). Beside it stands the
// ideal that it is measured by: the same demand shared by the same rule with no
// distribution at all, one cycle late and at once.
package through

import (
	"context"
	"fmt"

	"subak/chaos/timed"
	"subak/internal/contention"
	"subak/internal/evaluation"
)

// Row is one scenario through the protocol. Figures are in percent, over the seeds.
type Row struct {
	Case  string             `json:"case"`
	Title string             `json:"title"`
	High  evaluation.Figures `json:"high"`  // of the high class's requests admitted
	Ideal evaluation.Figures `json:"ideal"` // what the rule serves of it at lag 1
	Ahead evaluation.Figures `json:"ahead"` // and at lag 0
	Legit evaluation.Figures `json:"legit"` // of the legitimate requests admitted
	// PeakPPM is the most that was enforced at any instant, in ppm of the budget.
	PeakPPM int64 `json:"peak_ppm"`
	// Objection is what a checker found wrong; empty for nothing.
	Objection string `json:"objection,omitempty"`
}

// Plan is what is played.
type Plan struct {
	Contest   timed.Contest // but for Scenario and Seed
	Scenarios []string
	Seeds     []uint64
	Workers   int
	Progress  func(done, all int)
}

// DefaultPlan is all eight scenarios at the settings of the testbed.
func DefaultPlan(c timed.Contest, seeds []uint64, workers int) *Plan {
	return &Plan{Contest: c, Scenarios: contention.Names(), Seeds: seeds, Workers: workers}
}

// Run plays a plan.
func Run(ctx context.Context, p *Plan) ([]Row, error) {
	type play struct {
		contested  timed.Contested
		lag1, lag0 evaluation.Result
	}
	plays := make([]play, len(p.Scenarios)*len(p.Seeds))
	err := evaluation.Parallel(ctx, p.Workers, len(plays), p.Progress, func(at int) (err error) {
		c := p.Contest
		c.Scenario, c.Seed = p.Scenarios[at/len(p.Seeds)], p.Seeds[at%len(p.Seeds)]
		x := &plays[at]
		if x.contested, err = c.Play(); err == nil {
			if x.lag1, err = ideal(&c, 1); err == nil {
				x.lag0, err = ideal(&c, 0)
			}
		}
		if err != nil {
			return fmt.Errorf("%s through the protocol, seed %d: %w", c.Scenario, c.Seed, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var rows []Row
	for i, name := range p.Scenarios {
		r := Row{Case: name, Title: contention.Title(name)}
		of := plays[i*len(p.Seeds) : (i+1)*len(p.Seeds)]
		figures := func(f func(*play) float64) evaluation.Figures {
			return evaluation.Spread(len(of), func(n int) float64 { return f(&of[n]) })
		}
		r.High = figures(func(x *play) float64 { return x.contested.High.Percent() })
		r.Legit = figures(func(x *play) float64 { return x.contested.Legit.Percent() })
		r.Ideal = figures(func(x *play) float64 { return evaluation.High(&x.lag1) })
		r.Ahead = figures(func(x *play) float64 { return evaluation.High(&x.lag0) })
		for n := range of {
			r.PeakPPM = max(r.PeakPPM, of[n].contested.PeakPPM)
			if o := of[n].contested.Objection; o != "" && r.Objection == "" {
				r.Objection = o
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// ideal is the demand of the contest's cycles shared by the product's rule. Two cycles
// from before stand in front of them, which are not counted.
func ideal(c *timed.Contest, lag int) (evaluation.Result, error) {
	trace, err := contention.New(c.Scenario, c.Topology, c.Limit, c.Seed)
	if err == nil {
		err = trace.Hasten(c.Hasten)
	}
	if err != nil {
		return evaluation.Result{}, err
	}
	ms, err := evaluation.Find([]string{evaluation.Product})
	if err != nil {
		return evaluation.Result{}, err
	}
	spec := evaluation.ContendedSpec(c.Topology, c.Limit)
	return evaluation.Play(evaluation.Cycles(trace, max(0, c.First-evaluation.Uncounted), c.Cycles+min(c.First, evaluation.Uncounted)), &ms[0], spec, lag)
}
