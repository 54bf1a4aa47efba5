package core

import (
	"errors"
	"testing"
	"time"

	"subak/allocator"
	"subak/internal/epoch"
)

func TestACanaryTriesAChangeAloneUntilItIsPromoted(t *testing.T) {
	for seed := range uint64(3) { // promoted by the editor, by the canary, by a third node
		w := newWorld(t, 71+seed, fiveNodes)
		w.start()
		w.loss = float64(seed) / 10
		w.even(2000)
		w.run(2 * time.Second)
		before := w.hosts[0].core.epoch.ID
		p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(5000, 60, 40)), Canary: "n3"})
		w.until(3*time.Second, "the canary works under it", func() bool { return w.hosts[3].core.epoch.ID == p.Epoch })
		w.run(4 * time.Second)
		for i, h := range w.hosts {
			if i != 3 && h.core.epoch.ID != before {
				t.Fatalf("%s took it up before the end of the trial", h.name)
			}
			pr := h.core.Progress(w.now)
			if pr.Trial != p.Epoch || pr.Canary != "n3" || pr.Everywhere {
				t.Fatalf("%s: progress %+v", h.name, pr)
			}
		}
		var busy *UnderWayError
		if _, err := w.hosts[1].core.Apply(w.now, 1, Change{Document: w.hosts[1].edit(limited(9000, 60, 40))}); !errors.As(err, &busy) {
			t.Errorf("an edit during the trial: %v", err)
		}
		for _, h := range []*host{w.hosts[1], w.hosts[3]} { // their files, read again
			if _, err := h.core.Apply(w.now, 1, Change{Document: h.edit(func(*epoch.Document) {})}); !errors.Is(err, ErrNothingToChange) {
				t.Errorf("the content that %s works under: %v", h.name, err)
			}
		}
		by := w.hosts[[]int{0, 3, 4}[seed]]
		id, err := by.core.Promote(w.now, uint64(w.now/1e6)+1)
		if err != nil {
			t.Fatal(err)
		}
		w.until(6*time.Second, "active everywhere", w.everywhere(id))
		if w.limit != 5000*allocator.Unit {
			t.Errorf("limit %d", w.limit)
		}
		if lost, ok := w.hosts[0].core.SupersededBy(p.Epoch); !ok || lost.Winner != id || len(lost.Differs) != 0 {
			t.Errorf("who waits for the trial is told %+v %v", lost, ok)
		}
		if _, err := by.core.Promote(w.now, 1); !errors.Is(err, ErrNoCanary) {
			t.Errorf("promoted again: %v", err)
		}
	}
}

func TestACanaryThatMissedItsEpochIsSentItAgain(t *testing.T) {
	w := newWorld(t, 74, fiveNodes)
	w.start()
	w.run(time.Second)
	deaf := true
	w.lost = func(_, to *host, _ string) bool { return deaf && to.name == "n3" }
	p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(5000, 60, 40)), Canary: "n3"})
	w.run(500 * time.Millisecond)
	deaf = false
	// Nobody's rows name the epoch, so it cannot ask.
	w.until(2*time.Second, "the canary works under it", func() bool { return w.hosts[3].core.epoch.ID == p.Epoch })
}

func TestACanaryThatFailsIsUndone(t *testing.T) {
	w := newWorld(t, 75, fiveNodes)
	w.start()
	w.even(4000)
	w.run(2 * time.Second)
	content := w.hosts[0].core.lineage.cur.Content
	w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(5000, 60, 40)), Canary: "n3"})
	w.run(2 * time.Second)
	base := w.hosts[3].share()
	w.hosts[0].kill() // the editor is lost in the middle; any other node ends it
	p, err := w.hosts[1].core.Abandon(w.now, uint64(w.now/1e6)+1)
	if err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	w.hosts[0].start(false)
	w.until(8*time.Second, "undone everywhere", w.everywhere(p.Epoch))
	if got := w.hosts[3].core.lineage.cur.Content; got != content {
		t.Error("the content is not the one before")
	}
	w.until(3*time.Second, "the canary has its share again", func() bool { return w.hosts[3].share() > base })
	// The failed content was never in force: it can be tried again.
	w.hosts[2].apply(Change{Document: w.hosts[2].edit(limited(5000, 60, 40))})
}

func TestADeadCanaryIsForgottenAndTheOthersGoOn(t *testing.T) {
	w := newWorld(t, 76, fiveNodes)
	w.start()
	w.run(2 * time.Second)
	w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(5000, 60, 40)), Canary: "n3"})
	w.run(time.Second)
	w.hosts[3].kill()
	w.run(4 * time.Second)
	p, err := w.hosts[1].core.Forget(w.now, uint64(w.now/1e6)+1, "n3")
	if err != nil {
		t.Fatal(err)
	}
	w.until(8*time.Second, "active everywhere", w.everywhere(p.Epoch))
	if w.limit != 10_000*allocator.Unit {
		t.Errorf("the trial's limit %d is in force though nobody promoted it", w.limit)
	}
}
