package limit

import (
	"context"
	"sync/atomic"
	"time"

	"subak/enforce"
)

// Class is the handle of one class of one budget.
type Class struct {
	bound  atomic.Pointer[bound]
	now    func() int64
	line   line
	set    *Set
	budget string
	name   string
}

func newClass(s *Set, budget, name string, b *bound) *Class {
	c := &Class{now: s.cfg.Now, set: s, budget: budget, name: name, line: line{limit: s.cfg.Waiters}}
	c.bound.Store(b)
	return c
}

// Budget returns the name of the budget.
func (c *Class) Budget() string { return c.budget }

// Name returns the name of the class.
func (c *Class) Name() string { return c.name }

// Err returns nil while the class is in force, [ErrUnknown] while the
// configuration, which was changed, does not have it, and [ErrClosed] for good
// when the node has ended.
func (c *Class) Err() error { return c.bound.Load().gone }

// Quota says what the class may spend on this node now.
func (c *Class) Quota() enforce.Quota {
	b := c.bound.Load()
	return b.limiter.Quota(c.now(), b.class)
}

// Allow reports whether one unit of work may be done now, and charges it if so.
func (c *Class) Allow() bool { return c.AllowN(1) }

// AllowN is Allow for work of cost n. While callers wait for this class it says
// no, since they were first.
func (c *Class) AllowN(n int64) bool {
	if c.line.busy() {
		offer(c, n)
		return false
	}
	b := c.bound.Load()
	return b.limiter.Decide(c.now(), b.class, n).OK || c.moved(b) && c.AllowN(n)
}

// moved reports whether other limiters came in force since b was: then a refusal
// by b means nothing.
func (c *Class) moved(b *bound) bool { return c.bound.Load() != b }

// Wait blocks until one unit of work may be done, and charges it.
func (c *Class) Wait(ctx context.Context) error { return c.WaitN(ctx, 1) }

// WaitN is Wait for work of cost n. Callers are served first come, first served;
// while one waits, Allow and Reserve of this class say no. Only doors that ask the
// limiter by other ways, as listeners do, may come in between.
//
// It fails at once with [ErrDeadline] if by the share in force the context's
// deadline comes too early, with [ErrCrowded] if too many wait, and with [ErrCost],
// [ErrUnknown] or [ErrClosed] if waiting would not help. A caller that waits counts
// as demand, once.
func (c *Class) WaitN(ctx context.Context, n int64) error { return wait(ctx, c, n) }

// Reserve takes the tokens of work of cost n if they are there, for work that may
// yet turn out not to be done. Unlike in golang.org/x/time/rate it takes no tokens
// of the future: they may never come (see the package). Where it fails nothing was
// taken, and Delay says when to try again.
func (c *Class) Reserve(n int64) *Reservation { return reserve(c, n, c.line.busy()) }

// Call is one piece of work that a door asks for.
type Call struct {
	// Cost in units; 0 means 1.
	Cost int64
	// Tenant is who it is done for; "" for nobody in particular.
	Tenant string
	// Client is a hash of who asks for what, so that its retries do not count as
	// demand again; 0 for unknown.
	Client uint64
}

// Decision is the answer to a [Call].
type Decision struct {
	enforce.Verdict
	limiter *enforce.Limiter
	request enforce.Request
	now     int64
}

// Decide judges one call. It is what a door uses that must say why, and when to
// come again; [Class.Allow] is quicker.
func (c *Class) Decide(call Call) Decision {
	if call.Cost == 0 {
		call.Cost = 1
	}
	r := enforce.Request{Cost: call.Cost, Client: call.Client}
	if call.Tenant != "" {
		r.Tenant = c.set.cfg.Tenant(call.Tenant)
	}
	for {
		b := c.bound.Load()
		r.Class = b.class
		d := Decision{limiter: b.limiter, request: r, now: c.now()}
		d.Verdict = b.limiter.DecideRequest(d.now, r)
		if d.OK || !c.moved(b) {
			return d
		}
	}
}

// RetryAfter returns how long after the decision the call could pass if nobody
// else took the tokens; enforce.NoToken where no such instant is in sight.
func (d Decision) RetryAfter() time.Duration { return d.limiter.RetryAfterRequest(d.now, d.request) }

// Quota returns what the class has on this node just after the decision.
func (d Decision) Quota() enforce.Quota { return d.limiter.Quota(d.now, d.request.Class) }

// The class is a taker of its own.

func (c *Class) at() (*bound, enforce.Request) {
	b := c.bound.Load()
	return b, enforce.Request{Class: b.class}
}

func (c *Class) reading() int64 { return c.now() }

func (c *Class) waiting() *line { return &c.line }

func (c *Class) queue() *line { return &c.line }
