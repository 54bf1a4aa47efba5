package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// apply makes a change at h and fails the test if it is refused.
func (h *host) apply(ch Change) Plan {
	h.t().Helper()
	p, err := h.core.Apply(h.w.now, uint64(h.w.now/1e6)+1, ch)
	if err != nil {
		h.t().Fatalf("%s refuses: %v", h.name, err)
	}
	return p
}

// edit is the present content at h after a change by f.
func (h *host) edit(f func(*epoch.Document)) *epoch.Document {
	d := h.core.Document().Clone()
	f(d)
	return d
}

// limited sets the first budget's limit in units, split over its classes in the
// given parts.
func limited(limit int64, parts ...int64) func(*epoch.Document) {
	return func(d *epoch.Document) {
		s := &d.Budgets[0].Spec
		s.Budget = allocator.Rate(limit) * allocator.Unit
		left, whole := s.Budget, int64(0)
		for _, p := range parts {
			whole += p
		}
		for k := range s.Classes {
			s.Classes[k].Reservation = s.Budget / allocator.Rate(whole) * allocator.Rate(parts[k])
			if k == len(s.Classes)-1 {
				s.Classes[k].Reservation = left
			}
			left -= s.Classes[k].Reservation
		}
	}
}

// everywhere reports whether every live member has epoch id active.
func (w *world) everywhere(id ledger.EpochID) func() bool {
	return func() bool {
		for _, h := range w.hosts {
			if h.up && h.core.pos >= 0 && h.core.led.Active() != id || h.up && h.core.epoch.ID != id {
				return false
			}
		}
		return true
	}
}

// watch measures from now on, in windows of 200 ms, the least part of what was
// asked for that was admitted.
func (w *world) watch() (worst func() float64) {
	low, begun, last := 1.0, w.now, w.served
	w.during = func() {
		if w.now-begun < int64(200*time.Millisecond) {
			return
		}
		if d := w.served.offered - last.offered; d > 0 {
			low = min(low, (w.served.admitted-last.admitted)/d)
		}
		begun, last = w.now, w.served
	}
	return func() float64 { return low }
}

// even gives every node the same load of both classes, in units per second of
// the whole cluster.
func (w *world) even(total float64) {
	for _, h := range w.hosts {
		h.load[0], h.load[1] = total*0.6/float64(len(w.hosts)), total*0.4/float64(len(w.hosts))
	}
}

func TestABudgetIsCutByHalfUnderLoadAndRestored(t *testing.T) {
	for _, loss := range []float64{0, 0.2} {
		w := newWorld(t, 40, fiveNodes)
		w.delay, w.jitter = 20*time.Millisecond, 40*time.Millisecond
		w.start()
		w.loss = loss
		w.even(3000)
		w.hosts[0].load[1] += 6500 // more than its base: the others lend
		w.run(5 * time.Second)
		if w.hosts[0].share() < w.hosts[0].base()*3/2 {
			t.Fatal("nothing is lent: the test does not test")
		}
		var sum allocator.Rate
		lowered := func() bool {
			sum = 0
			for _, h := range w.hosts {
				sum += h.share()
			}
			return sum <= 5000*allocator.Unit
		}
		cut := w.hosts[3].apply(Change{Document: w.hosts[3].edit(limited(5000, 60, 40))})
		t.Logf("loss %.0f %%: cut in force after %s", 100*loss, w.until(5*time.Second, "half the rate is enforced", lowered))
		t.Logf("activated everywhere %s later", w.until(10*time.Second, "the cut is active everywhere", w.everywhere(cut.Epoch)))
		w.until(5*time.Second, "the busy node has what the others leave", func() bool { return w.hosts[0].share() >= 2400*allocator.Unit })
		w.run(2 * time.Second)
		again := w.hosts[1].apply(Change{Document: w.hosts[1].edit(limited(10_000, 60, 40)), Revert: true})
		t.Logf("raised everywhere after %s", w.until(10*time.Second, "the raise is active everywhere", w.everywhere(again.Epoch)))
		w.until(5*time.Second, "the busy node has it all again", func() bool { return w.hosts[0].share() >= 7000*allocator.Unit })
	}
}

func TestServiceGoesOnThroughEveryKindOfChange(t *testing.T) {
	for name, f := range map[string]func(*epoch.Document){
		"cut by half": limited(5000, 60, 40),
		"re-split":    limited(10_000, 30, 70),
		"burst":       func(d *epoch.Document) { d.Budgets[0].Burst = 300 * time.Millisecond },
		"revocable":   func(d *epoch.Document) { d.Budgets[0].Revocable = false },
		"weights": func(d *epoch.Document) {
			for i := range d.Nodes {
				d.Nodes[i].Weight = int64(30 + 10*i)
				d.Budgets[0].Spec.Weights[i] = d.Nodes[i].Weight
			}
		},
		"class added": func(d *epoch.Document) {
			s := &d.Budgets[0].Spec
			low := s.Classes[1]
			low.Name = "batch"
			s.Classes = append(s.Classes, low)
			limited(10_000, 50, 40, 10)(d)
		},
		"budget added": func(d *epoch.Document) {
			b := d.Clone().Budgets[0]
			b.Name = "zusatz"
			d.Budgets = append(d.Budgets, b)
		},
		"node removed": func(d *epoch.Document) {
			*d = *d.Without(func(n string) bool { return n == "n4" })
		},
	} {
		w := newWorld(t, 41, fiveNodes)
		w.delay, w.jitter = 20*time.Millisecond, 40*time.Millisecond
		w.start()
		w.even(2500)
		w.hosts[0].load[1] += 1500
		if name == "node removed" {
			w.hosts[4].load[0], w.hosts[4].load[1] = 0, 0 // drained before it leaves
		}
		w.run(5 * time.Second)
		worst := w.watch()
		p := w.hosts[2].apply(Change{Document: w.hosts[2].edit(f)})
		took := w.until(10*time.Second, name+": active everywhere", w.everywhere(p.Epoch))
		w.run(3 * time.Second)
		t.Logf("%s: active everywhere after %s, at worst %.1f %% admitted", name, took, 100*worst())
		if worst() < 0.9 {
			t.Errorf("%s: admitted fell to %.1f %%", name, 100*worst())
		}
	}
}

func TestABudgetThatIsGoneAdmitsNothingAndANewOneBegins(t *testing.T) {
	w := newWorld(t, 42, manyBudgets(2))
	w.start()
	w.hosts[0].load[0] = 100
	w.run(2 * time.Second)
	gone, kept := w.hosts[1].core.budgets[0], w.hosts[1].core.budgets[1].Limiter
	var told [][]*Budget
	w.hosts[1].core.cfg.Installed = func(b []*Budget) { told = append(told, b) }
	p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(func(d *epoch.Document) {
		d.Budgets[0].Name = "zulu"
		slices.Reverse(d.Budgets)
	})})
	if len(p.Differences) != 2 {
		t.Errorf("differences: %v", p.Differences)
	}
	w.until(5*time.Second, "active everywhere", w.everywhere(p.Epoch))
	w.run(time.Second)
	c := w.hosts[1].core
	if c.budgets[0].Name != "budget-001" || c.budgets[1].Name != "zulu" || c.budgets[0].Limiter != kept {
		t.Errorf("budgets are %s and %s", c.budgets[0].Name, c.budgets[1].Name)
	}
	if gone.Limiter.Decide(w.now, 0, 1).OK || gone.Limiter.Share(w.now, nil) != 0 {
		t.Error("the budget that is gone still admits")
	}
	gone.Plane.TakeOver(w.now, func() bool { return true })
	if gone.Limiter.Share(w.now, nil) != 0 {
		t.Error("the watchdog revived a budget that is gone")
	}
	if got := c.budgets[1].Limiter.Share(w.now, nil); got < w.limit/10 {
		t.Errorf("the new budget has a share of %d", got)
	}
	if len(told) != 1 || &told[0][0] != &c.budgets[0] {
		t.Errorf("told of %d sets of budgets", len(told))
	}
}

func TestAChangeOfClassesGrantsNoFreshBurst(t *testing.T) {
	w := newWorld(t, 43, fiveNodes)
	w.start()
	h := w.hosts[0]
	w.run(3 * time.Second)
	drain := func() (n int64) {
		for k := range h.core.budgets[0].Limiter.Classes() {
			for h.core.budgets[0].Limiter.Decide(w.now, k, 1).OK {
				n++
			}
		}
		return n
	}
	drain()
	old := h.core.budgets[0].Limiter
	h.apply(Change{Document: h.edit(func(d *epoch.Document) {
		d.Budgets[0].Burst = 10 * time.Second
		slices.Reverse(d.Budgets[0].Spec.Classes)
	})})
	if h.core.budgets[0].Limiter == old {
		t.Fatal("the limiter is the same: the test does not test")
	}
	if n := drain(); n != 0 {
		t.Errorf("%d requests admitted on a fresh burst", n)
	}
	if old.Share(w.now, nil) != 0 {
		t.Error("the old limiter still has a share")
	}
}

// addNode starts a further host that is in nobody's roster yet.
func (w *world) addNode(name string) *host {
	h := &host{w: w, name: name, load: make([]float64, 2), owed: make([]float64, 2), drops: map[string]int{}}
	w.hosts = append(w.hosts, h)
	h.start(false)
	return h
}

func with(name string, weight int64) func(*epoch.Document) {
	return func(d *epoch.Document) {
		d.Nodes = append(d.Nodes, epoch.Node{Name: name, Weight: weight})
		for b := range d.Budgets {
			d.Budgets[b].Spec.Weights = append(d.Budgets[b].Spec.Weights, weight)
		}
	}
}

func TestANodeObservesUntilAnEpochAddsIt(t *testing.T) {
	for _, loss := range []float64{0, 0.2} {
		w := newWorld(t, 44, fiveNodes)
		w.start()
		w.loss = loss
		w.even(2000)
		w.run(2 * time.Second)
		h := w.addNode("n5")
		h.load[0] = 2000
		w.run(5 * time.Second)
		if h.share() != 0 || h.core.pos != -1 {
			t.Errorf("an observer enforces %d at position %d", h.share(), h.core.pos)
		}
		if _, err := h.core.Apply(w.now, 1, Change{Document: h.edit(limited(5, 60, 40))}); !errors.Is(err, ErrNotMember) {
			t.Errorf("an observer edits: %v", err)
		}
		p := w.hosts[1].apply(Change{Document: w.hosts[1].edit(with("n5", 50))})
		t.Logf("joined after %s", w.until(10*time.Second, "the new node is in", w.everywhere(p.Epoch)))
		w.until(3*time.Second, "it serves its base", func() bool { return h.base() > 0 && h.share() >= min(h.base(), 2000*allocator.Unit) })
		if !h.core.Progress(w.now).InForce {
			t.Errorf("progress at the new node: %+v", h.core.Progress(w.now))
		}
		// It is a member like others: it restarts and edits.
		h.kill()
		h.start(false)
		w.until(8*time.Second, "it is back", func() bool { return h.core.Progress(w.now).InForce })
		p = h.apply(Change{Document: h.edit(limited(8000, 60, 40))})
		w.until(6*time.Second, "its own edit is in force", w.everywhere(p.Epoch))
	}
}

func TestANodeThatLeavesByAnEpochGivesItsBaseAway(t *testing.T) {
	w := newWorld(t, 45, fiveNodes)
	w.start()
	w.even(3000)
	w.run(3 * time.Second)
	leaver := w.hosts[3]
	p := w.hosts[0].apply(Change{Document: w.hosts[0].edit(func(d *epoch.Document) {
		*d = *d.Without(func(n string) bool { return n == "n3" })
	})})
	if !slices.Contains(p.MustAck, "n3") {
		t.Errorf("the leaving node need not acknowledge: %v", p.MustAck)
	}
	w.until(5*time.Second, "active everywhere", w.everywhere(p.Epoch))
	w.run(time.Second)
	if leaver.share() != 0 || leaver.core.pos >= 0 {
		t.Errorf("the leaver enforces %d", leaver.share())
	}
	sum := allocator.Rate(0)
	for _, h := range w.hosts {
		sum += h.share()
	}
	if sum != w.limit {
		t.Errorf("the others enforce %d of %d", sum, w.limit)
	}
	for _, n := range w.hosts[0].core.Progress(w.now).Nodes {
		if n.Node == "n3" {
			t.Error("a node that left is waited for")
		}
	}
	leaver.kill()
	w.run(4 * time.Second)
	p = w.hosts[1].apply(Change{Document: w.hosts[1].edit(limited(9000, 60, 40))})
	w.until(5*time.Second, "nobody waits for it any more", w.everywhere(p.Epoch))
}

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

func TestTheSameFileAtAllNodesMakesOneEpoch(t *testing.T) {
	w := newWorld(t, 55, fiveNodes)
	w.start()
	d := w.hosts[0].edit(limited(7000, 60, 40))
	var ids []ledger.EpochID
	for _, h := range w.hosts {
		p, err := h.core.Apply(w.now, uint64(w.now/1e6)+1, Change{Document: d})
		if err != nil && !errors.Is(err, ErrNothingToChange) {
			t.Fatal(err)
		}
		ids = append(ids, p.Epoch)
	}
	if slices.ContainsFunc(ids, func(id ledger.EpochID) bool { return id != ids[0] }) {
		t.Errorf("epochs %v", ids)
	}
	w.until(5*time.Second, "active everywhere", w.everywhere(ids[0]))
	if p, err := w.hosts[2].core.Apply(w.now, 1, Change{Document: d}); !errors.Is(err, ErrNothingToChange) || p.Epoch != ids[0] {
		t.Errorf("again: %+v, %v", p, err)
	}
}

func TestFilesThatAreOlderForeignOrBrokenAreRefused(t *testing.T) {
	w := newWorld(t, 56, fiveNodes)
	w.start()
	h := w.hosts[0]
	first := h.edit(func(*epoch.Document) {})
	p := h.apply(Change{Document: h.edit(limited(7000, 60, 40))})
	w.until(5*time.Second, "active everywhere", w.everywhere(p.Epoch))
	old := p.Parent
	for name, x := range map[string]struct {
		ch   Change
		want error
	}{
		"older":     {Change{Document: first}, ErrOlder},
		"same":      {Change{}, ErrNothingToChange},
		"foreign":   {Change{Document: h.edit(func(d *epoch.Document) { d.Cluster = "other" })}, ErrForeign},
		"moved on":  {Change{Document: first, Expect: &old}, ErrConflict},
		"no canary": {Change{Document: first, Revert: true, Canary: "n9"}, nil},
		"broken":    {Change{Document: h.edit(func(d *epoch.Document) { d.Budgets[0].Spec.Budget = -1 })}, nil},
		"too many":  {Change{Forget: map[string]uint64{"n1": 0, "n2": 0, "n3": 0}}, ErrAlive},
	} {
		if _, err := h.core.Apply(w.now, 1, x.ch); err == nil || x.want != nil && !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h.core.epoch.ID != p.Epoch || h.core.lineage.top.Epoch.ID != p.Epoch {
		t.Error("a refused change changed something")
	}
	dry := h.apply(Change{Document: first, Revert: true, DryRun: true})
	if h.core.epoch.ID != p.Epoch || len(dry.Differences) == 0 || len(dry.Bases) != 5 || len(dry.MustAck) != 5 {
		t.Errorf("dry run: %+v", dry)
	}
	real := h.apply(Change{Document: first, Revert: true})
	if real.Epoch != dry.Epoch {
		t.Errorf("planned %v, made %v", dry.Epoch, real.Epoch)
	}
	w.until(5*time.Second, "reverted everywhere", w.everywhere(real.Epoch))
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
	for seed := range uint64(8) {
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
