package bound_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/chaos/bound"
)

// limitAt is the limit in the open stretch of time next to t.
func limitAt(c bound.Config, t int64, after bool) int64 {
	limit := c.Limit
	for _, ch := range c.Changes {
		if ch.At < t || after && ch.At == t {
			limit = ch.Limit
		}
	}
	return int64(limit)
}

// slowAllowed is what may arrive in [from, to], in micro-unit ns: the integral of
// the limit nanosecond stretch by nanosecond stretch, the tokens at the start and
// the slots.
func slowAllowed(c bound.Config, from, to int64) *big.Int {
	from -= int64(c.Spread)
	sum := new(big.Int)
	for t := from; t < to; {
		end := to
		for _, ch := range c.Changes {
			if ch.At > t {
				end = min(end, ch.At)
			}
		}
		sum.Add(sum, new(big.Int).Mul(big.NewInt(limitAt(c, t, true)), big.NewInt(end-t)))
		t = end
	}
	tokens := min(limitAt(c, from, false), limitAt(c, from, true))
	sum.Add(sum, new(big.Int).Mul(big.NewInt(tokens), big.NewInt(int64(c.Burst))))
	return sum.Add(sum, new(big.Int).Mul(big.NewInt(c.Slots), big.NewInt(1e15)))
}

func cost(as []bound.Admission, from, to int64) (sum int64) {
	for _, a := range as {
		if from <= a.At && a.At <= to {
			sum += a.Cost
		}
	}
	return sum
}

// slowKept tries every window that begins and ends at an admission, or where the
// limit changes for those whose transit took the whole spread.
func slowKept(c bound.Config, as []bound.Admission) bool {
	var starts []int64
	for _, a := range as {
		starts = append(starts, a.At)
	}
	for _, ch := range c.Changes {
		starts = append(starts, ch.At+int64(c.Spread))
	}
	for _, from := range starts {
		for _, a := range as {
			used := new(big.Int).Mul(big.NewInt(cost(as, from, a.At)), big.NewInt(1e15))
			if a.At >= from && used.Cmp(slowAllowed(c, from, a.At)) > 0 {
				return false
			}
		}
	}
	return true
}

func changingConfig(t *rapid.T, as []bound.Admission) bound.Config {
	var first, last int64
	if len(as) > 0 {
		first, last = as[0].At, as[len(as)-1].At
	}
	rate := rapid.Custom(func(t *rapid.T) allocator.Rate {
		if len(as) > 1 && last > first && rapid.Bool().Draw(t, "near") {
			// about what is admitted, so that both outcomes are met
			mean := float64(cost(as, first, last)) * 1e15 / float64(last-first)
			return allocator.Rate(min(mean*rapid.Float64Range(0, 3).Draw(t, "of the mean"), 1e12))
		}
		return allocator.Rate(rapid.Int64Range(0, 1e11).Draw(t, "rate"))
	})
	c := bound.Config{
		Limit:   rate.Draw(t, "limit"),
		Burst:   time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "burst")),
		Spread:  time.Duration(rapid.SampledFrom([]int64{0, 1e3, 1e8}).Draw(t, "spread")),
		Slots:   rapid.Int64Range(0, 5).Draw(t, "slots"),
		Windows: []time.Duration{time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "w")), time.Second},
		Over:    rapid.IntRange(0, 3).Draw(t, "over"),
	}
	at := first
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		at += rapid.Int64Range(0, max(1, (last-first)/2)).Draw(t, "later")
		if len(as) > 0 && rapid.Bool().Draw(t, "at an admission") {
			at = max(at, as[rapid.IntRange(0, len(as)-1).Draw(t, "which")].At)
		}
		c.Changes = append(c.Changes, bound.Change{At: at, Limit: rate.Draw(t, "changed")})
	}
	return c
}

func TestAChangingLimitIsJudgedAsByTryingEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as := admissions(t)
		as = as[:min(len(as), 40)]
		c := changingConfig(t, as)
		r, err := bound.Check(c, as)
		if err != nil {
			t.Fatal(err)
		}
		if want := slowKept(c, as); r.LevelOK != want {
			t.Fatalf("level %d of %d: ok %v, trying every window %v", r.Level, r.LevelMax, r.LevelOK, want)
		}
		for _, got := range r.Results {
			checkWindow(t, c, as, got)
		}
		for _, o := range r.Over {
			if o.OK() || o.Peak < cost(as, o.Start, o.Start+int64(o.Window)) && len(c.Changes) == 0 {
				t.Fatalf("listed as broken: %+v", o)
			}
		}
	})
}

// checkWindow compares one result with all windows of its length that end at an
// admission.
func checkWindow(t *rapid.T, c bound.Config, as []bound.Admission, got bound.Result) {
	if len(as) == 0 {
		return
	}
	worst, listed := int64(1)<<62, false
	for _, a := range as {
		most := new(big.Int).Quo(slowAllowed(c, a.At-int64(got.Window), a.At), big.NewInt(1e15)).Int64()
		margin := most - cost(as, a.At-int64(got.Window), a.At)
		worst = min(worst, margin)
		listed = listed || margin == got.Margin && most == got.Bound
	}
	if len(c.Changes) == 0 {
		worst = min(worst, c.Bound(got.Window))
	}
	if got.Margin != worst || !listed && got.Peak > 0 {
		t.Fatalf("window %v: margin %d of bound %d, want margin %d", got.Window, got.Margin, got.Bound, worst)
	}
}

func TestACutBindsFromItsInstantAndARaiseGivesNoTokens(t *testing.T) {
	const s = int64(time.Second)
	for _, tc := range []struct {
		name string
		to   allocator.Rate
		as   []bound.Admission
		ok   bool
	}{
		{"the old limit and burst before a cut", 5 * allocator.Unit, []bound.Admission{{9 * s, 10}, {10*s - 1, 9}}, true},
		{"the tokens after a cut are those of the new limit", 5 * allocator.Unit, []bound.Admission{{10 * s, 5}}, true},
		{"and not one more", 5 * allocator.Unit, []bound.Admission{{10 * s, 6}}, false},
		{"a raise fills no bucket", 20 * allocator.Unit, []bound.Admission{{10 * s, 11}}, false},
		{"but gives its rate at once", 20 * allocator.Unit, []bound.Admission{{10*s + s/2, 20}}, true},
		{"and a second later its burst", 20 * allocator.Unit, []bound.Admission{{11*s - 1, 20}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := bound.Config{Limit: 10 * allocator.Unit, Burst: time.Second, Changes: []bound.Change{{10 * s, tc.to}}, Windows: []time.Duration{time.Second}}
			// An admission of nothing long before, so that the change is passed.
			r, err := bound.Check(c, append([]bound.Admission{{0, 0}}, tc.as...))
			if err != nil || r.LevelOK != tc.ok {
				t.Fatalf("%v (%v), want ok %v", r, err, tc.ok)
			}
		})
	}
}

func TestBrokenStretchesAreListedByTheirWorstWindow(t *testing.T) {
	const s = int64(time.Second)
	c := bound.Config{Limit: allocator.Unit, Windows: []time.Duration{time.Second}, Over: 2}
	r, err := bound.Check(c, []bound.Admission{{0, 3}, {1, 4}, {10 * s, 1}, {20 * s, 2}, {30 * s, 9}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Over) != 2 || r.Over[0].Peak != 7 || r.Over[0].Start != 0 || r.Over[1].Peak != 2 || r.Over[1].Start != 20*s {
		t.Errorf("%+v: want the stretches at 0 (peak 7) and 20 s (peak 2), and no third", r.Over)
	}
}

func TestChangesOutOfOrderOrWithAGrainAreRefused(t *testing.T) {
	for _, c := range []bound.Config{
		{Changes: []bound.Change{{2, 1}, {1, 1}}},
		{Changes: []bound.Change{{1, -1}}},
		{Changes: []bound.Change{{1, 1}}, Grain: 1},
	} {
		if _, err := bound.New(c); !errors.Is(err, bound.ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
