package limit

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"subak/allocator"
	"subak/enforce"
)

// Reasons for which a Wait ends without its tokens, besides the end of its
// context.
var (
	// ErrDeadline: by the share in force the tokens come after the context's
	// deadline. It is also context.DeadlineExceeded.
	ErrDeadline = fmt.Errorf("limit: the deadline is before the tokens: %w", context.DeadlineExceeded)
	// ErrCrowded: as many callers wait as may.
	ErrCrowded = errors.New("limit: too many callers wait")
	// ErrCost: the cost is below 1, or above what this node's bucket can hold by
	// the share in force.
	ErrCost = errors.New("limit: no such cost can be paid")
)

const (
	// restMin is the least time between two tries of who is next, so that a fast
	// bucket that others empty does not make it spin. What gathers meanwhile is
	// not lost.
	restMin = 100 * time.Microsecond
	// restMax is the most: a share may rise at any time, and tells nobody.
	restMax = 100 * time.Millisecond
)

// taker is on whose behalf a line asks: a class or a tenant.
type taker interface {
	// at returns the limiter in force, and the request without its cost.
	at() (*bound, enforce.Request)
	reading() int64
	// waiting is the line, nil if there is none yet; queue makes it.
	waiting() *line
	queue() *line
}

// decide judges work that has just come by the limiter in force.
func decide(t taker, n int64) (Decision, *bound) {
	for {
		b, r := t.at()
		r.Cost = n
		d := Decision{limiter: b.limiter, request: r, now: t.reading()}
		d.Verdict = b.limiter.DecideRequest(d.now, r)
		if again, _ := t.at(); d.OK || again == b {
			return d, b
		}
	}
}

// offer counts work that has just come and was not judged, if it is demand.
func offer(t taker, n int64) (counted bool) {
	b, r := t.at()
	r.Cost = n
	return b.limiter.Offer(t.reading(), r)
}

// fault says why no waiting would help, if so.
func (b *bound) fault(v enforce.Verdict) error {
	switch {
	case v.OK:
		return nil
	case b.gone != nil:
		return b.gone
	case v.Reason == enforce.CostOverBurst, v.Reason == enforce.BadCost:
		return ErrCost
	}
	return nil
}

// due is how long until n units could be had. To that of the work itself it adds
// the time of what goes before, beyond the tokens that are there: exact for
// a class while its rate stays, too little for a tenant.
func due(t taker, n, ahead int64) time.Duration {
	b, r := t.at()
	r.Cost = n
	now := t.reading()
	own := b.limiter.RetryAfterRequest(now, r)
	if ahead == 0 {
		return own
	}
	q := b.limiter.Quota(now, r.Class)
	if q.Rate <= 0 {
		return max(own, enforce.NoToken)
	}
	// An estimate: what is admitted does not depend on it.
	ns := float64(ahead+n-q.Tokens-1) * float64(time.Second) * float64(allocator.Unit) / float64(q.Rate)
	return max(own, time.Duration(min(max(ns, 0), math.MaxInt64/2)))
}

// line is a queue of callers. Only the first of them asks for tokens.
type line struct {
	length atomic.Int64 // of queue
	limit  int

	mu    sync.Mutex
	queue list.List // of *waiter; guarded by mu
	cost  int64     // of all in queue; guarded by mu
}

type waiter struct {
	cost    int64
	counted bool          // as demand
	turn    chan struct{} // closed when it is the first
	place   *list.Element // guarded by the line's mu
}

// busy says whether somebody is in line. l may be nil.
func (l *line) busy() bool { return l != nil && l.length.Load() != 0 }

// wait waits in t's line for work of cost n.
func wait(ctx context.Context, t taker, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n < 1 || n > enforce.MaxCost {
		return ErrCost
	}
	var counted bool
	if t.waiting().busy() {
		counted = offer(t, n)
	} else {
		d, b := decide(t, n)
		if err := b.fault(d.Verdict); d.OK || err != nil {
			return err
		}
		counted = d.Reason != enforce.TenantEmpty
	}
	w := &waiter{cost: n, counted: counted, turn: make(chan struct{})}
	l := t.queue()
	ahead, err := l.join(w)
	if err != nil {
		return err
	}
	defer l.leave(w)
	if end, ok := ctx.Deadline(); ok && time.Until(end) < due(t, n, ahead) {
		return ErrDeadline
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	return w.take(ctx, t)
}

// take tries until it has the tokens, for who is first in line.
func (w *waiter) take(ctx context.Context, t taker) error {
	var timer *time.Timer
	for {
		if ok, err := w.try(t); ok || err != nil {
			return err
		}
		rest := min(max(due(t, w.cost, 0), restMin), restMax)
		if timer == nil {
			timer = time.NewTimer(rest)
			defer timer.Stop()
		} else {
			timer.Reset(rest)
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try asks once for tokens. Only what was counted as demand is charged.
func (w *waiter) try(t taker) (ok bool, err error) {
	if w.counted = w.counted || offer(t, w.cost); !w.counted {
		b, _ := t.at()
		return false, b.fault(enforce.Verdict{Reason: enforce.TenantEmpty})
	}
	b, r := t.at()
	r.Cost = w.cost
	v := b.limiter.Again(t.reading(), r)
	return v.OK, b.fault(v)
}

// join puts a caller at the end and returns the cost before it.
func (l *line) join(w *waiter) (ahead int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() >= l.limit {
		return 0, ErrCrowded
	}
	ahead = l.cost
	w.place = l.queue.PushBack(w)
	l.cost += w.cost
	l.length.Store(int64(l.queue.Len()))
	if l.queue.Len() == 1 {
		close(w.turn)
	}
	return ahead, nil
}

// leave takes a caller out, wherever it stands, and lets the next one begin.
func (l *line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasFirst := w.place == l.queue.Front()
	l.queue.Remove(w.place)
	l.cost -= w.cost
	l.length.Store(int64(l.queue.Len()))
	if next := l.queue.Front(); wasFirst && next != nil {
		close(next.Value.(*waiter).turn)
	}
}
