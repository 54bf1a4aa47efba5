package core

import (
	"testing"
	"time"

	"subak/allocator"
	"subak/internal/epoch"
)

func fiveNodes() *epoch.Document { return testDocument(10_000, 55, 40, 45, 80, 30) }

// percent of the budget that h enforces now.
func (h *host) percent() float64 { return 100 * float64(h.share()) / float64(h.w.limit) }

func (h *host) base() allocator.Rate {
	return h.core.epoch.Budgets[0].Base[h.core.pos]
}

// until runs until ok, and returns how long that took; it fails after limit.
func (w *world) until(limit time.Duration, what string, ok func() bool) time.Duration {
	w.t.Helper()
	start := w.now
	for w.now-start < int64(limit) {
		if ok() {
			return time.Duration(w.now - start)
		}
		w.run(5 * time.Millisecond)
	}
	for _, h := range w.hosts {
		w.t.Logf("%s: up %v, share %.2f %% of the budget, dropped %v", h.name, h.up, h.percent(), h.drops)
	}
	w.t.Fatalf("not within %s: %s", limit, what)
	return 0
}

func TestANodeWithAllTheDemandEnforcesTheWholeBudget(t *testing.T) {
	w := newWorld(t, 1, fiveNodes)
	w.start()
	w.hosts[2].load[1] = 20_000
	w.run(5 * time.Second)
	if got := w.hosts[2].percent(); got < 99.5 {
		t.Errorf("share of the only busy node is %.2f %% of the budget, want at least 99.5", got)
	}
}

func TestADemandStepIsServedWithinTwoTicks(t *testing.T) {
	for seed := range uint64(8) {
		w := newWorld(t, seed, fiveNodes)
		w.start()
		for _, h := range w.hosts {
			h.load[0], h.load[1] = 300, 200
		}
		w.run(10 * time.Second)
		busy := w.hosts[seed%5]
		busy.load[1] = 30_000
		// The high class keeps what it demands everywhere, so the target of the
		// busy node is the rest: all but the others' 4 x 500/s.
		took := w.until(time.Second, "99 % of the new target", func() bool { return busy.share() >= (w.limit-4*500*allocator.Unit)*99/100 })
		t.Logf("99 %% of the new target after %s", took)
		if took > 2*testTick {
			t.Errorf("seed %d: took %s, want at most two ticks", seed, took)
		}
	}
}

func TestANodeThatNeverSawAPeerSpendsItsBaseOnly(t *testing.T) {
	w := newWorld(t, 3, fiveNodes)
	for _, h := range w.hosts {
		h.cut = true
		h.load[0], h.load[1] = 10_000, 10_000
	}
	w.start()
	w.run(5 * time.Second)
	for _, h := range w.hosts {
		if h.share() != h.base() {
			t.Errorf("%s enforces %d, want its base %d", h.name, h.share(), h.base())
		}
	}
	if w.peak != w.limit {
		t.Errorf("cold-start shares add up to %d, want exactly the budget %d", w.peak, w.limit)
	}
}

func TestTheKillSwitchReturnsANodeToItsBase(t *testing.T) {
	w := newWorld(t, 10, fiveNodes)
	w.start()
	w.hosts[0].load[0] = 20_000
	w.run(3 * time.Second)
	frozen := w.hosts[0]
	frozen.core.Freeze(w.now, uint64(w.now/1e6), true)
	if frozen.share() > frozen.base() {
		t.Errorf("frozen, it still enforces %d over its base %d", frozen.share(), frozen.base())
	}
	w.hosts[1].load[0] = 20_000
	w.run(5 * time.Second)
	if frozen.share() != frozen.base() {
		t.Errorf("frozen, it enforces %d, want its base %d", frozen.share(), frozen.base())
	}
	frozen.core.Freeze(w.now, uint64(w.now/1e6), false)
	w.hosts[1].load[0] = 0
	w.until(2*time.Second, "unfrozen, it borrows again", func() bool { return frozen.percent() >= 99 })
}

func TestALeavingNodeHandsBackAtOnce(t *testing.T) {
	w := newWorld(t, 11, fiveNodes)
	w.start()
	w.hosts[0].load[0] = 20_000
	w.run(3 * time.Second)
	w.hosts[1].load[0] = 20_000
	w.hosts[0].load[0] = 0
	w.hosts[0].core.Leave(w.now, uint64(w.now/1e6))
	took := w.until(time.Second, "another node gets what the leaver had borrowed", func() bool { return w.hosts[1].percent() >= 70 })
	t.Logf("after %s", took)
}

func TestASmallBudgetCanBeHeldWholeByOneOfManyNodes(t *testing.T) {
	weights := make([]int64, 20)
	for i := range weights {
		weights[i] = 1
	}
	w := newWorld(t, 12, func() *epoch.Document { return testDocument(5, weights...) })
	w.start()
	busy := w.hosts[7]
	busy.load[0] = 8
	w.run(30 * time.Second)
	if got := busy.percent(); got < 90 {
		t.Errorf("with all traffic of a 5/s budget it enforces %.1f %%, want at least 90", got)
	}
}

func TestAQuietClassThatWakesGetsItsReservationBack(t *testing.T) {
	w := newWorld(t, 13, fiveNodes)
	w.start()
	for _, h := range w.hosts {
		h.load[1] = 20_000
	}
	w.run(5 * time.Second)
	for _, h := range w.hosts {
		h.load[0] = 20_000
	}
	classes := make([]allocator.Rate, 2)
	w.until(3*time.Second+testTick, "the waking class has its reservation", func() bool {
		var sum allocator.Rate
		for _, h := range w.hosts {
			h.core.budgets[0].Limiter.Share(w.now, classes)
			sum += classes[0]
		}
		return sum >= w.limit*6/10*99/100
	})
}

func TestViewsAgreeUnderNoiseAndDelayAndDisagreeWhenRowsAreMissing(t *testing.T) {
	w := newWorld(t, 17, fiveNodes)
	w.delay, w.jitter, w.poisson = 60*time.Millisecond, 40*time.Millisecond, true
	w.start()
	for _, h := range w.hosts {
		h.load[0], h.load[1] = 900, 1500
	}
	w.run(10 * time.Second)
	agreeing := func() (n int) {
		for _, h := range w.hosts {
			for _, peer := range w.hosts {
				if id, _ := h.core.dir.Lookup(peer.name); h != peer && h.core.Agrees(w.now, id) {
					n++
				}
			}
		}
		return n
	}
	if got := agreeing(); got != 20 {
		t.Errorf("%d of 20 pairs agree under noisy demand, want all", got)
	}
	// n1 gets nothing of n0 any more: not even by way of others.
	w.lost = func(from, to *host, row string) bool { return to == w.hosts[1] && row == "n0" }
	w.run(7 * time.Second)
	id, _ := w.hosts[2].core.dir.Lookup("n1")
	if w.hosts[2].core.Agrees(w.now, id) {
		t.Error("n1 allocates without n0's rows, and n2 does not notice")
	}
}

func TestNoiseCostsHardlyMoreRowsThanTicks(t *testing.T) {
	w := newWorld(t, 18, fiveNodes)
	w.poisson = true
	w.start()
	for _, h := range w.hosts {
		h.load[0], h.load[1] = 600, 3000
	}
	w.run(10 * time.Second)
	for _, h := range w.hosts {
		h.published = 0
	}
	w.run(20 * time.Second)
	for _, h := range w.hosts {
		if ticks := 100; h.published > ticks*11/10 {
			t.Errorf("%s published %d rows in %d ticks of steady, noisy demand", h.name, h.published, ticks)
		}
	}
}

func TestSmallSharesAreNoNewsBetweenTicks(t *testing.T) {
	weights := make([]int64, 22)
	for i := range weights {
		weights[i] = 1
	}
	w := newWorld(t, 19, func() *epoch.Document { return testDocument(1100, weights...) })
	w.delay, w.jitter = 50*time.Millisecond, 10*time.Millisecond
	w.start()
	for _, h := range w.hosts {
		h.load[0], h.load[1] = 15, 15 // three in a tick
	}
	w.hosts[0].load[1] = 2000 // so that all others lend
	w.run(10 * time.Second)
	for _, h := range w.hosts {
		h.published = 0
	}
	w.run(10 * time.Second)
	rows := 0
	for _, h := range w.hosts {
		rows += h.published
	}
	if ticks := 50 * len(w.hosts); rows > ticks*3/2 {
		t.Errorf("%d rows in %d ticks of %d nodes: each answers what the others have to say", rows, ticks, len(w.hosts))
	}
	if got := w.hosts[0].percent(); got < 30 {
		t.Errorf("the busy node enforces %.1f %%, want all that is left", got)
	}
}

func TestDemandThatMovesAroundForAMinuteIsServedAsFastAsAtFirst(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(t, 40+seed, fiveNodes)
		w.jitter, w.poisson = 2*time.Millisecond, seed%2 == 1
		w.start()
		w.run(2 * time.Second)
		for step := range 60 {
			busy := w.hosts[w.rng.IntN(5)]
			busy.load[1] = 20_000
			took := w.until(5*time.Second, "99 % of the budget at the busy node", func() bool { return busy.percent() >= 99 })
			if took > 2*testTick {
				t.Errorf("seed %d, step %d: %s took %s, want at most two ticks", 40+seed, step, busy.name, took)
			}
			w.run(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
			busy.load[1] = 0
			w.run(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
		}
	}
}

func TestMetersAreReadSeldomWithoutDemandAndOftenFromTheFirstRequestOn(t *testing.T) {
	w := newWorld(t, 50, fiveNodes)
	w.start()
	h := w.hosts[2]
	readings := func(d time.Duration) (n int) {
		last := h.core.sampleDue
		w.during = func() {
			if h.core.sampleDue != last {
				last, n = h.core.sampleDue, n+1
			}
		}
		w.run(d)
		w.during = nil
		return n
	}
	if n := readings(2 * time.Second); n < 15 || n > 25 {
		t.Errorf("%d readings in 2 s without demand, want 20", n)
	}
	h.load[1] = 20_000
	w.run(100 * time.Millisecond)
	if n := readings(2 * time.Second); n < 75 {
		t.Errorf("%d readings in 2 s under load, want 100 less what the turns of 5 ms cost", n)
	}
	h.load[1] = 0
	w.run(30 * time.Second) // until the estimate is zero
	if n := readings(2 * time.Second); n > 25 {
		t.Errorf("%d readings in 2 s without demand again, want 20", n)
	}
}
