package ledger

import (
	"os"
	"strconv"
	"testing"
)

const (
	worldSeeds = 300
	worldSteps = 700
)

// TestSumStaysWithinTheBudgetUnderEveryFault is the law of this package. A
// failure prints its seed; LEDGER_SEED runs that one alone, LEDGER_SEEDS more of
// them.
func TestSumStaysWithinTheBudgetUnderEveryFault(t *testing.T) {
	first, last := uint64(1), uint64(worldSeeds)
	if v := os.Getenv("LEDGER_SEED"); v != "" {
		n, _ := strconv.ParseUint(v, 10, 64)
		first, last = n, n
	}
	if v := os.Getenv("LEDGER_SEEDS"); v != "" {
		last, _ = strconv.ParseUint(v, 10, 64)
	}
	seen := map[string]int{}
	bad, peak := 0, 0.0
	for seed := first; seed <= last; seed++ {
		w := newWorld(seed)
		w.run(worldSteps)
		if w.failed != "" {
			bad++
			if bad == 1 {
				t.Errorf("%s", w.failed)
			}
		}
		peak = max(peak, w.peak)
		for k, n := range w.seen {
			seen[k] += n
		}
	}
	t.Logf("%d of %d seeds broke the budget, peak %.3f, seen %v", bad, last-first+1, peak, seen)
	if last-first+1 < worldSeeds {
		return
	}
	for _, want := range []string{
		"loan lapsed", "stale", "epoch changed with loans out", "activated", "activated with force", "proved",
		"released", "lent", "quarantine cut short", "own-name-higher", "below-floor", "unknown-epoch",
		"crashed before the row left", "sum is the whole budget",
	} {
		if seen[want] == 0 {
			t.Errorf("never happened: %s", want)
		}
	}
}
