package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"subak/allocator"
	"subak/internal/epoch"
)

// BenchmarkChangeWAN is how long a change takes over a wide area, in virtual
// time: 22 cores with 2 to 141 ms one way (282 ms for the farthest round trip),
// one flooded. The figures are milliseconds of virtual time: until the enforced
// shares add up to at most the halved budget, and until the restored one is in
// force everywhere. ns/op means nothing here.
func BenchmarkChangeWAN(b *testing.B) {
	for _, loss := range []float64{0, 0.2} {
		b.Run(fmt.Sprintf("loss%.0f%%", loss*100), func(b *testing.B) {
			var cut, raised []float64
			for b.Loop() {
				cut, raised = wanChanges(b, loss, 10)
			}
			for name, took := range map[string][]float64{"cut": cut, "raise": raised} {
				slices.Sort(took)
				sum := 0.0
				for _, ms := range took {
					sum += ms
				}
				b.ReportMetric(sum/float64(len(took)), name+"-mean-ms")
				b.ReportMetric(took[len(took)-1], name+"-max-ms")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func wanChanges(b *testing.B, loss float64, times int) (cut, raised []float64) {
	weights := make([]int64, 22)
	for i := range weights {
		weights[i] = int64(20 + i*37%75)
	}
	w := newWorld(b, 11, func() *epoch.Document { return testDocument(100_000, weights...) })
	w.delay, w.jitter = 2*time.Millisecond, 139*time.Millisecond
	w.start()
	w.even(30_000)
	w.hosts[0].load[1] = 200_000
	w.run(5 * time.Second)
	w.loss = loss
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for i := range times {
		h := w.hosts[1+i*7%21]
		half := h.apply(Change{Document: h.edit(limited(50_000-int64(i), 60, 40))})
		cut = append(cut, ms(w.until(10*time.Second, "the cut is in force", func() bool {
			sum := allocator.Rate(0)
			for _, h := range w.hosts {
				sum += h.share()
			}
			return sum <= 50_000*allocator.Unit
		})))
		w.until(10*time.Second, "the cut is active", w.everywhere(half.Epoch))
		w.run(time.Second)
		full := h.apply(Change{Document: h.edit(limited(99_999-int64(i), 60, 40))})
		raised = append(raised, ms(w.until(10*time.Second, "the raise is in force", w.everywhere(full.Epoch))))
		w.run(time.Second)
	}
	return cut, raised
}

func TestAnEpochOfManyPartsComesThroughLoss(t *testing.T) {
	w := newWorld(t, 90, manyBudgets(100))
	w.start()
	w.loss = 0.2
	h := w.hosts[0]
	d := h.edit(func(d *epoch.Document) {
		for b := range d.Budgets {
			d.Budgets[b].Burst = time.Second + time.Duration(w.rng.Int64N(int64(time.Second)))
			d.Budgets[b].Name = fmt.Sprintf("budget-%016x", w.rng.Uint64())
		}
	})
	p := h.apply(Change{Document: d})
	if n := len(h.core.epoch.Body); n < 2000 {
		t.Fatalf("a body of %d bytes has not many parts: the test does not test", n)
	}
	took := w.until(10*time.Second, "active everywhere", w.everywhere(p.Epoch))
	t.Logf("a body of %d bytes at 20 %% loss: active everywhere after %s", len(h.core.epoch.Body), took)
}
