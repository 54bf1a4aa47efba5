package enforce

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"subak/allocator"
)

// MaxClasses is the highest number of classes of one budget.
const MaxClasses = 64

// LimiterConfig says how one budget is enforced on one node.
type LimiterConfig struct {
	// Classes is the number of classes, 1..MaxClasses, highest priority first.
	Classes int
	// Burst sizes every bucket: rate x Burst, so that the bursts of all nodes
	// add up to the budget's limit x Burst. 0 means DefaultBurst. Raising it
	// lets the origin see higher peaks.
	Burst time.Duration
	// LargestCost is the cost, in units, that a bucket with any rate at all must
	// be able to pay one day: the least size of a bucket. 0 means 1. Raising it
	// lets dearer requests through small shares, and adds that many units per
	// node to the bound where rate x Burst is smaller.
	LargestCost int64
	// Revocable lets a class whose bucket is empty take another class's tokens
	// above half of that bucket. Class buckets then hold at least two of
	// LargestCost, so that the half kept is worth something to its owner; so does
	// the budget's where two classes or more have a rate.
	Revocable bool
	// Lends[k] and Borrows[k] say whether class k takes part in that, on either
	// side. nil means that every class does.
	Lends, Borrows []bool
	// Shadow decides and counts as usual and lets everything pass.
	Shadow bool
	// Clients is the number of refusals remembered so that a client's retries do
	// not count as demand; rounded up to a power of two. 0 means DefaultClients,
	// negative means none. 8 bytes each.
	Clients int
	// Cores is how many goroutines may decide at the same time without sharing
	// counters: 128 bytes for each, rounded up to a power of two, and class. 0
	// means GOMAXPROCS; at most 64. With 1 no class is ever leased to cores.
	Cores int
	// Tenants bounds single tenants of class k by Tenants[k]; nil means none of
	// any class, as does the zero TenantConfig of one.
	Tenants []TenantConfig
}

// Defaults of LimiterConfig.
const (
	DefaultBurst   = time.Second
	DefaultClients = 1 << 14
)

// Validate returns every fault of the configuration.
func (c LimiterConfig) Validate() error {
	var errs []error
	if c.Classes < 1 || c.Classes > MaxClasses {
		errs = append(errs, fmt.Errorf("classes %d: want 1..%d", c.Classes, MaxClasses))
	}
	if c.Burst < 0 {
		errs = append(errs, fmt.Errorf("burst %v: want a positive duration", c.Burst))
	}
	if c.LargestCost < 0 || c.LargestCost > MaxCost {
		errs = append(errs, fmt.Errorf("largest cost %d: want 1..%d", c.LargestCost, int64(MaxCost)))
	}
	if c.Cores < 0 {
		errs = append(errs, fmt.Errorf("cores %d: want 0 or more", c.Cores))
	}
	if c.Clients > 1<<26 {
		errs = append(errs, fmt.Errorf("clients %d: want at most %d", c.Clients, 1<<26))
	}
	for _, m := range [][]bool{c.Lends, c.Borrows} {
		if m != nil && len(m) != c.Classes {
			errs = append(errs, fmt.Errorf("lends or borrows has %d entries for %d classes", len(m), c.Classes))
		}
	}
	if c.Tenants != nil && len(c.Tenants) != c.Classes {
		errs = append(errs, fmt.Errorf("tenants has %d entries for %d classes", len(c.Tenants), c.Classes))
	}
	for k, t := range c.Tenants {
		if err := t.validate(); err != nil {
			errs = append(errs, fmt.Errorf("tenants[%d]: %w", k, err))
		}
	}
	return errors.Join(errs...)
}

// Limiter enforces one budget on one node. The zero value is unusable.
type Limiter struct {
	// Read-only after NewLimiter, apart from seg, which changes with the share.
	seg     atomic.Pointer[segment]
	cells   []cell   // [0] the budget, [1+k] class k
	stripes []stripe // [core<<shift+k]
	mask    int      // of a core's number: one less than a power of two
	shift   uint     // 1<<shift is at least classes
	cores   int      // a power of two
	classes int
	lends   []bool // nil when nothing is revocable
	borrows []bool
	shadow  bool
	retries *retryTable // nil when off
	tenants []*tenants  // by class, nil where a class has none; nil when all have
	shape   shape

	_       [64]byte
	changes atomic.Uint64 // what was remembered about empty buckets before is over
	lost    atomic.Int64  // units of leases that ended with their segment and were not given back
	_       [64]byte

	setting sync.Mutex // serialises SetSchedule and guards what follows
	newest  int64      // the newest reading of a call
	last    int64      // the reading of the last call
	behind  int        // calls in a row with readings behind newest, in order
	carving carving
}

// cell is the word of one bucket. All words of a limiter are next to each other:
// a decision that charges two of them wants one line, not two.
type cell struct {
	used atomic.Uint64 // credit spent, micro-units
}

// newCells returns n words that share their lines with nothing else.
func newCells(n int) []cell {
	const line = 128 / 8
	return make([]cell, (n+line-1)/line*line)[:n:n]
}

// NewLimiter returns a limiter that refuses everything until its first
// SetSchedule, and whose buckets begin empty: a restarted node grants no fresh
// burst. It panics where cfg.Validate returns an error.
func NewLimiter(cfg LimiterConfig, now int64) *Limiter {
	if err := cfg.Validate(); err != nil {
		panic("enforce: " + err.Error())
	}
	l := &Limiter{
		cells: newCells(1 + cfg.Classes), classes: cfg.Classes, cores: coresFor(cfg.Cores),
		shadow: cfg.Shadow,
		shape:  shape{burst: cfg.Burst, largest: max(cfg.LargestCost, 1), lending: cfg.Revocable, cores: coresFor(cfg.Cores)},
	}
	l.mask, l.shift = l.cores-1, uint(bits.Len(uint(l.classes-1)))
	l.stripes = make([]stripe, l.cores<<l.shift)
	if cfg.Burst == 0 {
		l.shape.burst = DefaultBurst
	}
	if cfg.Revocable {
		l.lends, l.borrows = orAll(cfg.Lends, cfg.Classes), orAll(cfg.Borrows, cfg.Classes)
	}
	if cfg.Clients == 0 {
		cfg.Clients = DefaultClients
	}
	if cfg.Clients > 0 {
		l.retries = newRetryTable(cfg.Clients)
	}
	l.tenants = newTenants(l, cfg, now)
	l.changes.Store(1) // 0 is nobody's
	l.newest, l.last = now, now
	l.seg.Store(l.shape.chain(make([]point, 1+cfg.Classes), now, clean(now, nil, cfg.Classes)))
	return l
}

func orAll(m []bool, n int) []bool {
	out := make([]bool, n)
	for k := range out {
		out[k] = m == nil || m[k]
	}
	return out
}

// SetSchedule puts a new share in force from now on and returns when every
// later Decide obeys it, so that the row that depends on a lowering may leave
// (conservation.md A5, L4). Tokens carry over and are clamped, never topped up.
// Totals should not rise from step to step. Steps already over are skipped, bad
// rates are clamped to [0, MaxRate], and after the last step nothing is granted.
//
// A reading behind that of an earlier call is taken for an old one, from
// a goroutine that was paused, and counts as the newest: going back would credit
// the time in between twice. Only steppedAfter of them in a row, which fewer
// callers than that cannot make by being late, mean that the clock itself stepped
// back; credit then goes on from the new reading, with nothing gained (lesson
// O10). CLOCK_BOOTTIME never does that.
func (l *Limiter) SetSchedule(now int64, steps []Step) {
	l.setting.Lock()
	defer l.setting.Unlock()
	switch {
	case now >= l.newest:
		l.behind = 0
	case now < l.last:
		l.behind = 1
	default:
		l.behind++
	}
	l.last = now
	l.install(now, l.carving.follow(now, clean(now, steps, l.classes)))
	if now >= l.newest || l.behind >= steppedAfter {
		l.newest, l.behind = now, 0
	}
}

// install puts a cleaned schedule in force, with l.setting held.
func (l *Limiter) install(now int64, steps []Step) {
	for {
		s := l.unlet(now)
		t := max(now, s.t0) // a Decide with a later reading may have been here
		if l.behind >= steppedAfter {
			t = now
		}
		n := l.shape.chain(s.points(t), t, steps)
		l.clamp(s, n)
		if l.seg.CompareAndSwap(s, n) {
			l.changes.Add(1)
			l.followTenants(n)
			return
		}
	}
}

// steppedAfter is how many calls of SetSchedule in a row must be behind for the
// clock to have stepped back.
const steppedAfter = 3

// advance returns the segment in force at now, and makes it the current one.
func (l *Limiter) advance(now int64) *segment {
	for {
		s := l.seg.Load()
		if now < s.until || s.until == math.MaxInt64 {
			return s
		}
		n := s.next
		if n == nil {
			t := s.until
			if len(s.rest) == 1 {
				t = now // one rate from here on, however long nobody asked
			}
			n = l.shape.chain(s.points(t), t, s.rest)
		}
		l.clamp(s, n)
		l.seg.CompareAndSwap(s, n)
	}
}

// clamp lets no bucket carry more from one segment to the next than the smaller
// of its two caps. Everyone who enters n does this first, so it holds whoever
// wins; doing it twice changes nothing.
func (l *Limiter) clamp(s, n *segment) {
	for b := range l.cells {
		floor := n.lines[b].c0 - min(s.lines[b].cap, n.lines[b].cap)
		for {
			u := l.cells[b].used.Load()
			if int64(floor-u) <= 0 || l.cells[b].used.CompareAndSwap(u, floor) {
				break
			}
		}
	}
}

// Share returns the total rate enforced at now and puts the class rates in dst.
func (l *Limiter) Share(now int64, dst []allocator.Rate) allocator.Rate {
	s := l.advance(now)
	for k := range min(len(dst), len(s.lines)-1) {
		dst[k] = s.lines[1+k].rate
	}
	return s.lines[0].rate
}

// Quota is what a class of this node may spend, for headers and people.
type Quota struct {
	Rate   allocator.Rate // the class's rate
	Cap    int64          // whole units the bucket holds at most
	Tokens int64          // whole units it holds now, bounded by the budget's own
	Full   time.Duration  // until the bucket is full again; NoToken when it never is
}

// Quota returns the state of class k's bucket at now; the zero Quota for an
// unknown class.
func (l *Limiter) Quota(now int64, class int) Quota {
	if uint(class) >= uint(l.classes) {
		return Quota{}
	}
	s := l.advance(now)
	dt := max(now-s.t0, 0)
	ln := &s.lines[1+class]
	have := l.tokens(s, 1+class, dt)
	most := int64(ln.cap)
	if s.exact != nil {
		most = int64(s.exact.lines[1+class].cap)
	}
	q := Quota{
		Rate: ln.rate, Cap: most / unit,
		Tokens: max(0, min(have, l.tokens(s, 0, dt))) / unit,
		Full:   NoToken,
	}
	if ln.mult > 0 {
		q.Full = time.Duration(timeFor(most-have, ln.mult))
	}
	return q
}

// tokens returns what bucket b holds, in micro-units; negative in debt.
func (l *Limiter) tokens(s *segment, b int, dt int64) int64 {
	ln := &s.lines[b]
	return min(int64(ln.at(dt)-l.cells[b].used.Load()), int64(ln.cap)) + l.held(s, b)
}

// NoToken is what RetryAfter says when no token is in sight: the share is 0, or
// the cost is above what the bucket can hold. Shares follow demand within
// a second or so, so it is worth asking again.
const NoToken = 10 * time.Second

// RetryAfter returns how long after now a request of this class and cost could
// pass if nobody else took the tokens: the first instant when class and budget
// both hold enough, by the schedule in force. At most one hour; NoToken when
// there is no such instant.
func (l *Limiter) RetryAfter(now int64, class int, cost int64) time.Duration {
	if uint(class) >= uint(l.classes) || cost < 1 || cost > MaxCost {
		return NoToken
	}
	s := l.advance(now)
	wait, ok := l.wait(s, 1+class, now, cost*unit)
	total, ok2 := l.wait(s, 0, now, cost*unit)
	if !ok || !ok2 {
		return NoToken
	}
	return time.Duration(min(max(wait, total), int64(time.Hour)))
}

// wait returns the nanoseconds until bucket b holds cost micro-units, and false
// when it never will.
func (l *Limiter) wait(s *segment, b int, now, cost int64) (int64, bool) {
	t := max(now, s.t0)
	need := cost - l.tokens(s, b, t-s.t0)
	if need <= 0 {
		return max(t-now, 0), true
	}
	need++ // an anchor on the way can hide the fraction of a micro-unit
	for ; s != nil; s = s.next {
		ln := &s.lines[b]
		if uint64(cost) > ln.cap {
			return 0, false
		}
		d := int64(math.MaxInt64)
		if ln.mult > 0 {
			d = timeFor(need, ln.mult)
		}
		if d < s.until-t || s.next == nil && ln.mult > 0 {
			return satAdd(t-now, d), true
		}
		need = max(1, need-int64(ln.pointAt(s.until-t).credit-ln.c0))
		t = s.until
	}
	return 0, false
}

// timeFor returns the nanoseconds that a slope takes for some micro-units,
// rounded up, at most MaxInt64.
func timeFor(micro int64, mult uint64) int64 {
	if micro <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(micro), 1<<shift)
	lo, carry := bits.Add64(lo, mult-1, 0)
	hi += carry
	if hi >= mult {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, mult)
	return int64(min(q, math.MaxInt64))
}

func satAdd(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}

// Counts are cumulative figures of one class, in units of cost.
// Offered = Admitted + Refused - Retries - Excess: the demand.
type Counts struct {
	Offered  int64
	Admitted int64
	Refused  int64 // in shadow mode: would have been
	Borrowed int64 // the part of Admitted that another class's tokens paid for
	Retries  int64 // the part of Admitted and Refused that was offered before
	Excess   int64 // the part of Refused that single tenants had no right to
}

// Counts fills dst, one entry per class. The figures are read one after the
// other, so a decision in flight can be in one and not yet in another; each only
// ever grows.
func (l *Limiter) Counts(dst []Counts) {
	for k := range min(len(dst), l.classes) {
		var adm, ref, admAgain, refAgain, borrowed int64
		for i := k; i < len(l.stripes); i += 1 << l.shift {
			c := &l.stripes[i]
			adm, ref, borrowed = adm+c.admitted.Load(), ref+c.refused.Load(), borrowed+c.borrowed.Load()
			admAgain, refAgain = admAgain+c.again.admitted.Load(), refAgain+c.again.refused.Load()
		}
		excess := l.TenantCounts(k).Refused
		dst[k] = Counts{
			Offered: adm + ref, Admitted: adm + admAgain, Refused: ref + refAgain + excess,
			Borrowed: borrowed, Retries: admAgain + refAgain, Excess: excess,
		}
	}
}

// Classes returns the number of classes.
func (l *Limiter) Classes() int { return l.classes }
