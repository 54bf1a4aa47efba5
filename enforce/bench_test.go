package enforce_test

import (
	"math"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"subak/allocator"
	"subak/enforce"
	"subak/internal/clock"
)

// wide is a limiter that never refuses within a benchmark, narrow one that
// refuses all but a few.
func benchLimiter(clk *clock.Boot, perSecond allocator.Rate) *enforce.Limiter {
	now := clk.Now()
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, now)
	r := perSecond * allocator.Unit
	l.SetSchedule(now-int64(time.Hour), []enforce.Step{{
		Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r / 2, r / 2},
	}})
	return l
}

const (
	wide   = 1_000_000_000
	narrow = 1
)

func subakAllow(perSecond allocator.Rate) func() bool {
	clk := clock.NewBoot()
	l := benchLimiter(clk, perSecond)
	return func() bool { return l.Decide(clk.Now(), 0, 1).OK }
}

func xtimerateAllow(perSecond float64) func() bool {
	return rate.NewLimiter(rate.Limit(perSecond), int(perSecond)).Allow
}

// BenchmarkDecide measures whole decisions, the clock's reading included: class
// and budget charged, demand counted; beside golang.org/x/time/rate, which
// charges one bucket and counts nothing.
func BenchmarkDecide(b *testing.B) {
	for _, who := range []struct {
		name         string
		wide, narrow func() bool
	}{
		{"subak", subakAllow(wide), subakAllow(narrow)},
		{"xtimerate", xtimerateAllow(wide), xtimerateAllow(narrow)},
	} {
		b.Run(who.name, func(b *testing.B) {
			b.Run("uncontended", func(b *testing.B) { serial(b, who.wide) })
			b.Run("parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						who.wide()
					}
				})
			})
			b.Run("refused", func(b *testing.B) { serial(b, who.narrow) })
		})
	}
}

func serial(b *testing.B, allow func() bool) {
	b.ReportAllocs()
	for b.Loop() {
		allow()
	}
}

// BenchmarkDecideAgainstXTimeRate reports one decision's time as a part of
// x/time/rate's Allow, measured in alternating batches so that both see the
// same noise.
func BenchmarkDecideAgainstXTimeRate(b *testing.B) {
	ours, theirs := subakAllow(wide), xtimerateAllow(wide)
	const batch = 1024
	var tOurs, tTheirs time.Duration
	b.ReportAllocs()
	for b.Loop() {
		t0 := time.Now()
		for range batch {
			ours()
		}
		t1 := time.Now()
		for range batch {
			theirs()
		}
		tOurs += t1.Sub(t0)
		tTheirs += time.Since(t1)
	}
	n := float64(b.N) * batch
	b.ReportMetric(float64(tOurs)/n, "subak-ns/op")
	b.ReportMetric(float64(tTheirs)/n, "xtimerate-ns/op")
	b.ReportMetric(float64(tOurs)/float64(tTheirs), "x-rate-ratio")
}

// BenchmarkDecideOnly is the decision without the clock.
func BenchmarkDecideOnly(b *testing.B) {
	clk := clock.NewBoot()
	l := benchLimiter(clk, wide)
	now := clk.Now()
	b.ReportAllocs()
	for b.Loop() {
		now += 100
		l.Decide(now, 0, 1)
	}
}

// BenchmarkDecideClient adds the retry table, for a client without a mark.
func BenchmarkDecideClient(b *testing.B) {
	clk := clock.NewBoot()
	l := benchLimiter(clk, wide)
	b.ReportAllocs()
	for b.Loop() {
		l.DecideClient(clk.Now(), 0, 1, 12345)
	}
}
