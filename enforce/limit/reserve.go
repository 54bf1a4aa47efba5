package limit

import (
	"sync/atomic"
	"time"

	"subak/enforce"
)

// Reservation is the answer to [Class.Reserve].
type Reservation struct {
	verdict  enforce.Verdict
	bound    *bound
	cost     int64
	delay    time.Duration
	returned atomic.Bool
}

// Reserve takes the tokens of work of cost n if they are there, for work that may
// yet turn out not to be done. Unlike in golang.org/x/time/rate it takes no tokens
// of the future: they may never come (see the package). Where it fails nothing was
// taken, and Delay says when to try again.
func (c *Class) Reserve(n int64) *Reservation {
	for {
		r := &Reservation{bound: c.bound.Load(), cost: n}
		now := c.now()
		if c.line.length.Load() != 0 { // they were first
			r.verdict = enforce.Verdict{Reason: enforce.ClassEmpty, From: -1}
			r.bound.limiter.Offer(r.bound.class, n)
		} else if r.verdict = r.bound.limiter.Decide(now, r.bound.class, n); r.verdict.OK {
			return r
		}
		if !c.moved(r.bound) {
			r.delay = r.bound.limiter.RetryAfter(now, r.bound.class, n)
			return r
		}
	}
}

// OK reports whether the work may be done.
func (r *Reservation) OK() bool { return r.verdict.OK }

// Delay returns how long after Reserve it could have been granted if nobody else
// took the tokens; 0 where it was.
func (r *Reservation) Delay() time.Duration { return r.delay }

// Cancel gives back exactly what was taken, to the buckets that paid, the first
// time it is called (lesson O9). A bucket that is full by then stays so. If
// meanwhile the configuration replaced the limiter, nothing comes back: its tokens
// were passed on already.
func (r *Reservation) Cancel() {
	if !r.returned.Swap(true) {
		r.bound.limiter.Refund(r.verdict, r.cost)
	}
}
