package enforce_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/chaos/bound"
	"subak/enforce"
)

const (
	sec = int64(time.Second)
	ms  = int64(time.Millisecond)
)

// forever is a schedule of one step: the classes' rates in micro-units/s.
func forever(classes ...allocator.Rate) []enforce.Step {
	var total allocator.Rate
	for _, r := range classes {
		total += r
	}
	return []enforce.Step{{Until: math.MaxInt64, Total: total, Classes: classes}}
}

// perSecond is forever in whole units.
func perSecond(units ...int64) []enforce.Step {
	rates := make([]allocator.Rate, len(units))
	for k, u := range units {
		rates[k] = allocator.Rate(u) * allocator.Unit
	}
	return forever(rates...)
}

func limiter(cfg enforce.LimiterConfig, steps []enforce.Step) *enforce.Limiter {
	l := enforce.NewLimiter(cfg, 0)
	l.SetSchedule(0, steps)
	return l
}

// drain takes single units until the class refuses, and returns how many.
func drain(l *enforce.Limiter, now int64, class int) (n int64) {
	for l.Decide(now, class, 1).OK {
		n++
	}
	return n
}

// wantDrain looks ten microseconds late: credit rounds down.
func wantDrain(t *testing.T, l *enforce.Limiter, now int64, class int, want int64) {
	t.Helper()
	now += min(10_000, math.MaxInt64-now)
	if got := drain(l, now, class); got != want {
		t.Fatalf("class %d at %v: %d admitted, want %d", class, time.Duration(now), got, want)
	}
}

func TestBucketBeginsEmptyAndFillsToItsBurst(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(10))
	wantDrain(t, l, 0, 0, 0)
	wantDrain(t, l, 500*ms, 0, 5)
	wantDrain(t, l, 1000*sec, 0, 10)
}

func TestNothingIsAdmittedBeforeTheFirstShare(t *testing.T) {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, 0)
	if v := l.Decide(100*sec, 0, 1); v.OK || v.Reason != enforce.NoShare {
		t.Fatalf("got %+v, want no-share", v)
	}
}

// Lesson O3: an update is a change of rate on a living bucket.
func TestTenChangesASecondAdmitTheSameAsNone(t *testing.T) {
	run := func(every int64) (n int64) {
		l := limiter(enforce.LimiterConfig{Classes: 2, Revocable: true}, perSecond(700, 300))
		for now := int64(0); now < 30*sec; now += ms / 4 {
			if every > 0 && now%every == 0 {
				l.SetSchedule(now, perSecond(700, 300))
			}
			for class := range 2 {
				if l.Decide(now, class, 1).OK {
					n++
				}
			}
		}
		return n
	}
	still, busy := run(0), run(100*ms)
	if still != busy {
		t.Fatalf("%d admitted under changes, %d without", busy, still)
	}
	if want := int64(30 * 1000); still < want*99/100 || still > want {
		t.Fatalf("%d admitted in 30 s at 1000/s", still)
	}
}

func TestRaiseCarriesTokensOverAndTopsNothingUp(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(10))
	l.SetSchedule(100*sec, perSecond(1000)) // 10 tokens stored, not 1000
	wantDrain(t, l, 100*sec, 0, 10)
}

func TestLoweringClampsTokensForGood(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(1000))
	l.SetSchedule(100*sec, perSecond(10))
	l.SetSchedule(100*sec, perSecond(1000))
	wantDrain(t, l, 100*sec, 0, 10)
}

func TestDebtAtALoweringIsPaidBack(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(100))
	wantDrain(t, l, 10*sec, 0, 100)
	l.SetSchedule(9*sec, perSecond(10)) // decided a second ago, in force only now
	wantDrain(t, l, 10*sec, 0, 0)
	wantDrain(t, l, 19*sec, 0, 0)
	wantDrain(t, l, 20*sec+ms, 0, 10)
}

// Lesson O9.
func TestZeroRateAdmitsNothingNew(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2, Revocable: true}, perSecond(10, 10))
	l.SetSchedule(5*sec, perSecond(0, 20))
	if v := l.Decide(5*sec, 0, 1); v.OK || v.Reason != enforce.NoShare {
		t.Fatalf("got %+v, want no-share", v)
	}
	if v := l.Decide(6*sec, 0, 1); !v.OK || v.From != 1 {
		t.Fatalf("a class without a share may borrow: got %+v", v)
	}
	l.SetSchedule(6*sec, perSecond(0, 0))
	for _, now := range []int64{6 * sec, 5000 * sec} {
		if v := l.Decide(now, 1, 1); v.OK || v.Reason != enforce.NoShare {
			t.Fatalf("at %d: %+v, want no-share", now, v)
		}
	}
	if got := l.RetryAfter(6*sec, 1, 1); got != enforce.NoToken {
		t.Fatalf("retry after %v, want %v", got, enforce.NoToken)
	}
}

func TestRefundGivesBackExactlyWhatWasTaken(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2, Revocable: true}, perSecond(10, 10))
	drain(l, sec+2000, 0)                // own tokens, and half of class 1's
	v := l.Decide(sec+500*ms+2000, 0, 5) // its own again
	if !v.OK || v.From != 0 {
		t.Fatalf("got %+v", v)
	}
	l.Refund(v, 5)
	l.Refund(enforce.Verdict{Reason: enforce.ClassEmpty, From: -1}, 5) // nothing was paid
	if q := l.Quota(sec+500*ms+2000, 0); q.Tokens != 5 {
		t.Fatalf("%d tokens after the refund, want 5", q.Tokens)
	}
	if q := l.Quota(100*sec, 0); q.Tokens != 10 {
		t.Fatalf("%d tokens when full, want 10", q.Tokens)
	}
	l.Refund(v, 5) // never above the cap, even if it were done twice
	if q := l.Quota(100*sec, 0); q.Tokens != 10 {
		t.Fatalf("%d tokens, want 10", q.Tokens)
	}
}

// Lesson O10: against the run with a steady clock, a step of an hour changes
// what is admitted by less than one burst.
func TestClockStepNeitherGrantsNorLocksOut(t *testing.T) {
	const rate, length = 1000, 60 * sec
	run := func(step int64) (n int64) {
		l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(rate))
		base := 2 * 3600 * sec
		l.SetSchedule(base, perSecond(rate))
		for real := int64(0); real < length; real += ms / 2 {
			now := base + real
			if real >= length/2 {
				now += step
			}
			if real%(200*ms) == 0 {
				l.SetSchedule(now, perSecond(rate)) // the control loop's tick
			}
			if l.Decide(now, 0, 1).OK {
				n++
			}
		}
		return n
	}
	steady := run(0)
	for _, step := range []int64{-3600 * sec, 3600 * sec, -50 * ms} {
		if got := run(step); got <= steady-rate || got >= steady+rate {
			t.Errorf("step %v: %d admitted, %d without", time.Duration(step), got, steady)
		}
	}
}

// The control loop and the watchdog may both wake up with old readings.
func TestSharesSetWithOldReadingsTopNothingUp(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(10))
	for _, now := range []int64{10, 4, 5, 11, 7, 12} {
		l.SetSchedule(now*sec, perSecond(10))
	}
	wantDrain(t, l, 12*sec, 0, 10)
	l.SetSchedule(4*sec, perSecond(10))
	wantDrain(t, l, 12*sec, 0, 0)
	wantDrain(t, l, 12*sec+500*ms, 0, 5)
}

func TestSlightlyOldReadingsNeitherGainNorLose(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(1000))
	l.SetSchedule(10*sec, perSecond(1000))
	var n int64
	for now := 10 * sec; now < 20*sec; now += ms {
		if l.Decide(now-7*ms, 0, 1).OK {
			n++
		}
		if l.Decide(now, 0, 1).OK {
			n++
		}
	}
	// Full at the start, and a thousand a second.
	if n < 11_000-10 || n > 11_000 {
		t.Fatalf("%d admitted, want 11000", n)
	}
}

// Lesson O11: a flood of one class costs the other nothing.
func TestFloodOfOneClassDoesNotDrainTheOther(t *testing.T) {
	run := func(flood int) (y int64) {
		l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(500, 500))
		for now := int64(0); now < 60*sec; now += 2 * ms {
			for range flood {
				l.Decide(now, 0, 1)
			}
			if l.Decide(now, 1, 1).OK {
				y++
			}
		}
		return y
	}
	calm, flooded := run(0), run(10)
	if flooded*100 < calm*98 {
		t.Fatalf("class 1 admitted %d under flood, %d without", flooded, calm)
	}
}

func TestRefusalByTheBudgetLeavesTheClassUntouched(t *testing.T) {
	steps := perSecond(10, 10)
	steps[0].Total = 10 * allocator.Unit // less than the classes together
	l := limiter(enforce.LimiterConfig{Classes: 2}, steps)
	wantDrain(t, l, sec, 0, 10)
	for range 100 {
		if v := l.Decide(sec+1000, 1, 1); v.OK || v.Reason != enforce.BudgetEmpty {
			t.Fatalf("got %+v, want budget-empty", v)
		}
	}
	steps[0].Total = 20 * allocator.Unit
	l.SetSchedule(sec, steps)
	wantDrain(t, l, sec+500*ms, 1, 10) // all of its ten, paid by the budget's half second
}

func TestOwnerTakesLentTokensBackAtOnce(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2, Revocable: true}, perSecond(100, 100))
	// Class 0 is quiet; class 1 spends its own burst and class 0's upper half.
	wantDrain(t, l, 10*sec, 1, 150)
	var counts [2]enforce.Counts
	l.Counts(counts[:])
	if counts[1].Borrowed != 50 || counts[1].Admitted != 150 {
		t.Fatalf("counts %+v, want 50 borrowed of 150", counts[1])
	}
	// The owner finds half its burst at once and its whole rate from then on,
	// however hard class 1 presses.
	wantDrain(t, l, 10*sec, 0, 50)
	var owner int64
	for now := 10 * sec; now < 20*sec; now += ms {
		drain(l, now, 1)
		if now%(10*ms) == 0 && l.Decide(now, 0, 1).OK {
			owner++
		}
	}
	if owner < 998 {
		t.Fatalf("owner got %d of its 1000 while class 1 pressed", owner)
	}
}

func TestLendingFollowsTheClassesLimits(t *testing.T) {
	for _, tc := range []struct {
		name           string
		lends, borrows []bool
		revocable      bool
		want           int64
	}{
		{"off", nil, nil, false, 10},
		{"all take part", nil, nil, true, 10 + 5 + 5},
		{"lowest class lends nothing", []bool{true, true, false}, nil, true, 10 + 5},
		{"class borrows nothing", nil, []bool{true, false, true}, true, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := limiter(enforce.LimiterConfig{
				Classes: 3, Revocable: tc.revocable, Lends: tc.lends, Borrows: tc.borrows,
			}, perSecond(10, 10, 10))
			wantDrain(t, l, sec, 1, tc.want)
		})
	}
}

func TestLowestPriorityClassLendsFirst(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 3, Revocable: true}, perSecond(10, 10, 10))
	for range 10 {
		l.Decide(sec+1000, 1, 1)
	}
	var from []int8
	for range 6 {
		from = append(from, l.Decide(sec+1000, 1, 1).From)
	}
	if want := []int8{2, 2, 2, 2, 2, 0}; !equal(from, want) {
		t.Fatalf("lenders %v, want %v", from, want)
	}
}

func equal(a, b []int8) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// conservation.md A5, traps 9 and 11: nobody calls SetSchedule any more.
func TestScheduleStepsDownWhileTheControlLoopIsPaused(t *testing.T) {
	unit := allocator.Unit
	l := limiter(enforce.LimiterConfig{Classes: 1}, []enforce.Step{
		{Until: 2 * sec, Total: 1000 * unit, Classes: []allocator.Rate{1000 * unit}},
		{Until: 4 * sec, Total: 100 * unit, Classes: []allocator.Rate{100 * unit}},
		{Until: math.MaxInt64, Total: 10 * unit, Classes: []allocator.Rate{10 * unit}},
	})
	var got [6]int64
	for now := int64(0); now < 6*sec; now += ms / 2 {
		if l.Decide(now, 0, 1).OK {
			got[now/sec]++
		}
	}
	// In seconds 0-1 all there is; nothing of it is left for second 2.
	for i, want := range [6]int64{1000, 1000, 100, 100, 10, 10} {
		if got[i] < want-1 || got[i] > want+1 {
			t.Errorf("second %d: %d admitted, want %d", i, got[i], want)
		}
	}
	// A process paused over the whole schedule wakes up with the last cap.
	l.SetSchedule(6*sec, []enforce.Step{
		{Until: 8 * sec, Total: 1000 * unit, Classes: []allocator.Rate{1000 * unit}},
		{Until: math.MaxInt64, Total: 10 * unit, Classes: []allocator.Rate{10 * unit}},
	})
	wantDrain(t, l, 60*sec, 0, 10)
}

func TestCreditOverAPauseIsTheIntegralOfTheSchedule(t *testing.T) {
	unit := allocator.Unit
	l := limiter(enforce.LimiterConfig{Classes: 1, Burst: 100 * time.Second}, []enforce.Step{
		{Until: sec, Total: 30 * unit, Classes: []allocator.Rate{30 * unit}},
		{Until: 3 * sec, Total: 7 * unit, Classes: []allocator.Rate{7 * unit}},
		{Until: math.MaxInt64, Total: 1 * unit, Classes: []allocator.Rate{1 * unit}},
	})
	wantDrain(t, l, 13*sec, 0, 30+14+10) // not 13 times any of the rates
}

func TestScheduleThatEndsGrantsNothingMore(t *testing.T) {
	st := perSecond(10)
	st[0].Until = sec
	l := limiter(enforce.LimiterConfig{Classes: 1}, st)
	wantDrain(t, l, sec-20_000, 0, 9)
	wantDrain(t, l, sec, 0, 0)
	wantDrain(t, l, 50*sec, 0, 0)
}

func TestScheduleTakesHostileSteps(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, []enforce.Step{
		{Until: -5, Total: 1e12, Classes: []allocator.Rate{1e12, 1e12}},
		{Until: sec, Total: -1, Classes: []allocator.Rate{-1}},
		{Until: ms, Total: 1e12},
		{Until: 2 * sec, Total: math.MaxInt64, Classes: []allocator.Rate{math.MaxInt64, 0, 7}},
	})
	wantDrain(t, l, sec-20_000, 0, 0)
	if total := l.Share(sec, nil); total != enforce.MaxRate {
		t.Fatalf("share %d, want %d", total, enforce.MaxRate)
	}
	if v := l.Decide(2*sec-1, 0, enforce.MaxCost); v.OK {
		t.Fatalf("got %+v", v)
	}
	if total := l.Share(2*sec, nil); total != 0 {
		t.Fatalf("share %d past the end, want 0", total)
	}
}

// Lesson O2: 0.3/s is one request every 3.3 s, not zero and not one a second.
func TestFractionalRateCarriesOver(t *testing.T) {
	for _, tc := range []struct {
		micro allocator.Rate
		for_  int64
		want  int64
	}{
		{300_000, 1000 * sec, 300},
		{1_000, 10_000 * sec, 10},
		{999_999, 1000 * sec, 999},
		{1, 1_000_001 * sec, 1},
	} {
		l := limiter(enforce.LimiterConfig{Classes: 1}, forever(tc.micro))
		var n int64
		step := tc.for_ / 50_000
		for now := int64(0); now <= tc.for_; now += step {
			if now%(1000*step) == 0 {
				l.SetSchedule(now, forever(tc.micro)) // nor do updates eat the fractions
			}
			if l.Decide(now, 0, 1).OK {
				n++
			}
		}
		if n < tc.want-tc.want/50-1 || n > tc.want {
			t.Errorf("%d micro/s for %v: %d admitted, want %d", tc.micro, time.Duration(tc.for_), n, tc.want)
		}
	}
}

func TestSmallBucketHoldsTheLargestCost(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1, LargestCost: 5}, perSecond(2))
	if v := l.Decide(2*sec, 0, 5); v.OK {
		t.Fatal("five units after earning four")
	}
	if v := l.Decide(3*sec, 0, 5); !v.OK {
		t.Fatalf("got %+v, want admitted", v)
	}
	if v := l.Decide(100*sec, 0, 6); v.OK || v.Reason != enforce.CostOverBurst {
		t.Fatalf("got %+v, want cost-over-burst", v)
	}
}

func TestBadArgumentsAreRefusedAndCountNothing(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(10, 10))
	for _, tc := range []struct {
		class int
		cost  int64
		want  enforce.Reason
	}{
		{-1, 1, enforce.UnknownClass},
		{2, 1, enforce.UnknownClass},
		{math.MinInt, 1, enforce.UnknownClass},
		{0, 0, enforce.BadCost},
		{0, -5, enforce.BadCost},
		{0, math.MinInt64, enforce.BadCost},
	} {
		if v := l.DecideClient(sec, tc.class, tc.cost, 9); v.OK || v.Reason != tc.want || v.From != -1 {
			t.Errorf("class %d cost %d: %+v, want %v", tc.class, tc.cost, v, tc.want)
		}
	}
	if v := l.Decide(sec, 0, math.MaxInt64); v.OK || v.Reason != enforce.CostOverBurst {
		t.Errorf("greatest cost: %+v", v)
	}
	var counts [2]enforce.Counts
	l.Counts(counts[:])
	if counts[1] != (enforce.Counts{}) || counts[0].Admitted != 0 {
		t.Errorf("counts %+v", counts)
	}
	wantDrain(t, l, sec, 0, 10)
}

func TestShadowDecidesAndCountsAndLetsEverythingPass(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1, Shadow: true}, perSecond(10))
	var passed, would int
	for range 25 {
		v := l.Decide(sec+1000, 0, 1)
		if v.OK {
			passed++
		}
		if v.Reason == enforce.ClassEmpty {
			would++
		}
	}
	var c [1]enforce.Counts
	l.Counts(c[:])
	if passed != 25 || would != 15 || c[0].Admitted != 10 || c[0].Refused != 15 || c[0].Offered != 25 {
		t.Fatalf("passed %d, would refuse %d, counts %+v", passed, would, c[0])
	}
}

// Idle for anything up to decades, at any rate: full, and no fuller. At the
// highest rate credit wraps around every three minutes.
func TestIdleNeverMisreadsTheWrappingCredit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := allocator.Rate(rapid.SampledFrom([]int64{1, 1e6, 2e10, 1e15, int64(enforce.MaxRate)}).Draw(t, "rate"))
		now := rapid.Int64Range(0, 1e15).Draw(t, "boot")
		l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, now)
		l.SetSchedule(now, forever(rate))
		cost := max(int64(rate/allocator.Unit), 1)
		for range rapid.IntRange(1, 6).Draw(t, "pauses") {
			// Long enough to fill up even the slowest bucket.
			now += rapid.Int64Range(1_100_000*sec, 1e17).Draw(t, "idle")
			if v := l.Decide(now, 0, cost); !v.OK {
				t.Fatalf("full bucket refused its cap %d: %+v", cost, v)
			}
			if v := l.Decide(now, 0, cost); v.OK {
				t.Fatalf("bucket gave twice its cap %d", cost)
			}
		}
	})
}

func TestLastInstantOfTheClockIsSafe(t *testing.T) {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, math.MaxInt64-10*sec)
	l.SetSchedule(math.MaxInt64-10*sec, perSecond(10))
	wantDrain(t, l, math.MaxInt64, 0, 10)
	l.SetSchedule(math.MaxInt64, perSecond(10))
	wantDrain(t, l, math.MaxInt64, 0, 0)
}

// At RetryAfter the request passes, and a little before it does not: a
// microsecond, and the time the slowest rate takes for a few micro-units.
func TestRetryAfterIsTheFirstInstantThatAdmits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const classes = 2
		steps := drawSteps(t, 0, classes)
		l := limiter(enforce.LimiterConfig{Classes: classes}, steps)
		now := rapid.Int64Range(0, 3e9).Draw(t, "now")
		class := rapid.IntRange(0, classes-1).Draw(t, "class")
		for range rapid.IntRange(0, 5).Draw(t, "spent") {
			l.Decide(now, class, rapid.Int64Range(1, 100).Draw(t, "cost"))
		}
		cost := rapid.SampledFrom([]int64{1, 2, 50, 5000}).Draw(t, "cost")
		wait := l.RetryAfter(now, class, cost)
		if wait == enforce.NoToken || wait == time.Hour {
			return
		}
		slack := int64(1000)
		for _, st := range steps {
			for _, r := range append(st.Classes, st.Total) {
				slack = max(slack, 3e9/max(int64(r), 1))
			}
		}
		if early := now + int64(wait) - slack; early > now {
			if v := l.Decide(early, class, cost); v.OK {
				t.Fatalf("admitted %v before the promised %v", time.Duration(slack), wait)
			}
		}
		if v := l.Decide(now+int64(wait), class, cost); !v.OK {
			t.Fatalf("refused after the promised %v: %v", wait, v.Reason)
		}
	})
}

func TestRetryAfterLooksThroughTheSchedule(t *testing.T) {
	unit := allocator.Unit
	l := limiter(enforce.LimiterConfig{Classes: 1, LargestCost: 10}, []enforce.Step{
		{Until: sec, Total: 5 * unit, Classes: []allocator.Rate{5 * unit}},
		{Until: math.MaxInt64, Total: unit, Classes: []allocator.Rate{unit}},
	})
	if got, want := l.RetryAfter(0, 0, 8).Round(time.Millisecond), 4*time.Second; got != want {
		t.Fatalf("retry after %v, want %v", got, want)
	}
	if got := l.RetryAfter(0, 0, 11); got != enforce.NoToken {
		t.Fatalf("cost above the bucket: %v, want %v", got, enforce.NoToken)
	}
}

func TestShareAndQuotaTellTheShareInForce(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(30, 10))
	dst := make([]allocator.Rate, 2)
	if total := l.Share(0, dst); total != 40*allocator.Unit || dst[0] != 30*allocator.Unit || dst[1] != 10*allocator.Unit {
		t.Fatalf("share %d %v", total, dst)
	}
	got := l.Quota(500*ms+1000, 0)
	want := enforce.Quota{Rate: 30 * allocator.Unit, Cap: 30, Tokens: 15, Full: 500 * time.Millisecond}
	if got.Full = got.Full.Round(10 * time.Microsecond); got != want {
		t.Fatalf("quota %+v, want %+v", got, want)
	}
	if q := l.Quota(0, 7); q != (enforce.Quota{}) {
		t.Fatalf("unknown class has quota %+v", q)
	}
}

func TestConfigReportsEveryFault(t *testing.T) {
	err := enforce.LimiterConfig{
		Classes: 65, Burst: -1, LargestCost: -1, Clients: 1 << 30, Lends: []bool{true},
	}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"classes 65", "burst", "largest cost", "clients", "lends or borrows"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from %q", want, err)
		}
	}
}

// Several nodes with shares that move between them: the sum keeps the bound.
func TestSharesMovingBetweenNodesKeepTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes, limit = 3, 300
		var ls [nodes]*enforce.Limiter
		for i := range ls {
			ls[i] = enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, 0)
		}
		check, err := bound.New(bound.Config{
			Limit: limit * allocator.Unit, Burst: time.Second, Slots: nodes,
			Windows: []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		for tick := range int64(30) {
			at := tick * 200 * ms
			a := rapid.Int64Range(0, limit).Draw(t, "a")
			b := rapid.Int64Range(0, limit-a).Draw(t, "b")
			for i, share := range []int64{a, b, limit - a - b} {
				ls[i].SetSchedule(at, perSecond(share))
			}
			busy := rapid.IntRange(0, 7).Draw(t, "busy")
			for now := at; now < at+200*ms; now += 5 * ms {
				for i := range ls {
					if busy>>i&1 == 0 {
						continue
					}
					for ls[i].Decide(now, 0, 1).OK {
						if err := check.Add(bound.Admission{At: now, Cost: 1}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
		if r := check.Report(); !r.OK() {
			t.Fatal(r)
		}
	})
}

// However small the shares: a flood gets all that the owner leaves, and the owner
// all that it asks for within its rate.
func TestFloodOnLentTokensNeverStarvesAnOwnerOfSmallShare(t *testing.T) {
	for _, tc := range []struct{ micro, asks int64 }{
		{100_000, 1}, {500_000, 1}, {1_000_000, 1}, {1_000_000, 0}, {2_000_000, 1}, {10_000_000, 1},
	} {
		rate := allocator.Rate(tc.micro)
		l := limiter(enforce.LimiterConfig{Classes: 2, Revocable: true}, forever(rate, rate))
		every := 1_100_000 / tc.micro * sec // just under its rate
		if every == 0 {
			every = 1_100_000 * sec / tc.micro
		}
		every -= every % ms
		var asked, got, flood int64
		length := 400_000_000 / tc.micro * sec
		for now := int64(0); now < length; now += ms * max(1, 1_000_000/tc.micro) {
			if l.Decide(now, 1, 1).OK {
				flood++
			}
			if tc.asks > 0 && now > 10*every && now%every == 0 {
				asked++
				if l.Decide(now, 0, 1).OK {
					got++
				}
			}
		}
		if got < asked {
			t.Errorf("%d micro/s: owner got %d of %d", tc.micro, got, asked)
		}
		// Both classes together earn 800 in this time.
		if sum := got + flood; sum < 760 || sum > 800 {
			t.Errorf("%d micro/s: %d admitted in all (owner asks: %d)", tc.micro, sum, tc.asks)
		}
	}
}
