package enforce

import (
	"errors"
	"fmt"
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
// A tenant that gets a part of the class gets it of the share in force or of the
// class's base at this node, whichever is more. Of the share alone would not do:
// where few tenants are active the class's demand is only what they may have of
// the share, the share follows the demand, and both would shrink together.
//
// A request that its tenant's bucket refuses changes nothing that admission of
// others reads. It is counted as refused and is no demand of the class: no share,
// however large, would let it in. Of what the class refuses, demand is as much as
// the tenant's bucket would have let in.

// TenantConfig bounds each tenant of one class at this node. The zero value means
// that the class has no tenants. Of Share and Rate exactly one is set.
type TenantConfig struct {
	// Share is each tenant's part, in parts per million, 1..1,000,000, of the
	// class's rate in force at this node or of Base, whichever is more. So over
	// all nodes a tenant has at most that part of the class and of what nodes
	// lent each other.
	Share int64
	// Base is the rate that the class has at this node when nobody borrows. 0 lets
	// Share be of the rate in force alone.
	Base allocator.Rate
	// Rate is each tenant's rate at each node.
	Rate allocator.Rate
	// Burst sizes the bucket: the tenant's rate x Burst, at least two requests of
	// LargestCost. 0 means the limiter's own.
	Burst time.Duration
	// Keys is how many tenants the table is made for. 0 means DefaultKeys. 64
	// bytes each. With more than that at once, those forgotten start anew.
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
	if c.Base < 0 || c.Base > MaxRate {
		errs = append(errs, fmt.Errorf("base %d: want 0..%d", c.Base, MaxRate))
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
	class int
	owner *Limiter
	shape shape // of a tenant's bucket
	least int64 // units that it can hold at least: two requests of LargestCost
	table *keyed.Table
	line  atomic.Pointer[tenantLine] // the newest

	_       [64]byte
	refused atomic.Int64 // units that were refused and are no demand
	_       [56]byte
}

// tenantLine is what each tenant was granted, from the begin of one segment on.
type tenantLine struct {
	seg *segment // nil: for ever, from the begin of the clock
	line
	late uint64 // what is granted in lateMax
}

// lateMax is the longest that a caller may be paused between its reading of the
// clock and its decision without finding a tenant's bucket fuller than it is.
const lateMax = time.Minute

// newTenants makes the buckets of every class that has tenants; nil if none has.
func newTenants(l *Limiter, cfg LimiterConfig, now int64) []*tenants {
	var out []*tenants
	for k, c := range cfg.Tenants {
		if c == (TenantConfig{}) {
			continue
		}
		if out == nil {
			out = make([]*tenants, cfg.Classes)
		}
		t := &tenants{cfg: c, class: k, owner: l, shape: shape{burst: c.Burst}, least: 2 * l.shape.largest}
		if c.Burst == 0 {
			t.shape.burst = l.shape.burst
		}
		if c.Keys == 0 {
			c.Keys = DefaultKeys
		}
		t.table = keyed.New(c.Keys)
		if c.Rate > 0 {
			t.line.Store(newTenantLine(nil, t.at(c.Rate, point{})))
		} else {
			t.line.Store(newTenantLine(&segment{t0: now, until: now}, line{}))
		}
		out[k] = t
	}
	return out
}

func newTenantLine(s *segment, ln line) *tenantLine {
	return &tenantLine{s, ln, min((&line{mult: ln.mult}).pointAt(int64(lateMax)).credit, keyed.MaxCap)}
}

// at returns the line of a rate, that begins with some credit.
func (t *tenants) at(r allocator.Rate, from point) line {
	return line{c0: from.credit, frac: from.frac, mult: slope(r), cap: max(t.shape.capOf(r, t.least), uint64(t.least*unit)), rate: r}
}

// rate returns a tenant's part when the class has some rate.
func (t *tenants) rate(class allocator.Rate) allocator.Rate {
	if t.cfg.Rate > 0 {
		return t.cfg.Rate
	}
	hi, lo := bits.Mul64(uint64(max(class, t.cfg.Base)), uint64(t.cfg.Share))
	q, _ := bits.Div64(hi, lo, 1e6)
	return allocator.Rate(q)
}

// terms returns what a request of some cost, 1..MaxCost, is judged by at an
// instant of segment s, and false when no bucket ever holds that much.
func (t *tenants) terms(s *segment, now, cost int64) (c keyed.Terms, fits bool) {
	ln, t0 := t.line.Load(), int64(0)
	if ln.seg != nil {
		if ln.seg != s {
			ln = t.follow(s)
		}
		t0 = ln.seg.t0
	}
	c = keyed.Terms{Credit: ln.at(max(now-t0, 0)), Cap: ln.cap, Late: ln.late, Need: uint64(cost * unit)}
	return c, c.Need <= c.Cap
}

// follow makes the line of segment s and returns it; or the one there is, to
// whoever was paused with a segment that is not in force any more.
func (t *tenants) follow(s *segment) *tenantLine {
	for {
		old := t.line.Load()
		if old.seg == s || s.t0 < old.seg.t0 && t.owner.seg.Load() != s {
			return old
		}
		p := old.pointAt(min(s.t0, old.seg.until) - old.seg.t0)
		// Segments that went by while no tenant asked count as the least that
		// each may have had.
		if gap := s.t0 - old.seg.until; gap > 0 {
			p = (&line{c0: p.credit, frac: p.frac, mult: slope(t.rate(0))}).pointAt(gap)
		}
		class := s.lines[1+t.class].rate
		fresh := newTenantLine(s, t.at(t.rate(class), p))
		if class == 0 {
			fresh.cap = max(fresh.cap, old.cap) // nothing gets in; what was saved stays
		}
		if t.line.CompareAndSwap(old, fresh) {
			return fresh
		}
	}
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
func (l *Limiter) DecideRequest(now int64, r Request) Verdict { return l.DecideAt(now, r, nil) }

// Place remembers where a tenant's bucket was found, so that decisions at it look
// nothing up. The zero Place remembers nothing. It is a hint, and good for
// whatever tenant, class and limiter: at a wrong one the bucket is looked up, as
// always. Until then it keeps the buckets it was used with from being collected.
// Safe for concurrent use.
type Place keyed.Place

// Fetch is for right before the clock is read, which takes so long that the
// tenant's bucket is in the cache afterwards.
func (p *Place) Fetch() { (*keyed.Place)(p).Fetch() }

// DecideAt is DecideRequest for the tenant of p, and faster. p may be nil.
//
// It reads what it can before it swaps the first word: what is read after a swap
// waits for it, and with it would the caches' misses, of which most of a decision
// for one of many tenants is made.
func (l *Limiter) DecideAt(now int64, r Request, p *Place) Verdict {
	t := l.tenantsOf(&r)
	if t == nil {
		return l.DecideClient(now, r.Class, r.Cost, r.Client)
	}
	core := procPin()
	procUnpin()
	own := l.stripeOf(core, r.Class)
	lease, leased := own.good(l, now, r.Cost)
	c, fits := t.terms(l.at(now), now, r.Cost)
	if !fits {
		return l.refuseTenant(now, r, CostOverBurst)
	}
	var b *keyed.Bucket
	if p != nil {
		b = t.table.At((*keyed.Place)(p))
	} else {
		b = t.table.First(r.Tenant)
	}
	out := b.Take(r.Tenant, c)
	if out == keyed.Gone {
		b, out = t.find(&r, c, p)
	}
	if out == keyed.Short {
		return l.refuseTenant(now, r, TenantEmpty)
	}
	if leased && r.Client == 0 && own.pay(lease, r.Cost) {
		own.admitted.Add(r.Cost)
		return Verdict{true, Admitted, int8(r.Class)}
	}
	return l.decidePaid(now, r, own, b, c.Need)
}

// find charges a tenant's bucket that is not where DecideAt looked for it, and has
// p remember where it is.
func (t *tenants) find(r *Request, c keyed.Terms, p *Place) (*keyed.Bucket, keyed.Outcome) {
	b, out := t.table.Take(r.Tenant, c)
	if p != nil {
		(*keyed.Place)(p).Remember(b)
	}
	return b, out
}

// decidePaid decides, by one core's stripe of the class, what bucket b of the
// tenant has paid for already.
func (l *Limiter) decidePaid(now int64, r Request, own *stripe, b *keyed.Bucket, paid uint64) Verdict {
	v := l.judgeOn(own, now, r.Class, r.Cost)
	if v.Reason != Admitted {
		b.Return(r.Tenant, paid)
	}
	l.count(now, r, v, -1)
	return v
}

func (l *Limiter) refuseTenant(now int64, r Request, why Reason) Verdict {
	v := l.refuse(why)
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
	c, fits := t.terms(s, now, r.Cost)
	if !fits {
		return NoToken
	}
	short := int64(c.Need) - t.table.Level(r.Tenant, c)
	if short <= 0 {
		return wait
	}
	ns, ok := t.wait(s, now, short)
	if !ok {
		return NoToken
	}
	return max(wait, time.Duration(min(ns, int64(time.Hour))))
}

// wait returns the nanoseconds after now in which a tenant is granted some
// micro-units by the schedule in force, and false when it never is.
func (t *tenants) wait(s *segment, now, micro int64) (int64, bool) {
	at := max(now, s.t0)
	micro++ // an anchor on the way can hide the fraction of a micro-unit
	for ; s != nil; s = s.next {
		ln := t.at(t.rate(s.lines[1+t.class].rate), point{})
		if ln.mult > 0 {
			if d := timeFor(micro, ln.mult); d < s.until-at || s.next == nil {
				return satAdd(at-now, d), true
			}
		}
		micro = max(1, micro-int64(ln.pointAt(s.until-at).credit))
		at = s.until
	}
	return 0, false
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
	c, _ := t.terms(s, now, r.Cost)
	have := t.table.Level(r.Tenant, c)
	ln := t.at(t.rate(s.lines[1+r.Class].rate), point{})
	q = Quota{Rate: ln.rate, Cap: int64(c.Cap) / unit, Tokens: max(0, min(q.Tokens, have/unit)), Full: NoToken}
	if ln.mult > 0 {
		q.Full = time.Duration(timeFor(int64(c.Cap)-have, ln.mult))
	}
	return q
}

// takeTenant charges the tenant's bucket of r, if it has one: Admitted, or why
// not. It counts nothing. What it took is given back by untakeTenant.
func (l *Limiter) takeTenant(now int64, r Request) Reason {
	t := l.tenantsOf(&r)
	if t == nil {
		return Admitted
	}
	c, fits := t.terms(l.at(now), now, r.Cost)
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
		t.table.Return(r.Tenant, uint64(r.Cost*unit))
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
	c, fits := t.terms(l.at(now), now, r.Cost)
	if !fits {
		return CostOverBurst
	}
	need, earlier := r.Cost*unit, before*unit
	if before > 0 {
		c.Need = uint64(earlier) // what a new tenant's bucket begins with
	}
	if t.table.Level(r.Tenant, c)-earlier < need {
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
	c, fits := t.terms(l.at(now), now, r.Cost)
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

// followTenants makes the lines of a segment that SetSchedule has put in the place
// of one that was meant to last longer.
func (l *Limiter) followTenants(s *segment) {
	for _, t := range l.tenants {
		if t != nil && t.cfg.Share > 0 {
			t.follow(s)
		}
	}
}

// inheritTenants takes over the tenants of classes that are bounded as before from
// a limiter that has ended.
func (l *Limiter) inheritTenants(before *Limiter, from []int) {
	for k, t := range l.tenants {
		if t == nil || from[k] < 0 || from[k] >= len(before.tenants) {
			continue
		}
		old := before.tenants[from[k]]
		if old == nil || old.shape.burst != t.shape.burst || (old.cfg.Rate != t.cfg.Rate) || old.cfg.Share != t.cfg.Share || old.cfg.Keys != t.cfg.Keys {
			continue
		}
		t.table = old.table
		if t.cfg.Share > 0 {
			t.line.Store(old.line.Load())
		}
		t.refused.Store(old.refused.Load())
	}
}

// Handle is one tenant of one class, looked up once: its decisions are faster.
// Safe for concurrent use. It is small, so that many fit into a cache.
type Handle struct {
	l      *Limiter
	tenant uint64
	class  int32
	place  Place
}

// Hold returns a handle on a tenant of class k. It does not keep the tenant's
// bucket from being forgotten. It ends with the limiter: after Succeed everything
// is refused, and the successor must be asked.
func (l *Limiter) Hold(class int, tenant uint64) *Handle {
	if uint(class) >= uint(l.classes) {
		class = -1
	}
	return &Handle{l: l, tenant: tenant, class: int32(class)}
}

// Decide is DecideRequest for the handle's tenant.
func (h *Handle) Decide(now int64, cost int64) Verdict {
	return h.l.DecideAt(now, Request{Class: int(h.class), Cost: cost, Tenant: h.tenant}, &h.place)
}
