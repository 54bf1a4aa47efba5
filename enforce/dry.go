package enforce

import "sync/atomic"

// A refusal costs no more than an admission: a stripe remembers until when its
// class is sure to have nothing for anybody, so that the flood that is refused
// does not work it out anew each time. What is remembered holds as long as no
// token comes but by the clock. Whatever gives one back, and whatever changes the
// share, adds to Limiter.changes, and with that all of it is forgotten.

// drought is what a stripe remembers. It is written with stripe.filling held; at
// is 0 meanwhile.
type drought struct {
	until atomic.Int64  // the first reading that may find something
	most  atomic.Int64  // units: dearer requests have other reasons; << 8 | Reason
	at    atomic.Uint64 // Limiter.changes when it was worked out
}

// droughtMin is how many nanoseconds a drought must last to be worth working out.
const droughtMin = 200

// dry returns why a request of that cost is refused, or Admitted where that is not
// known. An older reading than that of the refusal finds nothing either.
func (c *stripe) dry(l *Limiter, now, cost int64) Reason {
	at := c.drought.at.Load()
	if now >= c.drought.until.Load() || at != l.changes.Load() {
		return Admitted
	}
	most := c.drought.most.Load()
	if uint64(cost-1) >= uint64(most>>8) || c.drought.at.Load() != at {
		return Admitted
	}
	return Reason(most & 0xff)
}

// short refuses a request of cost units for lack of tokens in bucket b of segment
// s, and notes until when that will be so for any. changes is what Limiter.changes
// was before the buckets were looked at.
func (c *stripe) short(l *Limiter, s *segment, now int64, class, b int, cost int64, changes uint64) Verdict {
	ln, reason := &s.lines[b], ClassEmpty
	most, until := int64(ln.cap)/unit, int64(0)
	if b == 0 {
		// Whether the class has enough for a dearer one nobody has looked.
		reason, most, until = BudgetEmpty, cost, s.unitAt(l, now, 0, 0)
	} else {
		until = l.unitFor(s, now, class)
	}
	if ln.rate == 0 {
		reason, most = NoShare, MaxCost
	} else if uint64(cost*unit) > ln.cap {
		return l.refuse(CostOverBurst)
	}
	if d := &c.drought; until > now+droughtMin && c.filling.CompareAndSwap(false, true) {
		d.at.Store(0)
		d.until.Store(until)
		d.most.Store(most<<8 | int64(reason))
		d.at.Store(changes)
		c.filling.Store(false)
	}
	return l.refuse(reason)
}

// unitFor returns a reading of s before which a class and those that lend to it
// have no unit, unless they are given one.
func (l *Limiter) unitFor(s *segment, now int64, class int) int64 {
	at := s.unitAt(l, now, 1+class, 0)
	if l.borrows == nil || !l.borrows[class] {
		return at
	}
	for k := range l.lends {
		if k != class && l.lends[k] {
			at = min(at, s.unitAt(l, now, 1+k, s.lines[1+k].half()))
		}
	}
	return at
}

// unitAt is the same for bucket b and what it keeps.
func (s *segment) unitAt(l *Limiter, now int64, b int, keep uint64) int64 {
	ln, dt := &s.lines[b], max(now-s.t0, 0)
	lack := unit + int64(keep) - l.tokens(s, b, dt)
	switch {
	case lack <= 0:
		return now
	case ln.mult == 0:
		return s.until
	}
	// The fraction of a micro-unit may be there already.
	return min(satAdd(s.t0+dt, timeFor(lack-1, ln.mult)), s.until)
}
