package enforce_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
)

const u = allocator.Unit

func until(at int64, r allocator.Rate) []enforce.Hold { return []enforce.Hold{{Until: at, Rate: r}} }

func wantShare(t *testing.T, l *enforce.Limiter, now int64, total allocator.Rate, classes ...allocator.Rate) {
	t.Helper()
	got := make([]allocator.Rate, len(classes))
	if sum := l.Share(now, got); sum != total || !slices.Equal(got, classes) {
		t.Errorf("own share %v of %v, want %v of %v", got, sum, classes, total)
	}
}

func TestWhatIsCarvedIsOutOfTheOwnBucketsUntilItsEndUnderEverySchedule(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(100, 50))
	if !l.Carve(sec, 0, "a", until(3*sec, 60*u)) {
		t.Fatal("refused")
	}
	wantShare(t, l, sec, 90*u, 40*u, 50*u)
	l.SetSchedule(2*sec, perSecond(70, 30))
	wantShare(t, l, 2*sec, 40*u, 10*u, 30*u)
	l.SetSchedule(2*sec, perSecond(20, 80)) // the other class gives what is missing
	wantShare(t, l, 2*sec, 40*u, 0, 40*u)
	l.SetSchedule(3*sec, perSecond(100, 50))
	wantShare(t, l, 3*sec, 150*u, 100*u, 50*u)
	if n := l.CarveShort(); n != 0 {
		t.Errorf("%d schedules short", n)
	}
}

func TestWhatRanOutComesBackWithTheNextCallAndNotByTheClock(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(100))
	l.Carve(sec, 0, "a", until(2*sec, 60*u))
	wantShare(t, l, 5*sec, 40*u, 40*u)
	l.Carve(5*sec, 0, "a", nil)
	wantShare(t, l, 5*sec, 100*u, 100*u)
}

func TestALimiterSaysThatWhatRanOutCanComeBack(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(100, 50))
	if l.Lapsed(9 * sec) {
		t.Error("something lapsed though nothing was carved")
	}
	l.Carvable(sec, 0, "a", 2*sec) // whoever carves asks first
	if !l.Carve(sec, 0, "a", []enforce.Hold{{Until: 2 * sec, Rate: 60 * u}, {Until: 3 * sec, Rate: 10 * u}}) {
		t.Fatal("refused")
	}
	for _, step := range []struct {
		now    int64
		before bool
		total  allocator.Rate // after the schedule was set again
	}{{2*sec - 1, false, 90 * u}, {2 * sec, true, 140 * u}, {3 * sec, true, 150 * u}, {4 * sec, false, 150 * u}} {
		if got := l.Lapsed(step.now); got != step.before {
			t.Errorf("lapsed at %d: %v, want %v", step.now, got, step.before)
		}
		l.SetSchedule(step.now, perSecond(100, 50))
		if l.Lapsed(step.now) {
			t.Errorf("lapsed at %d with the schedule set again", step.now)
		}
		if got := l.Share(step.now, make([]allocator.Rate, 2)); got != step.total {
			t.Errorf("own share at %d: %v, want %v", step.now, got, step.total)
		}
	}
}

func TestACarverGrowsOnlyWithinWhatTheScheduleKeepsForTheWholeTime(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, nil)
	l.SetSchedule(sec, []enforce.Step{
		{Until: 3 * sec, Total: 100 * u, Classes: []allocator.Rate{80 * u, 20 * u}},
		{Until: math.MaxInt64, Total: 50 * u, Classes: []allocator.Rate{40 * u, 10 * u}},
	})
	for _, c := range []struct {
		until int64
		want  allocator.Rate
	}{{3 * sec, 80 * u}, {3*sec + 1, 40 * u}} {
		if got := l.Carvable(sec, 0, "a", c.until); got != c.want {
			t.Errorf("carvable until %d: %v, want %v", c.until, got, c.want)
		}
		if l.Carve(sec, 0, "a", until(c.until, c.want+1)) {
			t.Errorf("until %d more than %v was carved", c.until, c.want)
		}
	}
	if !l.Carve(sec, 0, "a", []enforce.Hold{{3 * sec, 80 * u}, {9 * sec, 40 * u}}) {
		t.Error("what the schedule keeps was refused")
	}
	if got := l.Carvable(sec, 0, "b", 2*sec); got != 0 {
		t.Errorf("another carver may have %v of what is taken", got)
	}
	l.SetSchedule(2*sec, perSecond(10, 90)) // the class has less; what is held is kept
	if !l.Carve(2*sec, 0, "a", []enforce.Hold{{3 * sec, 80 * u}, {9 * sec, 40 * u}}) {
		t.Error("what was held was refused")
	}
	if l.Carve(2*sec, 0, "a", []enforce.Hold{{3 * sec, 80 * u}, {9*sec + 1, 40 * u}}) {
		t.Error("what was held was prolonged beyond the share")
	}
}

func TestCarvableSaysHowMuchOfAClassMayBeCarved(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 2}, nil)
	l.SetSchedule(sec, []enforce.Step{{Until: math.MaxInt64, Total: 100 * u, Classes: []allocator.Rate{60 * u, 40 * u}, Carvable: []allocator.Rate{10 * u, 90 * u}}})
	if got := []allocator.Rate{l.Carvable(sec, 0, "a", 2*sec), l.Carvable(sec, 1, "a", 2*sec)}; !slices.Equal(got, []allocator.Rate{10 * u, 90 * u}) {
		t.Errorf("carvable %v", got)
	}
	l.Carve(sec, 1, "a", until(2*sec, 90*u))
	wantShare(t, l, sec, 10*u, 10*u, 0)
}

func TestNobodyGrowsWhilePinned(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(100))
	l.Carvable(sec, 0, "a", 2*sec)
	l.Carve(sec, 0, "a", until(2*sec, 10*u))
	if got := l.Pin(sec); got != 10*u {
		t.Errorf("pinned with %v carved", got)
	}
	if l.Carve(sec, 0, "a", until(2*sec, 11*u)) || !l.Carve(sec, 0, "a", until(2*sec, 9*u)) {
		t.Error("pinned, it grew or could not shrink")
	}
	l.Unpin()
	if !l.Carve(sec, 0, "a", until(2*sec, 11*u)) {
		t.Error("not pinned any more, it did not grow")
	}
	l.Pin(sec)
	l.SetSchedule(sec, perSecond(100))
	if !l.Carve(sec, 0, "a", until(2*sec, 12*u)) {
		t.Error("after the next schedule it did not grow")
	}
}

func TestBadProfilesChangeNothing(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(100))
	long := make([]enforce.Hold, enforce.HoldsMax+1)
	for i := range long {
		long[i] = enforce.Hold{Until: sec * int64(10+i), Rate: allocator.Rate(1000 - i)}
	}
	for name, p := range map[string][]enforce.Hold{
		"negative": until(2*sec, -1), "too high": until(2*sec, enforce.MaxRate+1), "rising": {{2 * sec, u}, {3 * sec, 2 * u}},
		"backwards": {{3 * sec, 2 * u}, {2 * sec, u}}, "too long": long,
	} {
		if l.Carve(sec, 0, "a", p) {
			t.Errorf("%s: accepted", name)
		}
	}
	if l.Carve(sec, 1, "a", nil) || l.Carve(sec, -1, "a", nil) || l.Carvable(sec, 7, "a", 2*sec) != 0 {
		t.Error("there is no such class")
	}
	wantShare(t, l, sec, 100*u, 100*u)
}

func TestASuccessorKeepsWhatIsCarvedOutOfClassesThatStayAndOfTheTotal(t *testing.T) {
	old := limiter(enforce.LimiterConfig{Classes: 2}, perSecond(100, 50))
	old.Carve(sec, 0, "a", until(3*sec, 60*u))
	old.Carve(sec, 1, "a", until(3*sec, 20*u))
	l := old.Succeed(2*sec, enforce.LimiterConfig{Classes: 2}, []int{-1, 0}, perSecond(50, 100))
	wantShare(t, l, 2*sec, 70*u, 50*u, 20*u) // class 1 was 0; the other's 20 are of a class that is gone
	if old.Carvable(2*sec, 0, "a", 3*sec) != 0 || old.Carve(2*sec, 0, "a", until(3*sec, 61*u)) {
		t.Error("the predecessor can still be carved")
	}
	wantShare(t, old, 2*sec, 0, 0, 0)
	next := l.Succeed(2*sec, enforce.LimiterConfig{Classes: 2}, []int{-1, 1}, perSecond(50, 100))
	wantShare(t, next, 2*sec, 70*u, 50*u, 20*u)
	next.SetSchedule(3*sec, perSecond(50, 100))
	wantShare(t, next, 3*sec, 150*u, 50*u, 100*u)
}

func TestWhatAFormerLifeMayHaveCarvedIsKeptOut(t *testing.T) {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, sec)
	l.Reserve(sec, 80*u, 3*sec)
	l.SetSchedule(sec, perSecond(100))
	wantShare(t, l, sec, 20*u, 20*u)
	l.SetSchedule(sec, perSecond(50))
	wantShare(t, l, sec, 0, 0)
	l.SetSchedule(3*sec, perSecond(50))
	wantShare(t, l, 3*sec, 50*u, 50*u)
	if l.CarveShort() != 0 {
		t.Error("counted as short")
	}
}

func TestReportedDemandCountsAndIsBounded(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(1))
	l.Report(0, 5, 7)
	l.Report(0, -100, math.MinInt64)
	l.Report(3, 1, 1)
	var c [1]enforce.Counts
	l.Counts(c[:])
	if c[0].Offered != 12 || c[0].Admitted != 5 || c[0].Refused != 7 {
		t.Errorf("%+v", c[0])
	}
	l.Report(0, math.MaxInt64, 0)
	l.Counts(c[:])
	if c[0].Admitted != 5+1<<40 {
		t.Errorf("a report of %d was taken", c[0].Admitted)
	}
}

// The model keeps what was promised by itself: a promise stands until its end.
func TestPromisesAndOwnShareNeverExceedTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const classes = 3
		now := sec
		l := enforce.NewLimiter(enforce.LimiterConfig{Classes: classes}, now)
		promised := map[string][]enforce.Hold{} // by class and carver
		sum := func(at int64) (s allocator.Rate) {
			for _, p := range promised {
				s += rateAt(p, at)
			}
			return s
		}
		var totals []enforce.Step
		schedule := func() {
			// As the owner does: no total falls below what is promised.
			totals = totals[:0]
			at, rate := now, rapid.Int64Range(0, 1000).Draw(t, "total")
			for range rapid.IntRange(0, 2).Draw(t, "leases") {
				end := at + rapid.Int64Range(1, 2*sec).Draw(t, "lease")
				totals = append(totals, enforce.Step{Until: end, Total: max(allocator.Rate(rate)*u, sum(at))})
				at, rate = end, rapid.Int64Range(0, rate).Draw(t, "less")
			}
			totals = append(totals, enforce.Step{Until: math.MaxInt64, Total: max(allocator.Rate(rate)*u, sum(at))})
			for i := range totals {
				totals[i].Classes = splitRandomly(t, totals[i].Total, classes)
				if rapid.Bool().Draw(t, "other") {
					totals[i].Carvable = splitRandomly(t, totals[i].Total, classes)
				}
			}
			l.SetSchedule(now, totals)
		}
		schedule()
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			now += rapid.Int64Range(0, sec/2).Draw(t, "gap")
			k := rapid.IntRange(0, classes-1).Draw(t, "class")
			who := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "who")
			key := fmt.Sprint(k, who)
			switch rapid.IntRange(0, 3).Draw(t, "move") {
			case 0:
				schedule()
			case 1:
				from := rapid.Permutation([]int{0, 1, 2}).Draw(t, "from")
				moved := map[string][]enforce.Hold{}
				for i, old := range from {
					moved[fmt.Sprint(i, "a")], moved[fmt.Sprint(i, "b")] = promised[fmt.Sprint(old, "a")], promised[fmt.Sprint(old, "b")]
				}
				promised = moved
				l = l.Succeed(now, enforce.LimiterConfig{Classes: classes}, from, totals)
			default:
				end := now + rapid.Int64Range(1, 3*sec).Draw(t, "hold")
				most := l.Carvable(now, k, who, end)
				rate := most
				if rapid.Bool().Draw(t, "any") {
					rate = allocator.Rate(rapid.Int64Range(0, 1200).Draw(t, "rate")) * u
				}
				p := promise(promised[key], now, enforce.Hold{Until: end, Rate: rate})
				if l.Carve(now, k, who, p) {
					promised[key] = p
				} else if rate <= most {
					t.Fatalf("%v was carvable until %d, and was refused", most, end)
				}
			}
			own := make([]allocator.Rate, classes)
			total := l.Share(now, own)
			if in := rateOf(totals, now); total+sum(now) > in {
				t.Fatalf("own %v and promised %v exceed %v", total, sum(now), in)
			}
			var all allocator.Rate
			for _, r := range own {
				all += r
			}
			if all+sum(now) > rateOf(totals, now) {
				t.Fatalf("own classes %v and promised %v exceed %v", own, sum(now), rateOf(totals, now))
			}
			if l.CarveShort() != 0 {
				t.Fatal("short")
			}
		}
	})
}

func rateAt(p []enforce.Hold, at int64) allocator.Rate {
	for _, h := range p {
		if at < h.Until {
			return h.Rate
		}
	}
	return 0
}

func rateOf(steps []enforce.Step, at int64) allocator.Rate {
	for _, s := range steps {
		if at < s.Until {
			return s.Total
		}
	}
	return 0
}

// promise is what stands of p with one more promise made.
func promise(p []enforce.Hold, now int64, h enforce.Hold) (out []enforce.Hold) {
	for _, x := range p {
		if x.Until > now && x.Rate > h.Rate {
			if x.Until >= h.Until {
				return append(out, after(p, x)...)
			}
			out = append(out, x)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(p), func(x enforce.Hold) bool { return x.Until <= h.Until || x.Rate >= h.Rate })
	if h.Rate > 0 {
		out = append(out, h)
	}
	return append(out, rest...)
}

func after(p []enforce.Hold, from enforce.Hold) []enforce.Hold {
	return p[slices.Index(p, from):]
}

func splitRandomly(t *rapid.T, total allocator.Rate, n int) []allocator.Rate {
	out := make([]allocator.Rate, n)
	for k := range out {
		out[k] = allocator.Rate(rapid.Int64Range(0, int64(total)).Draw(t, "part"))
		total -= out[k]
	}
	return out
}

// A crowd decides while a part is carved out and given back: what it admits and
// what the carver had add up to no more than the whole.
func TestACrowdGainsNothingFromWhatIsCarved(t *testing.T) {
	const limit = 20_000
	burst := 50 * time.Millisecond
	l := limiter(enforce.LimiterConfig{Classes: 1, Burst: burst}, perSecond(limit))
	var clock, admitted atomic.Int64
	clock.Store(sec)
	var carved float64 // unit-seconds
	var crowd sync.WaitGroup
	for g := range 4 {
		crowd.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(g)))
			var had allocator.Rate
			var since int64
			for i := range 20_000 {
				now := clock.Add(5000)
				if l.Decide(now, 0, 1).OK {
					admitted.Add(1)
				}
				if g == 0 && i%100 == 0 {
					now = clock.Load()
					carved += float64(had) / 1e6 * float64(now-since) / 1e9
					want := allocator.Rate(rng.IntN(limit+1)) * u
					if l.Carve(now, 0, "a", until(now+sec, want)) {
						had = want
					}
					since = now
				}
			}
		})
	}
	crowd.Wait()
	took := float64(clock.Load()-sec) / 1e9
	most := took*limit - carved + limit*burst.Seconds() + 1
	// A change takes effect at a reading of one goroutine, others run ahead of it.
	most += 400
	if got := float64(admitted.Load()); got > most || got < most/4 {
		t.Errorf("%.0f admitted and %.0f carved of %.0f in %.3fs", got, carved, took*limit, took)
	}
}

// The owner lowers schedules to what is carved, which is decided elsewhere at the
// same time: pinned, nothing grows in between.
// yield lets others run, now and then several times.
func yield(rng *rand.Rand) {
	for range rng.IntN(3) {
		runtime.Gosched()
	}
}

func TestAnOwnerThatPinsNeverLowersBelowWhatIsCarved(t *testing.T) {
	l := limiter(enforce.LimiterConfig{Classes: 1}, perSecond(1000))
	l.Carvable(sec, 0, "a", sec) // the owner knows
	var clock, grown atomic.Int64
	clock.Store(sec)
	var both sync.WaitGroup
	both.Go(func() {
		rng := rand.New(rand.NewPCG(4, 1))
		for range 5000 {
			now := clock.Add(int64(time.Millisecond))
			least := l.Pin(now)
			runtime.Gosched()
			l.SetSchedule(now, perSecond(max(int64(least/u)+1, rng.Int64N(1000))))
			yield(rng) // or the other, in step, comes only while this one pins
		}
	})
	both.Go(func() {
		rng := rand.New(rand.NewPCG(4, 2))
		for range 5000 {
			yield(rng)
			now := clock.Load()
			end := now + rng.Int64N(sec)
			if most := l.Carvable(now, 0, "a", end); l.Carve(now, 0, "a", until(end, most)) {
				grown.Add(1)
			}
		}
	})
	both.Wait()
	if n := l.CarveShort(); n != 0 {
		t.Errorf("%d schedules below what was carved", n)
	}
	if grown.Load() == 0 {
		t.Error("nothing was carved")
	}
}
