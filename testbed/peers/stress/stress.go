// Package stress counts every token while all cores ask for a hundred times what
// there is.
//
// What is judged is the strictest form of the promise: in no window of any length
// may more be admitted than rate x length + burst (package chaos/bound, exact),
// but for a token for each core. The stress begins with full buckets: under a load
// that never lets them fill again, what is admitted then stays just at the bound,
// and one token too many shows. Windows are those of the readings that decisions
// were made by; by a clock that is late by up to e, true windows hold rate x e more.
package stress

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"subak/allocator"
	"subak/chaos/bound"
	"subak/enforce"
	"subak/testbed/peers/measure"
)

const (
	times = 100  // of the rate is offered, at least
	spare = 1.25 // for a trial that was disturbed
	burst = 10 * time.Millisecond
)

// outcome is what a stress counted.
type outcome struct {
	offered, admitted int64
	rate              int64 // units per second
	took              time.Duration
	over              int64 // tokens above rate*t + burst in the worst window; negative when there were fewer
}

// Case is a stress of length span by a clock: its name is "the precise clock" or
// the like, and id tells the case's.
func Case(id, name string, now func() int64, span time.Duration) measure.Case {
	var o outcome
	value := func(v func() float64) func(context.Context) (measure.Reading, error) {
		return func(context.Context) (measure.Reading, error) { return measure.Reading{Value: v()}, nil }
	}
	cores := runtime.GOMAXPROCS(0)
	return measure.Case{
		ID: id, Once: true, Show: []measure.Metric{measure.Value},
		What: fmt.Sprintf("%d cores offer over %d times the rate for %v, by %s; every token is counted", cores, times, span, name),
		Sides: []measure.Side{
			{Name: "over rate*t + burst, worst window", Batch: func(ctx context.Context) (measure.Reading, error) {
				var err error
				o, err = play(ctx, now, span)
				return measure.Reading{Value: float64(o.over)}, err
			}},
			{Name: "offered beside the rate", Batch: value(func() float64 { return float64(o.offered) / (float64(o.rate) * o.took.Seconds()) })},
			{Name: "rate that was used", Batch: value(func() float64 { return 100 * float64(o.admitted) / (float64(o.rate) * o.took.Seconds()) })},
			{Name: "admitted", Batch: value(func() float64 { return float64(o.admitted) })},
		},
		Claims: []measure.Claim{
			{ID: id, What: "tokens above rate*t + burst, in the worst window of any length", Metric: measure.Value,
				Relation: measure.Alone, Bound: float64(cores), Unit: "tokens"},
			{ID: id + "-offered", What: "what was offered, in multiples of the rate", Metric: measure.Value,
				Relation: measure.Alone, Side: 1, Sense: measure.NoBound, Unit: "x"},
			{ID: id + "-used", What: "how much of the rate was admitted", Metric: measure.Value,
				Relation: measure.Alone, Side: 2, Sense: measure.NoBound, Unit: "%"},
			{ID: id + "-admitted", What: "how much was admitted", Metric: measure.Value,
				Relation: measure.Alone, Side: 3, Sense: measure.NoBound, Unit: "tokens"},
		},
	}
}

// newLimiter makes a limiter of two classes with a small burst.
func newLimiter(now int64, perSecond int64) *enforce.Limiter {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2, Burst: burst, Revocable: true}, now)
	r := allocator.Rate(perSecond) * allocator.Unit
	l.SetSchedule(now, []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r - r/3, r / 3}}})
	return l
}

// play stresses a limiter whose rate is a hundredth of what all cores can ask for.
func play(ctx context.Context, now func() int64, span time.Duration) (outcome, error) {
	trial, _ := run(ctx, now, 1000, min(span/10, 300*time.Millisecond))
	o, admissions := run(ctx, now, max(int64(float64(trial.offered)/trial.took.Seconds()/(times*spare)), 1000), span)
	slices.SortFunc(admissions, func(a, b bound.Admission) int { return int(a.At - b.At) })
	report, err := bound.Check(bound.Config{Limit: allocator.Rate(o.rate) * allocator.Unit, Burst: burst}, admissions)
	if err != nil {
		return o, fmt.Errorf("stress: %w", err)
	}
	o.over = report.Level - report.LevelMax
	whole := o.admitted - int64(float64(o.rate)*(o.took+burst).Seconds())
	o.over = max(o.over, whole)
	return o, ctx.Err()
}

// run offers all that all cores can.
func run(ctx context.Context, now func() int64, perSecond int64, span time.Duration) (outcome, []bound.Admission) {
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	cores := runtime.GOMAXPROCS(0)
	all := make([][]bound.Admission, cores)
	offered := make([]int64, cores)
	room := int(float64(perSecond)*(span+burst).Seconds()) + 64
	start := time.Now()
	l := newLimiter(now(), perSecond)
	time.Sleep(2 * burst) // buckets begin empty
	timer := time.AfterFunc(span, func() { stop.Store(true) })
	defer timer.Stop()
	var wg sync.WaitGroup
	for i := range cores {
		wg.Go(func() {
			mine, asked := make([]bound.Admission, 0, room), int64(0)
			for !stop.Load() {
				for k := range 64 {
					at := now()
					if l.DecideRequest(at, enforce.Request{Class: k & 1, Cost: 1}).OK {
						mine = append(mine, bound.Admission{At: at, Cost: 1})
					}
				}
				asked += 64
			}
			all[i], offered[i] = mine, asked
		})
	}
	wg.Wait()
	o := outcome{rate: perSecond, took: time.Since(start)}
	var sum []bound.Admission
	for i := range all {
		o.offered += offered[i]
		sum = append(sum, all[i]...)
	}
	o.admitted = int64(len(sum))
	return o, sum
}
