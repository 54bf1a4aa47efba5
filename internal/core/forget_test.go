package core

import (
	"errors"
	"slices"
	"testing"
	"time"

	"subak/allocator"
)

func TestADeadNodeIsForgottenAndItsBaseComesBackAfterATerm(t *testing.T) {
	w := newWorld(t, 46, fiveNodes)
	w.start()
	w.even(2000)
	w.hosts[0].load[1] = 20_000
	w.run(5 * time.Second)
	dead := w.hosts[3]
	if _, err := w.hosts[0].core.Forget(w.now, 1, "n3"); !errors.Is(err, ErrAlive) {
		t.Errorf("a live node is forgotten: %v", err)
	}
	if _, err := w.hosts[0].core.Forget(w.now, 1, "nobody"); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("a stranger is forgotten: %v", err)
	}
	dead.kill()
	w.run(4 * time.Second)
	forgotten := w.now
	p, err := w.hosts[0].core.Forget(w.now, uint64(w.now/1e6)+1, "n3")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Forgotten, []string{"n3"}) || slices.Contains(p.MustAck, "n3") {
		t.Errorf("plan %+v", p)
	}
	for _, n := range w.hosts[0].core.Progress(w.now).Nodes {
		if n.Node == "n3" && (!n.Forced || n.Why == "") {
			t.Errorf("progress of the dead node: %+v", n)
		}
	}
	w.until(6*time.Second, "active everywhere", w.everywhere(p.Epoch))
	if wait := w.now - forgotten; wait < int64(3*time.Second) {
		t.Errorf("its base came back after %s, before its loans can have run out", time.Duration(wait))
	}
	w.until(3*time.Second, "the busy node has what the dead one had", func() bool { return w.hosts[0].percent() >= 70 })
	// It was not dead for good: it comes back as an observer, and can be added again.
	dead.load[0] = 100
	dead.start(false)
	w.run(8 * time.Second)
	if dead.share() != 0 || dead.core.epoch.ID != p.Epoch {
		t.Errorf("back, it enforces %d under epoch %v", dead.share(), dead.core.epoch.ID)
	}
	again := w.hosts[2].apply(Change{Document: w.hosts[2].edit(with("n3", 80)), Revert: true})
	w.until(8*time.Second, "it is a member again", w.everywhere(again.Epoch))
	w.until(3*time.Second, "it serves", func() bool { return dead.share() >= 100*allocator.Unit })
}

func TestAChangeThatWaitsForADeadNodeGoesOnWhenItIsForgotten(t *testing.T) {
	w := newWorld(t, 47, fiveNodes)
	w.start()
	w.even(3000)
	w.run(2 * time.Second)
	w.hosts[3].kill()
	p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(6000, 60, 40))})
	w.run(5 * time.Second)
	var busy *UnderWayError
	if _, err := w.hosts[1].core.Apply(w.now, 1, Change{Document: w.hosts[1].edit(limited(7000, 60, 40))}); !errors.As(err, &busy) || len(busy.Waiting) != 1 || busy.Epoch != p.Epoch {
		t.Fatalf("an edit while another is under way: %v", err)
	}
	if pr := w.hosts[1].core.Progress(w.now); pr.InForce || pr.Everywhere {
		t.Errorf("progress: %+v", pr)
	}
	q, err := w.hosts[1].core.Forget(w.now, uint64(w.now/1e6)+1, "n3")
	if err != nil || q.Replaces != p.Epoch {
		t.Fatalf("%+v, %v", q, err)
	}
	w.until(6*time.Second, "active everywhere", w.everywhere(q.Epoch))
	if w.limit != 6000*allocator.Unit {
		t.Errorf("the change that was under way is lost: limit %d", w.limit)
	}
	if lost, ok := w.hosts[0].core.SupersededBy(p.Epoch); !ok || lost.Winner != q.Epoch || len(lost.Differs) != 1 {
		t.Errorf("the first editor is told %+v, %v", lost, ok)
	}
}

func TestASecondDeathDuringAForgettingIsForgottenToo(t *testing.T) {
	w := newWorld(t, 53, fiveNodes)
	w.start()
	w.even(3000)
	w.run(2 * time.Second)
	w.hosts[3].kill()
	w.run(4 * time.Second)
	p, err := w.hosts[1].core.Forget(w.now, uint64(w.now/1e6)+1, "n3")
	if err != nil {
		t.Fatal(err)
	}
	w.hosts[4].kill() // before it can acknowledge
	w.run(4 * time.Second)
	q, err := w.hosts[2].core.Forget(w.now, uint64(w.now/1e6)+1, "n4")
	if err != nil || q.Replaces != p.Epoch || !slices.Equal(q.Forgotten, []string{"n3", "n4"}) {
		t.Fatalf("%+v, %v", q, err)
	}
	w.until(8*time.Second, "active everywhere", w.everywhere(q.Epoch))
	w.until(3*time.Second, "three nodes enforce the whole budget", func() bool {
		sum := allocator.Rate(0)
		for _, h := range w.hosts[:3] {
			sum += h.share()
		}
		return sum >= w.limit*999/1000
	})
}

func TestAJoinerOfALostEditThatNeverCameIsForgotten(t *testing.T) {
	w := newWorld(t, 54, fiveNodes)
	w.start()
	w.run(time.Second)
	w.hosts[4].cut = true
	w.hosts[0].apply(Change{Document: w.hosts[0].edit(limited(6000, 60, 40))})
	w.hosts[4].apply(Change{Document: w.hosts[4].edit(with("n9", 10))})
	w.run(time.Second)
	w.hosts[4].cut = false
	w.run(3 * time.Second)
	// Whichever won, n9 may hold a base by the other for all that is known.
	h := w.hosts[1]
	waits := func() bool {
		for _, n := range h.core.Progress(w.now).Nodes {
			if n.Node == "n9" && n.Why != "" && !n.Adopted {
				return true
			}
		}
		return false
	}
	if !waits() {
		t.Fatalf("nobody waits for n9: %+v", h.core.Progress(w.now))
	}
	p, err := h.core.Forget(w.now, uint64(w.now/1e6)+1, "n9")
	if err != nil {
		t.Fatal(err)
	}
	w.until(8*time.Second, "active everywhere", w.everywhere(p.Epoch))
}

func TestHalfOfTheRosterCannotBeForgotten(t *testing.T) {
	w := newWorld(t, 57, fiveNodes)
	w.start()
	w.run(time.Second)
	for _, h := range w.hosts[1:4] {
		h.kill()
	}
	w.run(5 * time.Second)
	if _, err := w.hosts[0].core.Forget(w.now, 1, "n1", "n2", "n3"); err == nil {
		t.Error("three of five were forgotten")
	}
	if _, err := w.hosts[0].core.Forget(w.now, 1, "n1", "n2"); err != nil {
		t.Errorf("two of five: %v", err)
	}
}
