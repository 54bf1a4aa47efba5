package quota

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
)

// timing is how long assignments last, ns.
type timing struct {
	ttl     int64 // at most; whole seconds
	transit int64
}

// hold is for how long after its sending an assignment may be enforced.
func (t timing) hold(ttl int64) int64 { return ttl + ttl/100 + t.transit }

// surely is for how long after its sending an assignment is there for certain
// when a renewal arrives.
func (t timing) surely(ttl int64) int64 { return ttl - ttl/100 - t.transit }

// horizon is the instant until which an assignment sent now may be enforced. It
// is rounded up to one of few instants, so that profiles stay short.
func (t timing) horizon(now, ttl int64) int64 {
	grid := t.grid()
	return (now + t.hold(ttl) + grid - 1) / grid * grid
}

func (t timing) grid() int64 { return t.hold(t.ttl) / horizons }

const (
	horizons   = 48 // instants in the longest hold; fewer than enforce.HoldsMax
	renewals   = 4  // in a TTL
	shortest   = int64(time.Second)
	pairsMax   = 16   // of a bucket id
	idBytesMax = 1024 // of its keys and values
)

// planner decides what every data plane is assigned. It is told the time.
// Not safe for concurrent use.
type planner struct {
	cfg     Config
	limits  enforce.Limits
	t       timing
	streams map[int64]*stream
	pots    []*pot
	loose   []*sub // belong to no pot
	buckets int    // of all streams
	stopped bool
	seen    tally
	out     []action // scratch of turn
}

// stream is one data plane.
type stream struct {
	id     int64
	domain string
	subs   map[string]*sub
}

// tally counts what a service did.
type tally struct {
	reports, refused, unknown, late uint64
	shrinks, growths, renewed       uint64
	denied, abandoned, put          uint64
}

// verb is what a data plane is told to do with a bucket.
type verb uint8

const (
	assign verb = iota
	allow
	deny
	abandon
)

// action is one thing to tell a data plane.
type action struct {
	stream *stream
	id     *pb.BucketId
	verb   verb
	grant  grant
	ttl    int64 // ns
	order  uint8 // shrinks before everything else
}

func newPlanner(cfg Config, limits enforce.Limits) *planner {
	return &planner{
		cfg: cfg, limits: limits, streams: map[int64]*stream{},
		t: timing{int64(cfg.TTL), int64(cfg.Transit)},
	}
}

// open notes a new data plane; false where there are too many.
func (p *planner) open(id int64, domain string) bool {
	if p.stopped || len(p.streams) >= p.cfg.Streams {
		p.seen.refused++
		return false
	}
	p.streams[id] = &stream{id: id, domain: domain, subs: map[string]*sub{}}
	return true
}

// close notes that a stream is lost. What its data plane holds runs out.
func (p *planner) close(now, id int64) {
	st := p.streams[id]
	if st == nil {
		return
	}
	for _, s := range sortedSubs(st) {
		p.drop(now, s)
	}
	delete(p.streams, id)
}

func sortedSubs(st *stream) []*sub {
	subs := make([]*sub, 0, len(st.subs))
	for _, s := range st.subs {
		subs = append(subs, s)
	}
	slices.SortFunc(subs, func(a, b *sub) int { return cmp.Compare(a.key, b.key) })
	return subs
}

// drop forgets a subscription, but not what it may still be spending.
func (p *planner) drop(now int64, s *sub) {
	if s.pot != nil {
		admitted, refused := s.meter.rest()
		s.pot.tell(admitted, refused)
		s.pot.leave(s, now)
	} else {
		p.loose = slices.DeleteFunc(p.loose, func(x *sub) bool { return x == s })
	}
	delete(s.stream.subs, s.key)
	p.buckets--
}

// report takes one usage report. What it says is bounded and nothing of it is kept
// beyond the bounds of Config.
func (p *planner) report(now, id int64, u *pb.RateLimitQuotaUsageReports_BucketQuotaUsage) {
	st := p.streams[id]
	if st == nil {
		return
	}
	p.seen.reports++
	key, pairs, ok := identify(u.GetBucketId())
	if !ok {
		p.seen.refused++
		return
	}
	s := st.subs[key]
	if s == nil {
		if len(st.subs) >= p.cfg.Buckets || p.buckets >= p.cfg.AllBuckets {
			p.seen.refused++
			return
		}
		s = &sub{stream: st, id: u.BucketId, key: key, pairs: pairs, at: now}
		st.subs[key] = s
		p.buckets++
		p.join(now, s)
	}
	elapsed := int64(0)
	if e := u.GetTimeElapsed(); e.IsValid() {
		elapsed = min(max(e.GetSeconds(), 0), 3600) * int64(time.Second)
	}
	s.meter.report(now, units(u.GetNumRequestsAllowed(), s.cost), units(u.GetNumRequestsDenied(), s.cost), elapsed, s.cost)
}

// identify makes one string of a bucket id, whose order does not matter.
func identify(id *pb.BucketId) (key string, pairs []envoy.Pair, ok bool) {
	if len(id.GetBucket()) == 0 || len(id.GetBucket()) > pairsMax {
		return "", nil, false
	}
	size := 0
	for k, v := range id.GetBucket() {
		pairs = append(pairs, envoy.Pair{Key: k, Value: v})
		size += len(k) + len(v)
	}
	if size > idBytesMax {
		return "", nil, false
	}
	slices.SortFunc(pairs, func(a, b envoy.Pair) int { return cmp.Compare(a.Key, b.Key) })
	var b strings.Builder
	for _, x := range pairs { // lengths first, so that no two ids look alike
		for _, part := range [...]string{x.Key, x.Value} {
			b.WriteByte(byte(len(part)))
			b.WriteByte(byte(len(part) >> 8))
			b.WriteString(part)
		}
	}
	return b.String(), pairs, true
}

// join matches a subscription and puts it in its pot.
func (p *planner) join(now int64, s *sub) {
	t, known := p.cfg.Matcher.Find(s.stream.domain, s.pairs)
	if !known {
		p.seen.unknown++
	}
	s.target, s.cost = t, 1
	if t != nil {
		s.cost, s.pot = t.Cost, p.potOf(t)
	}
	if s.pot == nil {
		p.loose = append(p.loose, s)
		return
	}
	s.pot.subs = append(s.pot.subs, s)
	s.at = now
}

// potOf finds or makes a target's pot; nil where there is no such limiter.
func (p *planner) potOf(t *envoy.Target) *pot {
	for _, x := range p.pots {
		if x.budget == t.Budget && x.name == t.Class {
			return x
		}
	}
	x := &pot{budget: t.Budget, name: t.Class, who: p.cfg.Name}
	if !x.find(p.limits) {
		return nil
	}
	p.pots = append(p.pots, x)
	return x
}

// renew puts another configuration and other limiters in force.
func (p *planner) renew(now int64, cfg Config, limits enforce.Limits) {
	p.cfg, p.limits = cfg, limits
	p.t = timing{int64(cfg.TTL), int64(cfg.Transit)} // what is out lasts as long as it was sent for
	p.pots = slices.DeleteFunc(p.pots, func(x *pot) bool {
		if x.find(limits) {
			return false
		}
		for _, s := range slices.Clone(x.subs) {
			p.abandon(now, s)
		}
		return true
	})
	for _, id := range slices.Sorted(maps.Keys(p.streams)) {
		st := p.streams[id]
		for _, s := range sortedSubs(st) {
			t, _ := cfg.Matcher.Find(st.domain, s.pairs)
			if s.target != nil && t != nil && s.target.Budget == t.Budget && s.target.Class == t.Class && s.target.Cost == t.Cost {
				s.target = t
				continue
			}
			p.abandon(now, s)
		}
	}
}

// abandon tells a data plane to forget a bucket. If it is wanted again it is
// reported again.
func (p *planner) abandon(now int64, s *sub) {
	p.out = append(p.out, action{stream: s.stream, id: s.id, verb: abandon})
	p.seen.abandoned++
	p.drop(now, s)
}

// turn decides what is to be sent now. Each action has to leave within half of
// Transit. The slice is valid until the next call.
func (p *planner) turn(now int64) []action {
	pending := p.out // what renew abandoned
	p.out = nil
	p.evictIdle(now, p.loose)
	for _, x := range p.pots {
		p.evictIdle(now, x.subs)
		x.hear(now)
		p.settle(now, x)
	}
	p.blankets(now, p.loose, gate.UnknownAllow == p.cfg.OnUnknown)
	p.out = append(pending, p.out...)
	slices.SortStableFunc(p.out, func(a, b action) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.stream.id, b.stream.id))
	})
	out := p.out
	p.out = nil
	return out
}

// evictIdle abandons buckets that nobody has asked for in a while.
func (p *planner) evictIdle(now int64, subs []*sub) {
	for i := len(subs) - 1; i >= 0; i-- {
		if s := subs[i]; now-s.meter.busy > int64(p.cfg.Idle) {
			p.abandon(now, s)
		}
	}
}

// settle plans one pot and, once its new profile is carved out, sends what
// follows from it.
func (p *planner) settle(now int64, x *pot) {
	if x.limiter.Shadow() || p.cfg.Shadow {
		x.release(now)
		p.blankets(now, x.subs, true)
		return
	}
	if !x.limiter.Carving() {
		// From the next turn on: whoever sets the schedule may be about to lower it,
		// and has to know first.
		x.limiter.Carvable(now, x.class, x.who, now)
		return
	}
	ttl := p.ttlFor(now, x)
	horizon := p.t.horizon(now, ttl)
	total := x.limiter.Carvable(now, x.class, x.who, horizon)
	if p.stopped {
		total = 0
	}
	x.plan(now, total, p.t, p.stopped)
	if !x.limiter.Carve(now, x.class, x.who, x.profile(now, horizon)) {
		p.seen.put++ // the share changed meanwhile: the next turn knows
		return
	}
	for _, s := range x.subs {
		p.send(now, s, ttl, horizon)
	}
}

// ttlFor is the longest time to live for which the share is certain, if that is
// as much as is needed; else the shortest, for which leases may suffice.
func (p *planner) ttlFor(now int64, x *pot) int64 {
	if p.t.ttl <= shortest {
		return p.t.ttl
	}
	var need allocator.Rate
	for _, s := range x.subs {
		need += max(s.reserved, s.meter.used)
	}
	long := x.limiter.Carvable(now, x.class, x.who, p.t.horizon(now, p.t.ttl))
	short := x.limiter.Carvable(now, x.class, x.who, p.t.horizon(now, shortest))
	if long >= min(need, short) {
		return p.t.ttl
	}
	return shortest
}

// send puts a draft in force, or renews what is.
func (p *planner) send(now int64, s *sub, ttl, horizon int64) {
	s.reserved, s.saved = s.next.reserved, s.next.saved
	a := action{stream: s.stream, id: s.id, ttl: ttl, order: 1}
	switch {
	case s.next.send:
		if s.next.give.rate(s.cost) < s.now.rate(s.cost) {
			p.seen.shrinks++
			a.order = 0
		} else {
			p.seen.growths++
		}
		s.now = s.next.give
	case !s.next.live:
		return
	case s.told && now-s.sentAt >= ttl/renewals:
		p.seen.renewed++
	case !s.told && !s.next.due && s.reserved == 0 && now-s.sentAt >= ttl/renewals:
		// Nothing is to be had: it should not go by its own default. One that waits
		// for what others still hold may have an assignment of a former stream.
		s.now = grant{}
	default:
		return
	}
	s.told, s.sentAt, s.ttl = true, now, ttl
	a.grant = s.now
	if s.now.fill == 0 {
		a.verb = deny
		p.seen.denied++
	}
	s.holds = withHold(dropOver(s.holds, now), enforce.Hold{Until: horizon, Rate: s.now.rate(s.cost)})
	p.out = append(p.out, a)
}

// blankets lets everything pass, or nothing: for buckets that belong to no pot,
// and in shadow mode.
func (p *planner) blankets(now int64, subs []*sub, pass bool) {
	a := action{verb: deny, ttl: p.t.ttl, order: 1}
	if pass || p.cfg.Shadow {
		a.verb = allow
	}
	for _, s := range subs {
		if p.stopped || s.meter.silent(now) || s.told && now-s.sentAt < p.t.ttl/renewals {
			continue
		}
		s.told, s.sentAt, s.ttl, s.now = true, now, p.t.ttl, grant{}
		a.stream, a.id = s.stream, s.id
		p.out = append(p.out, a)
	}
}

// idle reports whether there is nothing to do until somebody reports: nobody is
// there and nothing runs out any more.
func (p *planner) idle(now int64) bool {
	return len(p.streams) == 0 && p.outstanding(now) == 0
}

// outstanding is what all data planes together may be spending.
func (p *planner) outstanding(now int64) (sum allocator.Rate) {
	for _, x := range p.pots {
		sum += x.held(now)
	}
	return sum
}
