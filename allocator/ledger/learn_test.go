package ledger

import (
	"errors"
	"testing"

	"subak/allocator"
)

func TestALearnedEpochLetsRowsBeReadAndChangesNothingElse(t *testing.T) {
	f := three(t)
	e2 := f.child(map[NodeID]allocator.Rate{a: 4, b: 10, c: 16})
	row := f.row(b, incB, 1, 0, e2)
	if got := f.l.Merge(f.now, row); got != UnknownEpoch {
		t.Fatalf("row under an unknown epoch: %v", got)
	}
	if err := f.l.Learn(e2); err != nil {
		t.Fatal(err)
	}
	if got := f.l.Merge(f.now, row); got != Applied {
		t.Fatalf("row under a learned epoch: %v", got)
	}
	f.l.Control(f.now)
	f.wantEnforced(10)
	if f.l.Epoch() != f.epoch || !f.l.MayEdit() || len(f.l.Concerned()) != 3 {
		t.Errorf("epoch %v, may edit %v, concerned %v", f.l.Epoch().ID, f.l.MayEdit(), f.l.Concerned())
	}
	if r := f.publish(); r.Epoch != f.epoch.ID || !r.Acked {
		t.Errorf("published under %v, acknowledged %v", r.Epoch, r.Acked)
	}
	f.adopt(e2)
	f.wantEnforced(4)
}

func TestALearnedEpochMustBeOfTheLineageAndSound(t *testing.T) {
	f := three(t)
	foreign := f.child(map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	foreign.Root = 2
	if err := f.l.Learn(foreign); !errors.Is(err, ErrForeignRoot) {
		t.Errorf("another lineage: %v", err)
	}
	broken := f.child(map[NodeID]allocator.Rate{a: -1})
	if err := f.l.Learn(broken); err == nil || f.l.Knows(broken.ID) {
		t.Errorf("a negative base: %v", err)
	}
	if err := f.l.Learn(f.epoch); err != nil {
		t.Errorf("the adopted epoch again: %v", err)
	}
}

func TestWhoTheActivationWaitsForIsTold(t *testing.T) {
	f := three(t)
	f.ackedBy(f.epoch, b, c)
	f.publish() // later rows of the others get higher seqs
	e2 := f.child(map[NodeID]allocator.Rate{a: 16, b: 14})
	e2.Forced = map[NodeID]uint64{c: 1000 * (uint64(c) + 1)}
	f.adopt(e2)
	if f.l.Concurs(f.now, b) || f.l.Concurs(f.now, c) || !f.l.Concurs(f.now, a) {
		t.Error("b and c are waited for, and this node is not")
	}
	if got := f.l.ForceWait(f.now, c); got != f.l.leaseWait(term) {
		t.Errorf("the statement about c takes effect after %d, want %d", got, f.l.leaseWait(term))
	}
	if got := f.l.Concerned(); len(got) != 3 {
		t.Errorf("concerned: %v", got)
	}
	f.ackedBy(e2, b)
	f.now += f.l.leaseWait(term)
	if !f.l.Concurs(f.now, b) || !f.l.Concurs(f.now, c) || f.l.ForceWait(f.now, c) != 0 {
		t.Error("nobody is waited for any more")
	}
	f.l.Control(f.now)
	f.wantEnforced(16)
}

func TestTheHighestKnownLifeCountsWhatOthersHeard(t *testing.T) {
	f := three(t)
	r := f.row(b, incB, 1, 0, f.epoch)
	r.Heard[c] = Heard{incC + 5, 0}
	f.merge(r)
	if got := f.l.HighestOf(c); got != incC+5 {
		t.Errorf("highest life of c: %d", got)
	}
	if f.l.HighestOf(d) != 0 || f.l.Age(f.now, d) != -1 || f.l.Age(f.now+7, b) != 7 {
		t.Error("a node never heard of, or the age of a row")
	}
}

func TestOnlyWhoWasAMemberThroughoutMayForceDuringAChange(t *testing.T) {
	bases := map[NodeID]allocator.Rate{a: 10, b: 10, c: 10}
	f := three(t)
	if !f.l.MayForce() {
		t.Error("in quiet times")
	}
	f.adopt(f.child(bases))
	if !f.l.MayForce() {
		t.Error("under a child of the active epoch that lists it")
	}
	s := f.l.Stored()
	g := startFixture(t, func(cfg *Config) { cfg.Inc, cfg.Stored = incA+1, &s }, f.dir, f.l.Epoch())
	if g.l.MayForce() {
		t.Error("before proof")
	}
	g.witnessed(g.epoch, 2)
	g.now = g.l.leaseWait(term)
	g.l.Control(g.now)
	if !g.l.MayForce() {
		t.Error("after a restart that remembers the same")
	}
	f.adopt(epochOf(3, f.l.Epoch(), bases)) // its parent came in force without this node's word
	if f.l.MayForce() {
		t.Error("under an epoch that does not follow the active one")
	}
	f = three(t)
	f.adopt(f.child(map[NodeID]allocator.Rate{b: 15, c: 15}))
	f.adopt(epochOf(4, f.epoch, bases))
	if f.l.MayForce() {
		t.Error("after an epoch without this node")
	}
	s = f.l.Stored()
	g = startFixture(t, func(cfg *Config) { cfg.Inc, cfg.Stored = incA+1, &s }, f.dir, f.l.Epoch())
	if again := g.l.Stored(); !s.Strayed || !again.Strayed {
		t.Error("a restart forgets that")
	}
	f.ackedBy(f.l.Epoch(), b, c)
	if f.l.Active() != f.l.Epoch().ID || !f.l.MayForce() {
		t.Error("after activation")
	}
}
