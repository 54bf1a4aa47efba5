package core

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
)

func TestANodeThatIsNotSureOfWhatIsInForceMakesNoChange(t *testing.T) {
	w := newWorld(t, 52, fiveNodes)
	w.start()
	w.run(time.Second)
	h := w.hosts[2]
	h.kill()
	h.start(false)
	if _, err := h.core.Apply(w.now, 1, Change{Document: h.edit(limited(7000, 60, 40))}); !errors.Is(err, ErrNotReady) {
		t.Errorf("just restarted: %v", err)
	}
	h.noDisk, h.disk = true, nil
	h.kill()
	h.start(false)
	w.run(time.Second)
	if _, err := h.core.Apply(w.now, 1, Change{Document: h.edit(limited(7000, 60, 40))}); !errors.Is(err, ErrNotReady) {
		t.Errorf("restarted without memory: %v", err)
	}
}

func TestConcurrentEditsEndInOneWinnerAndTheLoserIsTold(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, 48+seed, fiveNodes)
		w.delay, w.jitter = 10*time.Millisecond, 60*time.Millisecond
		w.start()
		w.even(3000)
		w.run(2 * time.Second)
		w.loss = 0.2
		cut := seed%2 == 0
		w.hosts[4].cut = cut // the editors do not hear of one another for a while
		a := w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(6000, 60, 40))})
		if cut {
			w.run(3 * time.Second)
		}
		b := w.hosts[4].apply(Change{Document: w.hosts[4].edit(limited(7000, 30, 70))})
		w.run(time.Second)
		w.hosts[4].cut = false
		winner, loser, told := a.Epoch, b.Epoch, w.hosts[4]
		if winner.Less(loser) {
			winner, loser, told = loser, winner, w.hosts[0]
		}
		w.until(5*time.Second, "the loser's editor is told", func() bool {
			lost, ok := told.core.SupersededBy(loser)
			return ok && lost.Winner == winner && len(lost.Differs) > 0
		})
		w.until(10*time.Second, "one epoch everywhere", w.everywhere(winner))
		if _, ok := told.core.SupersededBy(winner); ok {
			t.Error("the winner counts as superseded")
		}
	}
}

func TestAnAsleepNodeGoesOnWithTheNewestEpoch(t *testing.T) {
	w := newWorld(t, 58, fiveNodes)
	w.start()
	w.even(2000)
	w.run(time.Second)
	// Three epochs that n4 is not needed for: it was declared dead in the first.
	sleeper := w.hosts[4]
	sleeper.cut = true
	w.run(5 * time.Second)
	p, err := w.hosts[0].core.Forget(w.now, uint64(w.now/1e6)+1, "n4")
	if err != nil {
		t.Fatal(err)
	}
	awake := func(id ledger.EpochID) func() bool {
		return func() bool {
			for _, h := range w.hosts[:4] {
				if h.core.led.Active() != id {
					return false
				}
			}
			return true
		}
	}
	sleeper.kill() // the statement is true
	w.until(6*time.Second, "forgotten", awake(p.Epoch))
	for _, limit := range []int64{9000, 8000} {
		p = w.hosts[1].apply(Change{Document: w.hosts[1].edit(limited(limit, 60, 40))})
		w.until(5*time.Second, "changed", awake(p.Epoch))
	}
	sleeper.cut = false
	sleeper.start(false) // from its disk: three epochs ago
	if sleeper.core.epoch.ID.Version != 1 {
		t.Fatal("its disk is not old: the test does not test")
	}
	w.until(3*time.Second, "it takes up the newest", func() bool { return sleeper.core.epoch.ID == p.Epoch })
	w.run(5 * time.Second)
	if sleeper.share() != 0 {
		t.Errorf("it enforces %d", sleeper.share())
	}
	p = w.hosts[2].apply(Change{Document: w.hosts[2].edit(with("n4", 30))})
	w.until(6*time.Second, "a member again", w.everywhere(p.Epoch))
}

func TestANodeBehindALossyLinkIsReminded(t *testing.T) {
	w := newWorld(t, 59, fiveNodes)
	w.start()
	w.run(time.Second)
	deaf := true
	w.lost = func(_, to *host, _ string) bool { return deaf && to.name == "n3" }
	p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(8000, 60, 40))})
	w.run(1200 * time.Millisecond)
	if w.hosts[3].core.epoch.ID == p.Epoch {
		t.Fatal("it heard of the epoch: the test does not test")
	}
	deaf = false
	t.Logf("after %s", w.until(2*time.Second, "active everywhere", w.everywhere(p.Epoch)))
}

func TestARestartInTheMiddleOfAChange(t *testing.T) {
	for name, noDisk := range map[string]bool{"with a disk": false, "without": true} {
		for seed := range uint64(4) {
			w := newWorld(t, 60+seed, fiveNodes)
			w.delay, w.jitter = 20*time.Millisecond, 100*time.Millisecond
			w.hosts[2].noDisk = noDisk
			w.start()
			w.loss = 0.1
			w.even(3000)
			w.hosts[0].load[1] = 9000
			w.run(3 * time.Second)
			p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(5000, 30, 70))})
			w.run(time.Duration(w.rng.IntN(300)) * time.Millisecond)
			w.hosts[2].kill()
			w.run(time.Duration(w.rng.IntN(2000)) * time.Millisecond)
			w.hosts[2].start(false)
			took := w.until(12*time.Second, "active everywhere", w.everywhere(p.Epoch))
			t.Logf("%s: %s", name, took)
			w.until(5*time.Second, "all of it is served", func() bool {
				sum := allocator.Rate(0)
				for _, h := range w.hosts {
					sum += h.share()
				}
				return sum > w.limit*99/100
			})
		}
	}
}

func TestAnEditorThatCrashesAfterTheAnswerHasNotLostTheChange(t *testing.T) {
	w := newWorld(t, 70, fiveNodes)
	w.start()
	w.run(time.Second)
	w.loss = 1 // nobody hears of it
	p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(8000, 60, 40))})
	w.hosts[0].kill()
	w.run(time.Second)
	w.loss = 0
	w.hosts[0].start(false)
	w.until(8*time.Second, "active everywhere", w.everywhere(p.Epoch))
}

func TestAChangeThatCannotBeSavedChangesNothing(t *testing.T) {
	w := newWorld(t, 77, fiveNodes)
	w.start()
	w.run(time.Second)
	h := w.hosts[0]
	h.diskFull = true
	before := h.core.epoch.ID
	if _, err := h.core.Apply(w.now, 1, Change{Document: h.edit(limited(5000, 60, 40))}); !errors.Is(err, ErrNotSaved) {
		t.Fatalf("%v", err)
	}
	if h.core.epoch.ID != before {
		t.Error("it took it up")
	}
	// Another node's change waits for this one, and goes on once there is room.
	p := w.hosts[1].apply(Change{Document: w.hosts[1].edit(limited(5000, 60, 40))})
	w.run(3 * time.Second)
	if w.hosts[1].core.Progress(w.now).Everywhere {
		t.Error("in force everywhere without n0's word")
	}
	h.diskFull = false
	w.until(6*time.Second, "active everywhere", w.everywhere(p.Epoch))
}

func TestRandomChangesUnderFaultsNeverBreakTheBudget(t *testing.T) {
	for seed := range uint64(5) {
		w := newWorld(t, 900+seed, fiveNodes)
		w.delay, w.jitter = 10*time.Millisecond, 150*time.Millisecond
		w.start()
		made, activated := 0, map[ledger.EpochID]bool{}
		for i := range 60 {
			if i%3 == 0 {
				w.oneFault()
			}
			if h := w.hosts[w.rng.IntN(len(w.hosts))]; !h.up {
				h.start(false)
			} else {
				h.cut = false
			}
			if h := w.hosts[w.rng.IntN(len(w.hosts))]; h.up {
				ch := Change{Revert: true, Replace: w.rng.IntN(2) == 0}
				if w.rng.IntN(4) == 0 {
					ch.Canary = fmt.Sprintf("n%d", w.rng.IntN(5))
				}
				split := 10 + w.rng.Int64N(80)
				ch.Document = h.edit(limited(2000+w.rng.Int64N(10_000), split, 100-split))
				if i%4 == 0 {
					ch.Document.Nodes[0].Weight = 1 + w.rng.Int64N(100)
					ch.Document.Budgets[0].Spec.Weights[0] = ch.Document.Nodes[0].Weight
				}
				if _, err := h.core.Apply(w.now, uint64(w.now/1e6)+1, ch); err == nil {
					made++
				}
				if w.rng.IntN(3) == 0 {
					_, _ = h.core.Promote(w.now, uint64(w.now/1e6)+1)
				} else if w.rng.IntN(3) == 0 {
					_, _ = h.core.Abandon(w.now, uint64(w.now/1e6)+1)
				}
			}
			w.run(time.Duration(w.rng.IntN(1200)) * time.Millisecond)
			activated[w.inForce] = true
		}
		w.loss = 0
		for _, h := range w.hosts {
			h.cut = false
			if !h.up {
				h.start(false)
			}
		}
		w.run(6 * time.Second)
		for _, h := range w.hosts {
			if _, err := h.core.Promote(w.now, uint64(w.now/1e6)+1); err == nil {
				break
			}
		}
		w.until(10*time.Second, "one epoch, active everywhere", func() bool {
			return w.everywhere(w.hosts[0].core.epoch.ID)()
		})
		t.Logf("%d changes made, %d came in force", made, len(activated))
		if made < 10 || len(activated) < 4 {
			t.Errorf("seed %d: the test does not test", 900+seed)
		}
	}
}
