package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"subak/chaos/bound"
	"subak/testbed/evidence"
	"subak/testbed/load"
)

// synthetic is a run of n nodes with a flood at the first, a partition from a
// third to two thirds and, for naive nodes, an excess while it lasts. The same
// arguments give the same run.
func synthetic(name string, variant evidence.Variant, n int, length time.Duration) evidence.Run {
	const limit = 1100
	rnd := rand.New(rand.NewPCG(uint64(n), uint64(len(name))))
	r := evidence.Run{
		Scenario: name, Title: fmt.Sprintf("Partition %d/%d for %v", n/2, n-n/2, length/3), Variant: variant,
		Why:     "Two halves of the network do not hear each other. Neither may spend what the other holds.",
		Version: "v0.4.0-12-gabcdef0", Started: time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC), Seed: 7,
		Topology: fmt.Sprintf("cities%d", n), MaxRTT: 281 * time.Millisecond,
		Classes: []string{"confirmed", "uncleared"}, Reserve: []int64{600_000, 400_000},
		Burst: 500 * time.Millisecond, Tick: 200 * time.Millisecond, Term: 3 * time.Second, Limit: limit,
		Length: length, Bin: 100 * time.Millisecond,
		Phases: []evidence.Phase{{Name: "before", To: length / 3}, {Name: "cut", From: length / 3, To: 2 * length / 3}, {Name: "healed", From: 2 * length / 3, To: length}},
	}
	band := evidence.Band{Kind: "partition", Label: fmt.Sprintf("partition %d/%d", n/2, n-n/2), From: length / 3, To: 2 * length / 3}
	r.Bands = []evidence.Band{band, {Kind: "kill", Label: "kill -9 n01", Nodes: []int{1}, From: length / 2, To: length/2 + 4*time.Second}}
	r.Events = []evidence.Event{{At: length / 2, Node: 1, Kind: "kill", Text: "SIGKILL"}, {At: length/2 + 4*time.Second, Node: 1, Kind: "ready", Text: "after 1.2 s"}}
	bins := int(length / r.Bin)
	r.Origin.Arrivals = [][]uint32{make([]uint32, bins), make([]uint32, bins)}
	r.Origin.Spread = 20 * time.Millisecond
	r.Load.Phases = []string{"before", "cut", "healed"}
	r.Load.Streams = make([]load.StreamReport, 2*n)
	for i := range n {
		r.Nodes = append(r.Nodes, fmt.Sprintf("n%02d", i))
		r.Weights = append(r.Weights, int64(30+i*3))
		r.Series = append(r.Series, syntheticNode(&r, i, n, bins, rnd))
	}
	r.Network = map[string]int64{"packets_forwarded": 123456, "packets_lost": 1234}
	judge(&r)
	if variant == evidence.Subak {
		for i := range 20 {
			took := 250*time.Millisecond + time.Duration(i*i)*time.Millisecond
			r.Steps = append(r.Steps, evidence.Step{Node: i % n, At: time.Duration(i) * time.Second, Target: 80, Took: took})
		}
	}
	return r
}

func syntheticNode(r *evidence.Run, i, n, bins int, rnd *rand.Rand) evidence.Series {
	s := evidence.Series{
		Offered: make([][]uint32, 2), Admitted: make([][]uint32, 2), Refused: make([][]uint32, 2), Shares: make([][]float64, 2),
	}
	base := float64(r.Limit) / float64(n)
	gossip := int64(0)
	for b := range bins {
		cut := b >= bins/3 && b < 2*bins/3
		share := 0.72 * base
		if i == 0 {
			share = float64(r.Limit) * 0.3
			if cut && r.Variant == evidence.Subak {
				share /= 2
			}
		}
		if cut && r.Variant == evidence.Naive {
			share *= 2.6
		}
		if r.Variant == evidence.Static {
			share = base
		}
		up := uint8(1)
		if i == 1 && b >= bins/2 && b < bins/2+40 {
			up = 0
		}
		s.Up = append(s.Up, up)
		s.Share = append(s.Share, share)
		s.Target = append(s.Target, share)
		gossip += int64(900 + 20*i + rnd.IntN(200))
		s.GossipSent, s.GossipReceived = append(s.GossipSent, gossip), append(s.GossipReceived, gossip*11/10)
		s.RSS, s.CPU = append(s.RSS, int64(24+i%5)<<20), append(s.CPU, int64(b)*int64(1_200_000+i*20_000))
		for k, part := range []float64{0.6, 0.4} {
			offered := base * part * (1.1 + 0.5*math.Sin(float64(b)/40+float64(i)))
			if i == 0 && k == 1 {
				offered = 1.5 * float64(r.Limit)
			}
			o := poisson(rnd, offered*0.1)
			a := min(o, poisson(rnd, share*part*0.1))
			if up == 0 {
				o, a = 0, 0
			}
			s.Offered[k], s.Admitted[k] = append(s.Offered[k], o), append(s.Admitted[k], a)
			s.Refused[k] = append(s.Refused[k], o-a)
			s.Shares[k] = append(s.Shares[k], share*part)
			r.Origin.Arrivals[k][b] += a
		}
	}
	fillLoad(r, i, n, &s)
	return s
}

// fillLoad makes the generators' cells of one node from its series.
func fillLoad(r *evidence.Run, i, n int, s *evidence.Series) {
	for k := range s.Offered {
		cells := make([]load.Cell, len(r.Phases))
		for b := range s.Offered[k] {
			c := &cells[min(len(cells)-1, b*len(cells)/len(s.Offered[k]))]
			c.Offered += uint64(s.Offered[k][b])
			c.Admitted += uint64(s.Admitted[k][b])
			c.Refused += uint64(s.Refused[k][b])
			c.AdmittedLatency.P99, c.RefusedLatency.P99 = 9*time.Millisecond, 800*time.Microsecond
		}
		r.Load.Streams[k*n+i] = load.StreamReport{Cells: cells}
	}
}

// judge fills in the origin's judgement from the arrivals by bin.
func judge(r *evidence.Run) {
	sum := total(arrivals(r, r.Bin))
	report := bound.Report{LevelOK: true, LevelMax: int64(float64(r.Limit) * (r.Burst + r.Origin.Spread).Seconds())}
	for _, w := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
		b := bound.Result{Window: w, Bound: int64(float64(r.Limit) * (w + r.Burst + r.Origin.Spread).Seconds())}
		sums := total(arrivals(r, w))
		for i, v := range sums.values {
			peak := int64(math.Round(v * w.Seconds()))
			if peak > b.Bound && len(r.Origin.Over) < 100 {
				end := time.Duration(sums.end(i) * float64(time.Second))
				r.Origin.Over = append(r.Origin.Over, evidence.Over{At: end - w, Window: w, Arrived: peak, Allowed: b.Bound})
			}
			b.Peak = max(b.Peak, peak)
		}
		b.Margin = b.Bound - b.Peak
		report.LevelOK = report.LevelOK && b.Margin >= 0
		report.Results = append(report.Results, b)
	}
	for _, v := range sum.values {
		report.Total += int64(math.Round(v * r.Bin.Seconds()))
	}
	r.Origin.Bound = report
}

func poisson(rnd *rand.Rand, mean float64) uint32 {
	limit, p, k := math.Exp(-math.Min(mean, 500)), 1.0, uint32(0)
	for p *= rnd.Float64(); p > limit; p *= rnd.Float64() {
		k++
	}
	return k
}

// outcome judges a run by a few claims of the usual wording.
func outcome(r evidence.Run) evidence.Outcome {
	w := r.Origin.Bound.Worst()
	o := evidence.Outcome{Run: r, Verdicts: []evidence.Verdict{{
		Claim: "the origin never sees more than the bound allows", Measured: fmt.Sprintf("%d in %v", w.Peak, w.Window),
		Bound: fmt.Sprintf("at most %d", w.Bound), Kept: r.Origin.Bound.OK(),
	}}}
	if r.Variant == evidence.Naive {
		o.Verdicts[0].Claim, o.Verdicts[0].Kept = "naive nodes break the bound", !r.Origin.Bound.OK()
	}
	if len(r.Steps) > 0 {
		o.Verdicts = append(o.Verdicts, evidence.Verdict{
			Claim: "a demand step reaches 99 % of its target, mean", Measured: "374ms over 20 steps, the slowest 611ms", Bound: "at most 500ms", Kept: true,
		}, evidence.Verdict{
			Claim: "a demand step reaches 99 % of its target, 95th percentile", Measured: "574ms", Bound: "at most 800ms", Kept: true,
		})
	}
	return o
}

// campaign is what a whole run of the testbed leaves: three variants of one
// partition, and others.
func campaign(n int, length time.Duration) []evidence.Outcome {
	var out []evidence.Outcome
	for _, v := range []evidence.Variant{evidence.Naive, evidence.Subak, evidence.Static} {
		out = append(out, outcome(synthetic("partition-11-11", v, n, length)))
	}
	lost := outcome(synthetic("flood", evidence.Subak, 5, length))
	lost.Verdicts[0].Kept = false
	return append(out, lost)
}

func someComparisons() []Comparison {
	var out []Comparison
	for i, name := range []string{"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"} {
		v := 90 - 3*float64(i)
		out = append(out, Comparison{
			Scenario: name, Title: "uniform <flood>", Topology: "five",
			Real:      Score{High: v, Legit: -1, Low: 15, Total: v / 2, Idle: 0.4, Over: 0},
			Simulated: Score{High: v + 1.5, Legit: 21, Low: 15.5, Total: v/2 + 1, Idle: 0.1, Over: 0},
		})
	}
	return out
}

var someAbout = About{
	Version: "v0.4.0-12-gabcdef0", Machine: "2 cores, 8 GB, Linux 6.18", Command: "make testbed",
	Date: time.Date(2026, 11, 30, 20, 15, 0, 0, time.UTC),
}
