package enforce_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"subak/allocator"
	"subak/chaos/bound"
	"subak/enforce"
)

// crowd runs goroutines that decide as fast as they can on a shared clock that
// moves with every reading, and returns what they admitted and the most
// that the clock moved between a reading and the end of its decision.
func crowd(l *enforce.Limiter, clock *atomic.Int64, goroutines, each int, step int64) (all []bound.Admission, skew int64) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			var mine []bound.Admission
			var worst int64
			for range each {
				now := clock.Add(step)
				class, cost := rng.IntN(l.Classes()), 1+rng.Int64N(3)
				if l.DecideClient(now, class, cost, rng.Uint64N(50)).OK {
					mine = append(mine, bound.Admission{At: now, Cost: cost})
				}
				worst = max(worst, clock.Load()-now)
			}
			mu.Lock()
			defer mu.Unlock()
			all, skew = append(all, mine...), max(skew, worst)
		})
	}
	wg.Wait()
	return all, skew
}

func TestCrowdNeverExceedsTheBoundInAnyWindow(t *testing.T) {
	const limit = 20_000
	l := limiter(enforce.LimiterConfig{Classes: 2, Burst: 50 * time.Millisecond, Revocable: true}, perSecond(limit*3/4, limit/4))
	var clock atomic.Int64
	all, _ := crowd(l, &clock, 8, 20_000, 7*int64(time.Microsecond))
	r, err := bound.Check(bound.Config{
		Limit: limit * allocator.Unit, Burst: 50 * time.Millisecond,
		Windows: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second},
	}, all)
	if err != nil || !r.OK() {
		t.Fatalf("%v\n%v", err, r)
	}
	// 40 units offered each 140 us: the whole budget was used.
	if want := clock.Load() * limit / sec * 95 / 100; r.Total < want {
		t.Fatalf("%d admitted, want at least %d", r.Total, want)
	}
}

// Shares change all the time, up and down, while the crowd decides. A reading
// can be older than the change that its decision meets; the bound allows for
// exactly that skew.
func TestCrowdNeverExceedsTheBoundWhileSharesChange(t *testing.T) {
	const limit = 20_000
	l := limiter(enforce.LimiterConfig{Classes: 2, Revocable: true}, perSecond(limit/2, limit/2))
	var clock atomic.Int64
	stop := make(chan struct{})
	var control sync.WaitGroup
	control.Go(func() {
		rng := rand.New(rand.NewPCG(7, 7))
		for {
			select {
			case <-stop:
				return
			default:
			}
			now := clock.Add(1)
			total := rng.Int64N(limit + 1)
			first := rng.Int64N(total + 1)
			steps := perSecond(first, total-first)
			steps[0].Until = now + rng.Int64N(10*ms)
			steps = append(steps, perSecond(first/2, (total-first)/2)...)
			l.SetSchedule(now, steps)
		}
	})
	all, skew := crowd(l, &clock, 6, 10_000, 7*int64(time.Microsecond))
	close(stop)
	control.Wait()
	r, err := bound.Check(bound.Config{
		Limit: limit * allocator.Unit, Burst: time.Second, Spread: time.Duration(skew), Slots: 1, Cost: 3,
	}, all)
	if err != nil || !r.OK() {
		t.Fatalf("skew %v: %v\n%v", time.Duration(skew), err, r)
	}
	if r.Total == 0 {
		t.Fatal("nothing was admitted")
	}
}

// conservation.md A5: what starts after SetSchedule has returned obeys it.
func TestLoweringIsInForceWhenSetScheduleReturns(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1, Clients: -1}, perSecond(1e6))
	var clock atomic.Int64
	var lowered, broken atomic.Bool
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				was := lowered.Load() // before the decision begins
				if l.Decide(clock.Add(1000), 0, 1).OK && was && lowered.Load() {
					broken.Store(true)
				}
			}
		})
	}
	for range 300 {
		l.SetSchedule(clock.Add(1000), perSecond(0))
		lowered.Store(true)
		for range 20 {
			l.Decide(clock.Add(1000), 0, 1)
		}
		lowered.Store(false)
		l.SetSchedule(clock.Add(1000), perSecond(1e6))
	}
	close(done)
	wg.Wait()
	if broken.Load() {
		t.Fatal("a decision that began after the lowering was admitted")
	}
}

func TestCountsAddUpAfterACrowd(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 3, Revocable: true}, perSecond(100, 200, 300))
	var clock atomic.Int64
	all, _ := crowd(l, &clock, 4, 5_000, 20*int64(time.Microsecond))
	var admitted int64
	for _, a := range all {
		admitted += a.Cost
	}
	counts := make([]enforce.Counts, 3)
	l.Counts(counts)
	var sum enforce.Counts
	for _, c := range counts {
		if c.Offered != c.Admitted+c.Refused-c.Retries {
			t.Errorf("offered does not add up: %+v", c)
		}
		sum.Admitted += c.Admitted
		sum.Retries += c.Retries
	}
	if sum.Admitted != admitted || sum.Retries == 0 {
		t.Fatalf("counted %d admitted and %d retries, saw %d admitted", sum.Admitted, sum.Retries, admitted)
	}
}
