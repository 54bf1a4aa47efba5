package judge

import (
	"fmt"
	"math"
	"testing"

	"subak/testbed/evidence"
	"subak/testbed/load"
	"subak/testbed/scenario"
)

// traced is a contention scenario, and a run of it in which nothing is filled in
// but what a judgement of the simulation reads.
func traced(t *testing.T, topology, name string, cycles int) (scenario.Scenario, *evidence.Run) {
	t.Helper()
	s, err := scenario.Parse("trace.yaml", fmt.Appendf(nil, `
name: trace
title: made by hand
why: to be judged
topology: %s
budget: {limit: 1000/s}
trace: {name: %s, cycle: 100ms, cycles: %d}
claims: [{kind: simulated, class: confirmed, most: 4%%}]
`, topology, name, cycles))
	if err != nil {
		t.Fatal(err)
	}
	net, err := s.Net()
	if err != nil {
		t.Fatal(err)
	}
	r := healthy()
	r.Nodes, r.Weights, r.Limit, r.Series = net.Names(), net.Weights(), 1000, nil
	for range r.Nodes {
		r.Series = append(r.Series, constant(50))
	}
	r.Load.Streams = make([]load.StreamReport, len(r.Nodes)*len(r.Classes))
	return s, r
}

func TestRealProcessesAreSetBesideTheSimulatedAllocation(t *testing.T) {
	s, r := traced(t, "five", "S2", 60)
	j := judge{s: s.For(evidence.Subak), r: r}
	want, err := j.simulate([]int{0})
	if err != nil || want < 0.8 || want > 1 {
		t.Fatalf("simulated %v, %v", want, err)
	}
	serve := func(part float64) {
		for i := range r.Series {
			fill(r.Series[i].Offered[0], 0, 20, 10_000)
			fill(r.Series[i].Admitted[0], 0, 20, uint32(10_000*part))
		}
	}
	for points, kept := range map[float64]bool{0.05: true, 0: true, -0.039: true, -0.041: false} {
		serve(want + points)
		if v := Judge(&s, r); len(v) != 1 || v[0].Kept != kept {
			t.Errorf("%+.3f: got %+v, want kept %v", points, v, kept)
		}
	}
}

// The simulated allocation is the one of the evaluation: pool-first with an
// insurance of 10 %, one cycle late. Source: evaluation.md, reference figures.
func TestTheSimulationGivesTheFiguresOfTheEvaluation(t *testing.T) {
	for name, want := range map[string]float64{"S1": 0.898, "S2": 0.996, "S3": 0.995, "S8": 0.684} {
		s, r := traced(t, "cities22", name, 600)
		j := judge{s: s.For(evidence.Subak), r: r}
		got, err := j.simulate([]int{0})
		if err != nil || math.Abs(got-want) > 0.02 {
			t.Errorf("%s: simulated %.3f, %v; want %.3f", name, got, err, want)
		}
	}
}
