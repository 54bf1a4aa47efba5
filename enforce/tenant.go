package enforce

import (
	"errors"
	"fmt"
	"time"

	"subak/allocator"
)

// A tenant is whoever a door tells apart inside a class: an API key, a customer,
// a client's address. Each gets a bucket at this node, so that one alone cannot
// spend the class. Doors name a tenant by a hash of its name, made with a secret
// seed and the same one at every door of the node ([keyed.Hash]).

// TenantConfig bounds each tenant of one class at this node. The zero value means
// that the class has no tenants. Of Share and Rate exactly one is set.
type TenantConfig struct {
	// Share is each tenant's part of the class's rate in force at this node, in
	// parts per million, 1..1,000,000; so over all nodes a tenant has at most
	// that part of the class.
	Share int64
	// Rate is each tenant's rate at each node.
	Rate allocator.Rate
	// Burst sizes the bucket: the tenant's rate x Burst, at least two requests of
	// LargestCost. 0 means the limiter's own.
	Burst time.Duration
	// Keys is how many tenants the table is made for. 0 means DefaultKeys. About
	// 48 bytes each. With more than that at once, those forgotten start anew.
	Keys int
}

// Bounds of TenantConfig.Keys.
const (
	DefaultKeys = 100_000
	MaxKeys     = 1 << 24
)

func (c TenantConfig) validate() error {
	if c == (TenantConfig{}) {
		return nil
	}
	var errs []error
	if c.Share < 0 || c.Share > 1_000_000 || c.Rate < 0 || c.Rate > MaxRate || (c.Share == 0) == (c.Rate == 0) {
		errs = append(errs, fmt.Errorf("share %d and rate %d: want one of them, within 1..1000000 or 1..%d", c.Share, c.Rate, MaxRate))
	}
	if c.Burst < 0 {
		errs = append(errs, fmt.Errorf("burst %v: want a positive duration", c.Burst))
	}
	if c.Keys < 0 || c.Keys > MaxKeys {
		errs = append(errs, fmt.Errorf("keys %d: want 1..%d", c.Keys, MaxKeys))
	}
	return errors.Join(errs...)
}

// Request is one piece of work as a door sees it.
type Request struct {
	Class int
	Cost  int64 // units, 1..MaxCost
	// Tenant is the hash of the tenant's name, 0 = none: only the class binds it.
	Tenant uint64
	// Client is a hash of what makes a request the same one sent again, 0 = none.
	Client uint64
}

// tenants is the buckets of one class's tenants.
type tenants struct{ cfg TenantConfig }

func newTenants(cfg LimiterConfig, sh shape) []*tenants { return nil }

// DecideRequest is DecideClient for a request that may have a tenant: tenant,
// class and budget are charged, or none of them.
func (l *Limiter) DecideRequest(now int64, r Request) Verdict {
	return l.DecideClient(now, r.Class, r.Cost, r.Client)
}

// RefundRequest is Refund for a request decided by DecideRequest: its tenant gets
// its tokens back too.
func (l *Limiter) RefundRequest(v Verdict, r Request) { l.Refund(v, r.Cost) }

// RetryAfterRequest is RetryAfter that looks at the tenant's bucket as well.
func (l *Limiter) RetryAfterRequest(now int64, r Request) time.Duration {
	return l.RetryAfter(now, r.Class, r.Cost)
}

// takeTenant charges the tenant's bucket of r, if it has one: Admitted, or why
// not. It counts nothing. What it took is given back by untakeTenant.
func (l *Limiter) takeTenant(now int64, r Request) Reason { return Admitted }

// untakeTenant gives back what takeTenant took.
func (l *Limiter) untakeTenant(r Request) {}

// peekTenant is takeTenant that takes nothing.
func (l *Limiter) peekTenant(now int64, r Request) Reason { return Admitted }

// Handle is one tenant of one class, looked up once: its decisions are faster.
// Safe for concurrent use.
type Handle struct {
	l *Limiter
	r Request
}

// Hold returns a handle on a tenant of class k. It ends with the limiter: after
// Succeed everything is refused, and the successor must be asked.
func (l *Limiter) Hold(class int, tenant uint64) *Handle {
	return &Handle{l: l, r: Request{Class: class, Tenant: tenant}}
}

// Decide is DecideRequest for the handle's tenant.
func (h *Handle) Decide(now int64, cost int64) Verdict {
	r := h.r
	r.Cost = cost
	return h.l.DecideRequest(now, r)
}
