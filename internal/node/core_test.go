package node

import (
	"math/rand/v2"
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

func TestACutOffNodeFallsToItsBaseAndComesBack(t *testing.T) {
	w := newWorld(t, 4, fiveNodes)
	w.start()
	busy := w.hosts[0]
	busy.load[0] = 20_000
	w.run(5 * time.Second)
	busy.cut = true
	w.run(2500 * time.Millisecond)
	if busy.percent() < 90 {
		t.Errorf("share fell to %.1f %% of the budget before the loans' term", busy.percent())
	}
	w.run(time.Second)
	if busy.share() != busy.base() {
		t.Errorf("cut off for longer than a term it enforces %d, want its base %d", busy.share(), busy.base())
	}
	w.run(30 * time.Second)
	busy.cut = false
	took := w.until(2*time.Second, "99 % of the budget after the cut healed", func() bool { return busy.percent() >= 99 })
	t.Logf("healed in %s", took)
}

func TestAKilledNodeStrandsItsBaseOnlyAndTakesItBackAfterQuarantine(t *testing.T) {
	w := newWorld(t, 5, fiveNodes)
	w.start()
	for _, h := range w.hosts {
		h.load[0], h.load[1] = 3000, 3000
	}
	w.run(5 * time.Second)
	victim := w.hosts[3]
	base := victim.base()
	victim.kill()
	w.run(5 * time.Second)
	var rest allocator.Rate
	for _, h := range w.hosts {
		if h.up {
			rest += h.share()
		}
	}
	if want := w.limit - base; rest < want*999/1000 {
		t.Errorf("the others enforce %d, want all but the dead node's base: %d", rest, want)
	}
	victim.start(false)
	if victim.share() != 0 {
		t.Errorf("the restarted node enforces %d before any peer vouched for it, want 0", victim.share())
	}
	took := w.until(4*time.Second, "the restarted node serves its base again", func() bool { return victim.share() >= base*99/100 })
	t.Logf("base back %s after the restart", took)
}

func TestABootstrapFlagForgottenOnARestartBreaksNothing(t *testing.T) {
	w := newWorld(t, 23, fiveNodes)
	for _, h := range w.hosts {
		h.noDisk = true
	}
	w.start()
	lender := w.hosts[3]
	w.hosts[0].load[1] = 20_000
	w.run(3 * time.Second)
	if lender.share() > lender.base()/10 {
		t.Fatalf("the lender still enforces %d of its base %d: nothing was lent", lender.share(), lender.base())
	}
	lender.kill()
	lender.start(true) // no disk, and the flag is still in the unit file
	w.run(2900 * time.Millisecond)
	if lender.share() != 0 {
		t.Errorf("it enforces %d while loans of its former life may run, want 0", lender.share())
	}
	took := w.until(2*time.Second, "it lends its base again", func() bool { return w.hosts[0].percent() >= 99 })
	t.Logf("%s after the quarantine", took)
}

func TestARestartWithoutMemoryLivesOnLoans(t *testing.T) {
	w := newWorld(t, 6, fiveNodes)
	for _, h := range w.hosts {
		h.noDisk = true
	}
	w.start()
	w.run(2 * time.Second)
	victim := w.hosts[1]
	victim.kill()
	w.run(time.Second)
	victim.start(false)
	victim.load[0] = 2000
	own := func() allocator.Rate {
		steps := victim.core.groups[0].led.Steps(w.now, 0, nil)
		return steps[len(steps)-1].Rate
	}
	w.until(2*time.Second, "it borrows what it needs", func() bool { return victim.share() >= 1900*allocator.Unit })
	if own() != 0 {
		t.Errorf("own part is %d in quarantine, want 0", own())
	}
	w.until(4*time.Second, "all others vouch for the epoch, and it has its base again", func() bool { return own() > 0 })
}

func TestNodesWithOtherBudgetsAreRefusedInBothDirections(t *testing.T) {
	w := newWorld(t, 7, fiveNodes)
	w.start()
	w.run(2 * time.Second)
	before := make([]allocator.Rate, len(w.hosts))
	for i, h := range w.hosts {
		before[i] = h.share()
	}
	// A node that was given another limit, under the same cluster name and key.
	stranger := newWorld(t, 8, func() *epoch.Document { return testDocument(99_999, 55, 40, 45, 80, 30) })
	stranger.start()
	stranger.hosts[0].load[0] = 99_999
	var packets [][]byte
	stranger.hosts[1].seen = func(p []byte) { packets = append(packets, p) }
	stranger.run(2 * time.Second)
	if len(packets) == 0 {
		t.Fatal("the stranger said nothing")
	}
	for _, p := range packets {
		w.hosts[0].core.receive(w.now, "n0", p)
	}
	if got := w.hosts[0].drops["foreign_root"]; got != len(packets) {
		t.Errorf("%d of %d packets of another budget set were refused as foreign", got, len(packets))
	}
	w.run(time.Second)
	for i, h := range w.hosts {
		if h.share() != before[i] {
			t.Errorf("%s moved from %d to %d", h.name, before[i], h.share())
		}
	}
}

func TestPoisonedPacketsChangeNothing(t *testing.T) {
	w := newWorld(t, 9, fiveNodes)
	w.start()
	w.hosts[0].load[0] = 20_000
	var sample [][]byte
	w.hosts[4].seen = func(p []byte) { sample = append(sample, p) }
	w.run(3 * time.Second)
	rng := rand.New(rand.NewPCG(9, 9))
	refused := 0
	for range 20_000 {
		p := append([]byte(nil), sample[rng.IntN(len(sample))]...)
		for range 1 + rng.IntN(4) {
			p[rng.IntN(len(p))] = byte(rng.Uint32())
		}
		if rng.IntN(3) == 0 {
			p = p[:rng.IntN(len(p))]
		}
		to := w.hosts[rng.IntN(5)]
		if _, err := to.core.dec.Decode(p); err == nil {
			continue // a forgery, not garbage: the key ring keeps those out
		}
		to.core.receive(w.now, "n4", p)
		refused++
	}
	t.Logf("%d packets refused", refused)
	if got := w.hosts[0].percent(); got < 99 {
		t.Errorf("after the poison the busy node has %.1f %% of the budget, want 99", got)
	}
	w.run(10 * time.Second)
	if got := w.hosts[0].percent(); got < 99 {
		t.Errorf("ten seconds after the poison the busy node has %.1f %% of the budget, want 99", got)
	}
}

func TestAnEntryFromTheFutureIsOvercomeByItsOwner(t *testing.T) {
	w := newWorld(t, 15, fiveNodes)
	w.start()
	w.hosts[0].load[0] = 20_000
	w.run(3 * time.Second)
	// A row of n0 that n0 never sent, with an incarnation and a sequence number
	// far ahead of it, as a bug or a restored snapshot might make it.
	forger := newWorld(t, 16, fiveNodes)
	forger.now = w.now + int64(30*365*24*time.Hour)
	forger.start()
	forger.lost = func(from, _ *host, _ string) bool { return from.name != "n0" }
	forger.run(testTick)
	var rows [][]byte
	forger.hosts[1].seen = func(p []byte) { rows = append(rows, p) }
	forger.run(4 * time.Second) // long enough for one that carries its vector
	for _, row := range rows {
		w.hosts[2].core.receive(w.now, "n3", row)
	}
	w.until(10*time.Second, "the owner's real entry prevails and it has the budget again", func() bool {
		return w.hosts[0].core.restarts > 0 && w.hosts[0].percent() >= 99
	})
}

func TestTheKillSwitchReturnsANodeToItsBase(t *testing.T) {
	w := newWorld(t, 10, fiveNodes)
	w.start()
	w.hosts[0].load[0] = 20_000
	w.run(3 * time.Second)
	frozen := w.hosts[0]
	frozen.core.freeze(w.now, uint64(w.now/1e6), true)
	if frozen.share() > frozen.base() {
		t.Errorf("frozen, it still enforces %d over its base %d", frozen.share(), frozen.base())
	}
	w.hosts[1].load[0] = 20_000
	w.run(5 * time.Second)
	if frozen.share() != frozen.base() {
		t.Errorf("frozen, it enforces %d, want its base %d", frozen.share(), frozen.base())
	}
	frozen.core.freeze(w.now, uint64(w.now/1e6), false)
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
	w.hosts[0].core.leave(w.now, uint64(w.now/1e6))
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
			h.core.budgets[0].limiter.Share(w.now, classes)
			sum += classes[0]
		}
		return sum >= w.limit*6/10*99/100
	})
}

func TestAShareHoldsThroughLostGossip(t *testing.T) {
	w := newWorld(t, 14, fiveNodes)
	w.start()
	w.hosts[0].load[0] = 6000
	for _, h := range w.hosts[1:] {
		h.load[0] = 500
	}
	w.run(5 * time.Second)
	before := w.hosts[0].share()
	w.loss = 0.3
	low := before
	w.during = func() { low = min(low, w.hosts[0].share()) }
	w.run(60 * time.Second)
	if low < before*9/10 {
		t.Errorf("at 30 %% loss the share fell from %d to %d, more than 10 %%", before, low)
	}
}

func TestFaultsOfAllKindsNeverBreakTheBudget(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, 100+seed, fiveNodes)
		w.delay, w.jitter = 20*time.Millisecond, 300*time.Millisecond
		w.start()
		bit := map[string]bool{}
		w.hosts[0].load[0], w.hosts[1].load[1] = 15_000, 15_000
		w.run(3 * time.Second)
		for range 60 {
			h := w.hosts[w.rng.IntN(len(w.hosts))]
			switch w.rng.IntN(6) {
			case 0:
				h.load[w.rng.IntN(2)] = float64(w.rng.IntN(20_000))
			case 1:
				h.cut = !h.cut
				bit["cut"] = true
			case 2:
				w.loss = float64(w.rng.IntN(60)) / 100
			case 3:
				if h.up {
					h.kill()
					bit["killed"] = true
				}
			case 4:
				if !h.up {
					h.start(false)
					bit["restarted"] = true
				}
			case 5:
				if h.up {
					h.core.freeze(w.now, uint64(w.now/1e6)+1, w.rng.IntN(2) == 0)
				}
			}
			for _, h := range w.hosts {
				if h.up && h.share() > h.base() {
					bit["borrowed"] = true
				}
			}
			w.run(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
		}
		for _, want := range []string{"cut", "killed", "restarted", "borrowed"} {
			if !bit[want] {
				t.Errorf("seed %d: nothing was ever %s: the test does not test", 100+seed, want)
			}
		}
	}
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
				if id, _ := h.core.dir.Lookup(peer.name); h != peer && h.core.agrees(w.now, id) {
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
	if w.hosts[2].core.agrees(w.now, id) {
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

func TestAClusterThatLostPowerServesTheWholeBudgetAgain(t *testing.T) {
	w := newWorld(t, 21, fiveNodes)
	w.start()
	w.hosts[0].load[1] = 20_000
	w.run(3 * time.Second)
	for _, h := range w.hosts {
		h.kill()
	}
	w.run(10 * time.Millisecond)
	for _, h := range w.hosts {
		h.start(false)
	}
	took := w.until(5*time.Second, "the busy node has the budget again", func() bool { return w.hosts[0].percent() >= 99 })
	t.Logf("after %s", took)
}

func TestARollingRestartNeverLeavesTheBusyNodeBelowTheOthersBases(t *testing.T) {
	w := newWorld(t, 22, fiveNodes)
	w.start()
	w.hosts[0].load[1] = 20_000
	w.run(3 * time.Second)
	low := 100.0
	w.during = func() { low = min(low, w.hosts[0].percent()) }
	for _, h := range w.hosts[1:] {
		h.kill()
		w.run(500 * time.Millisecond)
		h.start(false)
		w.until(5*time.Second, h.name+" is back and lends again", func() bool { return w.hosts[0].percent() >= 99 })
	}
	// One base at a time is missing, the largest is 32 % of the budget.
	if low < 67 {
		t.Errorf("the busy node fell to %.1f %% of the budget", low)
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
