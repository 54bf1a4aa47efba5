package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"subak/allocator"
	"subak/internal/epoch"
)

// BenchmarkDemandStepWAN is the reaction over a wide area, in virtual time: 22
// cores with 20 to 120 ms one way (so 240 ms for the farthest round trip), noisy
// demand everywhere, and a flood that moves from node to node. The figures are
// milliseconds of virtual time from the step to 99 % of the new target; ns/op
// means nothing here.
func BenchmarkDemandStepWAN(b *testing.B) {
	for _, loss := range []float64{0, 0.05, 0.2} {
		b.Run(fmt.Sprintf("loss%.0f%%", loss*100), func(b *testing.B) {
			var took []float64
			for b.Loop() {
				took = wanSteps(b, loss, 30)
			}
			slices.Sort(took)
			sum := 0.0
			for _, ms := range took {
				sum += ms
			}
			b.ReportMetric(sum/float64(len(took)), "mean-ms")
			b.ReportMetric(took[len(took)*9/10], "p90-ms")
			b.ReportMetric(took[len(took)-1], "max-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func wanSteps(b *testing.B, loss float64, steps int) (took []float64) {
	const nodes, quiet = 22, 2000
	weights := make([]int64, nodes)
	for i := range weights {
		weights[i] = int64(20 + i*37%75)
	}
	w := newWorld(b, 7, func() *epoch.Document { return testDocument(100_000, weights...) })
	w.delay, w.jitter, w.poisson = 20*time.Millisecond, 100*time.Millisecond, true
	w.start()
	for _, h := range w.hosts {
		h.load[0], h.load[1] = quiet/2, quiet/2
	}
	w.run(5 * time.Second)
	w.loss = loss
	want := (w.limit - (nodes-1)*quiet*allocator.Unit) * 99 / 100
	for range steps {
		busy := w.hosts[w.rng.IntN(nodes)]
		busy.load[1] = 200_000
		d := w.until(10*time.Second, "99 % of the new target", func() bool { return busy.share() >= want })
		took = append(took, float64(d.Microseconds())/1000)
		w.run(1500 * time.Millisecond)
		busy.load[1] = quiet / 2
		w.run(1500 * time.Millisecond)
	}
	return took
}
