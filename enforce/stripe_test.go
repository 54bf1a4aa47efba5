package enforce

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/chaos/bound"
	"subak/enforce/keyed"
)

// Rates here are whole micro-units per nanosecond, so that nothing is rounded:
// kilo x 1000 units/s.
const kilo = 1000 * allocator.Unit

func sharesOf(rates ...int64) []Step {
	st := Step{Until: math.MaxInt64}
	for _, r := range rates {
		st.Classes = append(st.Classes, allocator.Rate(r)*kilo)
		st.Total += allocator.Rate(r) * kilo
	}
	return []Step{st}
}

// leased makes leases begin for a class, as busy does for a busy core.
func (l *Limiter) leaseNow(now int64, class int) {
	l.setting.Lock()
	defer l.setting.Unlock()
	l.relet(now, 1<<class, 0)
}

// between is the model of one bucket: at least lo and at most hi micro-units are
// there, stripes included. Above is the bucket without leases. Below is one that
// holds less while there are leases, and that loses those which end by the clock.
type between struct{ lo, hi, rate, cap int64 }

func (b *between) gain(dt int64, less int64) {
	b.lo = max(min(b.lo+b.rate*dt, b.cap-less), min(b.lo, b.cap))
	b.hi = min(b.hi+b.rate*dt, b.cap)
}

// world is a limiter with several cores beside its model.
type world struct {
	l       *Limiter
	now     int64
	buckets []between
	steps   []Step
	spent   []bound.Admission
	paid    []Verdict
}

// less is by how much the cap of bucket b is lower while there are leases.
func (w *world) less(b int) int64 {
	s := w.l.seg.Load()
	if s.exact == nil {
		return 0
	}
	return int64(s.exact.lines[b].cap - s.lines[b].cap)
}

func (w *world) rateOf(b int, now int64) int64 {
	for i := range w.steps {
		if now < w.steps[i].Until {
			return int64(w.steps[i].rateOf(b) / 1e9)
		}
	}
	return 0
}

// pass lets time pass, step by step of the schedule.
func (w *world) pass(dt int64) {
	for end := w.now + dt; w.now < end; {
		s := w.l.seg.Load()
		until := min(end, s.until)
		if s.until <= w.now {
			until = end
		}
		for b := range w.buckets {
			w.buckets[b].gain(until-w.now, w.less(b))
			if until == s.until { // what lies in stripes then is lost
				w.buckets[b].lo -= w.l.held(s, b)
			}
		}
		w.now = until
		w.l.advance(w.now)
		w.follow()
	}
}

// follow takes rates and caps from the schedule; caps clamp.
func (w *world) follow() {
	for b := range w.buckets {
		x := &w.buckets[b]
		x.rate = w.rateOf(b, w.now)
		x.cap = x.rate * 1e9
		x.lo, x.hi = min(x.lo, x.cap), min(x.hi, x.cap)
	}
}

func (w *world) set(steps []Step) {
	w.l.SetSchedule(w.now, steps)
	w.steps = steps
	w.follow()
}

func (w *world) decide(t *rapid.T, core, class int, cost int64) {
	c := w.l.stripeOf(core, class)
	v := w.l.judgeOn(c, w.now, class, cost)
	own, all := &w.buckets[1+class], &w.buckets[0]
	need := cost * unit
	if v.Reason != Admitted {
		if own.lo >= need && all.lo >= need {
			t.Fatalf("class %d refused %d by core %d (%v): at least %d and %d there", class, cost, core, v.Reason, own.lo, all.lo)
		}
		return
	}
	if own.hi < need || all.hi < need {
		t.Fatalf("class %d paid %d by core %d: at most %d and %d there", class, cost, core, own.hi, all.hi)
	}
	for _, b := range []*between{own, all} {
		b.lo, b.hi = b.lo-need, b.hi-need
	}
	w.spent, w.paid = append(w.spent, bound.Admission{At: w.now, Cost: cost}), append(w.paid, v)
}

// check compares all that is there, in words and in stripes, with the model.
func (w *world) check(t *rapid.T) {
	s := w.l.advance(w.now)
	for b, x := range w.buckets {
		if have := w.l.tokens(s, b, w.now-s.t0); have > x.hi || have < x.lo {
			t.Fatalf("bucket %d holds %d, %d of it in stripes; the model says %d..%d", b, have, w.l.held(s, b), x.lo, x.hi)
		}
	}
}

// Cores take turns in an order that a model of exact integers can follow. Leases
// begin and end at any time, and shares change, by the schedule and by the clock.
func TestLeasesMintNothingAndHideNothingFromOtherCores(t *testing.T) {
	begun := 0
	rapid.Check(t, func(t *rapid.T) {
		const cores, classes, most = 4, 2, 100_000
		w := &world{buckets: make([]between, 1+classes), now: rapid.Int64Range(0, 1e15).Draw(t, "boot")}
		w.l = NewLimiter(LimiterConfig{Classes: classes, Cores: cores, Clients: -1}, w.now)
		rates := func() []Step {
			a := rapid.SampledFrom([]int64{0, 1, 40, 3_000, most / 2}).Draw(t, "a")
			b := rapid.Int64Range(0, most-a).Draw(t, "b")
			steps := sharesOf(a, b)
			if rapid.Bool().Draw(t, "less in all") {
				steps[0].Total = steps[0].Total / kilo / 2 * kilo
			}
			if rapid.Bool().Draw(t, "ends") {
				steps[0].Until = w.now + rapid.Int64Range(1, 1e9).Draw(t, "until")
				steps = append(steps, sharesOf(a/4, b/6)...)
			}
			return steps
		}
		w.set(rates())
		w.pass(rapid.Int64Range(0, 2e9).Draw(t, "fill"))
		t.Repeat(map[string]func(*rapid.T){
			"": w.check,
			"wait": func(t *rapid.T) {
				w.pass(rapid.Int64Range(0, rapid.SampledFrom([]int64{0, 1e3, 1e6, 1e9}).Draw(t, "scale")).Draw(t, "dt"))
			},
			"set": func(t *rapid.T) { w.set(rates()) },
			"lease": func(t *rapid.T) {
				class := rapid.IntRange(0, classes-1).Draw(t, "class")
				w.l.leaseNow(w.now, class)
				if s := w.l.seg.Load(); s.leased != 0 {
					begun++
					for b := range w.buckets {
						w.buckets[b].lo = min(w.buckets[b].lo, int64(s.lines[b].cap))
					}
				}
				for core := range cores {
					w.decide(t, core, class, 1)
				}
			},
			"decide": func(t *rapid.T) {
				core, class := rapid.IntRange(0, cores-1).Draw(t, "core"), rapid.IntRange(0, classes-1).Draw(t, "class")
				w.decide(t, core, class, rapid.SampledFrom([]int64{1, 1, 7, 1000, 1e6, 5e7}).Draw(t, "cost"))
			},
			"drain": func(t *rapid.T) {
				class := rapid.IntRange(0, classes-1).Draw(t, "class")
				cost := max(1, w.buckets[1+class].hi/unit/16)
				for i := range 20 {
					w.decide(t, i, class, cost)
				}
			},
			"refund": func(t *rapid.T) {
				if len(w.paid) == 0 {
					return
				}
				last := len(w.paid) - 1
				v, cost := w.paid[last], w.spent[last].Cost
				w.paid, w.spent = w.paid[:last], w.spent[:last]
				w.l.Refund(v, cost)
				for _, b := range []int{0, 1 + int(v.From)} {
					x := &w.buckets[b]
					x.lo, x.hi = min(x.lo+cost*unit, x.cap-w.less(b)), min(x.hi+cost*unit, x.cap)
				}
			},
		})
	})
	if begun == 0 {
		t.Fatal("there was never a lease: the test does not test")
	}
}

// crowdOn has goroutines decide on random stripes, so that they meet on each.
func crowdOn(l *Limiter, goroutines int, decide func(rng *rand.Rand, c *stripe, class int) bool) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(g)))
			for {
				class := rng.IntN(l.classes)
				if !decide(rng, l.stripeOf(rng.IntN(l.cores), class), class) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// The clock stands still, the buckets are full, and everybody takes until nobody
// gets anything, while leases begin and end all the time.
func TestEveryTokenOfAFullBucketIsSpentOnceOrCountedAsLost(t *testing.T) {
	for _, changes := range []bool{false, true} {
		l := NewLimiter(LimiterConfig{Classes: 2, Cores: 4, Clients: -1, LargestCost: 5}, 0)
		l.SetSchedule(0, sharesOf(300, 100)) // 400,000 units
		l.leaseNow(sec, 0)
		s := l.seg.Load()
		before := l.tokens(s, 0, sec) / unit
		var taken atomic.Int64
		crowdOn(l, 8, func(rng *rand.Rand, c *stripe, class int) bool {
			cost := 1 + rng.Int64N(5)
			if rng.IntN(2000) == 0 {
				l.leaseNow(sec, class)
				if changes {
					l.SetSchedule(sec, sharesOf(300, 100))
				}
			}
			v := l.judgeOn(c, sec, class, cost)
			if v.Reason != Admitted {
				return false
			}
			if rng.IntN(50) == 0 {
				l.Refund(v, cost)
			} else {
				taken.Add(cost)
			}
			return true
		})
		got := taken.Load()
		for k := range l.classes { // what the last ones did not see
			for l.judgeOn(l.stripeOf(0, k), sec, k, 1).Reason == Admitted {
				got++
			}
		}
		if lost := l.lost.Load(); got+lost != before || lost > before/4 {
			t.Errorf("share set again: %v; %d taken and %d lost of %d", changes, got, lost, before)
		}
		if got < before/2 {
			t.Errorf("%d of %d: the test does not test", got, before)
		}
	}
}

const sec = int64(time.Second)

// Shares go up and down, leases with them, and readings are as old as the race
// makes them; the bound allows for that skew.
func TestACrowdOnLeasesKeepsTheBoundWhileSharesChange(t *testing.T) {
	const most = 20_000 // x 1000 units/s
	l := NewLimiter(LimiterConfig{Classes: 2, Cores: 4, Clients: -1, Burst: 100 * time.Millisecond, Revocable: true}, 0)
	l.SetSchedule(0, sharesOf(most/2, most/2))
	var clock, rounds, begun atomic.Int64
	var mu sync.Mutex
	var all []bound.Admission
	var skew int64
	crowdOn(l, 6, func(rng *rand.Rand, _ *stripe, _ int) bool {
		var mine []bound.Admission
		var worst int64
		for range 500 {
			now := clock.Add(200)
			class, cost := rng.IntN(2), 1+rng.Int64N(50)
			if l.judgeOn(l.stripeOf(rng.IntN(4), class), now, class, cost).Reason == Admitted {
				mine = append(mine, bound.Admission{At: now, Cost: cost})
			}
			worst = max(worst, clock.Load()-now)
		}
		now := clock.Add(1)
		switch rng.IntN(3) {
		case 0:
			a := rng.Int64N(most)
			steps := sharesOf(a, most-a)
			steps[0].Until = now + rng.Int64N(1e6)
			l.SetSchedule(now, append(steps, sharesOf(a/2, (most-a)/2)...))
		default:
			l.leaseNow(now, rng.IntN(2))
			if l.seg.Load().leased != 0 {
				begun.Add(1)
			}
		}
		mu.Lock()
		all, skew = append(all, mine...), max(skew, worst)
		mu.Unlock()
		return rounds.Add(1) < 300
	})
	r, err := bound.Check(bound.Config{
		Limit: most * kilo, Burst: 100 * time.Millisecond, Spread: time.Duration(skew), Slots: 1, Cost: 50,
	}, all)
	if err != nil || !r.OK() {
		t.Fatalf("skew %v: %v\n%v", time.Duration(skew), err, r)
	}
	if begun.Load() == 0 || r.Total == 0 {
		t.Fatalf("%d leases, %d admitted: the test does not test", begun.Load(), r.Total)
	}
}

// conservation.md A5, for work that is paid by leases.
func TestNoLeasePaysOnceTheLoweringHasReturned(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 1, Cores: 2, Clients: -1}, 0)
	var lowered, done atomic.Bool
	var broken, byLease atomic.Int64
	var wg sync.WaitGroup
	now := 10 * sec
	l.SetSchedule(0, sharesOf(100_000))
	for g := range 4 {
		wg.Go(func() {
			for !done.Load() {
				was := lowered.Load() // before the decision begins
				c := l.stripeOf(g, 0)
				left := c.lease.Load() & leftMask
				ok := l.judgeOn(c, now, 0, 1).Reason == Admitted
				if ok && left > 0 {
					byLease.Add(1)
				}
				if ok && was && lowered.Load() {
					broken.Add(1)
				}
			}
		})
	}
	for range 1000 {
		l.SetSchedule(now, sharesOf(0))
		lowered.Store(true)
		for g := range 4 {
			if l.judgeOn(l.stripeOf(g, 0), now, 0, 1).Reason == Admitted {
				broken.Add(1)
			}
		}
		lowered.Store(false)
		l.SetSchedule(now-sec, sharesOf(100_000)) // an old reading: a second's worth at now
		l.SetSchedule(now, sharesOf(100_000))
		l.leaseNow(now, 0)
		for g := range 4 {
			l.judgeOn(l.stripeOf(g, 0), now, 0, 1)
		}
	}
	done.Store(true)
	wg.Wait()
	if broken.Load() > 0 {
		t.Errorf("%d decisions that began after the lowering were admitted", broken.Load())
	}
}

// spend is what decisions do with a lease.
func (c *stripe) spend(l *Limiter, now, cost int64) bool {
	w, ok := c.good(l, now, cost)
	return ok && c.pay(w, cost)
}

// A decision for a tenant looks at the lease first and pays last.
func TestALeaseThatChangedSinceItWasLookedAtPaysNothing(t *testing.T) {
	for name, change := range map[string]func(l *Limiter, c *stripe){
		"the share was lowered":    func(l *Limiter, _ *stripe) { l.SetSchedule(sec, sharesOf(10)) },
		"the same share was set":   func(l *Limiter, _ *stripe) { l.SetSchedule(sec, sharesOf(1000)) },
		"leases were called in":    func(l *Limiter, _ *stripe) { l.recall(sec, l.seg.Load(), 1) },
		"another lease took over":  func(l *Limiter, c *stripe) { c.end(); c.begin(l.seg.Load(), sec, 5) },
		"somebody else was faster": func(l *Limiter, c *stripe) { c.spend(l, sec, 1) },
		"a successor took over":    func(l *Limiter, _ *stripe) { l.Succeed(sec, LimiterConfig{Classes: 1}, []int{0}, sharesOf(1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLimiter(LimiterConfig{Classes: 1, Cores: 2}, 0)
			l.SetSchedule(0, sharesOf(1000))
			l.leaseNow(sec, 0)
			c := l.stripeOf(0, 0)
			l.judgeOn(c, sec, 0, 1)
			w, ok := c.good(l, sec, 1)
			if !ok {
				t.Fatal("no lease began")
			}
			change(l, c)
			if c.pay(w, 1) {
				t.Error("it paid")
			}
		})
	}
}

// inStripes returns the units that lie in stripes.
func (l *Limiter) inStripes() (sum uint64) {
	for i := range l.stripes {
		sum += l.stripes[i].lease.Load() & leftMask
	}
	return sum
}

func TestATenantIsPaidForByTheLeaseAndBoundedByItsBucket(t *testing.T) {
	const each = 100
	cfg := LimiterConfig{Classes: 1, Cores: 2, Tenants: []TenantConfig{{Rate: each * allocator.Unit, Burst: time.Second}}}
	l := NewLimiter(cfg, 0)
	l.SetSchedule(0, sharesOf(1000))
	var p Place
	r := Request{Tenant: 7, Cost: 1}
	l.DecideAt(sec, r, &p) // a new tenant begins with this
	l.leaseNow(10*sec, 0)
	for i := range l.stripes { // whatever core this runs on
		l.judgeOn(&l.stripes[i], 10*sec, 0, 1)
	}
	words, left := l.cells[1].used.Load(), l.inStripes()
	if left < 4*each {
		t.Fatalf("%d units in leases", left)
	}
	l.retries.mark(10*sec, mix(9, 0), time.Second)
	for i := range int64(each) {
		r.Client = 0
		if i == 0 {
			r.Client = 9 // who was refused before
		}
		if v := l.DecideAt(10*sec, r, &p); v != (Verdict{true, Admitted, 0}) {
			t.Fatalf("number %d: %+v", i+1, v)
		}
	}
	for range each {
		if v := l.DecideAt(10*sec, r, &p); v.Reason != TenantEmpty {
			t.Fatalf("after its tokens: %+v", v)
		}
	}
	if paid := left - l.inStripes(); paid != each || l.cells[1].used.Load() != words {
		t.Errorf("leases paid %d, want all %d", paid, each)
	}
	var c [1]Counts
	l.Counts(c[:])
	if want := (Counts{Offered: each, Admitted: 1 + each, Refused: each, Retries: 1, Excess: each}); c[0] != want {
		t.Errorf("%+v, want %+v", c[0], want)
	}
	if b := l.tenants[0].table.At((*keyed.Place)(&p)); b == nil {
		t.Error("where the bucket is was not remembered")
	}
}

func TestALeaseEndsByTheClockWithItsSegment(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 1, Cores: 2}, 0)
	steps := sharesOf(1000)
	steps[0].Until = sec
	l.SetSchedule(0, append(steps, sharesOf(0)...))
	l.leaseNow(sec/2, 0)
	c := l.stripeOf(0, 0)
	if l.judgeOn(c, sec/2, 0, 1); c.lease.Load()&leftMask == 0 {
		t.Fatal("no lease began")
	}
	if c.spend(l, sec/2-1, 1) {
		t.Error("the lease pays for a reading from before it was charged")
	}
	if !c.spend(l, sec-1, 1) {
		t.Error("the lease does not pay a nanosecond before its segment ends")
	}
	if c.spend(l, sec, 1) || l.judgeOn(c, sec, 0, 1).OK {
		t.Error("the lease pays when its segment is over")
	}
}

// Whoever was paused in the middle of a refill may put a lease in place when the
// share has long changed.
func TestALeaseThatComesLatePaysNothing(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 1, Cores: 2}, 0)
	l.SetSchedule(0, sharesOf(1000))
	l.leaseNow(sec, 0)
	old := l.seg.Load()
	l.SetSchedule(sec, sharesOf(0))
	c := l.stripeOf(0, 0)
	c.begin(old, sec, 100)
	if l.judgeOn(c, sec, 0, 1).OK {
		t.Error("admitted by a lease of the former share")
	}
	l.SetSchedule(sec, sharesOf(1000))
	if got := l.Quota(sec, 0).Tokens; got != 0 || l.judgeOn(c, sec, 0, 1).OK {
		t.Errorf("%d tokens come from a lease of a former share", got)
	}
}

func TestASuccessorHasWhatLayInStripes(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 1, Cores: 4}, 0)
	l.SetSchedule(0, sharesOf(1000))
	l.leaseNow(sec/2, 0)
	for core := range 4 {
		l.judgeOn(l.stripeOf(core, 0), sec/2, 0, 1)
	}
	if l.held(l.seg.Load(), 0) == 0 {
		t.Fatal("nothing lies in stripes")
	}
	next := l.Succeed(sec/2, LimiterConfig{Classes: 1, Cores: 2}, []int{0}, sharesOf(1000))
	if got, want := next.Quota(sec/2, 0).Tokens, int64(500_000-4); got != want {
		t.Errorf("the successor has %d, want %d", got, want)
	}
	for core := range 4 {
		if l.judgeOn(l.stripeOf(core, 0), sec/2, 0, 1).OK {
			t.Error("a lease of the predecessor pays")
		}
	}
}

// What is told to clients counts what lies in stripes as there.
func TestQuotaAndRetryAfterSeeWhatLiesInStripes(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 2, Cores: 4}, 0)
	l.SetSchedule(0, sharesOf(1000, 500))
	before := l.Quota(sec/2, 0)
	l.leaseNow(sec/2, 0)
	v := l.judgeOn(l.stripeOf(1, 0), sec/2, 0, 1)
	l.Refund(v, 1)
	if got := l.Quota(sec/2, 0); got != before {
		t.Errorf("with leases %+v, without %+v", got, before)
	}
	if got := l.RetryAfter(sec/2, 0, 500_000); got != 0 {
		t.Errorf("all that is there may be had after %v, want at once", got)
	}
	if v := l.Decide(sec/2, 0, 500_000); !v.OK {
		t.Errorf("all that is there: %+v", v)
	}
}

func TestSmallBucketsAreNeverLeased(t *testing.T) {
	for _, cores := range []int{1, 2, 64} {
		l := NewLimiter(LimiterConfig{Classes: 2, Cores: cores}, 0)
		small := int64(leaseMin*leaseShare*cores) - 1 // units per second
		l.SetSchedule(0, []Step{{Until: math.MaxInt64, Total: math.MaxInt64, Classes: []allocator.Rate{allocator.Rate(small) * allocator.Unit, 0}}})
		l.leaseNow(10*sec, 0)
		if l.seg.Load().leased != 0 {
			t.Errorf("%d cores: a bucket of %d was leased", cores, small)
		}
	}
}

// One goroutine that is not very busy is enough that nothing is leased; one that
// is gets a lease, if there is plenty.
func TestLeasesBeginForBusyCoresOnly(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every int64 // nanoseconds between decisions
		fill  int64
		want  bool
	}{
		{"busy", 100, sec, true},
		{"busy with an empty bucket", 1000, sec / 100, false},
		{"not busy", 5000, sec, false},
	} {
		l := NewLimiter(LimiterConfig{Classes: 1, Cores: 2, Clients: -1}, 0)
		l.SetSchedule(0, sharesOf(1000))
		for i := range int64(3 * busyRun) {
			l.judgeOn(l.stripeOf(0, 0), tc.fill+i*tc.every, 0, 1)
			l.stripeOf(0, 0).admitted.Add(1)
		}
		if got := l.seg.Load().leased != 0; got != tc.want {
			t.Errorf("%s: leased %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestStripesOfDifferentCoresShareNoLine(t *testing.T) {
	if size := unsafe.Sizeof(stripe{}); size%128 != 0 {
		t.Errorf("a stripe takes %d bytes", size)
	}
	if end := unsafe.Offsetof(stripe{}.tally) + unsafe.Offsetof(tally{}.borrowed); end > 64 {
		t.Errorf("the counters of the fast path end %d bytes from the lease word", end)
	}
	l := NewLimiter(LimiterConfig{Classes: 7}, 0)
	a, b := uintptr(unsafe.Pointer(&l.cells[0])), uintptr(unsafe.Pointer(&l.cells[7]))
	if a/64 != b/64 {
		t.Error("the words of a budget and seven classes are in two lines")
	}
	c, d := uintptr(unsafe.Pointer(&l.seg)), uintptr(unsafe.Pointer(&l.changes))
	if d-c < 64 {
		t.Error("what refunds write shares a line with what every decision reads")
	}
}

func TestDecisionsAllocateNothing(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 2, Cores: 4}, 0)
	l.SetSchedule(0, sharesOf(1000, 0))
	l.leaseNow(sec, 0)
	now := sec
	for class := range 2 { // one has plenty, the other nothing
		if n := testing.AllocsPerRun(10_000, func() {
			now++
			l.Decide(now, class, 1)
			l.DecideClient(now, class, 1, 7)
		}); n != 0 {
			t.Errorf("class %d: %v allocations", class, n)
		}
	}
}

// What is remembered of an empty bucket must not outlive a token's return.
func TestARefundEndsADrought(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 1, Cores: 2}, 0)
	l.SetSchedule(0, []Step{{Until: math.MaxInt64, Total: 10 * allocator.Unit, Classes: []allocator.Rate{10 * allocator.Unit}}})
	v := l.Decide(10*sec, 0, 10)
	for core := range 2 {
		c := l.stripeOf(core, 0)
		if l.judgeOn(c, 10*sec, 0, 1).OK || c.dry(l, 10*sec, 1) != ClassEmpty {
			t.Fatalf("no drought is known after a refusal")
		}
	}
	if c := l.stripeOf(0, 0); c.dry(l, 10*sec+sec/10, 1) != Admitted || c.dry(l, 10*sec, 11) != Admitted || c.dry(l, 10*sec, 0) != Admitted {
		t.Error("a drought answers for what it does not know")
	}
	l.Refund(v, 10)
	for core := range 2 {
		if !l.judgeOn(l.stripeOf(core, 0), 10*sec, 0, 1).OK {
			t.Error("refused after the refund")
		}
	}
}

// All cores as fast as they can at 100 times the rate, by the real clock: every
// token is counted.
func TestAFloodFromAllCoresGetsRateAndBurstAndNoMore(t *testing.T) {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }
	const rate, burst = 200, sec / 100 // x 1000 units/s
	l := NewLimiter(LimiterConfig{Classes: 2, Clients: -1, Burst: time.Duration(burst)}, 0)
	l.SetSchedule(0, sharesOf(rate/2, rate/2))
	var admitted atomic.Int64
	crowdOn(l, 2*l.cores, func(*rand.Rand, *stripe, int) bool {
		n, t0 := int64(0), now()
		for t0 == now() {
		}
		for i := range 2000 {
			if l.Decide(now(), i&1, 1).OK {
				n++
			}
		}
		admitted.Add(n)
		return t0 < sec/5
	})
	end := now()
	if got, most := admitted.Load(), int64(rate*1000)*(end+burst)/sec; got > most {
		t.Errorf("%d admitted in %v, at most %d allowed", got, time.Duration(end), most)
	}
	var counts [2]Counts
	l.Counts(counts[:])
	if got := counts[0].Admitted + counts[1].Admitted; got != admitted.Load() {
		t.Errorf("%d counted, %d admitted", got, admitted.Load())
	}
}
