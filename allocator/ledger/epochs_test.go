package ledger

import (
	"errors"
	"testing"

	"subak/allocator"
)

// child makes epoch 2 of f's epoch.
func (f *fixture) child(bases map[NodeID]allocator.Rate) *Epoch {
	return epochOf(2, f.epoch, bases)
}

// ackedBy merges rows of the given nodes that acknowledged ep.
func (f *fixture) ackedBy(ep *Epoch, ids ...NodeID) {
	f.Helper()
	for _, id := range ids {
		f.merge(f.row(id, 1000*uint64(id+1), 100+f.l.seq, 0, ep))
	}
}

func TestE1ALowerBaseActsWhenLearnedAndAHigherOneDoesNot(t *testing.T) {
	f := three(t)
	f.adopt(f.child(map[NodeID]allocator.Rate{a: 4, b: 10, c: 16}))
	f.wantEnforced(4)
	f = three(t)
	f.adopt(f.child(map[NodeID]allocator.Rate{a: 16, b: 10, c: 4}))
	f.wantEnforced(10)
}

func TestE3ABaseRisesWhenAllAcknowledged(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 16, b: 10, c: 4})
	f.adopt(e2)
	f.ackedBy(e2, b)
	r := f.row(c, incC, 1, 0, e2)
	r.Acked = false
	f.merge(r)
	f.wantEnforced(10)
	if f.l.MayEdit() {
		t.Error("an epoch may be edited that is not active here (E4)")
	}
	f.ackedBy(e2, c)
	f.wantEnforced(16)
	if f.l.Active() != e2.ID || !f.l.MayEdit() {
		t.Errorf("active is %v, may edit %v", f.l.Active(), f.l.MayEdit())
	}
}

func TestE3ARowWithoutItsHeardVectorActivatesNothing(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 16, b: 10, c: 4})
	f.adopt(e2)
	f.ackedBy(e2, b)
	r := f.row(c, incC, 1, 0, e2)
	r.Heard = nil
	f.merge(r)
	f.wantEnforced(10)
}

func TestTrap17NoAckWhileMoreIsLentThanTheNewBase(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	f.adopt(f.child(map[NodeID]allocator.Rate{a: 4, b: 10, c: 16}))
	f.settle(4, 10, 16)
	r := f.publish()
	if r.Acked || r.Sections[0].Loans != nil {
		t.Errorf("acked %v with %d out of a base of 4, loans %v", r.Acked, f.l.books[0].outstanding(0), r.Sections[0].Loans)
	}
	f.wantEnforced(0)
	f.merge(f.row(b, incB, 5, r.Seq, f.epoch))
	if !f.publish().Acked {
		t.Error("not acknowledged after the recall was heard of")
	}
	f.wantEnforced(4)
}

func TestTrap18NoAckInQuarantine(t *testing.T) {
	f := three(t)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, f.dir, f.epoch)
	e2 := g.child(map[NodeID]allocator.Rate{a: 4, b: 10, c: 16})
	g.adopt(e2)
	g.witnessed(e2, 2)
	if g.publish().Acked {
		t.Error("acknowledged in quarantine")
	}
	g.now = g.l.leaseWait(term)
	g.l.Control(g.now)
	if !g.publish().Acked {
		t.Error("not acknowledged after it")
	}
}

func TestTrap20AnAckOfALifeThatIsOverDoesNotCount(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 16, b: 10, c: 4})
	f.adopt(e2)
	f.ackedBy(e2, c)
	r := f.row(b, incB, 1, 0, e2)
	r.Heard[c] = Heard{incC + 1, 0} // b knows that c restarted, from disk or a witness
	f.merge(r)
	f.wantEnforced(10)
	f.merge(f.row(c, incC+1, 1, 0, e2))
	f.wantEnforced(16)
}

func TestTrap20ARestartedNodePassesOnTheLivesItKnows(t *testing.T) {
	f := three(t)
	f.merge(f.row(c, incC, 7, 0, f.epoch))
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, f.dir, f.epoch)
	if got := g.publish().Heard[c]; got != (Heard{incC, 0}) {
		t.Errorf("heard of c: %+v", got)
	}
	if got := g.l.Merge(0, g.row(c, incC-1, 9, 0, g.epoch)); got != BelowFloor {
		t.Errorf("row of c's former life: %v", got)
	}
}

func TestTrap23ARosterKnownOnlyToOthersTakesPart(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 16, b: 10, c: 4})
	f.adopt(e2)
	r := f.row(b, incB, 1, 0, e2)
	r.Extra = append(r.Extra, d) // a sibling epoch had d join; b passed through it
	f.merge(r)
	f.ackedBy(e2, c)
	f.wantEnforced(10)
	f.ackedBy(e2, d)
	f.wantEnforced(16)
	if got := f.publish().Extra; len(got) != 3 {
		t.Errorf("wait set after activation %v", got)
	}
}

func TestTrap23AnEpochPassedThroughStaysInTheWaitSet(t *testing.T) {
	f := three(t)
	f.adopt(f.child(map[NodeID]allocator.Rate{a: 10, b: 10, c: 5, d: 5}))
	e3 := epochOf(3, f.epoch, map[NodeID]allocator.Rate{a: 16, b: 10, c: 4})
	f.adopt(e3)
	f.ackedBy(e3, b, c)
	f.wantEnforced(10)
	if got := f.publish().Extra; len(got) != 4 {
		t.Errorf("wait set %v", got)
	}
}

func TestTrap24OnlyTheExactEpochCounts(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 16, b: 10, c: 4})
	e3 := epochOf(3, f.epoch, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	twin := epochOf(2, f.epoch, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	twin.ID.Hash++
	f.adopt(e2)
	f.l.learn(e3)
	f.l.learn(twin)
	f.ackedBy(e2, b)
	f.ackedBy(twin, c)
	f.wantEnforced(10)
	f.l.seq++
	f.ackedBy(e3, c)
	f.wantEnforced(10)
}

func TestTrap25AnUnprovedNodeCarriesNothingOverAnEpoch(t *testing.T) {
	f := three(t)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, f.dir, f.epoch)
	e2 := g.child(map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	g.adopt(e2)
	g.now = g.l.leaseWait(term)
	seq := g.publish().Seq
	for _, id := range []NodeID{b, c} {
		r := g.row(id, 1000*uint64(id+1), 1, seq, e2)
		r.Acked = false
		g.merge(r)
	}
	if !g.l.proved {
		t.Fatal("not proved")
	}
	g.wantEnforced(0)
	g.ackedBy(e2, b, c) // its base comes by activation
	g.wantEnforced(10)
}

func TestTrap26AForcedMemberIsWaitedForATermOnly(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f.merge(f.row(c, incC, 1, 0, f.epoch))
	e2 := f.child(map[NodeID]allocator.Rate{a: 20, b: 10})
	e2.Forced = map[NodeID]uint64{c: incC}
	f.now = 500 * ms
	f.adopt(e2)
	f.ackedBy(e2, b)
	f.wantEnforced(10)
	end := 500*ms + f.l.leaseWait(term)
	if next := f.l.NextEvent(f.now); next != end {
		t.Errorf("next event at %d, want %d", next, end)
	}
	f.now = end
	f.l.Control(f.now)
	f.wantEnforced(20)
}

// Found by the schedule adversary: a node of a short term that was restarted knew
// of the forced lender by a witness only, and did not wait for the longer term of
// lender and borrower.
func TestTrap26TheWaitIsForTheLongestTermOfAnyBorrower(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	e2 := f.child(map[NodeID]allocator.Rate{a: 20, b: 10})
	e2.Forced = map[NodeID]uint64{c: incC} // nothing was ever heard of it here
	f.adopt(e2)
	seq := f.publish().Seq
	r := f.row(b, incB, 900, seq, e2)
	r.Term = 2 * term
	f.merge(r)
	f.now = f.l.leaseWait(2*term) - 1
	f.l.Control(f.now)
	f.wantEnforced(10)
	f.now++
	f.l.Control(f.now)
	f.wantEnforced(20)
}

func TestTrap26ForceCoversOnlyTheLifeThatTheOperatorSaw(t *testing.T) {
	for name, heard := range map[string]func(f *fixture, e2 *Epoch){
		"a row of the later life": func(f *fixture, e2 *Epoch) { f.merge(f.row(c, incC+1, 1, 0, f.epoch)) },
		"a peer heard the later life": func(f *fixture, e2 *Epoch) {
			r := f.row(b, incB, 900, 0, e2)
			r.Heard[c] = Heard{incC + 1, 4}
			f.merge(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := three(t)
			e2 := f.child(map[NodeID]allocator.Rate{a: 20, b: 10})
			e2.Forced = map[NodeID]uint64{c: incC}
			f.adopt(e2)
			f.ackedBy(e2, b)
			heard(f, e2)
			f.now = f.l.leaseWait(term) + 1
			f.l.Control(f.now)
			f.wantEnforced(10)
		})
	}
}

func TestE6HalfOfTheRosterCannotBeForced(t *testing.T) {
	dir := directory()
	for _, forced := range []int{1, 2} {
		parent := epochOf(1, nil, map[NodeID]allocator.Rate{a: 1, b: 1, c: 1, d: 1})
		e2 := epochOf(2, parent, map[NodeID]allocator.Rate{a: 2, b: 2})
		e2.Forced = map[NodeID]uint64{}
		for i := range forced {
			e2.Forced[d-NodeID(i)] = 7
		}
		if err := e2.Validate(dir); (err != nil) != (forced == 2) {
			t.Errorf("%d of 4 forced: %v", forced, err)
		}
	}
}

func TestE5AJoinerGetsItsBaseByActivationOnly(t *testing.T) {
	root := epochOf(1, nil, map[NodeID]allocator.Rate{b: 15, c: 15})
	e2 := epochOf(2, root, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f := startFixture(t, memoryless, directory(), e2)
	f.witnessed(e2, 2) // rows that acknowledge, too
	f.wantEnforced(0)
	f.now = f.l.leaseWait(term)
	f.l.Control(f.now)
	f.wantEnforced(10)
}

func TestALeavingNodeTakesPartAndKeepsNothing(t *testing.T) {
	f := three(t)
	f.meet()
	e2 := f.child(map[NodeID]allocator.Rate{b: 15, c: 15})
	f.adopt(e2)
	f.wantEnforced(0)
	if change := f.settle(15, 15); change != 10*unit { // the ceiling
		t.Errorf("change %d", change)
	}
	if r := f.publish(); !r.Acked || r.Sections[0].Loans != nil {
		t.Errorf("leaving node published %+v", r)
	}
	var v View
	f.l.View(f.now, 0, &v)
	if v.Self != -1 || v.N != 2 {
		t.Errorf("view %+v", v)
	}
}

func TestAdoptRefusesWhatItMustNotTakeUp(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 4, b: 10, c: 16})
	f.adopt(e2)
	foreign := epochOf(3, e2, map[NodeID]allocator.Rate{a: 10})
	foreign.Root = 2
	broken := epochOf(3, e2, map[NodeID]allocator.Rate{a: 10, b: 10})
	broken.Budgets[0].Base = broken.Budgets[0].Base[:1]
	for name, x := range map[string]struct {
		e    *Epoch
		want error
	}{
		"an older epoch":     {f.epoch, ErrNotGreater},
		"a foreign root":     {foreign, ErrForeignRoot},
		"bases without node": {broken, nil},
	} {
		err := f.l.Adopt(f.now, x.e)
		if err == nil || x.want != nil && !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.l.Adopt(f.now, e2); err != nil {
		t.Errorf("the same epoch again: %v", err)
	}
	f.wantEnforced(4)
}

// twoBudgets gives a, b and c the same base of each of the named budgets.
func twoBudgets(version uint64, parent *Epoch, names ...string) *Epoch {
	ep := epochOf(version, parent, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	ep.Budgets = nil
	for _, name := range names {
		ep.Budgets = append(ep.Budgets, BudgetBase{Name: name, Classes: 1, Base: []allocator.Rate{10 * unit, 10 * unit, 10 * unit}})
	}
	return ep
}

func TestBudgetsAreMatchedByNameOverEpochs(t *testing.T) {
	f := startFixture(t, bootstrapped, directory(), twoBudgets(1, nil, "x", "y"))
	f.publish()
	f.merge(f.row(b, incB, 1, 1, f.epoch, Loan{a, 5 * unit})) // of x
	e2 := twoBudgets(2, f.epoch, "w", "x")
	f.adopt(e2)
	if f.l.BudgetName(1) != "x" || f.l.Budgets() != 2 {
		t.Fatalf("budgets %d, second is %s", f.l.Budgets(), f.l.BudgetName(1))
	}
	for i, want := range []allocator.Rate{0, 15 * unit} { // w has no base yet
		if got := f.l.Steps(f.now, i, nil)[0].Rate; got != want {
			t.Errorf("%s enforces %d, want %d", f.l.BudgetName(i), got, want)
		}
	}
	r := f.row(b, incB, 2, 1, f.epoch, Loan{a, 6 * unit}) // b is still at the old epoch
	f.merge(r)
	if got := f.l.Steps(f.now, 1, nil)[0].Rate; got != 16*unit {
		t.Errorf("x enforces %d", got)
	}
	f.merge(f.row(b, incB, 3, 1, e2)) // its first section is w, its second lends nothing
	f.merge(f.row(c, incC, 3, 1, e2))
	for i := range 2 {
		if got := f.l.Steps(f.now, i, nil)[0].Rate; got != 10*unit {
			t.Errorf("%s enforces %d after activation", f.l.BudgetName(i), got)
		}
	}
	if len(f.l.books) != 2 {
		t.Errorf("%d accounts kept", len(f.l.books))
	}
}

func TestARemovedBudgetIsAcknowledgedOnlyWhenItsLoansAreOver(t *testing.T) {
	f := startFixture(t, bootstrapped, directory(), twoBudgets(1, nil, "x", "y"))
	f.meet()
	f.lendToB(6) // of x
	e2 := twoBudgets(2, f.epoch, "y")
	f.adopt(e2)
	if f.publish().Acked {
		t.Error("acknowledged while x is still lent")
	}
	f.now = f.l.leaseWait(term)
	f.l.Control(f.now)
	if !f.publish().Acked {
		t.Error("not acknowledged afterwards")
	}
}
