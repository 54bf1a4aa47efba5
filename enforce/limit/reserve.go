package limit

import (
	"sync/atomic"
	"time"

	"subak/enforce"
)

// Reservation is the answer to [Class.Reserve].
type Reservation struct {
	decision Decision
	delay    time.Duration
	returned atomic.Bool
}

// reserve asks for n units, unless others wait, who were first.
func reserve(t taker, n int64, others bool) *Reservation {
	r := &Reservation{}
	if others {
		offer(t, n)
		b, req := t.at()
		req.Cost = n
		r.decision = Decision{enforce.Verdict{Reason: enforce.ClassEmpty, From: -1}, b.limiter, req, t.reading()}
	} else {
		r.decision, _ = decide(t, n)
	}
	if !r.decision.OK {
		r.delay = r.decision.RetryAfter()
	}
	return r
}

// OK reports whether the work may be done.
func (r *Reservation) OK() bool { return r.decision.OK }

// Delay returns how long after Reserve it could have been granted if nobody else
// took the tokens; 0 where it was.
func (r *Reservation) Delay() time.Duration { return r.delay }

// Cancel gives back exactly what was taken, to the buckets that paid, the first
// time it is called (lesson O9). A bucket that is full by then stays so. If
// meanwhile the configuration replaced the limiter, nothing comes back: its tokens
// were passed on already.
func (r *Reservation) Cancel() {
	if d := &r.decision; !r.returned.Swap(true) {
		d.limiter.RefundRequest(d.Verdict, d.request)
	}
}
