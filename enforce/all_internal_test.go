package enforce

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
)

// pair is two budgets of two classes. The second model of DecideAll is a pair
// that is made anew for every call, has seen admitted work only, and is asked for
// one charge after the other.
type pair [2]*Limiter

func newPair(revocable, shadow bool) (p pair) {
	for i := range p {
		p[i] = NewLimiter(LimiterConfig{
			Classes: 2, Revocable: revocable, Shadow: shadow && i == 1,
			Tenants: []TenantConfig{{}, {Share: 400_000, Keys: 10}},
		}, 0)
		// The model brings tenants along in other calls than the real pair does;
		// what new ones begin with is not the matter here.
		for _, tenant := range []uint64{7, 9} {
			p[i].takeTenant(0, Request{Class: 1, Cost: 1, Tenant: tenant})
		}
	}
	return p
}

func steady(total int64) []Step {
	r := allocator.Rate(total) * allocator.Unit
	return []Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r * 2 / 3, r - r*2/3}}}
}

// sequence judges charges one after the other on p, each against what the earlier
// ones left, and says whether all pass.
func (p pair) sequence(now int64, charges []Charge, at []int) (verdicts []Verdict, ok bool) {
	ok = true
	for i, c := range charges {
		v := p[at[i]].DecideRequest(now, c.Request)
		if c.Peek {
			p[at[i]].RefundRequest(v, c.Request)
		}
		verdicts, ok = append(verdicts, v), ok && v.OK
	}
	return verdicts, ok
}

// words are what all buckets hold at now, to the micro-unit.
func (p pair) words(now int64) (w [2][3]int64) {
	for i, l := range p {
		s := l.advance(now)
		for b := range l.cells {
			w[i][b] = l.tokens(s, b, max(now-s.t0, 0))
		}
	}
	return w
}

// spent are the words themselves.
func (p pair) spent(now int64) (w [2][3]uint64) {
	for i, l := range p {
		l.advance(now)
		for b := range l.cells {
			w[i][b] = l.cells[b].used.Load()
		}
	}
	return w
}

func drawCall(t *rapid.T, p pair) (charges []Charge, at []int) {
	for n := rapid.IntRange(1, 5).Draw(t, "charges"); n > 0; n-- {
		i := rapid.IntRange(0, 1).Draw(t, "budget")
		at = append(at, i)
		charges = append(charges, Charge{
			Limiter: p[i], Peek: rapid.IntRange(0, 4).Draw(t, "peek") == 0,
			Request: Request{
				Class: rapid.IntRange(0, 2).Draw(t, "class"), Tenant: rapid.SampledFrom([]uint64{0, 0, 7, 9}).Draw(t, "tenant"),
				Cost: rapid.SampledFrom([]int64{1, 1, 1, 2, 5, 40, 0, MaxCost, MaxCost + 1}).Draw(t, "cost"),
			},
		})
	}
	return charges, at
}

func TestACallPassesWhenItsChargesWouldOneAfterTheOtherAndElseTakesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revocable, shadow := rapid.Bool().Draw(t, "revocable"), rapid.Bool().Draw(t, "shadow")
		real := newPair(revocable, shadow)
		now := int64(1)
		var history []func(pair)
		past := func() pair {
			p := newPair(revocable, shadow)
			for _, f := range history {
				f(p)
			}
			return p
		}
		do := func(f func(pair)) {
			f(real)
			history = append(history, f)
		}
		var undo []func(pair)
		do(func(p pair) {
			for _, l := range p {
				l.SetSchedule(1, steady(12))
			}
		})
		for range 30 {
			switch rapid.SampledFrom([]string{"call", "call", "call", "wait", "set", "refund"}).Draw(t, "step") {
			case "wait":
				now += rapid.Int64Range(0, 2e9).Draw(t, "dt")
			case "set":
				at, i := now, rapid.IntRange(0, 1).Draw(t, "budget")
				steps := steady(rapid.SampledFrom([]int64{0, 1, 6, 30}).Draw(t, "total"))
				steps[0].Total -= steps[0].Total * allocator.Rate(rapid.IntRange(0, 2).Draw(t, "short")) / 3
				do(func(p pair) { p[i].SetSchedule(at, steps) })
			case "refund":
				if len(undo) > 0 {
					do(undo[len(undo)-1])
					undo = undo[:len(undo)-1]
				}
			case "call":
				charges, at := drawCall(t, real)
				model, before := past(), past()
				want, wantOK := model.sequence(now, charges, at)
				got := make([]Verdict, len(charges))
				spent := real.spent(now)
				if ok := DecideAll(now, charges, got); ok != wantOK {
					t.Fatalf("%+v: call passes: %v, want %v (%+v, model %+v)", charges, ok, wantOK, got, want)
				}
				checkVerdicts(t, got, want, charges, wantOK)
				if !wantOK && len(charges) > 1 && real.spent(now) != spent {
					t.Fatalf("%+v refused, and words changed", charges)
				}
				if wantOK {
					when := now
					history = append(history, func(p pair) { p.sequence(when, charges, at) })
					undo = append(undo, func(p pair) {
						cs := slices.Clone(charges)
						for i := range cs {
							cs[i].Limiter = p[at[i]]
						}
						RefundAll(cs, got)
					})
					before = model
				}
				if g, w := real.words(now), before.words(now); g != w {
					t.Fatalf("after %+v (passes: %v) buckets hold %v, want %v", charges, wantOK, g, w)
				}
			}
		}
	})
}

func checkVerdicts(t *rapid.T, got, want []Verdict, charges []Charge, ok bool) {
	for i, w := range want {
		if !ok && w.OK && !charges[i].Peek {
			w = Verdict{Reason: Sibling, From: -1}
		}
		if got[i] != w {
			t.Fatalf("charge %d of %+v: %+v, want %+v", i, charges, got[i], w)
		}
	}
}

func TestPeekLeavesALendersHalfInTheBudgetToo(t *testing.T) {
	p := newPair(true, false)
	r := allocator.Unit
	p[0].SetSchedule(0, []Step{{Until: math.MaxInt64, Total: 8 * r, Classes: []allocator.Rate{0, 10 * r}}})
	now := 2 * int64(time.Second)
	for cost, want := range map[int64]Verdict{3: {true, Admitted, 1}, 4: {false, BudgetEmpty, -1}, 6: {false, NoShare, -1}} {
		req := Request{Cost: cost}
		if got := p[0].Peek(now, req); got != want {
			t.Errorf("peek of %d: %+v, want %+v", cost, got, want)
		}
		if got := p[0].DecideRequest(now, req); got != want {
			t.Errorf("decision of %d: %+v, want %+v", cost, got, want)
		}
		p[0].RefundRequest(want, req)
	}
}

func TestEveryChargeIsDemandOnceWhateverBecomesOfItsCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(rapid.Bool().Draw(t, "revocable"), rapid.Bool().Draw(t, "shadow"))
		var want [2][2]int64
		for i, l := range p {
			l.SetSchedule(0, steady(int64(3+20*i)))
		}
		for now := int64(0); now < 20e9; now += 1e9 {
			charges, at := drawCall(t, p)
			for i := range charges {
				r := &charges[i].Request
				r.Tenant = 0
				if !charges[i].Peek && r.Class < 2 && r.Cost > 0 {
					r.Cost = min(r.Cost, 40)
					want[at[i]][r.Class] += r.Cost
				}
			}
			DecideAll(now, charges, make([]Verdict, len(charges)))
		}
		for i, l := range p {
			var c [2]Counts
			l.Counts(c[:])
			for k := range c {
				if c[k].Offered != want[i][k] || c[k].Offered != c[k].Admitted+c[k].Refused {
					t.Errorf("budget %d class %d: %+v, want %d offered", i, k, c[k], want[i][k])
				}
			}
		}
	})
}

func TestARepeatedCallOfOneClientIsDemandOnceInEveryClass(t *testing.T) {
	p := newPair(false, false)
	p[0].SetSchedule(0, steady(300))
	p[1].SetSchedule(0, steady(0))
	charges := []Charge{
		{Limiter: p[0], Request: Request{Cost: 3, Client: 77}},
		{Limiter: p[1], Request: Request{Cost: 1, Client: 77}},
	}
	now := int64(time.Second)
	for range 5 {
		DecideAll(now, charges, make([]Verdict, 2))
	}
	var c [2]Counts
	p[0].Counts(c[:])
	if want := (Counts{Offered: 3, Refused: 15, Retries: 12}); c[0] != want {
		t.Errorf("sibling: %+v, want %+v", c[0], want)
	}
	p[1].SetSchedule(now, steady(300))
	now += int64(time.Second)
	DecideAll(now, charges, make([]Verdict, 2))
	p[0].Counts(c[:])
	if want := (Counts{Offered: 3, Admitted: 3, Refused: 15, Retries: 15}); c[0] != want {
		t.Errorf("sibling, admitted at last: %+v, want %+v", c[0], want)
	}
}

func TestPeekTakesAndCountsNothing(t *testing.T) {
	p := newPair(true, false)
	p[0].SetSchedule(0, steady(30))
	now := 2 * int64(time.Second)
	p[0].Decide(now, 0, 5)
	words := p.words(now)
	for _, tc := range []struct {
		r    Request
		want Verdict
	}{
		{Request{Cost: 15}, Verdict{true, Admitted, 0}},
		{Request{Cost: 16}, Verdict{false, ClassEmpty, -1}},
		{Request{Cost: 41}, Verdict{false, CostOverBurst, -1}},
		{Request{Class: 1, Cost: 5, Tenant: 2}, Verdict{false, CostOverBurst, -1}},
		{Request{Class: 5, Cost: 1}, Verdict{false, UnknownClass, -1}},
		{Request{}, Verdict{false, BadCost, -1}},
	} {
		if got := p[0].Peek(now, tc.r); got != tc.want {
			t.Errorf("%+v: %+v, want %+v", tc.r, got, tc.want)
		}
	}
	if p.words(now) != words {
		t.Error("peeks took something")
	}
	var c [2]Counts
	p[0].Counts(c[:])
	if c[0] != (Counts{Offered: 5, Admitted: 5}) || c[1] != (Counts{}) {
		t.Errorf("peeks count: %+v", c)
	}
}

// Lesson O11: calls of class 0 at ten times its limit that also name class 1 must
// not cost class 1 its own work.
func TestAClassAtTenTimesItsLimitTakesNothingFromItsSibling(t *testing.T) {
	run := func(flood bool) (admitted int64) {
		l := NewLimiter(LimiterConfig{Classes: 2}, 0)
		r := 100 * allocator.Unit
		l.SetSchedule(0, []Step{{Until: math.MaxInt64, Total: 2 * r, Classes: []allocator.Rate{r, r}}})
		x := []Charge{{Limiter: l, Request: Request{Class: 1, Cost: 1}}, {Limiter: l, Request: Request{Class: 0, Cost: 10}}}
		var vs [2]Verdict
		for ms := range int64(60_000) { // a thousand calls per second are ten times of what class 0 may
			now := ms * 1e6
			if flood {
				DecideAll(now, x, vs[:])
			}
			if ms%12 == 0 && l.Decide(now, 1, 1).OK { // 83 per second
				admitted++
			}
		}
		return admitted
	}
	alone, beside := run(false), run(true)
	if beside*100 < alone*98 {
		t.Errorf("class 1 admits %d beside the flood, %d without", beside, alone)
	}
}

func TestCallsOfManyGoroutinesTakeWhatTheyAreGrantedAndNoMore(t *testing.T) {
	p := newPair(false, false)
	for _, l := range p {
		l.SetSchedule(0, steady(3000))
	}
	now := int64(time.Second)
	var passed atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			charges := []Charge{
				{Limiter: p[g%2], Request: Request{Class: 0, Cost: 1}},
				{Limiter: p[1-g%2], Request: Request{Class: 0, Cost: 1}},
			}
			vs := make([]Verdict, 2)
			for range 2000 {
				if DecideAll(now, charges, vs) {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got := passed.Load(); got > 2000 || got < 1990 {
		t.Errorf("%d calls pass, want the bucket's 2000, or a few less where calls met", got)
	}
	for i, l := range p {
		if left := l.Quota(now, 0).Tokens; left != 2000-passed.Load() {
			t.Errorf("budget %d: %d tokens left after %d calls of 2000", i, left, passed.Load())
		}
	}
}

func TestWhatWasTakenIsGivenBackWhereATokenWentSinceTheLook(t *testing.T) {
	p := newPair(true, false)
	p[0].SetSchedule(0, steady(30))
	now := 2 * int64(time.Second)
	charges := []Charge{
		{Limiter: p[0], Request: Request{Class: 1, Cost: 7, Tenant: 3}},
		{Limiter: p[0], Request: Request{Class: 0, Cost: 3}, Peek: true},
		{Limiter: p[1], Request: Request{Class: 0, Cost: 1}},
	}
	words := p.words(now)
	vs := []Verdict{{true, Admitted, 1}, {true, Admitted, 0}, {true, Admitted, 0}} // as looked at, long ago
	if takeAll(now, charges, vs) {
		t.Error("took what is not there")
	}
	if got := p.words(now); got != words {
		t.Errorf("buckets hold %v, want %v as before", got, words)
	}
}

func TestACallFindsWhatLiesInTheLeasesOfOtherCores(t *testing.T) {
	l := NewLimiter(LimiterConfig{Classes: 2}, 0)
	r := 1e9 * allocator.Unit
	l.SetSchedule(0, []Step{{Until: math.MaxInt64, Total: 2 * r, Classes: []allocator.Rate{r, r}}})
	now := 2 * int64(time.Second)
	const spent, rest = 5000, 1e9 - 1e9/leaseShare - 5000 // buckets are smaller by that part while there are leases
	for range spent {
		l.Decide(now, 0, 1)
	}
	if l.cores > 1 && l.seg.Load().leased == 0 {
		t.Error("no leases began: this test is for nothing")
	}
	all := Request{Class: 0, Cost: rest}
	if v := l.Peek(now, all); !v.OK {
		t.Errorf("peek: %+v", v)
	}
	for range spent {
		l.Decide(now, 1, 1)
	}
	vs := make([]Verdict, 2)
	if !DecideAll(now, []Charge{{Limiter: l, Request: all}, {Limiter: l, Request: Request{Class: 1, Cost: rest}}}, vs) {
		t.Errorf("a call for the whole rest: %+v", vs)
	}
}

func BenchmarkDecideAll(b *testing.B) {
	p := newPair(false, false)
	for _, l := range p {
		l.SetSchedule(0, steady(1e9))
	}
	charges := []Charge{{Limiter: p[0], Request: Request{Class: 0, Cost: 1}}, {Limiter: p[1], Request: Request{Class: 0, Cost: 1}}}
	vs := make([]Verdict, 2)
	b.ReportAllocs()
	now := int64(0)
	for b.Loop() {
		now += 1000
		DecideAll(now, charges, vs)
	}
}
