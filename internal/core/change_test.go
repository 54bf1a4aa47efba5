package core

import (
	"errors"
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
