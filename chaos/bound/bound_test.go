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

// slowPeak is the quadratic second implementation: every window that begins at
// an admission, both ends counted.
func slowPeak(as []bound.Admission, w time.Duration) int64 {
	var peak int64
	for i := range as {
		var sum int64
		for j := i; j < len(as) && as[j].At-as[i].At <= int64(w); j++ {
			sum += as[j].Cost
		}
		peak = max(peak, sum)
	}
	return peak
}

// slowBound is floor(limit*(w+burst+spread+grain)) + slots*cost, over big.Int.
func slowBound(c bound.Config, w time.Duration) int64 {
	n := big.NewInt(int64(w + c.Burst + c.Spread + c.Grain))
	n.Mul(n, big.NewInt(int64(c.Limit)))
	n.Quo(n, big.NewInt(1e15))
	n.Add(n, new(big.Int).Mul(big.NewInt(c.Slots), big.NewInt(max(c.Cost, 1))))
	return n.Int64()
}

// slowLevel is the worst of cost(i..j) - limit*(tj-ti) over all pairs, in
// units rounded up, and whether it is within the bound.
func slowLevel(as []bound.Admission, c bound.Config) (int64, bool) {
	worst := new(big.Int)
	for i := range as {
		sum := new(big.Int)
		for j := i; j < len(as); j++ {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(as[j].Cost), big.NewInt(1e15)))
			drained := new(big.Int).Mul(big.NewInt(int64(c.Limit)), big.NewInt(as[j].At-as[i].At))
			if d := new(big.Int).Sub(sum, drained); d.Cmp(worst) > 0 {
				worst = d
			}
		}
	}
	q, r := new(big.Int).QuoRem(worst, big.NewInt(1e15), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	most := new(big.Int).Mul(big.NewInt(int64(c.Limit)), big.NewInt(int64(c.Burst+c.Spread+c.Grain)))
	most.Add(most, new(big.Int).Mul(big.NewInt(c.Slots*max(c.Cost, 1)), big.NewInt(1e15)))
	return q.Int64(), worst.Cmp(most) <= 0
}

func admissions(t *rapid.T) []bound.Admission {
	gap := rapid.SampledFrom([]int64{1, 1e3, 1e6, 1e8, 3e9}).Draw(t, "gap")
	at := rapid.Int64Range(-1e12, 1e15).Draw(t, "start")
	as := make([]bound.Admission, rapid.IntRange(0, 150).Draw(t, "n"))
	for i := range as {
		at += rapid.Int64Range(0, gap).Draw(t, "dt")
		as[i] = bound.Admission{At: at, Cost: rapid.Int64Range(0, 9).Draw(t, "cost")}
	}
	return as
}

func TestStreamingEqualsTheQuadraticCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as := admissions(t)
		cfg := bound.Config{
			Limit:   allocator.Rate(rapid.Int64Range(0, 1e11).Draw(t, "limit")),
			Burst:   time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "burst")),
			Slots:   rapid.Int64Range(0, 5).Draw(t, "slots"),
			Cost:    rapid.Int64Range(0, 9).Draw(t, "cost"),
			Spread:  time.Duration(rapid.Int64Range(0, 1e8).Draw(t, "spread")),
			Windows: []time.Duration{10 * time.Second, time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "w")), time.Second},
		}
		r, err := bound.Check(cfg, as)
		if err != nil {
			t.Fatal(err)
		}
		ok := true
		for _, got := range r.Results {
			peak, limit := slowPeak(as, got.Window), slowBound(cfg, got.Window)
			if got.Peak != peak || got.Bound != limit || got.Margin != limit-peak {
				t.Fatalf("got %v; want peak %d of %d", got, peak, limit)
			}
			var from int64
			for _, a := range as {
				if a.At >= got.Start && a.At-got.Start <= int64(got.Window) {
					from += a.Cost
				}
			}
			if peak > 0 && from < peak {
				t.Fatalf("the window said to hold %d from %d holds %d", peak, got.Start, from)
			}
			ok = ok && peak <= limit
		}
		level, within := slowLevel(as, cfg)
		if r.Level != level || r.LevelOK != within {
			t.Fatalf("level %d ok %v, want %d ok %v", r.Level, r.LevelOK, level, within)
		}
		if r.OK() != (ok && within) {
			t.Fatalf("OK %v, want %v: %v", r.OK(), ok && within, r)
		}
	})
}

func TestGrainNeverHidesAPeakAndBoundsMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as := admissions(t)
		cfg := bound.Config{Limit: allocator.Unit, Windows: []time.Duration{time.Second}}
		exact, _ := bound.Check(cfg, as)
		cfg.Grain = time.Duration(rapid.Int64Range(1, 1e8).Draw(t, "grain"))
		rough, err := bound.Check(cfg, as)
		if err != nil {
			t.Fatal(err)
		}
		// Rounding moves two instants apart by less than a grain, so a rough
		// window holds at most what an exact one of w+grain does.
		if longest := slowPeak(as, time.Second+cfg.Grain); rough.Results[0].Peak > longest {
			t.Fatalf("rough peak %d above %d", rough.Results[0].Peak, longest)
		}
		if rough.Results[0].Peak < slowPeak(as, time.Second-cfg.Grain) {
			t.Fatalf("rough peak %d hides %v", rough.Results[0].Peak, exact)
		}
	})
}

func TestKnownCases(t *testing.T) {
	at := func(cost int64, ms ...int64) (as []bound.Admission) {
		for _, m := range ms {
			as = append(as, bound.Admission{At: m * 1e6, Cost: cost})
		}
		return as
	}
	cfg := bound.Config{Limit: 10 * allocator.Unit, Burst: time.Second, Windows: []time.Duration{time.Second}}
	for _, tc := range []struct {
		name string
		as   []bound.Admission
		peak int64
		ok   bool
	}{
		{"nothing", nil, 0, true},
		{"burst and rate together", append(at(10, 0), at(10, 1000)...), 20, true},
		{"one more is too much", append(at(10, 0), append(at(1, 500), at(10, 1000)...)...), 21, false},
		{"a window later it is not", append(at(10, 0), append(at(1, 500), at(10, 1101)...)...), 11, true},
		{"burst over at once although no window shows it", at(11, 0), 11, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := bound.Check(cfg, tc.as)
			if err != nil || r.Worst().Peak != tc.peak || r.OK() != tc.ok {
				t.Fatalf("got %v (%v), ok %v; want peak %d, ok %v", r, err, r.OK(), tc.peak, tc.ok)
			}
		})
	}
}

func TestBadInputIsRefused(t *testing.T) {
	c, err := bound.New(bound.Config{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(bound.Admission{At: 5, Cost: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(bound.Admission{At: 4, Cost: 1}); !errors.Is(err, bound.ErrOrder) {
		t.Fatalf("out of order: %v", err)
	}
	if err := c.Add(bound.Admission{At: 6, Cost: -1}); !errors.Is(err, bound.ErrCost) {
		t.Fatalf("negative cost: %v", err)
	}
	if _, err := bound.New(bound.Config{Limit: -1}); !errors.Is(err, bound.ErrConfig) {
		t.Fatalf("negative limit: %v", err)
	}
	if _, err := bound.New(bound.Config{Windows: []time.Duration{-1}}); !errors.Is(err, bound.ErrConfig) {
		t.Fatalf("negative window: %v", err)
	}
}

func BenchmarkAdd(b *testing.B) {
	c, err := bound.New(bound.Config{Limit: 20_000 * allocator.Unit, Burst: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if err := c.Add(bound.Admission{At: i * 50_000, Cost: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
