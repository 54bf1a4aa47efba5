package limit

import (
	"context"
	"sync/atomic"

	"subak/enforce"
)

// Tenant is the handle of one tenant of a class: what it is asked for is charged
// to the tenant's bucket at this node, to the class and to the budget, or to none
// of them. Where the class sets no bound for tenants it does what [Class] does.
//
// Keep a handle while the tenant is active. It is quicker than naming the tenant
// in each [Call], and holds no memory of the tenant: an idle one may be forgotten,
// and then starts anew.
//
// A program may hold thousands, and then most of a decision is waiting for memory:
// so a handle is 32 bytes, two to a line of the cache.
type Tenant struct {
	class *Class
	key   uint64
	lined atomic.Pointer[line] // who waits; nil until somebody does
	place enforce.Place
}

// For returns a new handle of a tenant of this class. "" is a tenant like others.
func (c *Class) For(name string) *Tenant {
	return &Tenant{class: c, key: c.set.cfg.Tenant(name)}
}

// Class returns the class whose tenant it is.
func (t *Tenant) Class() *Class { return t.class }

// Allow is [Class.Allow] for the tenant.
func (t *Tenant) Allow() bool { return t.AllowN(1) }

// AllowN is [Class.AllowN] for the tenant. It says no while callers wait for this
// handle or for the whole class.
func (t *Tenant) AllowN(n int64) bool {
	if t.crowded() {
		offer(t, n)
		return false
	}
	t.place.Fetch()
	b := t.class.bound.Load()
	v := b.limiter.DecideAt(t.class.now(), enforce.Request{Class: b.class, Cost: n, Tenant: t.key}, &t.place)
	return v.OK || t.class.moved(b) && t.AllowN(n)
}

func (t *Tenant) crowded() bool { return t.lined.Load().busy() || t.class.line.busy() }

// Wait is [Class.Wait] for the tenant.
func (t *Tenant) Wait(ctx context.Context) error { return t.WaitN(ctx, 1) }

// WaitN is [Class.WaitN] for the tenant. Callers of one handle are served in their
// order; those of several handles, and of the class itself, compete.
func (t *Tenant) WaitN(ctx context.Context, n int64) error { return wait(ctx, t, n) }

// Reserve is [Class.Reserve] for the tenant.
func (t *Tenant) Reserve(n int64) *Reservation { return reserve(t, n, t.crowded()) }

func (t *Tenant) at() (*bound, enforce.Request) {
	b := t.class.bound.Load()
	return b, enforce.Request{Class: b.class, Tenant: t.key}
}

func (t *Tenant) reading() int64 { return t.class.now() }

func (t *Tenant) waiting() *line { return t.lined.Load() }

// queue makes the line when the first one waits.
func (t *Tenant) queue() *line {
	if t.lined.Load() == nil {
		t.lined.CompareAndSwap(nil, &line{limit: t.class.set.cfg.Waiters})
	}
	return t.lined.Load()
}
