package quota

import (
	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/envoy"
)

// sub is one bucket of one stream: a subscription to assignments.
type sub struct {
	stream *stream
	id     *pb.BucketId
	key    string
	pairs  []envoy.Pair // of id, sorted by key
	target *envoy.Target
	pot    *pot // nil: blanket is all there is to say
	cost   int64

	meter meter

	now    grant          // newest one sent; the zero grant where none or a refusal was
	told   bool           // anything was sent that the data plane surely still has
	sentAt int64          // when now was sent or renewed
	ttl    int64          // ns; of what was sent then
	holds  []enforce.Hold // what it may be enforcing: Until rises, Rate falls
	// reserved is the part of the pot that is kept for it: at least the rate of
	// now, more while the first tokens of a larger bucket are saved up.
	reserved allocator.Rate
	saved    int64 // micro-units
	at       int64 // when saved was brought up to date
	next     draft
}

// draft is what the plan under way wants to send.
type draft struct {
	live     bool // assignments may be sent to it
	due      bool // it has something to wait for
	send     bool
	give     grant
	reserved allocator.Rate
	saved    int64
}

// held returns the highest rate that the data plane may be enforcing.
func (s *sub) held(now int64) allocator.Rate {
	s.holds = dropOver(s.holds, now)
	if len(s.holds) == 0 {
		return 0
	}
	return s.holds[0].Rate
}

func dropOver(holds []enforce.Hold, now int64) []enforce.Hold {
	n := 0
	for n < len(holds) && holds[n].Until <= now {
		n++
	}
	return holds[n:]
}

// withHold returns holds and one more, of a rate sent now. What ends sooner and
// is not more is part of it.
func withHold(holds []enforce.Hold, h enforce.Hold) []enforce.Hold {
	n := len(holds)
	for n > 0 && holds[n-1].Rate <= h.Rate {
		h.Until = max(h.Until, holds[n-1].Until)
		n--
	}
	if h.Rate == 0 || n > 0 && holds[n-1].Until >= h.Until {
		return holds[:n:n]
	}
	return append(holds[:n:n], h)
}

// accrue saves what was reserved and surely not enforced since the last call. What
// it holds at most is the part of the budget's burst that its bucket leaves.
func (s *sub) accrue(now int64) {
	spare := s.reserved - s.held(s.at)
	s.saved += earned(spare, now-s.at)
	room := earned(s.reserved, int64(s.pot.burst))*3/burstParts - int64(s.now.tokens)*s.cost*unit
	s.saved = min(s.saved, max(room, int64(usual(s.reserved, s.cost, s.pot.burst))*s.cost*unit))
	s.at = now
}

// enlarge drafts a larger bucket if its first tokens are saved up.
func (s *sub) enlarge() bool {
	g := express(s.next.reserved, s.cost)
	g.tokens = usual(s.next.reserved, s.cost, s.pot.burst)
	price := int64(g.tokens) * s.cost * unit
	if g.rate(s.cost) <= s.now.rate(s.cost) || s.saved < price {
		return false
	}
	s.next.send, s.next.give, s.next.saved = true, g, s.saved-price
	return true
}

// shrink drafts a bucket of at most the given rate, and as much below it as
// pays for at least half of the tokens that it should begin with: the former
// bucket's reservation outlives it by sure nanoseconds. It reports the rate.
func (s *sub) shrink(to allocator.Rate, sure int64) {
	was := s.now.rate(s.cost)
	rate := min(to, s.affordable(was, sure))
	g := express(rate, s.cost)
	rate = g.rate(s.cost)
	purse := s.saved + earned(was-rate, sure)
	g.tokens = min(usual(rate, s.cost, s.pot.burst), uint32(min(purse/(s.cost*unit), 1<<31)))
	if g.tokens == 0 || g.fill == 0 {
		g, rate = grant{}, 0
	}
	s.next = draft{live: true, due: true, send: true, give: g, reserved: rate, saved: max(0, s.saved-int64(g.tokens)*s.cost*unit)}
}

// affordable is the rate r at which saved + (was-r)*sure is worth r for half a
// bucket's time, and at least one token.
func (s *sub) affordable(was allocator.Rate, sure int64) allocator.Rate {
	half := int64(s.pot.burst) / (2 * burstParts)
	purse := earned(was, sure) + s.saved
	if purse < s.cost*unit || sure+half <= 0 {
		return 0
	}
	r := perSecond(purse, sure+half)
	if sure > 0 {
		r = min(r, was-perSecond(max(0, s.cost*unit-s.saved), sure)-1)
	}
	return max(0, r)
}

// perSecond is the rate that comes to micro-units in ns nanoseconds, rounded down.
func perSecond(micro, ns int64) allocator.Rate {
	return allocator.Rate(mulDiv(uint64(micro), 1e9, uint64(ns)))
}
