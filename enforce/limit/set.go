package limit

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"subak/enforce"
)

// Why a handle refuses whatever comes.
var (
	// ErrUnknown says that no such class is in force.
	ErrUnknown = errors.New("limit: no such budget or class")
	// ErrClosed says that the node has ended.
	ErrClosed = errors.New("limit: the node is closed")
)

// Config is what a [Set] is made of.
type Config struct {
	// Limits finds the limiters in force. Required.
	Limits enforce.Limits
	// Now reads the clock in which the limiters' schedules are given, in
	// nanoseconds. Required.
	Now func() int64
	// Tenant makes a tenant's key of its name, never 0 or 1. Nodes give their own, so
	// that a tenant has one bucket whichever door it comes by. nil means a hash
	// with a random seed of this set.
	Tenant func(name string) uint64
	// Waiters bounds how many callers may wait in one queue; see [Class.Wait]. 0
	// means DefaultWaiters. Each costs its goroutine and about 200 bytes.
	Waiters int
}

// DefaultWaiters is the default of Config.Waiters.
const DefaultWaiters = 10_000

// Set hands out the handles of one node.
type Set struct {
	cfg Config

	mu      sync.Mutex
	limits  enforce.Limits       // guarded by mu; nil when closed
	classes map[[2]string]*Class // guarded by mu
}

// NewSet returns a set over the limiters in force.
func NewSet(cfg Config) *Set {
	if cfg.Tenant == nil {
		seed := maphash.MakeSeed()
		cfg.Tenant = func(name string) uint64 { return max(maphash.String(seed, name), 2) }
	}
	if cfg.Waiters == 0 {
		cfg.Waiters = DefaultWaiters
	}
	return &Set{cfg: cfg, limits: cfg.Limits, classes: map[[2]string]*Class{}}
}

// Class returns the handle of a class, always the same one. The error is
// [ErrUnknown] where the class is not in force: names are looked up while
// a program starts, so that a typing mistake is no silent "no limit" (lesson O26).
func (s *Set) Class(budget, class string) (*Class, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{budget, class}
	b := s.find(key)
	if b.gone != nil {
		return nil, fmt.Errorf("%w: %s/%s", b.gone, budget, class)
	}
	c := s.classes[key]
	if c == nil {
		c = newClass(s, budget, class, b)
		s.classes[key] = c
	}
	return c, nil
}

// Renew points every handle at the limiters that are in force from now on. A class
// that is gone refuses everything until a class of its name is back. Call it at
// once when limiters were succeeded: those of before refuse whatever comes.
func (s *Set) Renew(limits enforce.Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limits == nil {
		return
	}
	s.limits = limits
	s.rebind()
}

// Close makes every handle refuse, for good: another process may take the node's
// place, and its share with it. Who waits gets [ErrClosed].
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = nil
	s.rebind()
}

// rebind points every handle at what is in force; s.mu is held.
func (s *Set) rebind() {
	for key, c := range s.classes {
		b := s.find(key)
		if *c.bound.Load() != *b {
			c.bound.Store(b)
		}
	}
}

// find looks a class up among the limiters in force; s.mu is held.
func (s *Set) find(key [2]string) *bound {
	if s.limits == nil {
		return &bound{limiter: closed(), gone: ErrClosed}
	}
	if l, k, ok := s.limits.Limiter(key[0], key[1]); ok && l != nil {
		return &bound{limiter: l, class: k}
	}
	return &bound{limiter: closed(), gone: ErrUnknown}
}

// bound is what a handle asks now. It is immutable.
type bound struct {
	limiter *enforce.Limiter
	class   int
	gone    error // why there is no such class; limiter then refuses
}

// closed is a limiter that refuses everything: one without a schedule.
func closed() *enforce.Limiter {
	return enforce.NewLimiter(enforce.LimiterConfig{Classes: 1, Clients: -1}, 0)
}
