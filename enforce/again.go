package enforce

// Work that waits for its tokens, rather than coming back later by itself, is
// demand once: when it arrives. Offer counts it then, Again charges it when its
// turn has come, as a retry. So waiting work shows the other nodes what is wanted
// here, and is not counted twice.

// Offer counts work as demand that was not admitted yet. What its tenant's bucket
// would refuse is no demand of the class, whatever the share: then Offer counts
// nothing and reports false, and the same work may be offered again later. So it
// does for bad classes and costs.
func (l *Limiter) Offer(now int64, r Request) (counted bool) {
	if uint(r.Class) >= uint(len(l.cells)-1) || r.Cost < 1 || r.Cost > MaxCost || l.peekTenant(now, r) != Admitted {
		return false
	}
	l.stripe(r.Class).refused.Add(r.Cost)
	return true
}

// Again judges work that was offered or refused before, charges it as
// DecideRequest does and counts it as a retry where it is admitted. A refusal
// counts nothing, so the work may try as often as it cares to.
func (l *Limiter) Again(now int64, r Request) Verdict {
	if why := l.takeTenant(now, r); why != Admitted {
		return l.refuse(why)
	}
	v := l.judge(now, r.Class, r.Cost)
	if v.Reason != Admitted {
		l.untakeTenant(r)
		return v
	}
	c := l.stripe(r.Class)
	c.again.admitted.Add(r.Cost)
	if int(v.From) != r.Class {
		c.borrowed.Add(r.Cost)
	}
	return v
}
