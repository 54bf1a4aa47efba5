package enforce

import (
	"math"
	"time"
)

// Charge is one part of a call that passes as a whole or not at all: over several
// classes, budgets or tenants.
type Charge struct {
	Limiter *Limiter
	Request Request
	// Peek only asks whether the request would pass: it takes nothing and counts
	// nothing, but a no fails the call like that of any other charge.
	Peek bool
}

// DecideAll judges a call at the instant now: every charge is made, or none. It
// fills verdicts, which must be as long as charges, and says whether the call
// passes. A charge that fails has its own reason; one that only fails because of
// another has Sibling. Each counts as demand of its class once, whatever becomes
// of the call, and as DecideRequest would count it.
//
// A charge that a limiter in shadow mode would refuse does not fail the call: its
// verdict is OK with a reason, as from DecideRequest, and nothing is taken for it.
//
// All are looked at before any is taken, so refused work changes no word that
// admission reads (lesson O11): only where another goroutine takes the tokens in
// between has something to be given back, to the last micro-unit.
func DecideAll(now int64, charges []Charge, verdicts []Verdict) bool {
	if len(charges) == 1 && !charges[0].Peek {
		verdicts[0] = charges[0].Limiter.DecideRequest(now, charges[0].Request)
		return verdicts[0].OK
	}
	ok := true
	for i := range charges {
		verdicts[i] = look(now, charges[:i+1], verdicts[:i])
		ok = ok && verdicts[i].OK
	}
	ok = ok && takeAll(now, charges, verdicts)
	if !ok {
		refuseAll(now, charges, verdicts)
		return false
	}
	for i := range charges {
		if c := &charges[i]; !c.Peek {
			c.Limiter.count(now, c.Request, verdicts[i], -1)
		}
	}
	return true
}

// RefundAll gives back what a call that passed was charged, once. The counts keep
// it.
func RefundAll(charges []Charge, verdicts []Verdict) {
	for i := range charges {
		if c := &charges[i]; !c.Peek && verdicts[i].Reason == Admitted {
			c.Limiter.RefundRequest(verdicts[i], c.Request)
		}
	}
}

// Peek judges a request as DecideRequest would. It takes nothing and counts
// nothing.
func (l *Limiter) Peek(now int64, r Request) Verdict {
	return look(now, []Charge{{Limiter: l, Request: r}}, nil)
}

// takeAll charges what looked well, or nothing.
func takeAll(now int64, charges []Charge, verdicts []Verdict) bool {
	for i := range charges {
		c := &charges[i]
		if c.Peek || verdicts[i].Reason != Admitted {
			continue // the second is a limiter in shadow mode
		}
		v := c.Limiter.take(now, c.Request)
		if !v.OK {
			RefundAll(charges[:i], verdicts[:i])
		}
		verdicts[i] = v
		if !v.OK {
			return false
		}
	}
	return true
}

// refuseAll turns the verdicts of a call that fails into those of its charges, and
// counts them. Whoever asks again before the last of them could pass repeats
// himself.
func refuseAll(now int64, charges []Charge, verdicts []Verdict) {
	var wait time.Duration
	for i := range charges {
		if c := &charges[i]; !verdicts[i].OK {
			wait = max(wait, c.Limiter.RetryAfterRequest(now, c.Request))
		}
	}
	for i := range charges {
		c := &charges[i]
		if c.Peek {
			continue
		}
		if verdicts[i].OK {
			verdicts[i] = Verdict{Reason: Sibling, From: -1}
		}
		c.Limiter.count(now, c.Request, verdicts[i], wait)
	}
}

// take charges the tenant, the class (or a lender) and the budget, or says why
// not. It counts nothing.
func (l *Limiter) take(now int64, r Request) Verdict {
	if why := l.takeTenant(now, r); why != Admitted {
		return l.refuse(why)
	}
	v := l.judge(now, r.Class, r.Cost)
	if v.Reason != Admitted {
		l.untakeTenant(r)
	}
	return v
}

// count adds a decided request to the figures of its class. A client that comes
// before the time that a refusal told it counts as a retry; wait is that time,
// negative to work it out.
func (l *Limiter) count(now int64, r Request, v Verdict, wait time.Duration) {
	if v.Reason == UnknownClass || v.Reason == BadCost || uint(r.Class) >= uint(l.Classes()) {
		return
	}
	c := l.stripe(r.Class)
	known := r.Client != 0 && l.retries != nil
	key := mix(r.Client, r.Class)
	if v.Reason == Admitted {
		if known && l.retries.settle(now, key) {
			c.again.admitted.Add(r.Cost)
		} else {
			c.admitted.Add(r.Cost)
		}
		if int(v.From) != r.Class {
			c.borrowed.Add(r.Cost)
		}
		return
	}
	if known && l.retries.marked(now, key) {
		c.again.refused.Add(r.Cost)
		return
	}
	if !l.asked(now, &r, v) {
		return
	}
	c.refused.Add(r.Cost)
	if known {
		if wait < 0 {
			wait = l.RetryAfterRequest(now, r)
		}
		l.retries.mark(now, key, wait)
	}
}

// look judges the last of charges, given what the others of its call will have
// taken where their verdicts say so. It takes nothing.
func look(now int64, charges []Charge, before []Verdict) Verdict {
	c := &charges[len(charges)-1]
	l, r := c.Limiter, c.Request
	switch {
	case uint(r.Class) >= uint(l.Classes()):
		return l.refuse(UnknownClass)
	case r.Cost < 1:
		return l.refuse(BadCost)
	case r.Cost > MaxCost:
		return l.refuse(CostOverBurst)
	}
	s := l.advance(now)
	t := taken{l, charges, before, s, max(now-s.t0, 0)}
	if r.Tenant != 0 {
		if why := l.peekTenantAfter(now, r, t.byTenant(&r)); why != Admitted {
			return l.refuse(why)
		}
	}
	need := r.Cost * unit
	from, keep := r.Class, uint64(0)
	if !t.holds(1+r.Class, need, 0) {
		if from = t.lender(r.Class, need); from < 0 {
			return l.refuse(why(&s.lines[1+r.Class], uint64(need), ClassEmpty))
		}
		keep = s.lines[1+from].half()
	}
	if !t.holds(0, need, keep) {
		return l.refuse(why(&s.lines[0], uint64(need), BudgetEmpty))
	}
	return Verdict{true, Admitted, int8(from)}
}

// taken is what the earlier charges of a call take from one limiter.
type taken struct {
	l       *Limiter
	charges []Charge // all up to the one that is looked at
	before  []Verdict
	s       *segment
	dt      int64
}

// of returns the micro-units that are taken from bucket b.
func (t *taken) of(b int) int64 {
	sum := int64(0)
	for i, v := range t.before {
		c := &t.charges[i]
		if c.Limiter == t.l && !c.Peek && v.Reason == Admitted && (b == 0 || b == 1+int(v.From)) {
			sum = satAdd(sum, c.Request.Cost*unit)
		}
	}
	return sum
}

// byTenant returns the units that the tenant of r is charged in its class; at
// most MaxCost, which is more than any bucket holds.
func (t *taken) byTenant(r *Request) int64 {
	sum := int64(0)
	for i, v := range t.before {
		c := &t.charges[i]
		if c.Limiter == t.l && !c.Peek && v.Reason == Admitted && c.Request.Class == r.Class && c.Request.Tenant == r.Tenant {
			sum = min(sum+c.Request.Cost, MaxCost)
		}
	}
	return sum
}

// holds says whether bucket b has need micro-units above reserve for the charge.
func (t *taken) holds(b int, need int64, reserve uint64) bool {
	want := satAdd(t.of(b), need)
	return want < math.MaxInt64 && t.l.tokens(t.s, b, t.dt)-int64(reserve) >= want
}

// lender returns the class that would lend need, as borrow would choose it, or -1.
func (t *taken) lender(class int, need int64) int {
	l := t.l
	if l.borrows == nil || !l.borrows[class] {
		return -1
	}
	for k := len(l.lends) - 1; k >= 0; k-- {
		if k != class && l.lends[k] && t.holds(1+k, need, t.s.lines[1+k].half()) {
			return k
		}
	}
	return -1
}
