package enforce_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
)

const sub = 50 * ms // the sub-tick

// arrivals draws Poisson arrivals of equal cost at a rate per second.
type arrivals struct {
	rng  *rand.Rand
	next float64 // seconds
}

func (a *arrivals) until(now int64, perSecond float64, cost int64) (units int64) {
	end := float64(now) / 1e9
	if perSecond == 0 {
		a.next = end
		return 0
	}
	if a.next == 0 {
		a.next = a.rng.ExpFloat64() / perSecond
	}
	for a.next < end {
		units += cost
		a.next += a.rng.ExpFloat64() / perSecond
	}
	return units
}

func poisson(seed uint64) *arrivals { return &arrivals{rng: rand.New(rand.NewPCG(seed, 1))} }

func offBy(got allocator.Rate, want float64) float64 {
	return math.Abs(float64(got)/1e6-want) / want
}

func TestStepIsPublishedAtOnceAndSettlesWithinTwoTicks(t *testing.T) {
	const rate = 20_000
	var worst, sum float64
	const seeds = 50
	for seed := range uint64(seeds) {
		e, a := enforce.NewEstimator(enforce.EstimatorConfig{}), poisson(seed)
		start := 2*sec + int64(seed)*ms // anywhere inside a sub-tick
		now, first := int64(0), int64(0)
		e.Update(now, 0)
		a.next = float64(start) / 1e9
		var got allocator.Rate
		for now < start+2*200*ms {
			now += sub
			var n int64
			if now > start {
				n = a.until(now, rate, 1)
			}
			var jumped bool
			if got, jumped = e.Update(now, n); jumped && first == 0 && got >= 3*rate/4*allocator.Unit {
				first = now
			}
		}
		if first == 0 || first > start+2*sub {
			t.Errorf("seed %d: jump published %v after the step", seed, time.Duration(first-start))
		}
		off := offBy(got, rate)
		worst, sum = max(worst, off), sum+off
	}
	// 7 whole sub-ticks hold 7000 arrivals: sigma is 1.2 %, whatever one does.
	if mean := sum / seeds; mean > 0.012 || worst > 0.045 {
		t.Errorf("after two ticks off by %.2f %% on average, %.2f %% at worst", 100*mean, 100*worst)
	}
}

func TestStepOfSteadyTrafficIsWithinOnePercentAfterTwoTicks(t *testing.T) {
	for _, to := range []int64{1000, 10, 400} { // units per sub-tick
		e := enforce.NewEstimator(enforce.EstimatorConfig{})
		now := int64(0)
		feed := func(n int64, times int) (got allocator.Rate) {
			for range times {
				now += sub
				got, _ = e.Update(now, n)
			}
			return got
		}
		e.Update(now, 0)
		feed(200, 40)
		if got := feed(to, 8); offBy(got, float64(to)*20) > 0.01 {
			t.Errorf("to %d a sub-tick: published %d", to, got)
		}
	}
}

func TestStepInsideAnIntervalDoesNotBiasWhatFollows(t *testing.T) {
	for _, part := range []int64{100, 500, 880, 900, 950} {
		e := enforce.NewEstimator(enforce.EstimatorConfig{})
		now := int64(0)
		e.Update(now, 0)
		var got allocator.Rate
		for i, n := range []int64{0, 0, part, 1000, 1000, 1000, 1000, 1000, 1000, 1000} {
			now += sub
			if got, _ = e.Update(now, n); i >= 4 && offBy(got, 20_000) > 0.005 {
				t.Errorf("part %d, interval %d: published %d", part, i, got)
			}
		}
	}
}

func TestFallToNothingIsFollowedOnceASecondIntervalConfirmsIt(t *testing.T) {
	e, a := enforce.NewEstimator(enforce.EstimatorConfig{}), poisson(3)
	now := int64(0)
	e.Update(now, 0)
	var before allocator.Rate
	for range 100 {
		now += sub
		before, _ = e.Update(now, a.until(now, 20_000, 1))
	}
	now += sub
	if got, jumped := e.Update(now, 0); got != before || jumped {
		t.Fatalf("published %d (jumped %v) after one silent sub-tick, want %d still", got, jumped, before)
	}
	now += sub
	if got, jumped := e.Update(now, 0); got != 0 || !jumped {
		t.Fatalf("published %d (jumped %v) two sub-ticks after the end, want 0", got, jumped)
	}
	if got, why := e.Demand(now); got != 0 || why != enforce.ReportedZero {
		t.Fatalf("demand %d, %v", got, why)
	}
}

func TestALumpIsPublishedAsPartOfTheAverageOnly(t *testing.T) {
	e := enforce.NewEstimator(enforce.EstimatorConfig{})
	now := int64(0)
	e.Update(now, 0)
	for range 40 {
		now += sub
		e.Update(now, 200)
	}
	// 4800 units too many are 2400 a second over the two seconds of memory, and
	// 96,000 a second over the interval.
	for i, n := range []int64{5000, 200, 200} {
		now += sub
		if got, _ := e.Update(now, n); got > 6500*allocator.Unit {
			t.Errorf("interval %d from the lump on: published %d", i, got)
		}
	}
}

func TestSteadyNoiseHardlyChangesWhatIsPublished(t *testing.T) {
	for _, tc := range []struct {
		name  string
		draw  func(*arrivals, int64) int64
		most  int // changes in 30 s after settling
		jumps int
		off   float64
		want  float64
	}{
		{"1 % noise", func(a *arrivals, _ int64) int64 { return int64(1000 * (1 + 0.01*a.rng.NormFloat64())) }, 3, 0, 0.021, 20_000},
		{"Poisson at 20000/s", func(a *arrivals, now int64) int64 { return a.until(now, 20_000, 1) }, 12, 1, 0.04, 20_000},
		{"Poisson at 1000/s", func(a *arrivals, now int64) int64 { return a.until(now, 1000, 1) }, 110, 2, 0.2, 1000},
		{"Poisson at 20/s does not jump at every arrival", func(a *arrivals, now int64) int64 { return a.until(now, 20, 1) }, 600, 3, 0.8, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, a := enforce.NewEstimator(enforce.EstimatorConfig{}), poisson(9)
			now := int64(0)
			e.Update(now, 0)
			var last allocator.Rate
			changes, jumps := 0, 0
			var worst float64
			for i := range 700 {
				now += sub
				got, jumped := e.Update(now, tc.draw(a, now))
				if i < 100 {
					last = got
					continue
				}
				if got != last {
					changes++
				}
				if jumped {
					jumps++
				}
				worst = max(worst, offBy(got, tc.want))
				last = got
			}
			if changes > tc.most || jumps > tc.jumps || worst > tc.off {
				t.Errorf("%d changes, %d jumps, off by %.3f at worst", changes, jumps, worst)
			}
		})
	}
}

// Requests of 10,000 units each are as noisy as their number, not their sum.
func TestDearRequestsDoNotLookLikeJumps(t *testing.T) {
	e, a := enforce.NewEstimator(enforce.EstimatorConfig{}), poisson(5)
	now, jumps := int64(0), 0
	e.Update(now, 0)
	var got allocator.Rate
	for i := range 1000 {
		now += sub
		var jumped bool
		if got, jumped = e.Update(now, a.until(now, 500, 10_000)); jumped && i > 100 {
			jumps++
		}
	}
	if jumps > 5 {
		t.Errorf("%d jumps in 45 s", jumps)
	}
	if offBy(got, 5e6) > 0.2 {
		t.Errorf("published %d, want about 5e12", got)
	}
}

// Bytes and dear requests come in lumps, fewer than intervals: the size of a lump
// is no rate, and neither is the silence after it.
func TestLumpsFewerThanIntervalsAreMeteredByTheirMean(t *testing.T) {
	for _, tc := range []struct {
		perSecond float64
		cost      int64
		poisson   bool
	}{
		{10, 1_000_000, false}, {10, 1_000_000, true}, {3, 100, false}, {3, 100, true}, {5, 5, true}, {1, 1_000_000, true}, {10, 1, true},
	} {
		e, a := enforce.NewEstimator(enforce.EstimatorConfig{}), poisson(7)
		mean, n, jumps := 0.0, 0, 0
		sent := 0.0
		for now := int64(0); now < 60*sec; now += sub {
			var units int64
			if tc.poisson {
				units = a.until(now, tc.perSecond, tc.cost)
			} else if due := float64(now) / 1e9 * tc.perSecond; due >= sent+1 {
				sent++
				units = tc.cost
			}
			got, jumped := e.Update(now, units)
			if now < int64(40/tc.perSecond*1e9) { // the size of a lump has to be learned
				continue
			}
			mean += float64(got) / 1e6
			n++
			if jumped {
				jumps++
			}
		}
		want := tc.perSecond * float64(tc.cost)
		if off := math.Abs(mean/float64(n)-want) / want; off > 0.25 || jumps > 8 {
			t.Errorf("%+v: off by %.0f %%, %d jumps", tc, 100*off, jumps)
		}
	}
}

// A sender that stands still for a moment just after its step looks like a lump
// and silence; what is learned from that must not hide the rest of the step.
func TestAStepThatIsInterruptedIsFollowedAllTheSame(t *testing.T) {
	const interval = int64(20 * time.Millisecond)
	for _, begins := range [][]int64{{7, 7}, {7, 0, 14}, {7, 1, 13}, {3, 7, 0, 14}, {7, 0, 14, 0, 14}, {7, 0, 14, 0, 0, 21}, {2, 5, 0, 14, 0, 14}} {
		e := enforce.NewEstimator(enforce.EstimatorConfig{})
		now := int64(0)
		e.Update(now, 0)
		for i := range 500 { // 15/s
			now += interval
			e.Update(now, []int64{0, 0, 1, 0, 0, 0, 1, 0, 0, 1}[i%10])
		}
		took := -1
		for i := range 100 { // 333/s
			units := []int64{7, 7, 6}[i%3]
			if i < len(begins) {
				units = begins[i]
			}
			now += interval
			if got, _ := e.Update(now, units); took < 0 && float64(got) >= 0.97*333e6 {
				took = i + 1
			}
		}
		if took < 0 || took > 8 {
			t.Errorf("%v: 97 %% of the step after %d intervals, want at most 8", begins, took)
		}
	}
}

// Readings and requests come late, at times by much, as on a busy machine. However
// much of the step the first interval holds, and whether the step shows in one
// interval or only in several: nothing of the time before stays in what is asked for,
// nor is it a request too little.
func TestAStepIsAskedForInFullSoonThoughReadingsComeLate(t *testing.T) {
	const trials, full = 1000, 340
	rng := rand.New(rand.NewPCG(1, 2))
	late := func() time.Duration {
		d := rng.ExpFloat64() * float64(5*time.Millisecond)
		if rng.IntN(20) == 0 {
			d += rng.Float64() * float64(60*time.Millisecond)
		}
		return time.Duration(d)
	}
	var took, most []int64
	for range trials {
		step := 3*time.Second + time.Duration(rng.Int64N(int64(100*time.Millisecond)))
		var arrivals []time.Duration
		for at, gap := time.Duration(0), 100*time.Millisecond; at < step+1600*time.Millisecond; at += gap {
			if at >= step {
				gap = time.Second / full
			}
			arrivals = append(arrivals, at+late())
		}
		slices.Sort(arrivals)
		e := enforce.NewEstimator(enforce.EstimatorConfig{})
		e.Update(0, 0)
		after, top, units := time.Hour, int64(0), int64(0)
		for now := 20 * time.Millisecond; now < step+1500*time.Millisecond; now += 20*time.Millisecond + late() {
			for units = 0; len(arrivals) > 0 && arrivals[0] <= now; arrivals = arrivals[1:] {
				units++
			}
			got, _ := e.Update(int64(now), units)
			if got >= full*allocator.Unit*99/100 {
				after = min(after, now-step)
			}
			top = max(top, int64(got))
		}
		took, most = append(took, after.Milliseconds()), append(most, top/int64(allocator.Unit))
	}
	slices.Sort(took)
	slices.Sort(most)
	if took[trials/2] > 130 || took[trials*95/100] > 205 || took[trials*98/100] > 300 {
		t.Errorf("asked for in full after %d ms in one half, %d in 95 %%, %d in 98 %%", took[trials/2], took[trials*95/100], took[trials*98/100])
	}
	if most[trials/2] > full*115/100 || most[trials*99/100] > full*160/100 {
		t.Errorf("of %d/s asked for %d in one half, %d in 99 %%", full, most[trials/2], most[trials*99/100])
	}
}

func TestModerateStepIsFollowedWithinASecond(t *testing.T) {
	e, a := enforce.NewEstimator(enforce.EstimatorConfig{}), poisson(11)
	now := int64(0)
	e.Update(now, 0)
	for range 100 {
		now += sub
		e.Update(now, a.until(now, 20_000, 1))
	}
	var got allocator.Rate
	for range 20 {
		now += sub
		got, _ = e.Update(now, a.until(now, 22_500, 1))
	}
	if offBy(got, 22_500) > 0.03 {
		t.Fatalf("published %d a second after the step to 22500/s", got)
	}
}

// Lesson O14: silence is not zero.
func TestSilenceDecaysByHalvesAndIsToldApartFromZero(t *testing.T) {
	e := enforce.NewEstimator(enforce.EstimatorConfig{})
	if got, why := e.Demand(0); got != 0 || why != enforce.NoReport {
		t.Fatalf("before any report: %d, %v", got, why)
	}
	now := int64(0)
	e.Update(now, 0)
	for range 40 {
		now += sub
		e.Update(now, 50)
	}
	full := 1000 * allocator.Unit
	for _, tc := range []struct {
		after int64
		want  allocator.Rate
		why   enforce.Report
	}{
		{0, full, enforce.Fresh},
		{sec, full, enforce.Fresh},
		{sec + 1, full, enforce.Stale},
		{3*sec - 1, full, enforce.Stale},
		{3 * sec, full / 2, enforce.Stale},
		{5 * sec, full / 4, enforce.Stale},
		{1e15, 0, enforce.Stale},
	} {
		if got, why := e.Demand(now + tc.after); got != tc.want || why != tc.why {
			t.Errorf("%v after the last report: %d, %v; want %d, %v", time.Duration(tc.after), got, why, tc.want, tc.why)
		}
	}
	now += 60 * sec // reports come back: one long interval
	if got, _ := e.Update(now, 60*1000); got != full {
		t.Errorf("published %d after the silence, want %d", got, full)
	}
}

func TestShortIntervalsAreAddedUp(t *testing.T) {
	e := enforce.NewEstimator(enforce.EstimatorConfig{})
	now := int64(0)
	e.Update(now, 0)
	for range 10_000 {
		now += ms / 2
		e.Update(now, 1)
		e.Update(now, 0)       // no time has passed
		e.Update(now-ms/4, -7) // nor does it run backwards
	}
	if got, _ := e.Demand(now); offBy(got, 2000) > 0.001 {
		t.Fatalf("published %d, want 2000/s", got)
	}
}

func TestEstimatorTakesAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := enforce.NewEstimator(enforce.EstimatorConfig{})
		now := rapid.Int64Range(0, 1e18).Draw(t, "boot")
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now += rapid.SampledFrom([]int64{0, 1, ms, sub, sec, 3600 * sec, -sec, 1e16}).Draw(t, "dt")
			n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1000)).Draw(t, "n")
			if got, _ := e.Update(now, n); got < 0 || got > enforce.MaxRate {
				t.Fatalf("published %d", got)
			}
		}
	})
}

func BenchmarkEstimatorUpdate(b *testing.B) {
	e := enforce.NewEstimator(enforce.EstimatorConfig{})
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += sub
		e.Update(now, 1000+now%17)
	}
}

// A demand that goes up and down for minutes must not end up looking so noisy
// that the estimate follows no step any more, whether the pulses are long or not.
func TestTheHundredthStepIsFollowedLikeTheFirst(t *testing.T) {
	for _, on := range []int64{100 * ms, 700 * ms, 3 * sec} {
		for _, random := range []bool{false, true} {
			e, a := enforce.NewEstimator(enforce.EstimatorConfig{}), poisson(3)
			now := int64(0)
			e.Update(0, 0)
			feed := func(rate float64, span int64) (got allocator.Rate) {
				a.next = float64(now) / 1e9
				for end := now + span; now < end; {
					now += sub
					units := int64(rate * float64(sub) / 1e9)
					if random && rate > 0 {
						units = a.until(now, rate, 1)
					}
					got, _ = e.Update(now, units)
				}
				return got
			}
			for cycle := range 100 {
				if got := feed(20_000, 100*ms); got < 18_000*allocator.Unit {
					t.Fatalf("pulses of %d ms, random %v: cycle %d: %d published two intervals after the step up", on/ms, random, cycle, got)
				}
				feed(20_000, on-100*ms)
				if got := feed(0, 100*ms); got > 200*allocator.Unit {
					t.Fatalf("pulses of %d ms, random %v: cycle %d: %d published two intervals after the step down", on/ms, random, cycle, got)
				}
				feed(0, 900*ms)
			}
		}
	}
}
