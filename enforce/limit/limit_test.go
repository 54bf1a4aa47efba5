package limit

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
)

// one is a node with one budget of one class.
type one struct {
	limiter atomic.Pointer[enforce.Limiter]
}

func (o *one) Limiter(budget, class string) (*enforce.Limiter, int, bool) {
	return o.limiter.Load(), 0, budget == "b" && class == "c"
}

// steady makes a set over a limiter of a constant rate whose bucket holds burst
// units at most and nothing yet, in a bubble's time.
func steady(perSecond int64, burst time.Duration, more ...func(*Config)) (*Class, *one, *Set) {
	o := &one{}
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1, Burst: burst}, now())
	l.SetSchedule(now(), rate(perSecond))
	o.limiter.Store(l)
	cfg := Config{Limits: o, Now: now}
	for _, m := range more {
		m(&cfg)
	}
	s := NewSet(cfg)
	c, err := s.Class("b", "c")
	if err != nil {
		panic(err)
	}
	return c, o, s
}

func rate(perSecond int64) []enforce.Step {
	r := allocator.Rate(perSecond) * allocator.Unit
	return []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r}}}
}

func (c *Class) counts() enforce.Counts {
	n := make([]enforce.Counts, 1)
	c.bound.Load().limiter.Counts(n)
	return n[0]
}

func TestAllowSpendsTheBucketAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, time.Second)
		if c.Allow() {
			t.Error("a bucket begins empty")
		}
		time.Sleep(time.Minute)
		admitted := 0
		for range 20 {
			if c.Allow() {
				admitted++
			}
		}
		if admitted != 10 {
			t.Errorf("admitted %d, want the burst of 10", admitted)
		}
		time.Sleep(500 * time.Millisecond)
		if !c.AllowN(5) || c.Allow() {
			t.Error("half a second at 10/s is 5 units")
		}
		if c.AllowN(0) || c.AllowN(-3) {
			t.Error("a cost below 1 was admitted")
		}
	})
}

func TestWaitersAreServedInTheirOrderAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, 100*time.Millisecond)
		var order []int
		var at []time.Duration
		var mu sync.Mutex
		start := time.Now()
		for i := range 20 {
			go func() {
				if err := c.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order, at = append(order, i), append(at, time.Since(start))
			}()
			synctest.Wait() // it waits before the next one comes
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 20 || !slices.IsSorted(order) {
			t.Fatalf("served %v, want 0 to 19 in order", order)
		}
		for i, d := range at {
			want := time.Duration(i+1) * 100 * time.Millisecond
			if d < want || d > want+time.Millisecond {
				t.Errorf("waiter %d was served after %v, want %v", i, d, want)
			}
		}
		if n := c.counts(); n.Offered != 20 || n.Admitted != 20 {
			t.Errorf("offered %d, admitted %d: want 20 of each; waiting is demand once", n.Offered, n.Admitted)
		}
	})
}

// What waits is demand before it is served: otherwise a node whose callers all
// wait would never ask its peers for more.
func TestWhoWaitsIsDemandAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(1, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		for range 50 {
			go func() { _ = c.Wait(ctx) }()
		}
		synctest.Wait()
		if n := c.counts(); n.Offered != 50 {
			t.Errorf("offered %d, want 50", n.Offered)
		}
		time.Sleep(10 * time.Second)
		if n := c.counts(); n.Offered != 50 {
			t.Errorf("offered %d after some were served, want 50 still", n.Offered)
		}
		cancel()
		synctest.Wait()
		if c.line.length.Load() != 0 {
			t.Error("somebody stayed in line")
		}
	})
}

func TestADeadlineThatIsTooEarlyIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, time.Second)
		for i, tc := range []struct {
			n    int64
			in   time.Duration
			want error
		}{
			{10, 900 * time.Millisecond, ErrDeadline},
			{10, 1100 * time.Millisecond, nil},
			{10, 500 * time.Millisecond, ErrDeadline},
		} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), tc.in)
			err := c.WaitN(ctx, tc.n)
			cancel()
			if !errors.Is(err, tc.want) {
				t.Errorf("%d: %v, want %v", i, err, tc.want)
			}
			if tc.want != nil && time.Since(start) != 0 {
				t.Errorf("%d: the error came after %v", i, time.Since(start))
			}
			if tc.want != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d: %v is no context.DeadlineExceeded", i, err)
			}
		}
	})
}

func TestTheTokensOfThoseBeforeCountForADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 30 { // three seconds' worth, thrice the bucket
			go func() { _ = c.Wait(ctx) }()
			synctest.Wait()
		}
		soon, stop := context.WithTimeout(ctx, 2900*time.Millisecond)
		defer stop()
		if err := c.Wait(soon); !errors.Is(err, ErrDeadline) {
			t.Errorf("%v behind three seconds of work, want ErrDeadline", err)
		}
		late, stop := context.WithTimeout(ctx, 3300*time.Millisecond)
		defer stop()
		if err := c.Wait(late); err != nil {
			t.Errorf("%v, want it served", err)
		}
	})
}

func TestACallerThatGivesUpLetsTheNextOneThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, time.Second)
		ctx, giveUp := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { errs <- c.WaitN(ctx, 10) }()
		synctest.Wait()
		go func() { errs <- c.Wait(t.Context()) }()
		synctest.Wait()
		time.Sleep(150 * time.Millisecond)
		giveUp()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the end of its context", err)
		}
		start := time.Now()
		if err := <-errs; err != nil || time.Since(start) > time.Millisecond {
			t.Errorf("the next one: %v after %v, want its token at once", err, time.Since(start))
		}
	})
}

func TestWhileSomebodyWaitsNobodyStepsInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, time.Second)
		served := make(chan error, 1)
		go func() { served <- c.WaitN(t.Context(), 10) }()
		synctest.Wait()
		c.Reserve(5).Cancel()
		for range 90 { // a flood that takes every token as it comes would starve it
			time.Sleep(10 * time.Millisecond)
			if c.Allow() || c.Reserve(1).OK() {
				t.Fatal("a token of the waiter's was taken")
			}
		}
		time.Sleep(101 * time.Millisecond)
		synctest.Wait()
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("it still waits after its second")
		}
	})
}

func TestNoMoreCallersWaitThanMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(1, time.Second, func(cfg *Config) { cfg.Waiters = 3 })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 3 {
			go func() { _ = c.Wait(ctx) }()
		}
		synctest.Wait()
		if err := c.Wait(ctx); !errors.Is(err, ErrCrowded) {
			t.Errorf("the fourth: %v, want ErrCrowded", err)
		}
	})
}

func TestACostThatNoBucketHoldsIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, time.Second)
		for _, n := range []int64{11, 0, -1, math.MaxInt64} {
			if err := c.WaitN(t.Context(), n); !errors.Is(err, ErrCost) {
				t.Errorf("cost %d: %v, want ErrCost", n, err)
			}
		}
	})
}

func TestAShareThatRisesIsNoticedByWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, _ := steady(0, time.Second)
		served := make(chan error, 1)
		start := time.Now()
		go func() { served <- c.Wait(t.Context()) }()
		time.Sleep(5 * time.Second)
		o.limiter.Load().SetSchedule(c.now(), rate(10))
		if err := <-served; err != nil {
			t.Error(err)
		}
		if took := time.Since(start) - 5*time.Second; took > 100*time.Millisecond+restMax {
			t.Errorf("served %v after the share came, want its 100 ms and a rest at most", took)
		}
	})
}

// Whatever callers do, what is admitted stays within rate x time + cap, and it
// never hangs: the law of the limiter, seen through the handles.
func TestNoMixOfCallersAdmitsMoreThanTheBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		perSecond := rapid.Int64Range(1, 200).Draw(rt, "rate")
		callers := rapid.SliceOfN(rapid.SampledFrom([]string{"allow", "wait", "hurry", "reserve", "cancel"}), 1, 40).Draw(rt, "callers")
		costs := rapid.SliceOfN(rapid.Int64Range(1, 5), len(callers), len(callers)).Draw(rt, "costs")
		pauses := rapid.SliceOfN(rapid.Int64Range(0, 300), len(callers), len(callers)).Draw(rt, "pauses ms")
		var admitted atomic.Int64
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			c, _, _ := steady(perSecond, time.Second)
			start := time.Now()
			var all sync.WaitGroup
			for i, how := range callers {
				time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
				all.Go(func() { admitted.Add(act(t.Context(), c, how, costs[i])) })
			}
			all.Wait()
			took = time.Since(start)
			if c.line.length.Load() != 0 || c.line.cost != 0 {
				rt.Errorf("%d of cost %d stayed in line", c.line.length.Load(), c.line.cost)
			}
		})
		bound := float64(perSecond)*took.Seconds() + float64(max(perSecond, 1))
		if float64(admitted.Load()) > bound {
			rt.Errorf("admitted %d in %v at %d/s, bound %v", admitted.Load(), took, perSecond, bound)
		}
	})
}

// act does one caller's work and returns the units that it was given for good.
func act(ctx context.Context, c *Class, how string, n int64) int64 {
	ok := false
	switch how {
	case "allow":
		ok = c.AllowN(n)
	case "wait":
		ok = c.WaitN(ctx, n) == nil
	case "hurry":
		soon, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
		defer cancel()
		ok = c.WaitN(soon, n) == nil
	case "reserve":
		ok = c.Reserve(n).OK()
	case "cancel":
		c.Reserve(n).Cancel()
	}
	if !ok {
		return 0
	}
	return n
}

func TestCancelGivesBackExactlyWhatWasTakenAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := steady(10, time.Second)
		time.Sleep(time.Second)
		r := c.Reserve(7)
		if !r.OK() || r.Delay() != 0 {
			t.Fatal("7 of 10 were refused")
		}
		for _, n := range []int64{3, 4, 2} { // later ones change nothing about it
			_ = c.Reserve(n)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(r.Cancel)
		}
		all.Wait()
		if got := c.Quota().Tokens; got != 7 {
			t.Errorf("%d tokens after 10 - 7 - 3 + 7, want 7", got)
		}
		late := c.Reserve(7)
		time.Sleep(time.Minute)
		late.Cancel()
		if got := c.Quota().Tokens; got != 10 {
			t.Errorf("%d tokens, want the cap and no more", got)
		}
		refused := c.Reserve(20)
		if refused.OK() {
			t.Fatal("20 of 10 were granted")
		}
		_ = c.Reserve(10)
		refused.Cancel()
		if c.Allow() {
			t.Error("cancelling what was refused made a token")
		}
		if d := c.Reserve(5).Delay(); d.Round(time.Microsecond) != 500*time.Millisecond {
			t.Errorf("delay %v, want 500ms", d)
		}
	})
}

func TestInShadowEverythingPassesAndNothingIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, s := steady(10, time.Second)
		time.Sleep(time.Second)
		o.limiter.Store(o.limiter.Load().Succeed(c.now(), enforce.LimiterConfig{Classes: 1, Shadow: true}, []int{0}, rate(10)))
		s.Renew(o)
		for range 5 { // 50 of 10
			r := c.Reserve(10)
			if !r.OK() || !c.Allow() || c.Wait(t.Context()) != nil {
				t.Error("refused in shadow mode")
			}
		}
		r := c.Reserve(10)
		r.Cancel()
		if n := c.Quota().Tokens; n != 0 {
			t.Errorf("%d tokens came back that were never taken", n)
		}
	})
}

func TestHandlesFollowASuccessorWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, s := steady(1, time.Second)
		served := make(chan error, 1)
		go func() { served <- c.Wait(t.Context()) }()
		synctest.Wait()
		reserved := c.Reserve(1)
		succeed := func(perSecond int64) {
			next := o.limiter.Load().Succeed(c.now(), enforce.LimiterConfig{Classes: 1, Burst: 2 * time.Second}, []int{0}, rate(perSecond))
			o.limiter.Store(next)
			s.Renew(o)
		}
		succeed(100)
		start := time.Now()
		if err := <-served; err != nil || time.Since(start) > restMax {
			t.Errorf("%v after %v, want it served at the new rate", err, time.Since(start))
		}
		time.Sleep(time.Second)
		if !c.AllowN(50) {
			t.Error("the handle does not ask the successor")
		}
		succeed(0)
		before := c.Quota().Tokens
		reserved.Cancel()
		if c.Quota().Tokens != before {
			t.Error("a refund to a limiter that is gone made tokens")
		}
	})
}

func TestAClassThatIsGoneRefusesUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, s := steady(10, time.Second)
		time.Sleep(time.Second)
		if _, err := s.Class("b", "typo"); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v, want ErrUnknown", err)
		}
		s.Renew(none{})
		if c.Allow() || c.Reserve(1).OK() || c.Decide(Call{}).OK {
			t.Error("a class that is gone admits")
		}
		if err := c.Wait(t.Context()); !errors.Is(err, ErrUnknown) || c.Err() == nil {
			t.Errorf("wait: %v, and Err() %v: want ErrUnknown", err, c.Err())
		}
		if _, err := s.Class("b", "c"); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v, want ErrUnknown", err)
		}
		s.Renew(o)
		if c.Err() != nil || !c.Allow() {
			t.Error("it is back and does not admit")
		}
		if again, err := s.Class("b", "c"); err != nil || again != c {
			t.Errorf("another handle, %v", err)
		}
	})
}

func TestAClosedSetRefusesForGoodAndLetsNobodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, s := steady(1, time.Second)
		time.Sleep(time.Minute)
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- c.For("somebody").WaitN(t.Context(), 1) }()
		}
		go func() { _ = c.Wait(t.Context()) }()
		synctest.Wait()
		s.Close()
		s.Renew(o)
		if c.Allow() || !errors.Is(c.Err(), ErrClosed) {
			t.Errorf("a closed node admits, or says %v", c.Err())
		}
		served := 0
		for range 2 {
			if err := <-ended; err == nil {
				served++
			} else if !errors.Is(err, ErrClosed) {
				t.Errorf("a waiter got %v, want ErrClosed", err)
			}
		}
		if served > 1 {
			t.Errorf("%d were served by one token", served)
		}
		if _, err := s.Class("b", "c"); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

type none struct{}

func (none) Limiter(string, string) (*enforce.Limiter, int, bool) { return nil, 0, false }

// Changing limiters under load loses no caller and admits nothing twice.
func TestLimitersAreSucceededUnderLoad(t *testing.T) {
	c, o, s := steady(1_000_000, 10*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var admitted, waited atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if i < 2 && c.Allow() {
					admitted.Add(1)
				}
				if i >= 2 && c.Wait(ctx) == nil {
					waited.Add(1)
				}
			}
		})
	}
	const changes = 200
	for i := range changes {
		l := o.limiter.Load().Succeed(c.now(), enforce.LimiterConfig{Classes: 1, Burst: time.Duration(5+i%2) * time.Millisecond}, []int{0}, rate(1_000_000))
		o.limiter.Store(l)
		s.Renew(o)
	}
	for waited.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	all.Wait()
	end := c.now()
	if got, most := admitted.Load()+waited.Load(), end/1000+10_000; got > most {
		t.Errorf("admitted %d in %v, at most %d may be", got, time.Duration(end), most)
	}
	// A decision under way while its limiter is succeeded may be counted nowhere.
	const underWay = 4 * changes
	got := admitted.Load() + waited.Load()
	if n := c.counts(); n.Admitted > got || n.Admitted < got-underWay {
		t.Errorf("the limiters counted %d admitted, the callers %d", n.Admitted, got)
	}
}

// tenanted is a class whose tenants have some rate each, units per second.
func tenanted(each int64) (enforce.LimiterConfig, []enforce.Step) {
	t := enforce.TenantConfig{Rate: allocator.Rate(each) * allocator.Unit, Keys: 100}
	return enforce.LimiterConfig{Classes: 1, Burst: time.Second, Tenants: []enforce.TenantConfig{t}}, rate(1_000_000)
}

func TestAHandleFindsItsTenantsBucketAfterEveryChangeOfTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, s := steady(1_000_000, time.Second)
		held, again := c.For("ams"), c.For("ams")
		for _, each := range []int64{5, 7, 7, 3} { // without tenants before
			cfg, steps := tenanted(each)
			o.limiter.Store(o.limiter.Load().Succeed(c.now(), cfg, []int{0}, steps))
			s.Renew(o)
			held.Allow() // a new tenant begins with this
			time.Sleep(time.Minute)
			for i := range each {
				ok := false
				switch i % 3 {
				case 0:
					ok = held.Allow()
				case 1:
					ok = again.Allow()
				default:
					ok = c.Decide(Call{Tenant: "ams"}).OK
				}
				if !ok {
					t.Fatalf("number %d of %d was refused", i+1, each)
				}
			}
			if held.Allow() || again.Allow() || c.Decide(Call{Tenant: "ams"}).OK {
				t.Errorf("more than the %d of one bucket, however it is asked", each)
			}
			if !c.For("fra").Allow() {
				t.Error("another tenant was refused")
			}
		}
	})
}

func TestCallersOfOneHandleWaitInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, s := steady(1_000_000, time.Second)
		cfg, steps := tenanted(10)
		o.limiter.Store(o.limiter.Load().Succeed(c.now(), cfg, []int{0}, steps))
		s.Renew(o)
		held := c.For("ams")
		for held.Allow() {
		}
		const waiters = 50
		var served atomic.Int64
		for range waiters { // all at once: one of them makes the line
			go func() {
				if held.Wait(t.Context()) == nil {
					served.Add(1)
				}
			}()
		}
		synctest.Wait()
		if n := held.waiting().length.Load(); n != waiters {
			t.Fatalf("%d in line, want %d", n, waiters)
		}
		time.Sleep(time.Second)
		if n := served.Load(); n < 9 || n > 11 {
			t.Errorf("%d served in a second of 10", n)
		}
		if held.Allow() || held.Reserve(1).OK() {
			t.Error("it admits while others wait who were first")
		}
		if !c.For("fra").Allow() {
			t.Error("another tenant was refused because of who waits")
		}
		time.Sleep(time.Minute)
		if served.Load() != waiters || !held.Allow() {
			t.Errorf("%d of %d served, and then nobody", served.Load(), waiters)
		}
	})
}

func TestWhoComesToAHandleLaterTakesNothingFromWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, s := steady(1_000_000, time.Second)
		cfg, steps := tenanted(10)
		o.limiter.Store(o.limiter.Load().Succeed(c.now(), cfg, []int{0}, steps))
		s.Renew(o)
		held := c.For("ams")
		for held.Allow() {
		}
		served := make(chan error)
		go func() { served <- held.WaitN(t.Context(), 8) }()
		time.Sleep(500 * time.Millisecond)
		if held.Allow() || held.Reserve(1).OK() {
			t.Error("it admits the dearer work's tokens away")
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		time.Sleep(100*time.Millisecond + 1)
		if !held.Allow() {
			t.Error("it admits nothing when nobody waits any more")
		}
	})
}

func TestAHandleIsHalfALineOfTheCache(t *testing.T) {
	if tenant, handle := unsafe.Sizeof(Tenant{}), unsafe.Sizeof(enforce.Handle{}); tenant > 32 || handle > 32 {
		t.Errorf("%d and %d bytes, want at most 32", tenant, handle)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	c, o, s := steady(1_000_000, time.Second)
	if n := testing.AllocsPerRun(100, func() { c.Allow() }); n != 0 {
		t.Errorf("Allow: %v allocations", n)
	}
	cfg, steps := tenanted(1_000_000)
	o.limiter.Store(o.limiter.Load().Succeed(c.now(), cfg, []int{0}, steps))
	s.Renew(o)
	held := c.For("ams")
	if n := testing.AllocsPerRun(100, func() { held.Allow() }); n != 0 {
		t.Errorf("Allow of a handle: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = c.Decide(Call{Cost: 2}).RetryAfter() }); n != 0 {
		t.Errorf("Decide: %v allocations", n)
	}
}
