package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"subak/chaos/bound"
	"subak/testbed/evidence"
	"subak/testbed/load"
	"subak/testbed/scenario"
)

// story is a scenario of five nodes with a limit of 3200/s, so that a base is ten
// times the weight: ams 550, fra 800, iad 950, gru 450, sin 450. Its phases are
// calm to 6 s, during to 14 s and after to 20 s.
func story(t *testing.T, more string) scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("trial.yaml", []byte(`
name: trial
title: made by hand
why: to be judged
budget: {limit: 3200/s}
phases: [{name: calm, length: 6s}, {name: during, length: 8s}, {name: after, length: 6s}]
`+more))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Nodes by position.
const (
	ams = iota
	fra
	iad
	gru
	sin
)

const bins = 200

// healthy is the evidence of a run in which everybody serves its base, is asked for
// a tenth more, and nothing happens.
func healthy() *evidence.Run {
	r := &evidence.Run{
		Variant: evidence.Subak, Nodes: []string{"ams", "fra", "iad", "gru", "sin"}, Weights: []int64{55, 80, 95, 45, 45},
		Classes: []string{"confirmed", "uncleared"}, Reserve: []int64{600_000, 400_000}, Limit: 3200,
		MaxRTT: 300 * time.Millisecond, Tick: 200 * time.Millisecond, Term: 3 * time.Second, Burst: 500 * time.Millisecond,
		Bin: 100 * time.Millisecond, Length: bins * 100 * time.Millisecond,
		Phases:  []evidence.Phase{{Name: "calm", From: 0, To: s(6)}, {Name: "during", From: s(6), To: s(14)}, {Name: "after", From: s(14), To: s(20)}},
		Network: map[string]int64{"blocked": 10, "lost": 10},
	}
	r.Origin.Bound = bound.Report{Total: 64_000, LevelOK: true, Level: 90, LevelMax: 100, Results: []bound.Result{
		{Window: time.Second, Peak: 3300, Bound: 4810, Margin: 1510},
		{Window: s(10), Peak: 32_010, Bound: 33_610, Margin: 1600},
	}}
	r.Origin.Spread = 5 * time.Millisecond
	for i := range r.Nodes {
		r.Series = append(r.Series, constant(float64(r.Weights[i])))
	}
	for range len(r.Classes) * len(r.Nodes) {
		c := load.Cell{Admitted: 100, Refused: 10, AdmittedLatency: load.Latency{P99: 4 * time.Millisecond}, RefusedLatency: load.Latency{P99: 4 * time.Millisecond}}
		r.Load.Streams = append(r.Load.Streams, load.StreamReport{Cells: []load.Cell{c, c, c}})
	}
	r.Load.Phases = []string{"calm", "during", "after"}
	return r
}

func s(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// constant is a node that serves its base, ten times its weight, all the time.
func constant(weight float64) evidence.Series {
	each := uint32(weight) // requests in a bin
	var n evidence.Series
	n.Demand = make([][]float64, 2)
	n.Offered, n.Admitted, n.Refused, n.Errors = make([][]uint32, 2), make([][]uint32, 2), make([][]uint32, 2), make([][]uint32, 2)
	for b := range bins {
		n.Up, n.Ready = append(n.Up, 1), append(n.Ready, 1)
		n.Share, n.Target = append(n.Share, 10*weight), append(n.Target, 10*weight)
		n.Live, n.Digest, n.Epoch = append(n.Live, 5), append(n.Digest, "d"), append(n.Epoch, 1)
		n.RSS, n.CPU = append(n.RSS, 20_000_000), append(n.CPU, int64(b)*1_000_000) // 1 % of a core
		n.GossipSent = append(n.GossipSent, int64(b)*100)
		n.Demand[0], n.Demand[1] = append(n.Demand[0], 11*weight), append(n.Demand[1], 0)
		for k := range 2 {
			n.Offered[k] = append(n.Offered[k], uint32(k)*(each+each/10))
			n.Admitted[k] = append(n.Admitted[k], uint32(k)*each)
			n.Refused[k] = append(n.Refused[k], uint32(k)*(each/10))
			n.Errors[k] = append(n.Errors[k], 0)
		}
	}
	n.Counters = map[string]float64{"budget_node_dropped_total": 3}
	return n
}

// fill sets a part of a series, by seconds.
func fill[T any](series []T, from, to float64, v T) {
	for b := int(from * 10); b < int(to*10) && b < len(series); b++ {
		series[b] = v
	}
}

// shift moves share from one node to another for some time.
func shift(r *evidence.Run, from, to int, amount, start, end float64) {
	for b := int(start * 10); b < int(end*10); b++ {
		r.Series[from].Share[b] -= amount
		r.Series[to].Share[b] += amount
	}
}

func band(name, kind string, from, to float64, nodes ...int) evidence.Band {
	return evidence.Band{Label: name, Kind: kind, From: s(from), To: s(to), Nodes: nodes}
}

func event(at float64, node int, kind, text string) evidence.Event {
	return evidence.Event{At: s(at), Node: node, Kind: kind, Text: text}
}

// trial is one claim judged twice or more.
type trial struct {
	name  string
	story string
	do    func(r *evidence.Run)
	claim string // part of the claim of the verdict that is meant
	kept  bool
	says  string // part of what was measured
}

func (c trial) run(t *testing.T) {
	t.Helper()
	st := story(t, c.story)
	r := healthy()
	if c.do != nil {
		c.do(r)
	}
	for _, v := range Judge(&st, r) {
		if !strings.Contains(v.Claim, c.claim) {
			continue
		}
		if v.Kept != c.kept || !strings.Contains(v.Measured, c.says) {
			t.Errorf("%q: measured %q against %q, kept %v; want %v and %q", v.Claim, v.Measured, v.Bound, v.Kept, c.kept, c.says)
		}
		if v.Claim == "" || v.Measured == "" {
			t.Errorf("verdict without words: %+v", v)
		}
		return
	}
	t.Errorf("no verdict on %q", c.claim)
}

func claims(text string, args ...any) string {
	return "claims: [{" + fmt.Sprintf(text, args...) + "}]\n"
}

func trials(t *testing.T, all []trial) {
	for _, c := range all {
		t.Run(c.name, c.run)
	}
}
