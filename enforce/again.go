package enforce

// Work that waits for its tokens, rather than coming back later by itself, is
// demand once: when it arrives. Offer counts it then, Again charges it when its
// turn has come, as a retry. So waiting work shows the other nodes what is wanted
// here, and is not counted twice.

// Offer counts cost units of class k as demand that was not admitted yet. Bad
// classes and costs count nowhere.
func (l *Limiter) Offer(class int, cost int64) {
	if uint(class) < uint(len(l.cells)-1) && cost >= 1 && cost <= MaxCost {
		l.cells[1+class].refused.Add(cost)
	}
}

// Again judges work that was offered or refused before, charges it as Decide does
// and counts it as a retry where it is admitted. A refusal counts nothing, so it
// may be called as often as the work cares to try.
func (l *Limiter) Again(now int64, class int, cost int64) Verdict {
	v := l.judge(now, class, cost)
	if v.Reason != Admitted {
		return v
	}
	c := &l.cells[1+class]
	c.again.admitted.Add(cost)
	if int(v.From) != class {
		c.borrowed.Add(cost)
	}
	return v
}
