package limit

import (
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
	c := &Class{now: s.cfg.Now, set: s, budget: budget, name: name}
	c.line.limit = s.cfg.Waiters
	c.bound.Store(b)
	return c
}

// Budget returns the name of the budget.
func (c *Class) Budget() string { return c.budget }

// Name returns the name of the class.
func (c *Class) Name() string { return c.name }

// Allow reports whether one unit of work may be done now, and charges it if so.
func (c *Class) Allow() bool { return c.AllowN(1) }

// AllowN is Allow for work of cost n. While callers wait for this class it says
// no, since they were first.
func (c *Class) AllowN(n int64) bool {
	b := c.bound.Load()
	if c.line.length.Load() != 0 {
		b.limiter.Offer(b.class, n)
		return false
	}
	return b.limiter.Decide(c.now(), b.class, n).OK || c.moved(b) && c.AllowN(n)
}

// moved reports whether other limiters came in force since b was: then a refusal
// by b means nothing.
func (c *Class) moved(b *bound) bool { return c.bound.Load() != b }

// Err returns nil while the class is in force, else [ErrUnknown]: the
// configuration was changed and does not have it any more.
func (c *Class) Err() error {
	if c.bound.Load().gone {
		return ErrUnknown
	}
	return nil
}

// Quota says what the class may spend on this node now.
func (c *Class) Quota() enforce.Quota {
	b := c.bound.Load()
	return b.limiter.Quota(c.now(), b.class)
}

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
	call  Call
	bound *bound
	now   int64
}

// Decide judges one call. It is what a door uses that must say why, and when to
// come again; [Class.Allow] is quicker.
func (c *Class) Decide(call Call) Decision {
	if call.Cost == 0 {
		call.Cost = 1
	}
	for {
		d := Decision{call: call, bound: c.bound.Load(), now: c.now()}
		d.Verdict = d.bound.limiter.DecideClient(d.now, d.bound.class, call.Cost, call.Client)
		if d.OK || !c.moved(d.bound) {
			return d
		}
	}
}

// RetryAfter returns how long after the decision the call could pass if nobody
// else took the tokens; enforce.NoToken where no such instant is in sight.
func (d Decision) RetryAfter() time.Duration {
	return d.bound.limiter.RetryAfter(d.now, d.bound.class, d.call.Cost)
}

// Quota returns what the class has on this node just after the decision.
func (d Decision) Quota() enforce.Quota { return d.bound.limiter.Quota(d.now, d.bound.class) }
