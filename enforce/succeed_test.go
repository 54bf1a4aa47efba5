package enforce_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/chaos/bound"
	"subak/enforce"
)

func TestASuccessorHasWhatWasLeftAndNothingMore(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(100, 50))
	drain(l, sec+10_000, 0)
	next := l.Succeed(sec+10_000, enforce.LimiterConfig{Classes: 2}, []int{0, 1}, perSecond(100, 50))
	wantDrain(t, next, sec, 0, 0)
	wantDrain(t, next, sec, 1, 50)
	wantDrain(t, next, 2*sec+20_000, 0, 100)
}

func TestWhatWasSpentByALaterReadingIsADebtOfTheSuccessor(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1, Burst: 50 * time.Millisecond}, perSecond(1000))
	wantDrain(t, l, sec+10*ms, 0, 50)
	next := l.Succeed(sec, enforce.LimiterConfig{Classes: 1, Burst: 50 * time.Millisecond}, []int{0}, perSecond(1000))
	wantDrain(t, next, sec+10*ms, 0, 0)
	wantDrain(t, next, sec+20*ms, 0, 10)
}

func TestThePredecessorRefusesEverything(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(100))
	v := l.Decide(sec, 0, 10)
	l.Succeed(sec, enforce.LimiterConfig{Classes: 1}, []int{0}, perSecond(100))
	l.Refund(v, 10)
	wantDrain(t, l, sec, 0, 0)
	wantDrain(t, l, 100*sec, 0, 0)
}

func TestClassesKeepTheirTokensByOriginAndNewOnesBeginEmpty(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(100, 50))
	drain(l, sec+10_000, 1)
	next := l.Succeed(sec+10_000, enforce.LimiterConfig{Classes: 3}, []int{1, -1, 0}, perSecond(50, 20, 100))
	wantDrain(t, next, sec, 0, 0)
	wantDrain(t, next, sec, 1, 0)
	wantDrain(t, next, sec, 2, 100)
}

func TestASmallerBurstClampsWhatIsCarriedOver(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(100))
	next := l.Succeed(5*sec, enforce.LimiterConfig{Classes: 1, Burst: 100 * time.Millisecond}, []int{0}, perSecond(100))
	wantDrain(t, next, 5*sec, 0, 10)
	larger := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(100)).
		Succeed(5*sec, enforce.LimiterConfig{Classes: 1, Burst: 10 * time.Second}, []int{0}, perSecond(100))
	wantDrain(t, larger, 5*sec, 0, 100) // never topped up
	wantDrain(t, larger, 7*sec, 0, 200)
}

func TestCountsGoOnInTheSuccessor(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(10, 10))
	drain(l, sec+10_000, 1) // 10 admitted, 1 refused
	next := l.Succeed(sec+10_000, enforce.LimiterConfig{Classes: 2}, []int{1, 0}, perSecond(10, 10))
	counts := make([]enforce.Counts, 2)
	next.Counts(counts)
	if counts[0].Admitted != 10 || counts[0].Refused != 1 || counts[1].Offered != 0 {
		t.Errorf("counts %+v", counts)
	}
}

func TestOriginsThatWouldDoubleTokensPanic(t *testing.T) {
	for what, from := range map[string][]int{"one class twice": {0, 0}, "no such class": {0, 2}, "too few": {0}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", what)
				}
			}()
			limiter(enforce.LimiterConfig{Classes: 2}, perSecond(1, 1)).
				Succeed(sec, enforce.LimiterConfig{Classes: 2}, from, perSecond(1, 1))
		}()
	}
}

func TestAnyChainOfSuccessorsStaysWithinRateAndBurst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate = 1000
		burst := 200 * time.Millisecond
		l := limiter(enforce.LimiterConfig{Classes: 2, Burst: burst}, perSecond(rate/2, rate/2))
		var all []bound.Admission
		now := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, 400*ms).Draw(t, "gap")
			if rapid.Bool().Draw(t, "change") {
				from := rapid.SampledFrom([][]int{{0, 1}, {1, 0}, {-1, 1}, {0, -1}}).Draw(t, "from")
				first := rapid.Int64Range(0, rate).Draw(t, "first")
				l = l.Succeed(now, enforce.LimiterConfig{Classes: 2, Burst: burst, Revocable: rapid.Bool().Draw(t, "revocable")}, from, perSecond(first, rate-first))
			}
			for range rapid.IntRange(0, 300).Draw(t, "requests") {
				if l.Decide(now, rapid.IntRange(0, 1).Draw(t, "class"), 1).OK {
					all = append(all, bound.Admission{At: now, Cost: 1})
				}
			}
		}
		r, err := bound.Check(bound.Config{
			Limit: rate * allocator.Unit, Burst: burst,
			Windows: []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second},
		}, all)
		if err != nil || !r.OK() {
			t.Fatalf("%v\n%v", err, r)
		}
	})
}

// Requests are decided on whatever limiter is in place while one succeeds the
// other; between two, readings may be older than the change they meet.
func TestACrowdGainsNothingWhileLimitersSucceedOneAnother(t *testing.T) {
	const limit = 20_000
	var current atomic.Pointer[enforce.Limiter]
	current.Store(limiter(enforce.LimiterConfig{Classes: 2, Burst: 50 * time.Millisecond}, perSecond(limit/2, limit/2)))
	var clock, admitted atomic.Int64
	var crowd sync.WaitGroup
	for g := range 6 {
		crowd.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(g)))
			for i := range int64(20_000) {
				if current.Load().Decide(clock.Add(5000), rng.IntN(2), 1).OK {
					admitted.Add(1)
				}
				if g == 0 && i%100 == 0 {
					first := limit/4 + i/2
					current.Store(current.Load().Succeed(clock.Load(),
						enforce.LimiterConfig{Classes: 2, Burst: 50 * time.Millisecond}, []int{0, 1}, perSecond(first, limit-first)))
				}
			}
		})
	}
	crowd.Wait()
	most := clock.Load()*limit/sec + limit/20 + 1
	if got := admitted.Load(); got > most {
		t.Errorf("%d admitted in %v, at most %d allowed", got, time.Duration(clock.Load()), most)
	} else if got < most/10 {
		t.Errorf("%d admitted of %d: the test does not test", got, most)
	}
}
