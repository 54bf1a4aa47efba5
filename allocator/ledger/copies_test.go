package ledger

import (
	"testing"

	"subak/allocator"
)

// onlyFor turns a row into the copy that its publisher makes for one peer.
func onlyFor(r *Row, peer NodeID) *Row {
	c := *r
	c.Heard, c.Only = nil, &Entry{Of: peer, Heard: r.heardOf(peer)}
	return &c
}

func TestACopyForThisNodeCarriesLoansAndAcknowledgements(t *testing.T) {
	f := three(t)
	f.meet()
	lending := f.lendToB(4)
	f.wantOut(4)
	f.settle(10, 10, 10) // recalled
	recall := f.publish()
	f.merge(onlyFor(f.row(b, incB, 2, lending.Seq, f.epoch), a))
	f.wantOut(4) // b has not heard the recall
	f.merge(onlyFor(f.row(b, incB, 3, recall.Seq, f.epoch, Loan{a, 3 * unit}), a))
	f.wantOut(0)
	f.wantEnforced(13)
	if !f.l.Live(f.now, b) {
		t.Error("b is not live by its copies")
	}
}

func TestACopyAppliesAReleaseToRowsUnderWay(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(4)
	r := onlyFor(f.row(b, incB, 2, 1, f.epoch), a)
	r.Sections[0].Caps = []Cap{{a, 2, 1 * unit}}
	f.merge(r)
	f.wantOut(1)
}

func TestACopyForAnotherPeerIsRefusedAndEndsNoLoan(t *testing.T) {
	f := three(t)
	f.meet()
	f.merge(f.row(b, incB, 2, 1, f.epoch, Loan{a, 3 * unit}))
	f.wantEnforced(13)
	for name, r := range map[string]*Row{
		"for another":    onlyFor(f.row(b, incB, 3, 1, f.epoch), c),
		"with a vector":  {Only: &Entry{Of: a}, Heard: []Heard{}},
		"life of no seq": {Only: &Entry{Of: a, Heard: Heard{0, 1}}},
		"seq too large":  {Only: &Entry{Of: a, Heard: Heard{incA, MaxSeq + 1}}},
	} {
		if r.Node == 0 {
			whole := f.row(b, incB, 3, 1, f.epoch)
			whole.Only, whole.Heard = r.Only, r.Heard
			r = whole
		}
		if got := f.l.Merge(f.now, r); got != Malformed {
			t.Errorf("%s: %v", name, got)
		}
	}
	f.wantEnforced(13)
}

func TestACopyThatHeardALaterLifeOfThisNameStopsThisLife(t *testing.T) {
	f := three(t)
	f.meet()
	r := onlyFor(f.row(b, incB, 2, 1, f.epoch), a)
	r.Only.Inc = incA + 1
	if got := f.l.Merge(f.now, r); got != OwnNameHigher {
		t.Errorf("%v", got)
	}
	f.wantEnforced(0)
}

func TestACopyIsNoWitness(t *testing.T) {
	f := newFixture(t, memoryless, five)
	f.now = f.l.leaseWait(term)
	seq := f.publish().Seq
	vouch := func(id NodeID, n uint64, inc uint64) *Row {
		r := f.row(id, inc, n, seq, f.epoch)
		r.Heard[e] = Heard{9000, 0} // a life of e that a must not count on any more
		return r
	}
	for i, id := range []NodeID{b, c, d} {
		inc := 2000 + uint64(i)*1000
		f.merge(onlyFor(vouch(id, 1, inc), a))
		f.merge(f.row(id, inc, 2, 0, f.epoch)) // full, and has not heard this life
		f.merge(onlyFor(vouch(id, 3, inc), a))
	}
	if f.l.proved {
		t.Fatal("proved by copies, which lack the floors")
	}
	f.merge(vouch(b, 4, 2000))
	f.merge(vouch(c, 4, 3000))
	f.merge(onlyFor(vouch(c, 5, 3000), a)) // the row before it still vouches
	f.merge(vouch(d, 4, 4000))
	if !f.l.proved || f.l.peers[e].floor != 9000 {
		t.Errorf("proved %v, floor of e %d", f.l.proved, f.l.peers[e].floor)
	}
}

func TestACopyDoesNotConcurWithAnEpoch(t *testing.T) {
	f := three(t)
	f.meet()
	e2 := epochOf(2, f.epoch, map[NodeID]allocator.Rate{a: 12, b: 9, c: 9})
	f.adopt(e2)
	seq := f.publish().Seq
	f.merge(onlyFor(f.row(b, incB, 2, seq, e2), a))
	f.merge(f.row(c, incC, 2, seq, e2))
	f.wantEnforced(10)
	f.merge(f.row(b, incB, 3, seq, e2))
	f.wantEnforced(12)
}

func TestARowBeforeACopyStillConcurs(t *testing.T) {
	f := three(t)
	f.meet()
	e2 := epochOf(2, f.epoch, map[NodeID]allocator.Rate{a: 12, b: 9, c: 9})
	f.adopt(e2)
	seq := f.publish().Seq
	f.merge(f.row(b, incB, 2, seq, e2))
	f.merge(onlyFor(f.row(b, incB, 3, seq, e2), a))
	f.wantEnforced(10)
	f.merge(f.row(c, incC, 2, seq, e2))
	f.wantEnforced(12)
}

func TestACopyThatTakesBackTheAcknowledgementCounts(t *testing.T) {
	for name, spoil := range map[string]func(*Row){
		"not acknowledged": func(r *Row) { r.Acked = false },
		"a new life":       func(r *Row) { r.Inc++ },
	} {
		f := three(t)
		f.meet()
		e2 := epochOf(2, f.epoch, map[NodeID]allocator.Rate{a: 12, b: 9, c: 9})
		f.adopt(e2)
		seq := f.publish().Seq
		f.merge(f.row(b, incB, 2, seq, e2))
		r := f.row(b, incB, 3, seq, e2)
		spoil(r)
		f.merge(onlyFor(r, a))
		f.merge(f.row(c, incC, 2, seq, e2))
		if f.enforced() != 10*unit {
			t.Errorf("%s: activated", name)
		}
	}
}

func TestACopyEndsTheQuarantineEarly(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(4)
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored, c.Durable = incA+1, s, true }, f.dir, f.epoch)
	g.confirm(c, incC, 8, g.epoch)
	seq := g.publish().Seq
	if !g.l.quarantine {
		t.Fatal("no quarantine: the test does not test")
	}
	g.merge(onlyFor(g.row(b, incB, 9, seq, g.epoch), a))
	g.merge(onlyFor(g.row(c, incC, 9, seq, g.epoch), a))
	if g.l.quarantine {
		t.Error("whoever may hold a loan has heard the new life")
	}
}
