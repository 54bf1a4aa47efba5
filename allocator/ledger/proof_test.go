package ledger

import (
	"testing"
	"time"

	"subak/allocator"
)

var five = map[NodeID]allocator.Rate{a: 10, b: 10, c: 10, d: 10, e: 10}

func TestBootstrapUsesTheBaseAtOnceAndNeverMore(t *testing.T) {
	f := three(t)
	f.wantEnforced(10)
	if r := f.publish(); !r.Acked || r.Recovering || r.Sections[0].Ceiling != 10*unit {
		t.Errorf("first row %+v", r)
	}
	f.l.SetDemand(0, []allocator.Rate{60 * unit})
	f.settle(10, 10, 10) // nobody heard (lesson O1)
	f.publish()
	f.wantEnforced(10)
}

func TestBootstrapIsIgnoredWithMemoryOnDisk(t *testing.T) {
	f := three(t)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored, c.Bootstrap = incA+1, s, true }, f.dir, f.epoch)
	g.wantEnforced(0)
}

func TestTrap19WithoutDiskTheConfiguredBaseIsNotUsed(t *testing.T) {
	f := newFixture(t, memoryless, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f.now = f.l.leaseWait(term)
	f.l.Control(f.now)
	f.wantEnforced(0)
	f.witnessed(f.epoch, 1)
	f.wantEnforced(0)
	f.witnessed(f.epoch, 2) // proved, and all acknowledge the epoch (E3)
	f.wantEnforced(10)
}

func TestARestartWithDiskKeepsItsCeilingAfterQuarantineAndProof(t *testing.T) {
	f := newFixture(t, bootstrapped, five)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, f.dir, f.epoch)
	if next := g.l.NextEvent(0); next != g.l.leaseWait(term) {
		t.Errorf("next event at %d", next)
	}
	g.now = g.l.leaseWait(term)
	g.witnessed(g.epoch, 1)
	g.wantEnforced(0) // one witness and the former life may both be forced out of five
	g.witnessed(g.epoch, 2)
	g.wantEnforced(10)
}

func TestOfThreeNodesOneBringsAnotherBackWhileTheThirdIsDead(t *testing.T) {
	f := three(t)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, f.dir, f.epoch)
	g.now = g.l.leaseWait(term)
	g.witnessed(g.epoch, 1)
	g.wantEnforced(10)
}

func TestTrap21MemorylessNodesDoNotVouchForOneAnother(t *testing.T) {
	f := newFixture(t, memoryless, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f.now = f.l.leaseWait(term)
	seq := f.publish().Seq
	if !f.l.last.Recovering {
		t.Error("does not say that it is recovering")
	}
	for _, id := range []NodeID{b, c} {
		r := f.row(id, incB, 1, seq, f.epoch)
		r.Recovering = true
		f.merge(r)
	}
	f.wantEnforced(0)
	if f.l.proved {
		t.Error("proved by nodes without memory")
	}
}

func TestTrap21LostMemoryStaysLostOverARestart(t *testing.T) {
	f := newFixture(t, memoryless, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	s := store(t, f.l) // written by a life that never was proved
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored, c.Durable = incA+1, s, true }, f.dir, f.epoch)
	g.l.Control(0)
	if !g.publish().Recovering || !g.l.quarantine {
		t.Errorf("counts as remembering: %+v", g.l.last)
	}
}

func TestASingleNodeWithDiskNeedsNoWitness(t *testing.T) {
	alone := map[NodeID]allocator.Rate{a: 10}
	f := newFixture(t, bootstrapped, alone)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored, c.Durable = incA+1, s, true }, f.dir, f.epoch)
	g.l.Control(0)
	g.wantEnforced(10) // it had lent to nobody
}

// A single node takes two others in at once and is restarted before it could
// activate that: nobody else is of the parent, so the joiners' word is enough.
func TestTheOnlyMemberOfTheParentComesBackByAJoinersWord(t *testing.T) {
	former := newFixture(t, func(c *Config) { c.Bootstrap, c.Durable = true, true }, map[NodeID]allocator.Rate{a: 30})
	wider := epochOf(2, former.epoch, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	former.adopt(wider)
	f := startFixture(t, func(cfg *Config) {
		cfg.Inc, cfg.Durable, cfg.Stored = incA+1, true, store(t, former.l)
	}, former.dir, wider)
	f.now = f.l.quarantineEnd()
	f.l.Control(f.now)
	f.wantEnforced(0)
	f.witnessed(wider, 1)
	if !f.l.proved {
		t.Error("not proved by a joiner's word")
	}
	f.witnessed(wider, 2)
	f.wantEnforced(10)
}

// An epoch that the former life did not activate may have a lesser sibling that
// forces that life out and gives its base away: the witnesses acknowledged it,
// moved on to this one, and somebody activates it by their older rows.
func TestTrap25AnEpochThatWasNotActivatedGivesNoCeilingToANewLife(t *testing.T) {
	former := newFixture(t, func(c *Config) { c.Bootstrap, c.Durable = true, true }, five)
	next := epochOf(2, former.epoch, five)
	former.adopt(next)
	f := startFixture(t, func(cfg *Config) {
		cfg.Inc, cfg.Durable, cfg.Stored = incA+1, true, store(t, former.l)
	}, former.dir, next)
	f.now = f.l.quarantineEnd()
	seq := f.publish().Seq
	for i := range 4 { // all know the new life, and none acknowledged
		r := f.row(b+NodeID(i), incB+uint64(i)*1000, 900+seq, seq, next)
		r.Acked = false
		f.merge(r)
	}
	if !f.l.proved {
		t.Fatal("not proved by four witnesses")
	}
	f.wantEnforced(0)
	f.witnessed(next, 4)
	f.wantEnforced(10)
}

func TestTrap21ASingleNodeWithoutMemoryIsNeverProved(t *testing.T) {
	f := newFixture(t, memoryless, map[NodeID]allocator.Rate{a: 10})
	f.now = 10 * f.l.leaseWait(term)
	f.l.Control(f.now)
	f.wantEnforced(0)
}

func TestTrap22AWitnessMustHaveHadASayInWhatCouldReplaceTheEpoch(t *testing.T) {
	root := epochOf(1, nil, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	dir := directory()
	former := startFixture(t, bootstrapped, dir, root)
	e2 := epochOf(2, root, map[NodeID]allocator.Rate{a: 10, b: 10, d: 5, e: 5})
	former.adopt(e2)
	s := store(t, former.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, dir, e2)
	g.now = g.l.leaseWait(term)
	seq := g.publish().Seq
	for i, id := range []NodeID{d, e} { // enough of e2, but joiners: a sibling epoch never asks them
		r := g.row(id, incC+uint64(i), 1, seq, e2)
		r.Extra = []NodeID{a, b, c, d, e} // not active there yet
		g.merge(r)
	}
	if g.l.proved {
		t.Error("proved by joiners")
	}
	g.merge(g.row(b, incB, 1, seq, e2)) // of both rosters
	if !g.l.proved {
		t.Error("not proved by a member of both rosters")
	}
}

// a forgets that it acknowledged what came after: b, of the parent only, never had
// to acknowledge that, so its word is not enough.
func TestTrap22AWitnessOfTheParentAloneDoesNotVouchAgainstChildren(t *testing.T) {
	root := epochOf(1, nil, map[NodeID]allocator.Rate{a: 20, b: 10})
	e2 := epochOf(2, root, map[NodeID]allocator.Rate{a: 10, c: 20})
	g := startFixture(t, memoryless, directory(), e2)
	g.now = g.l.leaseWait(term)
	seq := g.publish().Seq
	vouch := func(id NodeID, inc uint64) {
		r := g.row(id, inc, 1, seq, e2)
		r.Extra = []NodeID{a, b, c}
		g.merge(r)
	}
	vouch(b, incB)
	if g.l.proved {
		t.Error("proved by one that left")
	}
	vouch(c, incC)
	if !g.l.proved {
		t.Error("not proved by all others of both rosters")
	}
}

// Whoever activated an epoch stopped waiting for those who left with it: their
// word is not needed any more, and they may be gone for good.
func TestThoseWhoLeftNeedNotVouchForAnEpochThatIsActiveSomewhere(t *testing.T) {
	root := epochOf(1, nil, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	e2 := epochOf(2, root, map[NodeID]allocator.Rate{a: 10, d: 10, e: 10})
	for _, active := range []bool{false, true} {
		g := startFixture(t, memoryless, directory(), e2)
		g.now = g.l.leaseWait(term)
		seq := g.publish().Seq
		for i, id := range []NodeID{d, e} {
			r := g.row(id, incC+uint64(i), 1, seq, e2)
			if r.Extra = []NodeID{a, b, c, d, e}; active {
				r.Extra = []NodeID{a, d, e}
			}
			g.merge(r)
		}
		if g.l.proved != active {
			t.Errorf("active elsewhere %v: proved %v", active, g.l.proved)
		}
	}
}

func TestTrap25AForcedOutNodeThatReturnsUsesNothing(t *testing.T) {
	f := three(t)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, f.dir, f.epoch)
	g.now = g.l.leaseWait(term)
	e2 := g.child(map[NodeID]allocator.Rate{b: 15, c: 15})
	e2.Forced = map[NodeID]uint64{a: incA}
	g.l.learn(e2)
	g.witnessed(e2, 2) // they are at an epoch that it has not adopted
	g.wantEnforced(0)
}

// The design allows one witness where nobody was ever forced out. This is why a
// majority is asked for always: a's new life is known to b alone; b dies; the
// operator truthfully forces a's former life and b. Nobody left has heard of a.
func TestOneWitnessWouldNotSurviveALaterForce(t *testing.T) {
	f := newFixture(t, bootstrapped, five)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored = incA+1, s }, f.dir, f.epoch)
	g.now = g.l.leaseWait(term)
	g.witnessed(g.epoch, 1)
	mine := g.enforced()
	e2 := g.child(map[NodeID]allocator.Rate{c: 20, d: 20, e: 10})
	e2.Forced = map[NodeID]uint64{a: incA, b: incB}
	cc := startFixture(t, func(cfg *Config) { cfg.Self, cfg.Inc, cfg.Bootstrap = c, incC, true }, f.dir, f.epoch)
	if err := cc.l.Adopt(0, e2); err != nil {
		t.Fatal(err)
	}
	for _, id := range []NodeID{d, e} {
		r := g.row(id, 9000, 1, 0, e2)
		if got := cc.l.Merge(0, r); got != Applied {
			t.Fatal(got)
		}
	}
	cc.now = cc.l.leaseWait(term)
	cc.l.Control(cc.now)
	cc.wantEnforced(20) // and likewise d and e: the whole budget
	if mine != 0 {
		t.Errorf("a enforces %d beside a budget given to others", mine)
	}
}

func TestProofTakesOverTheWitnessesKnowledgeOfLives(t *testing.T) {
	f := newFixture(t, memoryless, map[NodeID]allocator.Rate{a: 10, b: 10})
	seq := f.publish().Seq
	r := f.row(b, incB, 1, seq, f.epoch)
	r.Heard[c] = Heard{incC, 9}
	f.merge(r)
	if !f.l.proved {
		t.Fatal("of two, the other is enough")
	}
	if got := f.l.Merge(0, f.row(c, incC-1, 5, 0, f.epoch)); got != BelowFloor {
		t.Errorf("row of an ended life: %v", got)
	}
}

func TestTrap27TheShortQuarantineWaitsForTheNamesLentTo(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f.meet()
	before := f.l.StoredVersion()
	f.lendToB(6)
	if f.l.StoredVersion() == before {
		t.Error("the first loan to a name must be on disk before it is published")
	}
	s := store(t, f.l)
	// b left the roster since.
	e2 := f.child(map[NodeID]allocator.Rate{a: 15, c: 15})
	s.Epoch, s.Active, s.Wait = e2.ID, e2.ID, []string{"a", "c"}
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored, c.Durable = incA+1, s, true }, f.dir, e2)
	g.confirm(c, incC, 4, e2)
	seq := g.publish().Seq
	g.merge(g.row(c, incC, 5, seq, e2)) // the whole roster
	if !g.l.proved {
		t.Fatal("not proved")
	}
	g.wantEnforced(0)
	if again := store(t, g.l); len(again.LentTo) != 1 { // a second crash in quarantine
		t.Errorf("lent to %v", again.LentTo)
	}
	g.l.learn(f.epoch)
	g.merge(g.row(b, incB, 5, seq, f.epoch)) // b dropped the loan
	g.wantEnforced(10)
}

func TestTheShortQuarantineNeedsADisk(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10})
	s := store(t, f.l)
	for _, durable := range []bool{true, false} {
		g := startFixture(t, func(c *Config) { c.Inc, c.Stored, c.Durable = incA+1, s, durable }, f.dir, f.epoch)
		g.confirm(b, incB, 4, g.epoch)
		g.witnessed(g.epoch, 1)
		if got := g.enforced() > 0; got != durable {
			t.Errorf("durable %v: base in use at once: %v", durable, got)
		}
	}
}

func TestQuarantineLastsForTheLongestTermOfAFormerLoan(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10})
	s := store(t, f.l)
	shorter := func(c *Config) { c.Inc, c.Stored, c.Term = incA+1, s, term/2 }
	g := startFixture(t, shorter, f.dir, f.epoch)
	if got := g.l.quarantineEnd(); got != g.l.leaseWait(term) {
		t.Errorf("ends at %d with the longer term on disk", got)
	}
	r := g.row(b, incB, 1, 0, g.epoch)
	r.Term = 5 * time.Second
	g.merge(r)
	if got := g.l.quarantineEnd(); got != g.l.leaseWait(5*time.Second) {
		t.Errorf("ends at %d with a borrower of a longer term", got)
	}
}

func TestStoredSaysWhatTheNextLifeNeeds(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	e2 := f.child(map[NodeID]allocator.Rate{a: 4, b: 10, c: 10, d: 6})
	before := f.l.StoredVersion()
	f.adopt(e2)
	if f.l.StoredVersion() == before {
		t.Error("an adopted epoch must be on disk before the next row")
	}
	s := store(t, f.l)
	if s.Epoch != e2.ID || s.Active != f.epoch.ID || s.Incarnation != incA || s.Term != term || s.Recovering || s.LentUnknown ||
		len(s.Ceilings) != 1 || s.Ceilings[0] != (StoredCeiling{"origin", 4 * unit}) ||
		len(s.Wait) != 4 || len(s.LentTo) != 1 || s.LentTo[0] != "b" ||
		len(s.Floors) != 2 || s.Floors[0] != (StoredFloor{"b", incB}) {
		t.Errorf("stored %+v", s)
	}
	cfg := config(f.dir)
	cfg.Stored = s
	if _, err := New(cfg, e2, 0); err == nil {
		t.Error("an incarnation that was used before was accepted")
	}
	cfg.Inc++
	if _, err := New(cfg, f.epoch, 0); err == nil {
		t.Error("started under another epoch than the stored one")
	}
}
