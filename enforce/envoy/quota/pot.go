package quota

import (
	"cmp"
	"slices"
	"time"

	"subak/allocator"
	"subak/enforce"
)

// pot is one class of one budget, and the subscriptions that share it.
type pot struct {
	budget, name string // of budget and class
	who          string // the service's, as a carver
	limiter      *enforce.Limiter
	class        int
	burst        time.Duration
	subs         []*sub // in order of arrival
	// left are the holds of subscriptions that are gone, as what ends when.
	left []enforce.Hold // Rate ends at Until; Until rises
	told int64          // units of demand told to the limiter
	own  ownDoors
}

// ownDoors estimates the demand that other doors of the node have for the class.
type ownDoors struct {
	seen   int64 // units offered in all, what was told apart
	at     int64
	smooth allocator.Rate
	used   allocator.Rate // what the split goes by: smooth within a tenth
}

const ownEvery = int64(200 * time.Millisecond)

func (o *ownDoors) note(now, offered int64) {
	if o.at == 0 {
		o.seen, o.at = offered, now
		return
	}
	gap := now - o.at
	if gap < ownEvery {
		return
	}
	fresh := perSecond(min(max(offered-o.seen, 0), countMax)*unit, gap)
	o.seen, o.at = offered, now
	if fresh > 2*o.smooth {
		o.smooth = fresh
	} else {
		o.smooth += (fresh - o.smooth) / 8
	}
	if o.smooth < allocator.Rate(unit)/100 {
		o.smooth = 0
	}
	if d := o.smooth - o.used; max(d, -d) > o.used/10 {
		o.used = o.smooth
	}
}

// find looks the limiter up; false where there is none.
func (p *pot) find(limits enforce.Limits) bool {
	l, class, ok := limits.Limiter(p.budget, p.name)
	if ok {
		p.limiter, p.class, p.burst = l, class, l.Burst()
	}
	return ok
}

// hear passes the reports on to the demand meter, and notes what the own doors
// were asked for.
func (p *pot) hear(now int64) {
	for _, s := range p.subs {
		admitted, refused := s.meter.tell(now)
		p.tell(admitted, refused)
	}
	counts := make([]enforce.Counts, p.class+1)
	p.limiter.Counts(counts)
	p.own.note(now, counts[p.class].Offered-p.told)
}

func (p *pot) tell(admitted, refused int64) {
	p.limiter.Report(p.class, admitted, refused)
	p.told += admitted + refused
}

// release gives the pot back to the node as what is out runs out.
func (p *pot) release(now int64) {
	for _, s := range p.subs {
		s.next, s.reserved, s.saved, s.now = draft{}, 0, 0, grant{}
	}
	p.limiter.Carve(now, p.class, p.who, p.profile(now, now))
}

// leave keeps what a subscription may still be spending.
func (p *pot) leave(s *sub, now int64) {
	s.held(now)
	for i, h := range s.holds {
		if i+1 < len(s.holds) {
			h.Rate -= s.holds[i+1].Rate
		}
		at, found := slices.BinarySearchFunc(p.left, h, func(a, b enforce.Hold) int { return cmp.Compare(a.Until, b.Until) })
		if found {
			p.left[at].Rate += h.Rate
		} else {
			p.left = slices.Insert(p.left, at, h)
		}
	}
	s.holds = nil
	p.subs = slices.DeleteFunc(p.subs, func(x *sub) bool { return x == s })
}

// stranded is what subscriptions that are gone may still be spending.
func (p *pot) stranded(now int64) (sum allocator.Rate) {
	p.left = dropOver(p.left, now)
	for _, h := range p.left {
		sum += h.Rate
	}
	return sum
}

// held is what all data planes may be spending of the pot.
func (p *pot) held(now int64) allocator.Rate {
	sum := p.stranded(now)
	for _, s := range p.subs {
		sum += s.held(now)
	}
	return sum
}

// profile is what all may be spending until each instant, with the drafts sent
// and their reservations kept until horizon.
func (p *pot) profile(now, horizon int64) []enforce.Hold {
	ends := map[int64]allocator.Rate{}
	for _, h := range dropOver(p.left, now) {
		ends[h.Until] += h.Rate
	}
	for _, s := range p.subs {
		holds := dropOver(s.holds, now)
		if s.next.reserved > 0 {
			holds = withHold(holds, enforce.Hold{Until: horizon, Rate: s.next.reserved})
		}
		for i, h := range holds {
			if i+1 < len(holds) {
				h.Rate -= holds[i+1].Rate
			}
			ends[h.Until] += h.Rate
		}
	}
	out := make([]enforce.Hold, 0, len(ends))
	for until, rate := range ends {
		out = append(out, enforce.Hold{Until: until, Rate: rate})
	}
	slices.SortFunc(out, func(a, b enforce.Hold) int { return cmp.Compare(a.Until, b.Until) })
	for i := len(out) - 2; i >= 0; i-- {
		out[i].Rate += out[i+1].Rate
	}
	return out
}

// plan drafts what each subscription is to have, so that all fits into total, the
// rate that the pot may have carved out until the horizon. A shrink is drafted
// where the sum is over or somebody lacks; growth takes what nobody may be
// spending now.
func (p *pot) plan(now int64, total allocator.Rate, t timing, stopped bool) {
	live := p.renewable(now, t, stopped)
	demand := p.demands(live, total)
	share := due(demand, total)
	total -= share[len(live)] // the own doors'
	aims := make([]allocator.Rate, len(live))
	lacks := make([]allocator.Rate, len(live))
	over := -total
	for i, s := range live {
		s.next.due = share[i] > 0
		aims[i] = p.aim(s, share[i], total, len(live))
		lacks[i] = p.lack(s.next.reserved, aims[i], min(share[i], demand[i]-demand[i]/9))
		over += s.next.reserved + lacks[i]
	}
	p.cut(now, live, share, over, t)
	free := total - p.stranded(now)
	for _, s := range p.subs {
		free -= max(s.held(now), s.next.reserved)
	}
	gains := make([]allocator.Rate, len(live))
	for i, s := range live {
		if s.next.send {
			lacks[i] = 0 // was cut
		}
	}
	fill(gains, lacks, max(0, free))
	for i, s := range live {
		s.next.reserved += gains[i]
		if !s.next.send && s.next.reserved > s.now.rate(s.cost) {
			s.enlarge()
		}
	}
}

// renewable returns the subscriptions that assignments may be sent to, with
// empty drafts. The others run out.
func (p *pot) renewable(now int64, t timing, stopped bool) []*sub {
	live := make([]*sub, 0, len(p.subs))
	for _, s := range p.subs {
		s.accrue(now)
		if s.told && now-s.sentAt > t.surely(s.ttl) {
			s.told, s.now = false, grant{} // it may have run out: the next one is a new bucket
		}
		s.next = draft{reserved: s.reserved, saved: s.saved}
		if stopped || s.meter.silent(now) {
			s.next.reserved, s.reserved = 0, 0
			continue
		}
		s.next.live = true
		live = append(live, s)
	}
	return live
}

// demands are what live want, and the own doors at the end: an eighth above
// demand, which is not known better than that. One that asks for nothing counts as one request per second, that it may begin, but all of
// those not as more than an eighth of total.
func (p *pot) demands(live []*sub, total allocator.Rate) []allocator.Rate {
	out := make([]allocator.Rate, len(live)+1)
	for i, s := range live {
		floor := min(allocator.Rate(s.cost*unit), total/8/allocator.Rate(len(live)))
		out[i] = min(max(s.meter.used+s.meter.used/8, floor), demandMax)
	}
	out[len(live)] = min(p.own.used+p.own.used/8, demandMax)
	return out
}

// demandMax is a demand beyond every share, of which the parties of a pot can be
// added up.
const demandMax = enforce.MaxRate

// aim is how far a reservation grows: to what is due, though not to more than
// twice the demand or a part that leaves room for newcomers.
func (p *pot) aim(s *sub, share, total allocator.Rate, n int) allocator.Rate {
	return min(share, max(2*s.meter.used, total/allocator.Rate(2*(n+1))))
}

// lack is what a reservation should grow by: nothing while demand is met, or
// where it is not worth a new bucket.
func (p *pot) lack(have, aim, met allocator.Rate) allocator.Rate {
	if have >= met || aim-have <= max(have/1024, allocator.Rate(unit)/100) {
		return 0
	}
	return aim - have
}

// cut takes over off reservations above their due, the largest excess first. What
// was not sent yet goes at once, what was sent needs a smaller bucket.
func (p *pot) cut(now int64, live []*sub, share []allocator.Rate, over allocator.Rate, t timing) {
	order := make([]int, 0, len(live))
	for i, s := range live {
		if s.next.reserved > share[i] {
			order = append(order, i)
		}
	}
	excess := func(i int) allocator.Rate { return live[i].next.reserved - share[i] }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(excess(b), excess(a)) })
	for _, i := range order {
		s := live[i]
		if over <= 0 {
			return
		}
		had := s.next.reserved
		to := max(share[i], had-over)
		if sent := s.now.rate(s.cost); to >= sent {
			s.next.reserved = to
		} else {
			s.shrink(to, s.sure(now, t))
		}
		over -= had - s.next.reserved
	}
}

// sure is for how long the newest hold outlives the bucket it was for, if
// that is replaced by one sent now.
func (s *sub) sure(now int64, t timing) int64 {
	if len(s.holds) == 0 {
		return 0
	}
	return max(0, s.holds[len(s.holds)-1].Until-now-t.transit)
}
