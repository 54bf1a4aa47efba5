//go:build baseline

package core

import (
	"strings"
	"testing"
	"time"

	"subak/allocator"
)

func baselineWorld(t *testing.T, name string, seed uint64) *world {
	w := newWorld(t, seed, fiveNodes)
	w.alter = func(c *Config) { c.Baseline = name }
	return w
}

func TestBaselineStaticKeepsToItsBaseWhateverIsAsked(t *testing.T) {
	w := baselineWorld(t, BaselineStatic, 1)
	w.during = func() {
		for _, h := range w.hosts {
			if h.core != nil && h.share() != h.base() {
				t.Fatalf("%s enforces %d, want its base %d", h.name, h.share(), h.base())
			}
		}
	}
	w.start()
	w.hosts[2].load[0], w.hosts[2].load[1] = 20_000, 20_000
	w.run(5 * time.Second)
	busy := w.hosts[2]
	own := make([]allocator.Rate, 2)
	busy.core.budgets[0].Limiter.Share(w.now, own)
	if got := w.sums["origin"]; got != w.limit {
		t.Errorf("the bases add up to %d, want the budget %d", got, w.limit)
	}
	if target := busy.core.budgets[0].Total[busy.core.pos]; target != busy.base() || own[0]+own[1] != target {
		t.Errorf("target %d and class shares %v, want the base %d split", target, own, busy.base())
	}
}

func TestBaselineNaiveServesAStepAtOnceAndKeepsTheBudgetWhileViewsAgree(t *testing.T) {
	w := baselineWorld(t, BaselineNaive, 2)
	w.lenient = true // before they have met, each takes itself for the only one
	w.start()
	busy := w.hosts[2]
	busy.load[1] = 20_000
	took := w.until(testTick, "all of the budget at the only busy node", func() bool { return busy.percent() >= 99 })
	t.Logf("after %s", took)
	w.run(5 * time.Second)
	if sum := w.sums["origin"]; sum > w.limit*1001/1000 {
		t.Errorf("with views that agree the shares add up to %d of %d", sum, w.limit)
	}
}

func TestBaselineNaiveSpendsTheBudgetOnBothSidesOfAPartition(t *testing.T) {
	w := baselineWorld(t, BaselineNaive, 3)
	w.lenient = true
	w.start()
	for _, h := range w.hosts {
		h.load[0], h.load[1] = 20_000, 20_000
	}
	w.run(2 * time.Second)
	side := func(h *host) bool { return h == w.hosts[0] || h == w.hosts[1] }
	w.lost = func(from, to *host, _ string) bool { return side(from) != side(to) }
	w.peak = 0
	w.run(10 * time.Second)
	if w.peak < w.limit*199/100 {
		t.Errorf("the shares add up to at most %d, want twice the budget %d: each side takes the other for gone", w.peak, w.limit)
	}
	w.lost = nil
	w.run(5 * time.Second)
	if sum := w.sums["origin"]; sum > w.limit*1001/1000 {
		t.Errorf("healed, the shares add up to %d of %d", sum, w.limit)
	}
}

func TestBaselinesServeRightAfterARestart(t *testing.T) {
	for _, name := range []string{BaselineStatic, BaselineNaive} {
		w := baselineWorld(t, name, 4)
		w.lenient = true
		w.start()
		h := w.hosts[3]
		h.kill()
		w.run(500 * time.Millisecond)
		h.start(false)
		w.run(10 * time.Millisecond)
		if h.share() < h.base() {
			t.Errorf("%s: enforces %d right after the restart, want its base %d at least", name, h.share(), h.base())
		}
	}
}

func TestBaselineOfNoneIsTheProduct(t *testing.T) {
	w := baselineWorld(t, "", 5)
	w.start()
	w.hosts[2].load[1] = 20_000
	w.run(5 * time.Second)
	if got := w.hosts[2].percent(); got < 99.5 {
		t.Errorf("share of the only busy node is %.2f %% of the budget, want at least 99.5", got)
	}
	if err := checkBaseline("none"); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("an unknown baseline: got %v", err)
	}
}
