package schedule

import (
	"testing"

	"subak/allocator"
	"subak/chaos"
)

// calmWorld is a world of the plain mode in which every name has a disk.
func calmWorld(seed uint64) *world {
	p, _ := ByName("mixed")
	p.Disks, p.Budget, p.Exact = []int{100}, []int{0}, []int{0}
	w := newWorld()
	w.reset(seed, chaos.Plain, &p, 0)
	w.calm = true
	return w
}

func (w *world) talk(rounds int) { w.talkUntil(rounds, func() bool { return false }) }

func mustBeSound(t *testing.T, w *world) {
	t.Helper()
	if w.failed != nil {
		t.Fatal(w.failed.Checker, w.failed.Detail)
	}
}

// Lesson O17: nodes that remember confirm one another, though all are new.
func TestAMassRestartWithMemoryOnDiskComesBackByItself(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		w := calmWorld(seed)
		for range 5 {
			w.talk(20)
			for i := range w.nodes {
				p := w.procs[i]
				w.kill(p)
				w.start(p.name, w.greatest, w.rng.Uint64()&^1, false, false)
			}
		}
		w.talk(50) // longer than any quarantine
		mustBeSound(t, w)
		for i := range w.nodes {
			if s := w.procs[i].l.Standing(); !s.Proved || s.Quarantine {
				t.Errorf("seed %d: n%d is at %+v", seed, i, s)
			}
		}
	}
}

// Without faults and with steady demand every node comes to enforce its target,
// and then no loan moves any more.
func TestSettlementReachesTheTargetsAndThenRests(t *testing.T) {
	for seed := uint64(1); seed <= 12; seed++ {
		w := calmWorld(seed)
		w.talk(50)
		for i := range w.nodes {
			w.procs[i].demand[0] = allocator.Rate(w.rng.Int64N(int64(w.limits[0])/1000)) * 1000
		}
		w.talk(25)
		mustBeSound(t, w)
		for i := range w.nodes {
			p := w.procs[i]
			now := p.clock.At(w.t)
			p.l.View(now, 0, &w.view)
			w.target(p.l.Epoch(), 0, &w.view)
			if change, _ := p.l.Settle(now, 0, w.targets); change != 0 {
				t.Errorf("seed %d: n%d would still change %d", seed, i, change)
			}
			if self := w.view.Self; self >= 0 && p.planes[0].rate < w.targets[self] {
				t.Errorf("seed %d: n%d enforces %d of its target %d", seed, i, p.planes[0].rate, w.targets[self])
			}
		}
	}
}

// A start that wrongly claims to be the first is safe while there was no edit.
func TestAFirstStartThatIsNoneSitsOutItsFormerLoans(t *testing.T) {
	r := New("amnesia")
	for seed := uint64(1); seed <= 10; seed++ {
		if res := r.Run(seed, chaos.NoDurable, 500); res.Violation != nil {
			t.Fatal(r.Explain(seed, chaos.NoDurable, 500))
		}
	}
}
