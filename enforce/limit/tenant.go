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
type Tenant struct {
	class *Class
	key   uint64
	bound atomic.Pointer[bound] // the limiter that place belongs to
	place enforce.Place
	line  line // its count lies on one line with the fields above
}

// For returns a new handle of a tenant of this class. "" is a tenant like others.
func (c *Class) For(name string) *Tenant {
	return &Tenant{class: c, key: c.set.cfg.Tenant(name), line: line{limit: c.set.cfg.Waiters}}
}

// present returns the limiter in force; one that place does not belong to makes it
// forget.
func (t *Tenant) present() *bound {
	b := t.class.bound.Load()
	if t.bound.Load() != b {
		t.bound.Store(b)
		t.place.Forget()
	}
	return b
}

// judgeAt decides at the limiter b.
func (t *Tenant) judgeAt(b *bound, now, n int64) enforce.Verdict {
	v := b.limiter.DecideAt(now, enforce.Request{Class: b.class, Cost: n, Tenant: t.key}, &t.place)
	if t.bound.Load() != b {
		t.place.Forget() // what was found is not of the limiter in force
	}
	return v
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
	b := t.present()
	return t.judgeAt(b, t.class.now(), n).OK || t.class.moved(b) && t.AllowN(n)
}

func (t *Tenant) crowded() bool { return t.line.length.Load() != 0 || t.class.line.length.Load() != 0 }

// Wait is [Class.Wait] for the tenant.
func (t *Tenant) Wait(ctx context.Context) error { return t.WaitN(ctx, 1) }

// WaitN is [Class.WaitN] for the tenant. Callers of one handle are served in their
// order; those of several handles, and of the class itself, compete.
func (t *Tenant) WaitN(ctx context.Context, n int64) error { return t.line.wait(ctx, t, n) }

// Reserve is [Class.Reserve] for the tenant.
func (t *Tenant) Reserve(n int64) *Reservation { return reserve(t, n, t.crowded()) }

func (t *Tenant) at() (*bound, enforce.Request) {
	b := t.class.bound.Load()
	return b, enforce.Request{Class: b.class, Tenant: t.key}
}

func (t *Tenant) reading() int64 { return t.class.now() }
