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

// Wait blocks until one unit of work may be done, and charges it.
func (c *Class) Wait(ctx context.Context) error { return c.WaitN(ctx, 1) }

// WaitN is Wait for work of cost n. Callers are served first come, first served;
// while one waits, Allow and Reserve of this class say no. Only doors that ask the
// limiter by other ways, as listeners do, may come in between.
//
// It fails at once with [ErrDeadline] if the context's deadline is known to come
// too early, with [ErrCrowded] if too many wait, and with [ErrCost] or [ErrUnknown]
// if waiting would not help. A caller that waits counts as demand, once.
func (c *Class) WaitN(ctx context.Context, n int64) error {
	return c.line.wait(ctx, c, n)
}

// taker is what a line asks on behalf of its waiters.
type taker interface {
	// first judges work that has just come; later, work that was counted before.
	first(n int64) (enforce.Verdict, error)
	later(n int64) (enforce.Verdict, error)
	offer(n int64) // counts work that has just come and must wait
	// due is how long until n units could be had; ahead units go before.
	due(n, ahead int64) time.Duration
}

func (c *Class) first(n int64) (enforce.Verdict, error) {
	for {
		b := c.bound.Load()
		v := b.limiter.Decide(c.now(), b.class, n)
		if v.OK || !c.moved(b) {
			return v, b.fault(v)
		}
	}
}

func (c *Class) later(n int64) (enforce.Verdict, error) {
	b := c.bound.Load()
	v := b.limiter.Again(c.now(), b.class, n)
	return v, b.fault(v)
}

func (c *Class) offer(n int64) {
	b := c.bound.Load()
	b.limiter.Offer(b.class, n)
}

// fault says why no waiting would help, if so.
func (b *bound) fault(v enforce.Verdict) error {
	switch {
	case v.OK:
		return nil
	case b.gone:
		return ErrUnknown
	case v.Reason == enforce.CostOverBurst, v.Reason == enforce.BadCost:
		return ErrCost
	}
	return nil
}

// due adds to the time of the work itself that of what goes before it, beyond the
// tokens that are there: exact while the rate stays.
func (c *Class) due(n, ahead int64) time.Duration {
	b, now := c.bound.Load(), c.now()
	own := b.limiter.RetryAfter(now, b.class, n)
	if ahead == 0 {
		return own
	}
	q := b.limiter.Quota(now, b.class)
	if q.Rate <= 0 {
		return max(own, enforce.NoToken)
	}
	ns := float64(ahead+n-q.Tokens-1) * 1e6 / float64(q.Rate) * 1e9 // a guess ahead, no decision of admission
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
	cost int64
	turn chan struct{} // closed when it is the first
}

func (l *line) wait(ctx context.Context, t taker, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n < 1 || n > enforce.MaxCost {
		return ErrCost
	}
	if l.length.Load() != 0 {
		t.offer(n)
	} else if v, err := t.first(n); v.OK || err != nil {
		return err
	}
	place, ahead, err := l.join(n)
	if err != nil {
		return err
	}
	defer l.leave(place)
	w := place.Value.(*waiter)
	if end, ok := ctx.Deadline(); ok && time.Until(end) < t.due(n, ahead) {
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
		v, err := t.later(w.cost)
		if v.OK || err != nil {
			return err
		}
		rest := min(max(t.due(w.cost, 0), restMin), restMax)
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

// join puts a caller at the end and returns its place and the cost before it.
func (l *line) join(n int64) (place *list.Element, ahead int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() >= l.limit {
		return nil, 0, ErrCrowded
	}
	w, ahead := &waiter{cost: n, turn: make(chan struct{})}, l.cost
	place = l.queue.PushBack(w)
	l.cost += n
	l.length.Store(int64(l.queue.Len()))
	if l.queue.Len() == 1 {
		close(w.turn)
	}
	return place, ahead, nil
}

// leave takes a caller out, wherever it stands, and lets the next one begin.
func (l *line) leave(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasFirst := place == l.queue.Front()
	l.cost -= l.queue.Remove(place).(*waiter).cost
	l.length.Store(int64(l.queue.Len()))
	if next := l.queue.Front(); wasFirst && next != nil {
		close(next.Value.(*waiter).turn)
	}
}
