package ledger

import (
	"os"
	"strconv"
	"testing"

	"subak/allocator"
)

const (
	worldSeeds = 200
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
		w := newWorld(seed, -1)
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

// With memory on disk: after any faults, once all names run and hear one another, everybody is proved
// in one epoch and capacity reaches the only demand there is.
func TestAHealedClusterServesTheOnlyDemandInFull(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		w := newWorld(seed, 1)
		w.run(300)
		w.heal(60)
		newest := w.procs[0].l.cur
		for _, p := range w.procs {
			if newest.ID.Less(p.l.cur.ID) {
				newest = p.l.cur
			}
		}
		who := w.byName[newest.Roster[len(newest.Roster)-1].ID]
		for _, p := range w.procs {
			p.demand[0] = 0
		}
		who.demand[0] = limitOf(newest, 0)
		w.heal(40)
		if got, want := who.enforced(w.t, 0), limitOf(newest, 0); got*100 < want*99 || w.failed != "" {
			t.Errorf("seed %d: n%d enforces %d of %d %s", seed, who.name, got, want, w.failed)
			for _, p := range w.procs {
				t.Logf("  n%d c %d cur %v act %v acked %v proved %v rec %v", p.name, p.l.books[0].ceiling, p.l.cur.ID, p.l.act, p.l.acked, p.l.proved, p.l.recovering)
			}
			for _, line := range w.trace {
				t.Log(line)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// Lesson O17: nodes that remember confirm one another, though all are new.
func TestAMassRestartWithMemoryOnDiskComesBackByItself(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		w := newWorld(seed, 1)
		for range 5 {
			w.heal(20)
			for _, p := range append([]*process(nil), w.procs...) {
				w.kill(p)
				w.start(p.name, w.greatest, false)
			}
		}
		w.heal(40) // longer than any quarantine
		for _, p := range w.procs {
			if !p.l.usable() {
				t.Errorf("seed %d: n%d proved %v, quarantine %v", seed, p.name, p.l.proved, p.l.quarantine)
			}
		}
		if w.failed != "" {
			t.Error(w.failed)
		}
	}
}

// Without faults and with steady demand every node comes to enforce its target,
// and then no loan moves any more.
func TestSettlementReachesTheTargetsAndThenRests(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		w := newWorld(seed, 1)
		w.heal(40)
		limit := limitOf(w.greatest, 0)
		for _, p := range w.procs {
			p.demand[0] = allocator.Rate(w.rng.Int64N(int64(limit)/1000)) * 1000
		}
		w.heal(20)
		for _, p := range w.procs {
			now := p.clock(w.t)
			var v View
			p.l.View(now, 0, &v)
			want := targets(&v)
			if change, _ := p.l.Settle(now, 0, want); change != 0 {
				t.Errorf("seed %d: n%d would still change %d", seed, p.name, change)
			}
			if v.Self < 0 {
				continue
			}
			if got := p.enforced(w.t, 0); got < want[v.Self] {
				t.Errorf("seed %d: n%d enforces %d of its target %d", seed, p.name, got, want[v.Self])
			}
		}
		if w.failed != "" {
			t.Error(w.failed)
		}
	}
}
