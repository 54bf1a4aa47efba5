package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/chaos/bound"
	"subak/testbed/evidence"
)

func TestAnEnvelopeHidesNoPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := series{bin: 0.1, values: rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 2000).Draw(t, "values")}
		columns := rapid.IntRange(1, 400).Draw(t, "columns")
		got := s.envelope(columns)
		if len(got) > 2*columns {
			t.Fatalf("%d points in %d columns", len(got), columns)
		}
		var ys []float64
		for i, p := range got {
			ys = append(ys, p.y)
			if i > 0 && p.x <= got[i-1].x {
				t.Fatalf("point %d at %v s is not after the one at %v s", i, p.x, got[i-1].x)
			}
			if n := int(math.Round(p.x/s.bin)) - 1; s.values[n] != p.y {
				t.Fatalf("%v at %v s, recorded was %v", p.y, p.x, s.values[n])
			}
		}
		if slices.Max(ys) != slices.Max(s.values) || slices.Min(ys) != slices.Min(s.values) {
			t.Fatalf("drawn from %v to %v, recorded from %v to %v", slices.Min(ys), slices.Max(ys), slices.Min(s.values), slices.Max(s.values))
		}
	})
}

func TestAWindowCountsWhatAMeterOfItsWidthWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Uint32Range(0, 1000), 0, 100).Draw(t, "counts")
		n := rapid.IntRange(1, 20).Draw(t, "bins")
		s := newSeries(100*time.Millisecond, 0)
		s.add(counts)
		got := s.window(time.Duration(n) * 100 * time.Millisecond)
		if want := max(0, len(counts)-n+1); len(got.values) != want {
			t.Fatalf("%d windows, want %d", len(got.values), want)
		}
		for i, v := range got.values {
			sum := uint32(0)
			for _, c := range counts[i : i+n] {
				sum += c
			}
			if want := float64(sum) / (0.1 * float64(n)); math.Abs(v-want) > 1e-6 {
				t.Fatalf("window %d: %v/s, want %v", i, v, want)
			}
			if end := got.end(i); math.Abs(end-float64(i+n)*0.1) > 1e-9 {
				t.Fatalf("window %d ends at %v s", i, end)
			}
		}
	})
}

func TestTheLargerLimitBindsWhileAChangeIsUnderWay(t *testing.T) {
	r := evidence.Run{
		Limit: 1000, Length: 60 * time.Second, Bin: time.Second, Burst: time.Second,
		Limits: []evidence.Limit{
			{At: 10 * time.Second, In: 14 * time.Second, Limit: 400},  // a cut is in force late
			{At: 30 * time.Second, In: 33 * time.Second, Limit: 2000}, // a raise counts at once
		},
	}
	steps := limits(&r)
	for _, c := range []struct{ at, want float64 }{
		{5, 1000}, {13.9, 1000}, {14.1, 400}, {29.9, 400}, {30.1, 2000}, {59, 2000},
	} {
		if got := level(steps, c.at); got != c.want {
			t.Errorf("at %v s the limit drawn is %v, want %v", c.at, got, c.want)
		}
	}
	// A window of 10 s over the cut may still see the limit before it.
	line := allowed(&r, 10*time.Second)
	for _, c := range []struct{ at, want float64 }{{5, 1100}, {23.9, 1100}, {24.1, 440}, {29.9, 440}, {30.1, 2200}} {
		if got := level(line, c.at); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("at %v s the bound drawn is %v, want %v", c.at, got, c.want)
		}
	}
}

func TestTheBoundIsDrawnAsItWasJudged(t *testing.T) {
	r := evidence.Run{Limit: 1000, Length: 10 * time.Second, Bin: time.Second}
	r.Origin.Bound.Results = []bound.Result{{Window: time.Second, Bound: 1537}}
	if got := level(allowed(&r, time.Second), 5); math.Abs(got-1537) > 1e-9 {
		t.Errorf("drawn at %v, judged by 1537", got)
	}
}

func TestOnlyWhatTheOriginJudgedBrokenIsMarkedSo(t *testing.T) {
	r := synthetic("x", evidence.Naive, 4, 60*time.Second)
	spans := broken(&r)
	if len(spans) == 0 {
		t.Fatal("naive nodes broke the bound and nothing is marked")
	}
	for i := 1; i < len(spans); i++ {
		if spans[i].x <= spans[i-1].y {
			t.Errorf("spans %v and %v overlap", spans[i-1], spans[i])
		}
	}
	for i := range r.Origin.Bound.Results {
		r.Origin.Bound.Results[i].Margin = 0
	}
	r.Origin.Bound.LevelOK = true
	if spans := broken(&r); len(spans) > 0 {
		t.Errorf("the origin found nothing broken, marked is %v", spans)
	}
}

func TestASumOfSharesLeavesOutWhoDoesNotAnswer(t *testing.T) {
	r := evidence.Run{Bin: time.Second, Series: []evidence.Series{
		{Up: []uint8{1, 0, 1}, Share: []float64{10, 10, 20}},
		{Up: []uint8{1, 1, 1}, Share: []float64{1, 2, math.NaN()}},
	}}
	if got, want := shares(&r).values, []float64{11, 2, 20}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestACounterMayBeginAnewWithItsProcess(t *testing.T) {
	r := evidence.Run{Bin: 500 * time.Millisecond}
	up := []uint8{1, 1, 0, 0, 1, 1, 1}
	mean, peak := rate([]int64{1000, 1100, 1100, 1100, 50, 250, 350}, up, &r)
	// 100 + 200 + 100 bytes rose in three bins in which the node answered.
	if want := 400 / 1.5; math.Abs(mean-want) > 1e-9 {
		t.Errorf("mean %v, want %v", mean, want)
	}
	if peak != 300 {
		t.Errorf("peak %v, want 300 in a second", peak)
	}
	if mean, _ := rate(nil, nil, &r); mean >= 0 {
		t.Errorf("nothing was counted, and the mean is %v", mean)
	}
	if mean, _ := rate([]int64{1000, 10}, []uint8{1, 1}, &r); mean != 20 {
		t.Errorf("a counter that fell to 10 rose by %v/s, want 20", mean)
	}
}

func TestClaimsLinesAreReadFromTheirWords(t *testing.T) {
	for _, c := range []struct {
		claim, bound string
		want         []target
	}{
		{"reaction to demand steps", "mean ≤ 500 ms, p95 ≤ 800 ms", []target{{"mean at most 500 ms", 0.5}, {"p95 at most 800 ms", 0.8}}},
		{"mean reaction of 20 steps", "at most 900ms", []target{{"mean at most 900 ms", 0.9}}},
		{"p95 of 20 steps", "at most 1.2s", []target{{"p95 at most 1.2 s", 1.2}}},
		{"95th percentile of 20 demand steps", "at most 1.2s", []target{{"p95 at most 1.2 s", 1.2}}},
		{"the origin never got more", "at most 682 in 100ms", nil},
		{"reaction", "fast", nil},
	} {
		got := targets([]evidence.Verdict{{Claim: c.claim, Bound: c.bound}})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: got %v, want %v", c.claim, c.bound, got, c.want)
		}
	}
}

func TestStepsThatNeverEndedAreCountedAndSaid(t *testing.T) {
	r := reactionOf(&evidence.Run{Scenario: "x", Steps: []evidence.Step{
		{Took: 300 * time.Millisecond}, {Took: -1}, {Took: 100 * time.Millisecond},
	}})
	if got, want := r.words(), "3 steps, mean 200 ms, p95 300 ms, 1 never"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
