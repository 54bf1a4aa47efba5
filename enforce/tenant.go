package enforce

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"subak/allocator"
	"subak/enforce/keyed"
)

// A tenant is whoever a door tells apart inside a class: an API key, a customer,
// a client's address. Each gets a bucket at this node, so that one alone cannot
// spend the class. Doors name a tenant by a hash of its name, made with a secret
// seed and the same one at every door of the node ([keyed.Hash]).
//
// A part of the class's rate needs no rate of its own: the tenant's bucket lives
// on the credit of the class, in which its requests are dearer by as much. So it
// follows every change of share to the instant, as the class does.
//
// A request that its tenant's bucket refuses changes nothing that admission of
// others reads. It is counted as refused and is no demand of the class: no share,
// however large, would let it in. Of what the class refuses, demand is as much as
// the tenant's bucket would have let in.

// TenantConfig bounds each tenant of one class at this node. The zero value means
// that the class has no tenants. Of Share and Rate exactly one is set.
type TenantConfig struct {
	// Share is each tenant's part of the class's rate in force at this node, in
	// parts per million, 1..1,000,000; so over all nodes a tenant has at most
	// that part of the class.
	Share int64
	// Rate is each tenant's rate at each node.
	Rate allocator.Rate
	// Burst sizes the bucket: the tenant's rate x Burst, at least two requests of
	// LargestCost. 0 means the limiter's own.
	Burst time.Duration
	// Keys is how many tenants the table is made for. 0 means DefaultKeys. About
	// 48 bytes each. With more than that at once, those forgotten start anew.
	Keys int
}

// Bounds of TenantConfig.Keys.
const (
	DefaultKeys = 100_000
	MaxKeys     = 1 << 24
)

func (c TenantConfig) validate() error {
	if c == (TenantConfig{}) {
		return nil
	}
	var errs []error
	if c.Share < 0 || c.Share > 1_000_000 || c.Rate < 0 || c.Rate > MaxRate || (c.Share == 0) == (c.Rate == 0) {
		errs = append(errs, fmt.Errorf("share %d and rate %d: want one of them, within 1..1000000 or 1..%d", c.Share, c.Rate, MaxRate))
	}
	if c.Burst < 0 {
		errs = append(errs, fmt.Errorf("burst %v: want a positive duration", c.Burst))
	}
	if c.Keys < 0 || c.Keys > MaxKeys {
		errs = append(errs, fmt.Errorf("keys %d: want 1..%d", c.Keys, MaxKeys))
	}
	return errors.Join(errs...)
}

// Request is one piece of work as a door sees it.
type Request struct {
	Class int
	Cost  int64 // units, 1..MaxCost
	// Tenant is the hash of the tenant's name, 0 = none: only the class binds it.
	Tenant uint64
	// Client is a hash of what makes a request the same one sent again, 0 = none.
	Client uint64
}

// tenants is the buckets of one class's tenants.
type tenants struct {
	cfg   TenantConfig
	burst time.Duration // cfg.Burst, or the limiter's
	table *keyed.Table
	per   uint64 // credit that one unit costs
	least uint64 // the smallest cap: two requests of LargestCost
	// Of tenants with a rate of their own:
	own line // its credit since the clock began
	// Of those with a part of the class's:
	share bool
	scale uint64 // cap for each micro-unit of the class's cap, 32 fraction bits
	base  uint64 // credit of the class before this limiter, less what was left of it

	_       [64]byte
	refused atomic.Int64 // units that were refused and are no demand
	_       [56]byte
}

func newTenants(cfg LimiterConfig, sh shape) []*tenants {
	var out []*tenants
	for k, c := range cfg.Tenants {
		if c == (TenantConfig{}) {
			continue
		}
		if out == nil {
			out = make([]*tenants, cfg.Classes)
		}
		out[k] = newTenantsOf(c, sh)
	}
	return out
}

func newTenantsOf(c TenantConfig, sh shape) *tenants {
	t := &tenants{cfg: c, burst: c.Burst, per: uint64(unit), share: c.Share > 0}
	if t.burst == 0 {
		t.burst = sh.burst
	}
	if c.Keys == 0 {
		c.Keys = DefaultKeys
	}
	t.table = keyed.New(c.Keys)
	if t.share {
		t.per = (1e12 + uint64(c.Share) - 1) / uint64(c.Share) // rounded up: never more than the share
		t.scale = math.MaxUint64
		if hi, lo := bits.Mul64(uint64(t.burst), 1<<32); hi < uint64(sh.burst) {
			t.scale, _ = bits.Div64(hi, lo, uint64(sh.burst))
		}
	}
	t.least = min(t.price(2*sh.largest), keyed.MaxCap)
	if !t.share {
		own := shape{burst: t.burst}
		t.own = line{mult: slope(c.Rate), cap: max(own.capOf(c.Rate, 0), t.least), rate: c.Rate}
	}
	return t
}

// terms returns what a request of some cost, 1..MaxCost, is judged by at an
// instant of segment s, and false when no bucket ever holds that much.
func (t *tenants) terms(s *segment, class int, now, cost int64) (c keyed.Terms, fits bool) {
	if t.share {
		ln := &s.lines[1+class]
		hi, lo := bits.Mul64(ln.cap, t.scale)
		c.Cap = uint64(keyed.MaxCap)
		if hi < keyed.MaxCap>>32 {
			c.Cap = max(hi<<32|lo>>32, t.least)
		}
		c.Credit = ln.at(max(now-s.t0, 0)) + t.base
	} else {
		c.Cap = t.own.cap
		c.Credit = t.own.at(max(now, 0))
	}
	c.Need = t.price(cost)
	return c, c.Need <= c.Cap
}

// price returns the credit that some units cost; more than any bucket holds where
// it does not fit one.
func (t *tenants) price(units int64) uint64 {
	if hi, lo := bits.Mul64(uint64(units), t.per); hi == 0 {
		return min(lo, keyed.MaxCap+1)
	}
	return keyed.MaxCap + 1
}

// tenantsOf returns the buckets that r's tenant is in, nil when only its class
// binds it, or it is no request at all.
func (l *Limiter) tenantsOf(r *Request) *tenants {
	if r.Tenant == 0 || uint(r.Class) >= uint(len(l.tenants)) || uint64(r.Cost-1) >= MaxCost {
		return nil
	}
	return l.tenants[r.Class]
}

// DecideRequest is DecideClient for a request that may have a tenant: tenant,
// class and budget are charged, or none of them.
func (l *Limiter) DecideRequest(now int64, r Request) Verdict {
	if l.tenantsOf(&r) == nil {
		return l.DecideClient(now, r.Class, r.Cost, r.Client)
	}
	v := l.take(now, r)
	l.count(now, r, v, -1)
	return v
}

// RefundRequest is Refund for a request decided by DecideRequest: its tenant gets
// its tokens back too.
func (l *Limiter) RefundRequest(v Verdict, r Request) {
	l.Refund(v, r.Cost)
	if v.Reason == Admitted {
		l.untakeTenant(r)
	}
}

// RetryAfterRequest is RetryAfter that looks at the tenant's bucket as well.
func (l *Limiter) RetryAfterRequest(now int64, r Request) time.Duration {
	wait := l.RetryAfter(now, r.Class, r.Cost)
	t := l.tenantsOf(&r)
	if t == nil {
		return wait
	}
	s := l.advance(now)
	c, fits := t.terms(s, r.Class, now, r.Cost)
	short := int64(c.Need) - t.table.Level(r.Tenant, c)
	switch {
	case !fits:
		return NoToken
	case short <= 0:
		return wait
	}
	ns, ok := int64(0), true
	if t.share {
		ns, ok = s.gain(1+r.Class, now, short)
	} else {
		ns = timeFor(short, t.own.mult)
	}
	if !ok {
		return NoToken
	}
	return max(wait, time.Duration(min(ns, int64(time.Hour))))
}

// QuotaRequest is Quota as r's tenant sees it: its own bucket, and what the class
// and the budget leave of it.
func (l *Limiter) QuotaRequest(now int64, r Request) Quota {
	q := l.Quota(now, r.Class)
	t := l.tenantsOf(&r)
	if t == nil {
		return q
	}
	s := l.advance(now)
	c, _ := t.terms(s, r.Class, now, r.Cost)
	have := t.table.Level(r.Tenant, c)
	q.Cap = int64(c.Cap / t.per)
	q.Tokens = max(0, min(q.Tokens, have/int64(t.per)))
	if t.share {
		hi, lo := bits.Mul64(uint64(q.Rate), uint64(t.cfg.Share))
		rate, _ := bits.Div64(hi, lo, 1e6)
		q.Rate = allocator.Rate(rate)
		q.Full = t.full(s.lines[1+r.Class].mult, int64(c.Cap)-have)
	} else {
		q.Rate = t.own.rate
		q.Full = t.full(t.own.mult, int64(c.Cap)-have)
	}
	return q
}

// full returns how long credit takes to grow by some, NoToken if it never does.
func (t *tenants) full(mult uint64, credit int64) time.Duration {
	if mult == 0 {
		return NoToken
	}
	return time.Duration(timeFor(credit, mult))
}

// gain returns the nanoseconds after now in which bucket b is granted some
// micro-units, and false when it never is.
func (s *segment) gain(b int, now, micro int64) (int64, bool) {
	t := max(now, s.t0)
	micro++ // an anchor on the way can hide the fraction of a micro-unit
	for ; s != nil; s = s.next {
		ln := &s.lines[b]
		if ln.mult > 0 {
			if d := timeFor(micro, ln.mult); d < s.until-t || s.next == nil {
				return satAdd(t-now, d), true
			}
		}
		micro = max(1, micro-int64(ln.pointAt(s.until-t).credit-ln.c0))
		t = s.until
	}
	return 0, false
}

// takeTenant charges the tenant's bucket of r, if it has one: Admitted, or why
// not. It counts nothing. What it took is given back by untakeTenant.
func (l *Limiter) takeTenant(now int64, r Request) Reason {
	t := l.tenantsOf(&r)
	if t == nil {
		return Admitted
	}
	c, fits := t.terms(l.at(now), r.Class, now, r.Cost)
	if !fits {
		return CostOverBurst
	}
	if _, out := t.table.Take(r.Tenant, c); out == keyed.Short {
		return TenantEmpty
	}
	return Admitted
}

// at returns the segment in force at now.
func (l *Limiter) at(now int64) *segment {
	if s := l.seg.Load(); now < s.until {
		return s
	}
	return l.advance(now)
}

// untakeTenant gives back what takeTenant took.
func (l *Limiter) untakeTenant(r Request) {
	if t := l.tenantsOf(&r); t != nil {
		t.table.Return(r.Tenant, uint64(r.Cost)*t.per)
	}
}

// peekTenant is takeTenant that takes nothing.
func (l *Limiter) peekTenant(now int64, r Request) Reason { return l.peekTenantAfter(now, r, 0) }

// peekTenantAfter is peekTenant for when the tenant will have been charged some
// units before, 0..MaxCost.
func (l *Limiter) peekTenantAfter(now int64, r Request, before int64) Reason {
	t := l.tenantsOf(&r)
	if t == nil {
		return Admitted
	}
	c, fits := t.terms(l.at(now), r.Class, now, r.Cost)
	if !fits {
		return CostOverBurst
	}
	need, earlier := int64(c.Need), t.price(before)
	if before > 0 {
		c.Need = earlier // what a new tenant's bucket begins with
	}
	if t.table.Level(r.Tenant, c)-int64(earlier) < need {
		return TenantEmpty
	}
	return Admitted
}

// asked reports whether r, which was refused with v, is demand of its class, and
// counts it with its tenants' where it is not.
func (l *Limiter) asked(now int64, r *Request, v Verdict) bool {
	t := l.tenantsOf(r)
	if t == nil {
		return true
	}
	c, fits := t.terms(l.at(now), r.Class, now, r.Cost)
	if fits && v.Reason != TenantEmpty && t.table.Ask(r.Tenant, c) {
		return true
	}
	t.refused.Add(r.Cost)
	return false
}

// TenantCounts are cumulative figures of one class's tenants.
type TenantCounts struct {
	Refused int64 // units refused because of the tenant alone
	Evicted int64 // tenants forgotten because the table was full
}

// TenantCounts returns the figures of class k's tenants; zero where it has none.
func (l *Limiter) TenantCounts(class int) TenantCounts {
	if uint(class) >= uint(len(l.tenants)) || l.tenants[class] == nil {
		return TenantCounts{}
	}
	t := l.tenants[class]
	return TenantCounts{t.refused.Load(), t.table.Evicted()}
}

// follow takes over the tenants of classes that are bounded as before from a
// limiter that has ended.
func (l *Limiter) followTenants(before *Limiter, from []int) {
	s, was := l.seg.Load(), before.seg.Load()
	for k, t := range l.tenants {
		if t == nil || from[k] < 0 || from[k] >= len(before.tenants) {
			continue
		}
		old := before.tenants[from[k]]
		if old == nil || old.cfg != t.cfg || old.burst != t.burst {
			continue
		}
		t.table = old.table
		t.base = old.base + was.lines[1+from[k]].c0 - s.lines[1+k].c0
		t.refused.Store(old.refused.Load())
	}
}

// Handle is one tenant of one class, looked up once: its decisions are faster.
// Safe for concurrent use.
type Handle struct {
	l      *Limiter
	t      *tenants // nil: only the class binds it
	class  int
	tenant uint64
	ref    atomic.Pointer[keyed.Ref] // where its bucket was
}

// Hold returns a handle on a tenant of class k. It does not keep the tenant's
// bucket from being forgotten. It ends with the limiter: after Succeed everything
// is refused, and the successor must be asked.
func (l *Limiter) Hold(class int, tenant uint64) *Handle {
	h := &Handle{l: l, class: class, tenant: tenant}
	h.t = l.tenantsOf(&Request{Class: class, Cost: 1, Tenant: tenant})
	h.ref.Store(&keyed.Ref{})
	return h
}

// Decide is DecideRequest for the handle's tenant.
func (h *Handle) Decide(now int64, cost int64) Verdict {
	l := h.l
	if h.t == nil || uint64(cost-1) >= MaxCost {
		return l.Decide(now, h.class, cost)
	}
	c, fits := h.t.terms(l.at(now), h.class, now, cost)
	ref, out := h.ref.Load(), keyed.Short
	if fits {
		if out = ref.Take(c); out == keyed.Gone {
			var fresh keyed.Ref
			fresh, out = h.t.table.Take(h.tenant, c)
			ref = &fresh
			h.ref.Store(ref)
		}
	}
	if out == keyed.Short {
		h.t.refused.Add(cost)
		if !fits {
			return l.refuse(CostOverBurst)
		}
		return l.refuse(TenantEmpty)
	}
	v := l.judge(now, h.class, cost)
	if v.Reason != Admitted {
		ref.Return(c.Need)
	}
	l.count(now, Request{Class: h.class, Cost: cost, Tenant: h.tenant}, v, -1)
	return v
}
