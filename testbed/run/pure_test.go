//go:build linux

package run

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"subak/chaos/bound"
	"subak/testbed/evidence"
	"subak/testbed/load"
	"subak/testbed/origin"
	"subak/testbed/scenario"
	"subak/testbed/topology"
	"subak/testbed/wan"
)

// table records what a fabric asks of a network of the five places and the origin.
type table struct {
	rules [6][6]wan.Rule
}

func (t *table) set(edit func(src, dst int, r *wan.Rule)) {
	for i := range t.rules {
		for j := range t.rules {
			if i != j {
				edit(i, j, &t.rules[i][j])
			}
		}
	}
}

// blocked lists the links that are cut, as "0>1".
func (t *table) blocked() (all []string) {
	for i := range t.rules {
		for j := range t.rules {
			if t.rules[i][j].Block {
				all = append(all, fmt.Sprintf("%d>%d", i, j))
			}
		}
	}
	return all
}

func five() topology.Topology { return topology.Five() }

func index(names []string) (all []int) {
	for _, n := range names {
		all = append(all, five().Index(n))
	}
	return all
}

func TestFaultsOfLinksCutWhatTheirKindSays(t *testing.T) {
	const all = 20 // links between five nodes
	for _, c := range []struct {
		name  string
		fault scenario.Fault
		cut   []string // nil: by count
		count int
	}{
		{"one way", scenario.Fault{Kind: scenario.OneWay, From: []string{"ams"}, To: []string{"fra"}}, []string{"0>1"}, 1},
		{"cut", scenario.Fault{Kind: scenario.Cut, From: []string{"ams"}, To: []string{"fra", "sin"}}, []string{"0>1", "0>4", "1>0", "4>0"}, 4},
		{"isolate", scenario.Fault{Kind: scenario.Isolate, Nodes: []string{"gru"}}, nil, 8},
		{"isolate two", scenario.Fault{Kind: scenario.Isolate, Nodes: []string{"gru", "sin"}}, nil, all - 6},
		{"partition", scenario.Fault{Kind: scenario.Partition, Groups: [][]string{{"ams", "fra"}, {"iad", "gru", "sin"}}}, nil, 12},
		{"links", scenario.Fault{Kind: scenario.Links, From: []string{"ams"}, To: []string{"fra"}}, nil, 0},
	} {
		var net table
		f := newFabric(five(), scenario.Rule{})
		undo := f.with(net.set, tamperOf(&c.fault, index))
		got := net.blocked()
		if len(got) != c.count || c.cut != nil && !slices.Equal(got, c.cut) {
			t.Errorf("%s: %v are cut, want %d %v", c.name, got, c.count, c.cut)
		}
		undo()
		if left := net.blocked(); len(left) > 0 {
			t.Errorf("%s: %v stay cut", c.name, left)
		}
	}
	if tamperOf(&scenario.Fault{Kind: scenario.Kill}, index) != nil {
		t.Error("a kill changes links")
	}
}

func TestFaultsThatOverlapEachHoldUntilTheirOwnEnd(t *testing.T) {
	var net table
	always := scenario.Rule{Delay: time.Millisecond, Jitter: 4 * time.Millisecond, Loss: 10_000}
	f := newFabric(five(), always)
	f.apply(net.set)
	base := net.rules[0][1]
	if want := five().OneWay[0][1] + 3*time.Millisecond; base.Delay != want || base.Jitter != 2*time.Millisecond || base.Loss != 10_000 {
		t.Errorf("at rest %+v, want a delay of %v, 2 ms to both sides and 1 %% of loss", base, want)
	}
	one := f.with(net.set, tamperOf(&scenario.Fault{Kind: scenario.Isolate, Nodes: []string{"ams"}}, index))
	two := f.with(net.set, tamperOf(&scenario.Fault{Kind: scenario.Isolate, Nodes: []string{"fra"}}, index))
	lossy := f.with(net.set, tamperOf(&scenario.Fault{Kind: scenario.Links, From: []string{"iad"}, To: []string{"gru"}, Rule: scenario.Rule{Loss: 200_000}}, index))
	one()
	if !net.rules[0][1].Block || net.rules[0][2].Block || net.rules[2][3].Loss != 210_000 || net.rules[3][2].Loss != 210_000 {
		t.Errorf("after the first has ended: %v are cut, iad to gru %+v", net.blocked(), net.rules[2][3])
	}
	two()
	lossy()
	if net.rules[0][1] != base || net.rules[2][3].Loss != 10_000 {
		t.Errorf("after all have ended %+v, want %+v", net.rules[0][1], base)
	}
	for i := range 5 {
		if net.rules[i][5] != (wan.Rule{}) || net.rules[5][i] != (wan.Rule{}) {
			t.Error("a link of the origin is not perfect")
		}
	}
}

func TestWhileAChangeIsUnderWayTheLargerLimitBinds(t *testing.T) {
	s := time.Second
	changes := []evidence.Limit{{At: 2 * s, In: 3 * s, Limit: 1000}, {At: 6 * s, In: 7 * s, Limit: 3000}, {At: 8 * s, In: 10 * s, Limit: 500}, {At: 9 * s, In: 9*s + 1, Limit: 700}}
	for _, c := range []struct {
		at   time.Duration
		want int64
	}{{0, 2000}, {2 * s, 2000}, {3 * s, 1000}, {5 * s, 1000}, {6 * s, 3000}, {7 * s, 3000}, {8 * s, 3000}, {9 * s, 3000}, {9*s + 1, 700}} {
		if got := limitAt(2000, changes, c.at); got != c.want {
			t.Errorf("at %v the limit is %d, want %d", c.at, got, c.want)
		}
	}
	got := limitChanges(2000, changes[:1], 5)
	if want := []origin.Change{{At: 5 + int64(2*s), Limit: 2000}, {At: 5 + int64(3*s), Limit: 1000}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTheLimitThatBindsIsNeverBelowOneThatMayBeEnforced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(1, 9).Draw(t, "first")
		var changes []evidence.Limit
		at, in := time.Duration(0), time.Duration(0)
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			at += time.Duration(rapid.IntRange(0, 5).Draw(t, "at"))
			in = max(in, at) + time.Duration(rapid.IntRange(0, 5).Draw(t, "in")) // later ones are in force later
			changes = append(changes, evidence.Limit{At: at, In: in, Limit: rapid.Int64Range(1, 9).Draw(t, "limit")})
		}
		now := time.Duration(rapid.IntRange(0, 40).Draw(t, "now"))
		// A node enforces that of the newest change that is in force, or of a later
		// one that was asked for.
		want, inForce := first, -1
		for i, c := range changes {
			if c.In <= now {
				inForce, want = i, c.Limit
			}
		}
		for i, c := range changes {
			if i > inForce && c.At <= now {
				want = max(want, c.Limit)
			}
		}
		if got := limitAt(first, changes, now); got != want {
			t.Fatalf("at %d of %v the limit is %d, want %d", now, changes, got, want)
		}
	})
}

func TestAStepIsReachedByTheFirstShareNearItsTarget(t *testing.T) {
	ms := time.Millisecond
	all := []sample{{90 * ms, 100}, {100 * ms, 200}, {110 * ms, 300}, {400 * ms, 494}, {410 * ms, 496}, {420 * ms, 480}}
	if got, want := stepOf(3, 100*ms, 500, all), (evidence.Step{Node: 3, At: 100 * ms, Before: 200, Target: 500, Took: 310 * ms}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := stepOf(3, 100*ms, 600, all); got.Took != -1 {
		t.Errorf("a target that is not reached took %v", got.Took)
	}
	if got := stepOf(3, 100*ms, 0, all); got.Took != -1 {
		t.Errorf("without a target it took %v", got.Took)
	}
}

func TestABusyMachineIsToldInWords(t *testing.T) {
	healthy := func() evidence.Run {
		return evidence.Run{
			Network: map[string]int64{"delivered": 1000, "late": 5},
			Load:    load.Report{Streams: []load.StreamReport{{Cells: []load.Cell{{Offered: 1000, Late: 10}}}}},
		}
	}
	for _, c := range []struct {
		name    string
		mend    func(*evidence.Run)
		wake    time.Duration
		transit time.Duration
		want    int
	}{
		{"healthy", func(*evidence.Run) {}, time.Millisecond, time.Millisecond, 0},
		{"starved", func(*evidence.Run) {}, time.Second, time.Millisecond, 1},
		{"late packets", func(r *evidence.Run) { r.Network["late"] = 50 }, 0, 0, 1},
		{"late requests", func(r *evidence.Run) { r.Load.Streams[0].Cells[0].Late = 100 }, 0, 0, 1},
		{"late of the few that were sent", func(r *evidence.Run) { r.Load.Streams[0].Cells[0].Away = 900 }, 0, 0, 1},
		{"slow to the origin", func(*evidence.Run) {}, 0, time.Second, 1},
	} {
		r := healthy()
		c.mend(&r)
		if got := busy(&r, load.Latency{P99: c.wake}, load.Latency{P99: c.transit}); len(got) != c.want {
			t.Errorf("%s: %v, want %d complaints", c.name, got, c.want)
		}
	}
}

func TestStrainIsHowLateASleeperIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStrain()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.watch(ctx); close(done) }()
		time.Sleep(time.Second)
		cancel()
		<-done
		if got := s.latency(); got.Max != 0 || s.late.Count() < 150 {
			t.Errorf("late by %v in %d sleeps of a clock that is never late", got.Max, s.late.Count())
		}
	})
}

func TestConnectionsFollowTheRateWithinTheirBounds(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  int
	}{{nil, connsLeast}, {[]float64{1, 5}, 5}, {[]float64{0, 500}, 24}, {[]float64{1e5}, connsMost}} {
		if got := connsFor(c.rates); got != c.want {
			t.Errorf("%v: %d connections, want %d", c.rates, got, c.want)
		}
	}
}

func TestTheLegitimatePartIsThatOfTheTrace(t *testing.T) {
	all, err := scenario.Files()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == "contention-five-s2" })
	r := &session{story: all[i].For(evidence.Subak), top: five(), nodes: 5, record: newRecorder()}
	rates, err := r.story.Rates()
	if err != nil {
		t.Fatal(err)
	}
	out := evidence.Run{Classes: r.classNames()}
	per := int(r.story.Trace.Cycle / scenario.Bin)
	for i := range 5 {
		var offered, half []uint32 // a hundred times what the trace has, against rounding
		for _, rate := range rates[5+i] {
			for range per {
				n := uint32(100 * rate * scenario.Bin.Seconds())
				offered, half = append(offered, n), append(half, n/2)
			}
		}
		out.Series = append(out.Series, evidence.Series{Offered: [][]uint32{nil, offered}, Admitted: [][]uint32{nil, half}})
	}
	r.addLegit(&out)
	// A tenth of 1600/s for a minute.
	if want := 100 * 160.0 * 60; out.LegitOffered < 0.97*want || out.LegitOffered > 1.03*want {
		t.Errorf("%.0f legitimate of a trace with %.0f", out.LegitOffered, want)
	}
	if part := out.LegitAdmitted / out.LegitOffered; part < 0.499 || part > 0.501 {
		t.Errorf("%.4f of it admitted, want a half", part)
	}
}

func TestTheSpreadIsWideOnlyWhereManyAreSlow(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct{ p99, p999, want time.Duration }{
		{0, 0, ms}, {5 * ms, 40 * ms, 40 * ms}, {20 * ms, 5000 * ms, 250 * ms}, {300 * ms, 700 * ms, 700 * ms}, {300 * ms, 3000 * ms, 1000 * ms},
	} {
		if got := spreadOf(load.Latency{P99: c.p99, P999: c.p999}); got != c.want {
			t.Errorf("p99 %v, p99.9 %v: %v, want %v", c.p99, c.p999, got, c.want)
		}
	}
}

func TestBrokenWindowsAreListedTheLongestFirst(t *testing.T) {
	got := overs([]bound.Result{{Window: 1, Start: 15, Peak: 3, Bound: 2}, {Window: 2, Start: 30, Peak: 5, Bound: 4}, {Window: 2, Start: 20, Peak: 9, Bound: 4}}, 10)
	want := []evidence.Over{{At: 10, Window: 2, Arrived: 9, Allowed: 4}, {At: 20, Window: 2, Arrived: 5, Allowed: 4}, {At: 5, Window: 1, Arrived: 3, Allowed: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
