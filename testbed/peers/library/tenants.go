package library

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"

	"golang.org/x/time/rate"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/keyed"
	"subak/enforce/limit"
	"subak/testbed/peers/measure"
)

const (
	tenantCount = 10_000
	// orderSize is after how many decisions the order of tenants comes again; a
	// power of two, and so many that no cache predicts it.
	orderSize  = 1 << 16
	tenantRate = 1_000_000 // units per second of each tenant
)

// tenants is a class with a bucket for each tenant beside a map of limiters, and
// the order in which tenants come: uniform, the same for all.
type tenants struct {
	*subject
	names   []string
	seed    maphash.Seed
	handles []*limit.Tenant
	order   []uint16
	at      [4]int // where each loop is in the order
	others  limiters
}

func newTenants(now func() int64) *tenants {
	cfg := enforce.LimiterConfig{Tenants: []enforce.TenantConfig{
		{Rate: tenantRate * allocator.Unit, Burst: 10 * burst, Keys: 10 * tenantCount}, {},
	}}
	t := &tenants{
		subject: newSubject(now, high, cfg),
		seed:    maphash.MakeSeed(),
		others:  limiters{perSecond: tenantRate, burst: 10 * tenantRate, all: map[string]*rate.Limiter{}},
	}
	for i := range tenantCount {
		t.names = append(t.names, fmt.Sprintf("customer-%05d", i))
		t.handles = append(t.handles, t.class.For(t.names[i]))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range orderSize {
		t.order = append(t.order, uint16(rng.IntN(tenantCount)))
	}
	t.byName(10 * tenantCount) // all have come before: what is measured is the usual case
	return t
}

// next returns where loop l is, and moves it on by n.
func (t *tenants) next(l, n int) int {
	at := t.at[l]
	t.at[l] += n
	return at
}

func (t *tenants) byName(n int) (admitted int) {
	at := t.next(0, n)
	for i := range n {
		if t.class.Decide(limit.Call{Tenant: t.names[t.order[(at+i)%orderSize]]}).OK {
			admitted++
		}
	}
	return admitted
}

// byKey is byName without the door for Go code.
func (t *tenants) byKey(n int) (admitted int) {
	at := t.next(3, n)
	for i := range n {
		key := keyed.Hash(t.seed, t.names[t.order[(at+i)%orderSize]])
		if t.limiter.DecideRequest(t.now(), enforce.Request{Cost: 1, Tenant: key}).OK {
			admitted++
		}
	}
	return admitted
}

func (t *tenants) byHandle(n int) (admitted int) {
	at := t.next(1, n)
	for i := range n {
		if t.handles[t.order[(at+i)%orderSize]].Allow() {
			admitted++
		}
	}
	return admitted
}

func (t *tenants) byMap(n int) (admitted int) {
	at := t.next(2, n)
	for i := range n {
		if t.others.allow(t.names[t.order[(at+i)%orderSize]]) {
			admitted++
		}
	}
	return admitted
}

// tenants is one decision for one of 10,000 tenants.
func (s Scale) tenants() []measure.Case {
	// Made when first needed: it takes a while.
	t := sync.OnceValue(func() *tenants { return newTenants(precise()) })
	quick := sync.OnceValue(func() *tenants { return newTenants(coarse()) })
	const theirs = "RWMutex map of x/time/rate"
	// Every tenant must come many times in a batch: what the other sides threw out
	// of the caches is not what is measured.
	s.Batch, s.Batches = 10*s.Batch, (s.Batches+1)/2
	return []measure.Case{{
		ID: "library/tenants", What: "one decision for one of 10,000 tenants, uniform, one goroutine", Show: nanos, Batches: s.Batches,
		Sides: []measure.Side{
			s.side("Class.Decide, by name", admits, func(n int) int { return t().byName(n) }),
			s.side("Class.For, held", admits, func(n int) int { return t().byHandle(n) }),
			s.side(theirs, admits, func(n int) int { return t().byMap(n) }),
			s.side("Limiter.DecideRequest, by name", admits, func(n int) int { return t().byKey(n) }),
			s.side("by name, coarse clock", admits, func(n int) int { return quick().byName(n) }),
			s.side("handle, coarse clock", admits, func(n int) int { return quick().byHandle(n) }),
		},
		Claims: []measure.Claim{
			atMost("library/tenants", "10,000 tenants by name, beside an RWMutex map of x/time/rate", 0, 2, 0.62),
			atMost("library/tenants-handle", "10,000 tenants through held handles", 1, 2, 0.35),
			noted("library/tenants-raw", "by name, clock and limiter asked directly", 3, 2),
			noted("library/tenants-coarse", "by name, coarse clock", 4, 2),
			noted("library/tenants-handle-coarse", "through held handles, coarse clock", 5, 2),
		},
	}}
}
