package schedule

import (
	"testing"

	"subak/chaos"
)

func TestScratch(t *testing.T) {
	r := New("")
	seen := make([]int64, counterCount)
	peak := int64(0)
	for seed := uint64(1); seed <= 2000; seed++ {
		res := r.Run(seed, chaos.ModeOf(seed), 1000)
		peak = max(peak, res.PeakPPM)
		for i, n := range res.Seen {
			seen[i] += n
		}
		if res.Violation != nil {
			t.Errorf("%s", r.Explain(seed, res.Mode, 1000))
			return
		}
	}
	for i, c := range counters() {
		t.Logf("%8d %s", seen[i], c.Name)
	}
	t.Log(peak)
}
