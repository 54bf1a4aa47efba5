package enforce_test

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"subak/allocator"
	"subak/enforce"
	"subak/internal/clock"
)

func benchLimiter(now int64, perSecond allocator.Rate) *enforce.Limiter {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, now)
	r := perSecond * allocator.Unit
	l.SetSchedule(now-int64(time.Hour), []enforce.Step{{
		Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r / 2, r / 2},
	}})
	return l
}

// A wide limiter never refuses within a benchmark, a narrow one admits a few.
const (
	wide   = 1_000_000_000
	narrow = 1
)

// subak makes n decisions, the clock's reading included: class and budget charged,
// demand counted.
func subak(now func() int64, perSecond allocator.Rate) func(n int) {
	l := benchLimiter(now(), perSecond)
	return func(n int) {
		for range n {
			l.Decide(now(), 0, 1)
		}
	}
}

// xtimerate makes n decisions by golang.org/x/time/rate, which charges one bucket
// and counts nothing.
func xtimerate(perSecond float64) func(n int) {
	l := rate.NewLimiter(rate.Limit(perSecond), int(perSecond))
	return func(n int) {
		for range n {
			l.Allow()
		}
	}
}

// onAllCores splits n decisions of one limiter over all cores.
func onAllCores(decide func(n int)) func(n int) {
	return func(n int) {
		var wg sync.WaitGroup
		cores := runtime.GOMAXPROCS(0)
		for range cores {
			wg.Go(func() { decide(n / cores) })
		}
		wg.Wait()
	}
}

// BenchmarkDecideBesideXTimeRate reports the nanoseconds of a decision and the
// part that they are of x/time/rate's Allow under the same load: medians of
// batches that take turns, so that all see the same noise. The first half second
// or so fills the buckets, and with that leases begin.
func BenchmarkDecideBesideXTimeRate(b *testing.B) {
	boot := clock.NewBoot()
	coarse := clock.NewCoarse(boot)
	for _, load := range []struct {
		name string
		over func(func(n int)) func(n int)
	}{
		{"one goroutine", func(f func(n int)) func(n int) { return f }},
		{"all cores", onAllCores},
	} {
		for _, rate := range []struct {
			name string
			rate int64
		}{{"admitted", wide}, {"refused", narrow}} {
			b.Run(load.name+"/"+rate.name, func(b *testing.B) {
				r := allocator.Rate(rate.rate)
				sides := []struct {
					name   string
					decide func(n int)
					ns     []float64
				}{
					{"xtimerate", load.over(xtimerate(float64(rate.rate))), nil},
					{"precise", load.over(subak(boot.Relaxed, r)), nil},
					{"in-order", load.over(subak(boot.Now, r)), nil},
					{"coarse", load.over(subak(coarse.Now, r)), nil},
				}
				const batch = 20_000
				for b.Loop() {
					for i := range sides {
						start := time.Now()
						sides[i].decide(batch)
						sides[i].ns = append(sides[i].ns, float64(time.Since(start))/batch)
					}
				}
				var theirs float64
				for i, s := range sides {
					slices.Sort(s.ns)
					ns := s.ns[len(s.ns)/2]
					b.ReportMetric(ns, s.name+"-ns")
					if i == 0 {
						theirs = ns
					} else {
						b.ReportMetric(ns/theirs, s.name+"-ratio")
					}
				}
			})
		}
	}
}

// BenchmarkDecideOnly is the decision without the clock.
func BenchmarkDecideOnly(b *testing.B) {
	now := int64(0)
	l := benchLimiter(now, wide)
	b.ReportAllocs()
	for b.Loop() {
		now += 100
		l.Decide(now, 0, 1)
	}
}

// BenchmarkDecideClient adds the retry table, for a client without a mark.
func BenchmarkDecideClient(b *testing.B) {
	clk := clock.NewBoot()
	l := benchLimiter(clk.Now(), wide)
	b.ReportAllocs()
	for b.Loop() {
		l.DecideClient(clk.Now(), 0, 1, 12345)
	}
}
