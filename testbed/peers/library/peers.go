package library

import (
	"context"
	"sync"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// xtime is a limiter of golang.org/x/time/rate.
func xtime(perSecond, burst int) loop {
	l := rate.NewLimiter(rate.Limit(perSecond), burst)
	return func(n int) (admitted int) {
		for range n {
			if l.Allow() {
				admitted++
			}
		}
		return admitted
	}
}

// gcra is a limiter of throttled over its in-memory store, with one key.
func gcra(perSecond, burst int) (loop, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return func(n int) (admitted int) {
		for range n {
			// An error is that of too many attempts to swap a word: not admitted.
			if limited, _, err := l.RateLimitCtx(ctx, "key", 1); err == nil && !limited {
				admitted++
			}
		}
		return admitted
	}, nil
}

// pacer is a limiter of uber-go/ratelimit, at a rate that never makes it wait.
func pacer(perSecond int) loop {
	l := uber.New(perSecond)
	return func(n int) int {
		for range n {
			l.Take()
		}
		return n
	}
}

// limiters is what Go programs commonly have for tenants: a map of limiters
// of golang.org/x/time/rate under a lock that readers share.
type limiters struct {
	perSecond, burst int

	mu  sync.RWMutex // guards all
	all map[string]*rate.Limiter
}

func (m *limiters) allow(key string) bool {
	m.mu.RLock()
	l := m.all[key]
	m.mu.RUnlock()
	if l == nil {
		l = m.add(key)
	}
	return l.Allow()
}

func (m *limiters) add(key string) *rate.Limiter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.all[key]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(m.perSecond), m.burst)
		m.all[key] = l
	}
	return l
}
