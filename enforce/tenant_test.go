package enforce_test

import (
	"math"
	"math/big"
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

// tenths gives each tenant of class 0 a tenth of it.
func tenths(classes int) []enforce.TenantConfig {
	out := make([]enforce.TenantConfig, classes)
	out[0] = enforce.TenantConfig{Share: 100_000, Keys: 1000}
	return out
}

// tenantModel is the slow second implementation of one tenant's bucket, in exact
// rationals. It judges verdicts and follows them.
type tenantModel struct {
	cfg    enforce.TenantConfig
	tokens *big.Rat
	loss   *big.Rat // what the limiter may hold less, because it rounds down
}

func (m *tenantModel) rate(class allocator.Rate) *big.Rat {
	if m.cfg.Share > 0 {
		r := big.NewRat(int64(max(class, m.cfg.Base)), 1e6)
		return r.Mul(r, big.NewRat(m.cfg.Share, 1e6))
	}
	return big.NewRat(int64(m.cfg.Rate), 1e6)
}

// pass moves on by some nanoseconds at one rate of the class.
func (m *tenantModel) pass(class allocator.Rate, ns int64) {
	gain := m.rate(class)
	m.tokens.Add(m.tokens, gain.Mul(gain, big.NewRat(ns, 1e9)))
	m.loss.Add(m.loss, big.NewRat(2, 1e6))
}

// holds is what a request finds: no more than the cap of now.
func (m *tenantModel) holds(class allocator.Rate, burst time.Duration) *big.Rat {
	cap := m.rate(class)
	cap.Mul(cap, big.NewRat(int64(burst), 1e9))
	if least := big.NewRat(6, 1); cap.Cmp(least) < 0 { // two of the largest cost
		cap = least
	}
	if m.tokens.Cmp(cap) > 0 {
		return cap
	}
	return m.tokens
}

func TestATenantGetsWhatASlowModelOfItsBucketSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := rapid.SampledFrom([]enforce.TenantConfig{
			{Share: 100_000}, {Share: 333_333, Burst: 3 * time.Second}, {Share: 1_000_000, Burst: 100 * time.Millisecond},
			{Share: 200_000, Base: 40 * allocator.Unit},
			{Rate: 5 * allocator.Unit}, {Rate: 300_000, Burst: 20 * time.Second}, {Rate: 1, Burst: time.Hour},
		}).Draw(t, "tenants")
		const burst = 2 * time.Second
		now := rapid.Int64Range(0, 1<<50).Draw(t, "begin")
		l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1, Burst: burst, LargestCost: 3, Tenants: []enforce.TenantConfig{cfg}}, now)
		own := cfg.Burst
		if own == 0 {
			own = burst
		}
		class := allocator.Rate(0)
		set := func(r allocator.Rate) {
			class = r
			l.SetSchedule(now, forever(r))
		}
		set(allocator.Rate(rapid.Int64Range(1, 100_000).Draw(t, "rate")) * 1000)
		models := map[uint64]*tenantModel{}
		for range rapid.IntRange(10, 60).Draw(t, "requests") {
			switch rapid.SampledFrom([]string{"set", "wait", "ask", "ask", "ask"}).Draw(t, "step") {
			case "set":
				set(allocator.Rate(rapid.Int64Range(1, 100_000).Draw(t, "rate")) * 1000)
			case "wait":
				ns := rapid.Int64Range(0, 5*sec).Draw(t, "ns")
				now += ns
				for _, m := range models {
					m.pass(class, ns)
				}
			case "ask":
				r := enforce.Request{Tenant: rapid.Uint64Range(2, 4).Draw(t, "tenant"), Cost: rapid.Int64Range(1, 3).Draw(t, "cost")}
				m, cost := models[r.Tenant], big.NewRat(r.Cost, 1)
				v := l.DecideRequest(now, r)
				if m == nil {
					m = &tenantModel{cfg: cfg, tokens: new(big.Rat).Set(cost), loss: new(big.Rat)}
				}
				models[r.Tenant] = m
				have := m.holds(class, own)
				switch v.Reason {
				case enforce.Admitted, enforce.ClassEmpty: // the tenant's bucket is asked first
					if have.Cmp(cost) < 0 {
						t.Fatalf("%+v: %v, and only %s tokens there", r, v, have.FloatString(6))
					}
					m.tokens = new(big.Rat).Set(have) // what was above the cap is gone
					if v.OK {
						m.tokens.Sub(m.tokens, cost)
					}
				case enforce.TenantEmpty:
					if new(big.Rat).Sub(have, m.loss).Cmp(cost) >= 0 {
						t.Fatalf("%+v: %v, and %s tokens there", r, v, have.FloatString(6))
					}
				default:
					t.Fatalf("%+v: %v", r, v)
				}
			}
		}
	})
}

func TestAHandleDecidesAsItsTenantDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := enforce.LimiterConfig{Classes: 2, Revocable: rapid.Bool().Draw(t, "revocable"), Tenants: tenths(2)}
		a, b := limiter(cfg, perSecond(50, 10)), limiter(cfg, perSecond(50, 10))
		handles := map[uint64]*enforce.Handle{}
		now := int64(0)
		for range 60 {
			now += rapid.Int64Range(0, sec).Draw(t, "ns")
			r := enforce.Request{
				Class: rapid.IntRange(0, 2).Draw(t, "class"), Tenant: rapid.Uint64Range(0, 4).Draw(t, "tenant"),
				Cost: rapid.Int64Range(-1, 9).Draw(t, "cost"),
			}
			key := r.Tenant<<8 | uint64(r.Class)
			if handles[key] == nil {
				handles[key] = b.Hold(r.Class, r.Tenant)
			}
			if got, want := handles[key].Decide(now, r.Cost), a.DecideRequest(now, r); got != want {
				t.Fatalf("%+v: %+v, want %+v", r, got, want)
			}
		}
		var ca, cb [2]enforce.Counts
		a.Counts(ca[:])
		b.Counts(cb[:])
		if ca != cb {
			t.Fatalf("counts %+v, want %+v", cb, ca)
		}
	})
}

func TestADecisionAtWhateverPlaceIsThatOfItsTenant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := enforce.LimiterConfig{Classes: 2, Revocable: rapid.Bool().Draw(t, "revocable"), Cores: rapid.IntRange(1, 2).Draw(t, "cores"), Tenants: tenths(2)}
		a, b := limiter(cfg, perSecond(90_000, 40_000)), limiter(cfg, perSecond(90_000, 40_000))
		places := make([]enforce.Place, 3)
		elsewhere := limiter(cfg, perSecond(50, 10))
		now := int64(0)
		for range 60 {
			now += rapid.Int64Range(0, sec/10).Draw(t, "ns")
			r := enforce.Request{
				Class: rapid.IntRange(0, 2).Draw(t, "class"), Tenant: rapid.Uint64Range(0, 4).Draw(t, "tenant"),
				Cost: rapid.Int64Range(-1, 9).Draw(t, "cost"), Client: rapid.Uint64Range(0, 2).Draw(t, "client"),
			}
			p := &places[rapid.IntRange(0, len(places)-1).Draw(t, "place")]
			if rapid.IntRange(0, 9).Draw(t, "elsewhere") == 0 {
				elsewhere.DecideAt(now, r, p)
			}
			p.Fetch()
			if got, want := b.DecideAt(now, r, p), a.DecideRequest(now, r); got != want {
				t.Fatalf("%+v: %+v, want %+v", r, got, want)
			}
		}
		var ca, cb [2]enforce.Counts
		a.Counts(ca[:])
		b.Counts(cb[:])
		if ca != cb {
			t.Fatalf("counts %+v, want %+v", cb, ca)
		}
	})
}

func TestATenantThatIsRefusedTakesNothingFromOthersAndIsNoDemand(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2, Tenants: tenths(2)}, perSecond(100, 10))
	now := 10 * sec
	for l.DecideRequest(now, enforce.Request{Tenant: 7, Cost: 1}).OK {
	}
	before := l.Quota(now, 0)
	var c, then [2]enforce.Counts
	l.Counts(then[:])
	for range 1000 {
		if v := l.DecideRequest(now, enforce.Request{Tenant: 7, Cost: 1, Client: 3}); v.Reason != enforce.TenantEmpty || v.OK || v.From != -1 {
			t.Fatalf("%+v", v)
		}
	}
	if after := l.Quota(now, 0); after != before {
		t.Errorf("the class went from %+v to %+v", before, after)
	}
	l.Counts(c[:])
	if c[0].Offered != then[0].Offered || c[0].Refused != then[0].Refused+1000 || c[0].Excess != then[0].Excess+1000 {
		t.Errorf("counts %+v, before %+v: want 1000 more refused, and no demand", c[0], then[0])
	}
	if !l.DecideRequest(now, enforce.Request{Tenant: 8, Cost: 1}).OK || !l.Decide(now, 0, 1).OK {
		t.Error("others are refused")
	}
}

// The class has a hundredth of what the tenant may have: what it asks for beyond
// its own bucket would not get in with any share.
func TestAStarvedTenantIsDemandUpToItsOwnRate(t *testing.T) {
	cfg := enforce.LimiterConfig{Classes: 1, Tenants: []enforce.TenantConfig{{Rate: 50 * allocator.Unit}}}
	l := limiter(cfg, []enforce.Step{{Until: math.MaxInt64, Total: allocator.Unit / 2, Classes: []allocator.Rate{allocator.Unit / 2}}})
	for i := range int64(100_000) { // 1000 a second for 100 s
		l.DecideRequest(i*sec/1000, enforce.Request{Tenant: 7, Cost: 1})
	}
	var c [1]enforce.Counts
	l.Counts(c[:])
	if c[0].Offered < 4900 || c[0].Offered > 5100 || c[0].Admitted < 49 || c[0].Admitted > 52 || c[0].Admitted+c[0].Refused != 100_000 {
		t.Errorf("%+v: want 100000 decided, 50 admitted, and 50/s x 100 s offered", c[0])
	}
}

func TestARefundGivesTheTenantItsTokensBackToo(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2, Tenants: tenths(2)}, perSecond(100, 10))
	r := enforce.Request{Tenant: 7, Cost: 10}
	l.DecideRequest(0, enforce.Request{Tenant: 7, Cost: 1})
	now := 5 * sec
	v := l.DecideRequest(now, r)
	if !v.OK || l.DecideRequest(now, r).OK {
		t.Fatal("the bucket is not what the test is about")
	}
	l.RefundRequest(v, r)
	if got := l.QuotaRequest(now, r); got.Tokens != 10 || got.Cap != 10 || got.Rate != 10*allocator.Unit || got.Full != 0 {
		t.Errorf("%+v: want all 10 tokens of 10/s back", got)
	}
	if !l.DecideRequest(now, r).OK || l.DecideRequest(now, r).OK {
		t.Error("a refund is worth one request of its cost")
	}
}

func TestTheRetryAfterOfATenantIsKeptAndNotTooLong(t *testing.T) {
	steps := []enforce.Step{
		{Until: 20 * sec, Total: 100 * allocator.Unit, Classes: []allocator.Rate{100 * allocator.Unit}},
		{Until: math.MaxInt64, Total: 20 * allocator.Unit, Classes: []allocator.Rate{20 * allocator.Unit}},
	}
	for name, cfg := range map[string]enforce.TenantConfig{
		"a part of the class": {Share: 100_000, Burst: 4 * time.Second}, "a rate of its own": {Rate: 3 * allocator.Unit, Burst: 3 * time.Second},
	} {
		for _, at := range []int64{18 * sec, 19*sec + sec/2, 30 * sec} {
			l := limiter(enforce.LimiterConfig{Classes: 1, Tenants: []enforce.TenantConfig{cfg}}, steps)
			r := enforce.Request{Tenant: 7, Cost: 5}
			for l.DecideRequest(at, r).OK {
			}
			wait := int64(l.RetryAfterRequest(at, r))
			if wait <= 0 || l.Peek(at+wait-10_000, r).OK || !l.Peek(at+wait, r).OK {
				t.Errorf("%s at %d: told to wait %d ns; before: %v, then: %v", name, at, wait, l.Peek(at+wait-10_000, r), l.Peek(at+wait, r))
			}
		}
	}
	l := limiter(enforce.LimiterConfig{Classes: 1, Tenants: []enforce.TenantConfig{{Share: 100_000}}}, perSecond(100))
	if got := l.RetryAfterRequest(sec, enforce.Request{Tenant: 7, Cost: 11}); got != enforce.NoToken {
		t.Errorf("more than the bucket can hold: %v, want NoToken", got)
	}
	l.SetSchedule(2*sec, perSecond(0))
	l.DecideRequest(2*sec, enforce.Request{Tenant: 7, Cost: 1})
	if got := l.RetryAfterRequest(2*sec, enforce.Request{Tenant: 7, Cost: 1}); got != enforce.NoToken {
		t.Errorf("without a share: %v, want NoToken", got)
	}
}

func TestTenantsLiveOnThroughAChangeOfTheLimiter(t *testing.T) {
	for name, tenants := range map[string]enforce.TenantConfig{"part": {Share: 100_000}, "rate": {Rate: 10 * allocator.Unit}} {
		t.Run(name, func(t *testing.T) {
			cfg := enforce.LimiterConfig{Classes: 2, Tenants: []enforce.TenantConfig{tenants, {}}}
			l := limiter(cfg, perSecond(100, 10))
			spent, saved := enforce.Request{Tenant: 7, Cost: 1}, enforce.Request{Tenant: 8, Cost: 1}
			l.DecideRequest(0, spent)
			l.DecideRequest(0, saved)
			now := 10 * sec
			for l.DecideRequest(now, spent).OK {
			}
			held := l.Hold(0, 8)
			cfg.LargestCost, cfg.Tenants = 2, []enforce.TenantConfig{{}, tenants}
			next := l.Succeed(now, cfg, []int{1, 0}, perSecond(10, 100)) // the classes change places
			spent.Class, saved.Class = 1, 1
			if v := next.DecideRequest(now, spent); v.Reason != enforce.TenantEmpty {
				t.Errorf("a tenant that had spent its tokens: %+v", v)
			}
			if got := next.QuotaRequest(now, saved).Tokens; got != 10 {
				t.Errorf("a tenant that had saved 10 has %d", got)
			}
			if v := held.Decide(now, 1); v.OK {
				t.Errorf("a handle of the limiter before: %+v", v)
			}
			if got := next.QuotaRequest(now, saved).Tokens; got != 10 {
				t.Errorf("after a refusal by the limiter before, %d tokens of 10", got)
			}
			now += sec/2 + 1000 // rates round down
			n := 0
			for next.DecideRequest(now, spent).OK {
				n++
			}
			if n != 5 {
				t.Errorf("%d in the half second after, want 5", n)
			}
			// Other bounds: everybody begins anew, nobody with a burst.
			cfg.Tenants = []enforce.TenantConfig{{}, {Share: 200_000}}
			other := next.Succeed(now, cfg, []int{0, 1}, perSecond(10, 100))
			if !other.DecideRequest(now, saved).OK || other.DecideRequest(now, saved).OK {
				t.Error("a tenant under new bounds has more or less than its first request")
			}
		})
	}
}

func TestShadowCountsWhatATenantIsRefusedAndLetsItPass(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1, Shadow: true, Tenants: tenths(1)}, perSecond(100))
	r := enforce.Request{Tenant: 7, Cost: 1}
	l.DecideRequest(sec, r)
	if v := l.DecideRequest(sec, r); !v.OK || v.Reason != enforce.TenantEmpty || v.From != -1 {
		t.Errorf("%+v", v)
	}
	if got := l.TenantCounts(0); got.Refused != 1 {
		t.Errorf("%+v", got)
	}
}

func TestACrowdOfTenantsKeepsEachToItsBound(t *testing.T) {
	const limit, goroutines, each, tenants = 100_000, 8, 10_000, 5
	cfg := enforce.LimiterConfig{Classes: 2, Burst: 50 * time.Millisecond, Revocable: true, Tenants: tenths(2)}
	l := limiter(cfg, perSecond(limit, limit))
	var clock atomic.Int64
	var mu sync.Mutex
	admitted := make([][]bound.Admission, tenants)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(g)))
			mine := make([][]bound.Admission, tenants)
			for range each {
				now := clock.Add(7 * int64(time.Microsecond))
				r := enforce.Request{Tenant: 2 + rng.Uint64N(tenants), Cost: 1 + rng.Int64N(3)}
				if l.DecideRequest(now, r).OK {
					mine[r.Tenant-2] = append(mine[r.Tenant-2], bound.Admission{At: now, Cost: r.Cost})
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range mine {
				admitted[i] = append(admitted[i], mine[i]...)
			}
		})
	}
	wg.Wait()
	for i, all := range admitted {
		r, err := bound.Check(bound.Config{
			Limit: limit / 10 * allocator.Unit, Burst: 50 * time.Millisecond,
			Windows: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second},
		}, all)
		if err != nil || !r.OK() {
			t.Errorf("tenant %d: %v\n%v", i, err, r)
		}
		if want := clock.Load() * limit / 10 / sec * 9 / 10; r.Total < want {
			t.Errorf("tenant %d: %d admitted, want at least %d", i, r.Total, want)
		}
	}
}

func TestTenantsAllocateNothing(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1, Tenants: tenths(1)}, perSecond(1_000_000))
	now, tenant := sec, uint64(2)
	held := l.Hold(0, 5)
	held.Decide(now, 1)
	for name, f := range map[string]func(){
		"one":     func() { l.DecideRequest(now, enforce.Request{Tenant: 3, Cost: 1}) },
		"many":    func() { tenant += 1 << 50; l.DecideRequest(now, enforce.Request{Tenant: tenant, Cost: 1, Client: 9}) },
		"handle":  func() { now += 1000; held.Decide(now, 1) },
		"refused": func() { held.Decide(sec, 1) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
