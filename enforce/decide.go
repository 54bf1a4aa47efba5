package enforce

import (
	"math"
	"sync/atomic"
)

// Verdict is the outcome of one decision.
type Verdict struct {
	OK     bool   // let it through
	Reason Reason // Admitted, or why not; in shadow mode OK can be true with a reason
	From   int8   // the class whose tokens paid, -1 when nothing was charged
}

// Decide judges one request of the given class and cost (units, 1..MaxCost) at
// the instant now and charges class and budget, or neither. A cost under 1 is
// refused and counted nowhere: a negative one would mint tokens.
//
// An old reading is paid as of then, by what the bucket held at that instant and
// nobody has spent since; one before the current segment counts as its start. So
// a goroutine that was paused between its clock and its decision neither gains
// nor loses.
func (l *Limiter) Decide(now int64, class int, cost int64) Verdict {
	if uint(class) >= uint(l.classes) {
		return l.refuse(UnknownClass)
	}
	core := procPin()
	procUnpin()
	c := l.stripeOf(core, class)
	if w, ok := c.good(l, now, cost); ok && c.pay(w, cost) {
		c.admitted.Add(cost)
		return Verdict{true, Admitted, int8(class)}
	}
	if why := c.dry(l, now, cost); why != Admitted {
		c.refused.Add(cost)
		return l.refuse(why)
	}
	v := l.charge(now, class, cost, c)
	switch {
	case v.Reason == Admitted:
		c.admitted.Add(cost)
		if int(v.From) != class {
			c.borrowed.Add(cost)
		}
	case v.Reason != BadCost:
		c.refused.Add(cost)
	}
	return v
}

// DecideClient is Decide for a request that can be told apart: client is
// a hash of who sends what, 0 for unknown. When such a request was refused and
// comes again before the Retry-After it was told, it does not count as demand
// a second time, so that hammering buys no share. The first one admitted uses
// the mark up. The memory is a bounded table: a forgotten client counts as new.
func (l *Limiter) DecideClient(now int64, class int, cost int64, client uint64) Verdict {
	if client == 0 || l.retries == nil {
		return l.Decide(now, class, cost)
	}
	v := l.judge(now, class, cost)
	if v.Reason == UnknownClass || v.Reason == BadCost {
		return v
	}
	c := l.stripe(class)
	key := mix(client, class)
	if v.Reason != Admitted {
		if l.retries.marked(now, key) {
			c.again.refused.Add(cost)
		} else {
			c.refused.Add(cost)
			l.retries.mark(now, key, l.RetryAfter(now, class, cost))
		}
		return v
	}
	if l.retries.settle(now, key) {
		c.again.admitted.Add(cost)
	} else {
		c.admitted.Add(cost)
	}
	if int(v.From) != class {
		c.borrowed.Add(cost)
	}
	return v
}

// Refund gives back what an admitted request was charged, once, to the buckets
// that paid. The counts keep it: it was offered and admitted.
func (l *Limiter) Refund(v Verdict, cost int64) {
	if v.Reason != Admitted || uint(v.From) >= uint(l.classes) || cost < 1 || cost > MaxCost {
		return
	}
	l.giveBack(int(v.From), cost)
}

func (l *Limiter) refuse(r Reason) Verdict { return Verdict{l.shadow, r, -1} }

// judge takes cost from the class (or a lender) and from the budget, or says why
// not. It counts nothing.
func (l *Limiter) judge(now int64, class int, cost int64) Verdict {
	if uint(class) >= uint(l.classes) {
		return l.refuse(UnknownClass)
	}
	return l.judgeOn(l.stripe(class), now, class, cost)
}

// judgeOn is judge by one core's stripe of the class.
func (l *Limiter) judgeOn(c *stripe, now int64, class int, cost int64) Verdict {
	if w, ok := c.good(l, now, cost); ok && c.pay(w, cost) {
		return Verdict{true, Admitted, int8(class)}
	}
	if why := c.dry(l, now, cost); why != Admitted {
		return l.refuse(why)
	}
	return l.charge(now, class, cost, c)
}

// charge is judgeOn where neither the lease pays nor a drought is known.
func (l *Limiter) charge(now int64, class int, cost int64, c *stripe) Verdict {
	if uint64(cost-1) >= MaxCost {
		if cost < 1 {
			return l.refuse(BadCost)
		}
		return l.refuse(CostOverBurst)
	}
	need := uint64(cost * unit)
	for {
		changes := l.changes.Load()
		s := l.at(now)
		ln, all := &s.lines[1+class], &s.lines[0]
		if ln.lease > 0 && c.refill(l, s, now, class, cost) {
			return Verdict{true, Admitted, int8(class)}
		}
		dt := max(now-s.t0, 0)
		from, keep := class, uint64(0)
		if !ln.holds(&l.cells[1+class], dt, need) {
			if l.recall(now, s, 1<<class) {
				continue
			}
			if from = l.lender(s, dt, class, need); from < 0 {
				return c.short(l, s, now, class, 1+class, cost, changes)
			}
			keep = s.lines[1+from].half() // what the owner keeps must be worth something
		}
		if !all.holds(&l.cells[0], dt, need+keep) {
			if l.recall(now, s, math.MaxUint64) {
				continue
			}
			return c.short(l, s, now, class, 0, cost, changes)
		}
		if !take(&l.cells[1+from].used, &s.lines[1+from], dt, need, keep) {
			continue // somebody was faster
		}
		ok := take(&l.cells[0].used, all, dt, need, keep)
		// A lowering that came in between is obeyed too (trap 11): the token
		// goes back, and the new share decides.
		if ok && l.seg.Load() == s {
			if ln.wide > ln.lease {
				c.busy(l, s, now, class, cost)
			}
			return Verdict{true, Admitted, int8(from)}
		}
		l.untake(1+from, need)
		if ok {
			l.untake(0, need)
		}
	}
}

// take spends need micro-units of a bucket if it holds that much above reserve.
func take(used *atomic.Uint64, ln *line, dt int64, need, reserve uint64) bool {
	c := ln.at(dt)
	floor := c - ln.cap
	for {
		u := used.Load()
		v := u
		if int64(floor-v) > 0 {
			v = floor // what overflowed the bucket is gone
		}
		v += need
		if int64(c-reserve-v) < 0 {
			return false
		}
		if used.CompareAndSwap(u, v) {
			return true
		}
	}
}

// holds reports whether a bucket holds need micro-units.
func (ln *line) holds(c *cell, dt int64, need uint64) bool {
	v := ln.at(dt)
	if u := c.used.Load(); int64(v-ln.cap-u) <= 0 {
		return int64(v-need-u) >= 0
	}
	return need <= ln.cap
}

// untake gives back what take took.
func (l *Limiter) untake(b int, need uint64) {
	l.cells[b].used.Add(-need)
	l.changes.Add(1)
}

// lender returns the class that lends need to another, or -1: the lowest priority
// first, but only what its bucket holds above half its cap. So an owner that wakes
// up finds at least half its burst and its whole rate, at once: nothing has to be
// taken back. Lending from a full bucket, however small, would leave the owner
// nothing: under a flood it never gets full again.
func (l *Limiter) lender(s *segment, dt int64, class int, need uint64) int {
	if l.borrows == nil || !l.borrows[class] {
		return -1
	}
	for k := len(l.lends) - 1; k >= 0; k-- {
		if ln := &s.lines[1+k]; k != class && l.lends[k] && ln.holds(&l.cells[1+k], dt, need+ln.half()) {
			return k
		}
	}
	return -1
}

// why names the reason of a refusal by one bucket.
func why(ln *line, need uint64, empty Reason) Reason {
	switch {
	case ln.rate == 0:
		return NoShare
	case need > ln.cap:
		return CostOverBurst
	}
	return empty
}
