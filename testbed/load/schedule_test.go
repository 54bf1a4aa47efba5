package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drain(s *schedule) (all []arrival) {
	for a, ok := s.next(); ok; a, ok = s.next() {
		all = append(all, a)
	}
	return all
}

func TestASeedFixesEveryArrival(t *testing.T) {
	ends := []time.Duration{time.Second, 3 * time.Second}
	s := Stream{Rates: []float64{50, 200}, Clients: 1000}
	one, two := drain(newSchedule(7, 0, s, ends)), drain(newSchedule(7, 0, s, ends))
	if !slices.Equal(one, two) {
		t.Error("the same seed gave two different schedules")
	}
	if slices.Equal(one, drain(newSchedule(8, 0, s, ends))) {
		t.Error("another seed gave the same schedule")
	}
	if slices.Equal(one, drain(newSchedule(7, 1, s, ends))) {
		t.Error("another stream of the seed gave the same schedule")
	}
}

func TestArrivalsAreOrderedInsideTheirPhaseAndAtItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Arrivals{Poisson, Uniform}).Draw(t, "kind")
		n := rapid.IntRange(1, 4).Draw(t, "phases")
		var ends []time.Duration
		var rates []float64
		var end time.Duration
		for range n {
			end += time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond
			ends = append(ends, end)
			rates = append(rates, rapid.SampledFrom([]float64{0, 0.3, 7, 400}).Draw(t, "rate"))
		}
		all := drain(newSchedule(rapid.Uint64().Draw(t, "seed"), 0, Stream{Rates: rates, Arrivals: kind}, ends))
		counts := make([]int, n)
		var last time.Duration
		for _, a := range all {
			begin := time.Duration(0)
			if a.phase > 0 {
				begin = ends[a.phase-1]
			}
			// 1 ns of rounding at a boundary, no more.
			if a.at < last || a.at < begin-1 || a.at >= ends[a.phase] {
				t.Fatalf("arrival at %v (after %v) outside of phase %d [%v, %v)", a.at, last, a.phase, begin, ends[a.phase])
			}
			last = a.at
			counts[a.phase]++
		}
		begin := time.Duration(0)
		for i, got := range counts {
			want := rates[i] * (ends[i] - begin).Seconds()
			begin = ends[i]
			slack := 1.0
			if kind == Poisson {
				slack = 7*math.Sqrt(want) + 12
			}
			if math.Abs(float64(got)-want) > slack || rates[i] == 0 && got > 0 {
				t.Fatalf("phase %d: %d arrivals at rate %g, want %.1f within %.1f", i, got, rates[i], want, slack)
			}
		}
	})
}

func TestPoissonGapsHaveTheSpreadOfAnExponential(t *testing.T) {
	all := drain(newSchedule(1, 0, Stream{Rates: []float64{1000}}, []time.Duration{20 * time.Second}))
	var sum, squares float64
	for i := 1; i < len(all); i++ {
		gap := (all[i].at - all[i-1].at).Seconds()
		sum += gap
		squares += gap * gap
	}
	n := float64(len(all) - 1)
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if ratio := deviation / mean; ratio < 0.95 || ratio > 1.05 {
		t.Errorf("deviation / mean of the gaps = %.3f, an exponential has 1", ratio)
	}
}

func TestClientsAreManyAndBounded(t *testing.T) {
	seen := map[uint32]bool{}
	for _, a := range drain(newSchedule(1, 0, Stream{Rates: []float64{5000}, Clients: 100}, []time.Duration{time.Second})) {
		seen[a.client] = true
		if a.client >= 100 {
			t.Fatalf("client %d of 100", a.client)
		}
	}
	if len(seen) < 95 {
		t.Errorf("%d of 100 clients seen in some 5000 arrivals", len(seen))
	}
}

func TestAGapMayStretchOverManyPhases(t *testing.T) {
	var ends []time.Duration
	var rates []float64
	for i := range 40 {
		ends = append(ends, time.Duration(i+1)*250*time.Millisecond)
		rates = append(rates, float64(i%2)) // 0 and 1 in turns: 5 s at 1/s
	}
	all := drain(newSchedule(1, 0, Stream{Rates: rates, Arrivals: Uniform}, ends))
	if len(all) != 5 {
		t.Fatalf("%d arrivals in 5 s at 1/s, want 5", len(all))
	}
	for _, a := range all {
		if rates[a.phase] == 0 {
			t.Errorf("arrival at %v in a phase of rate 0", a.at)
		}
	}
}
