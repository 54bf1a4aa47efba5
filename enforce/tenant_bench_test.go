package enforce_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/time/rate"

	"subak/enforce"
	"subak/enforce/keyed"
	"subak/internal/clock"
)

// lockedMap is what people write around golang.org/x/time/rate.
type lockedMap struct {
	mu sync.RWMutex
	m  map[string]*rate.Limiter
}

func (l *lockedMap) allow(key string) bool {
	l.mu.RLock()
	lim := l.m[key]
	l.mu.RUnlock()
	if lim == nil {
		l.mu.Lock()
		if lim = l.m[key]; lim == nil {
			lim = rate.NewLimiter(1e6, 1e6)
			l.m[key] = lim
		}
		l.mu.Unlock()
	}
	return lim.Allow()
}

// BenchmarkTenants decides for 10,000 tenants in no order: tenant, class and budget
// charged, demand counted, the reading of the clock and the hash of the tenant's
// name included; beside a map of golang.org/x/time/rate's limiters, which charges
// one bucket and counts nothing.
func BenchmarkTenants(b *testing.B) {
	const tenants = 10_000
	names := make([]string, tenants)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%d", i)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	order := make([]int32, 1<<16)
	for i := range order {
		order[i] = rng.Int32N(tenants)
	}
	run := func(name string, decide func(tenant int32) bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range tenants {
				decide(int32(i))
			}
			i := 0
			for b.Loop() {
				if !decide(order[i&(1<<16-1)]) {
					b.Fatal("refused")
				}
				i++
			}
		})
	}
	clk := clock.NewBoot()
	coarse := clock.NewCoarse(clk)
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2, Tenants: []enforce.TenantConfig{{Share: 500_000}, {}}}, clk.Now())
	l.SetSchedule(clk.Now(), perSecond(wide, wide))
	for l.Quota(clk.Now(), 0).Full > 0 { // let the buckets fill
	}
	seed := maphash.MakeSeed()
	handles := make([]*enforce.Handle, tenants)
	for i := range handles {
		handles[i] = l.Hold(0, keyed.Hash(seed, names[i]))
	}
	m := &lockedMap{m: map[string]*rate.Limiter{}}
	run("xtimerate", func(t int32) bool { return m.allow(names[t]) })
	run("named", func(t int32) bool {
		return l.DecideRequest(clk.Relaxed(), enforce.Request{Cost: 1, Tenant: keyed.Hash(seed, names[t])}).OK
	})
	run("held", func(t int32) bool { return handles[t].Decide(clk.Relaxed(), 1).OK })
	run("named, coarse clock", func(t int32) bool {
		return l.DecideRequest(coarse.Now(), enforce.Request{Cost: 1, Tenant: keyed.Hash(seed, names[t])}).OK
	})
	run("held, coarse clock", func(t int32) bool { return handles[t].Decide(coarse.Now(), 1).OK })
}
