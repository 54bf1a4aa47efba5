package ledger

import (
	"testing"
	"time"

	"subak/allocator"
)

func (f *fixture) wantLoans(want ...Loan) {
	f.Helper()
	got := f.publish().Sections[0].Loans
	if len(got) != len(want) {
		f.Fatalf("loans %v, want %v", got, want)
	}
	for i := range want {
		if got[i].To != want[i].To || got[i].Amount != want[i].Amount*unit {
			f.Errorf("loan %v, want %v units", got[i], want[i])
		}
	}
}

func TestSurplusGoesToNeedInRosterOrder(t *testing.T) {
	f := newFixture(t, bootstrapped, five)
	seq := f.publish().Seq
	for i, id := range []NodeID{b, c, d, e} {
		f.merge(f.row(id, incB+uint64(i), 1, seq, f.epoch))
	}
	if change := f.settle(2, 15, 8, 12, 13); change != 8*unit { // a has 8, b needs 5, d 2, e 3
		t.Errorf("change %d", change)
	}
	f.wantLoans(Loan{b, 5}, Loan{d, 2}, Loan{e, 1})
	if change := f.settle(2, 15, 8, 12, 13); change != 0 {
		t.Errorf("change %d when nothing changed", change)
	}
}

func TestALenderBeforeOthersInTheRosterServesFirst(t *testing.T) {
	dir := directory()
	f := startFixture(t, func(c *Config) { c.Self, c.Bootstrap = b, true }, dir, epochOf(1, nil, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10}))
	seq := f.publish().Seq
	for i, id := range []NodeID{a, c} {
		r := f.row(id, incB+uint64(i), 1, 0, f.epoch)
		r.Heard[b] = Heard{incA, seq}
		f.merge(r)
	}
	f.settle(4, 4, 22) // a lends its 6 first, b the other 6
	f.wantLoans(Loan{c, 6})
	f.settle(4, 8, 18) // a still serves c: b has 2 left to lend
	f.wantLoans(Loan{c, 2})
}

func TestALenderKeepsItsOwnTarget(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6) // b's old life may be using it
	f.merge(f.row(b, incB+1, 1, f.l.seq, f.epoch))
	f.settle(7, 13, 10)
	f.wantLoans() // 4 are free and 7 are wanted here
	f.wantEnforced(4)
}

func TestRecallTakesFromTheLastBorrowerFirst(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f.meet()
	f.settle(0, 15, 15)
	f.wantLoans(Loan{b, 5}, Loan{c, 5})
	f.settle(3, 15, 12)
	f.wantLoans(Loan{b, 5}, Loan{c, 2})
	f.settle(8, 15, 15)
	f.wantLoans(Loan{b, 2})
}

func TestAnnouncedReleasesCountAsDone(t *testing.T) {
	f := three(t)
	f.meet()
	f.settle(0, 20, 10)
	f.wantLoans(Loan{b, 10})
	r := f.row(b, incB, 2, 2, f.epoch)
	r.Sections[0].Caps = []Cap{{a, 2, 4 * unit}}
	f.merge(r)
	f.wantEnforced(6)
	f.settle(0, 14, 16) // the 6 that b gave up go to c at once
	f.wantLoans(Loan{b, 4}, Loan{c, 6})
}

func TestReleaseTakesTheLoanThatTheSettlementTakes(t *testing.T) {
	f := three(t)
	f.meet()
	f.merge(f.row(b, incB, 2, 1, f.epoch, Loan{a, 5 * unit}))
	f.merge(f.row(c, incC, 2, 1, f.epoch, Loan{a, 5 * unit}))
	f.settle(15, 5, 10) // c lent more than it can spare
	caps := f.publish().Sections[0].Caps
	if len(caps) != 1 || caps[0].Lender != c || caps[0].Amount != 0 {
		t.Errorf("released %v", caps)
	}
	f.wantEnforced(15)
}

func TestViewTellsSilenceFromZeroDemand(t *testing.T) {
	f := three(t)
	f.meet()
	f.l.SetDemand(0, []allocator.Rate{1})
	var v View
	f.l.View(f.now, 0, &v)
	if v.N != 3 || v.K != 1 || v.Self != 0 || !v.Live[1] || !v.Live[2] || v.Demand[0] != DemandGrain || v.Demand[1] != 0 || v.Ceilings[1] != 10*unit || v.Weights[2] != 1 {
		t.Errorf("view %+v", v)
	}
	f.now = 1500 * ms
	f.merge(f.row(c, incC, 2, f.l.seq, f.epoch))
	f.now = int64(term) + 1 // b silent; c heard lately, but it last heard of a row too long ago
	f.l.View(f.now, 0, &v)
	if v.Live[1] || v.Live[2] || v.Ceilings[1] != 0 || !v.Live[0] || v.Ceilings[0] != 10*unit {
		t.Errorf("view %+v", v)
	}
}

func TestDemandIsRoundedUpToTheGrainAndBounded(t *testing.T) {
	f := three(t)
	for _, x := range []struct{ in, want allocator.Rate }{
		{0, 0}, {-5, 0}, {1, DemandGrain}, {DemandGrain, DemandGrain}, {1<<63 - 1, MaxRate - MaxRate%DemandGrain},
	} {
		f.l.SetDemand(0, []allocator.Rate{x.in})
		if got := f.publish().Sections[0].Demand[0]; got != x.want {
			t.Errorf("demand %d is published as %d, want %d", x.in, got, x.want)
		}
	}
}

func TestMergeRefusesWhatIsMalformed(t *testing.T) {
	f := three(t)
	f.meet()
	n := len(f.l.peers)
	for name, spoil := range map[string]func(r *Row){
		"a node outside the directory":  func(r *Row) { r.Node = 99 },
		"a negative node":               func(r *Row) { r.Node = -1 },
		"no incarnation":                func(r *Row) { r.Inc = 0 },
		"an incarnation near the end":   func(r *Row) { r.Inc = MaxIncarnation + 1 },
		"no seq":                        func(r *Row) { r.Seq = 0 },
		"a seq near the end":            func(r *Row) { r.Seq = 1<<64 - 2 },
		"no term":                       func(r *Row) { r.Term = 0 },
		"a term of a day":               func(r *Row) { r.Term = 24 * time.Hour },
		"more heard than names":         func(r *Row) { r.Heard = make([]Heard, n+1) },
		"heard a seq without a life":    func(r *Row) { r.Heard[c] = Heard{0, 4} },
		"heard an absurd seq of us":     func(r *Row) { r.Heard[a] = Heard{incA, MaxSeq + 1} },
		"a wait set outside":            func(r *Row) { r.Extra = []NodeID{99} },
		"no section":                    func(r *Row) { r.Sections = nil },
		"a section too many":            func(r *Row) { r.Sections = append(r.Sections, r.Sections[0]) },
		"another number of classes":     func(r *Row) { r.Sections[0].Demand = make([]allocator.Rate, 2) },
		"negative demand":               func(r *Row) { r.Sections[0].Demand[0] = -1 },
		"too much demand":               func(r *Row) { r.Sections[0].Demand[0] = MaxRate + 1 },
		"a negative ceiling":            func(r *Row) { r.Sections[0].Ceiling = -1 },
		"a loan to itself":              func(r *Row) { r.Sections[0].Loans = []Loan{{b, 1}} },
		"a loan to nobody":              func(r *Row) { r.Sections[0].Loans = []Loan{{99, 1}} },
		"a loan of nothing":             func(r *Row) { r.Sections[0].Loans = []Loan{{a, 0}} },
		"loans out of order":            func(r *Row) { r.Sections[0].Loans = []Loan{{c, 1}, {a, 1}} },
		"two loans to one":              func(r *Row) { r.Sections[0].Loans = []Loan{{a, 1}, {a, 1}} },
		"loans that wrap":               func(r *Row) { r.Sections[0].Loans = []Loan{{a, MaxRate}, {c, MaxRate}} },
		"a release from nobody":         func(r *Row) { r.Sections[0].Caps = []Cap{{99, 1, 0}} },
		"a release of an unsent row":    func(r *Row) { r.Sections[0].Caps = []Cap{{a, r.Seq + 1, 0}} },
		"a release without a seq":       func(r *Row) { r.Sections[0].Caps = []Cap{{a, 0, 0}} },
		"a negative release":            func(r *Row) { r.Sections[0].Caps = []Cap{{a, 1, -1}} },
		"two releases to one":           func(r *Row) { r.Sections[0].Caps = []Cap{{a, 1, 0}, {a, 1, 0}} },
		"a release of an absurd amount": func(r *Row) { r.Sections[0].Caps = []Cap{{a, 1, MaxRate + 1}} },
	} {
		r := f.row(b, incB, 50, 1, f.epoch)
		spoil(r)
		if got := f.l.Merge(f.now, r); got != Malformed {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := f.l.Merge(f.now, nil); got != Malformed {
		t.Errorf("nil: %v", got)
	}
	f.merge(f.row(b, incB, 2, 1, f.epoch)) // its real row still prevails (lesson O18)
}

func TestMergeTellsApartWhyARowIsNotForUs(t *testing.T) {
	f := three(t)
	f.publish()
	e2 := f.child(map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	r := f.row(b, incB, 1, 0, e2)
	if got := f.l.Merge(0, r); got != UnknownEpoch {
		t.Errorf("another epoch: %v", got)
	}
	f.adopt(e2)
	if got := f.l.Merge(0, r); got != Applied {
		t.Errorf("after its epoch is known: %v", got)
	}
	if got := f.l.Merge(0, f.row(a, incA, 1, 0, f.epoch)); got != Stale {
		t.Errorf("echo of the own row: %v", got)
	}
}

func TestSeqFollowsTheHintButNeverFallsOrWraps(t *testing.T) {
	f := three(t)
	for _, x := range []struct{ hint, want uint64 }{{0, 1}, {500, 500}, {3, 501}, {1<<64 - 1, 502}, {MaxSeq + 1, 503}} {
		if got := f.l.Publish(0, x.hint).Seq; got != x.want {
			t.Errorf("hint %d: seq %d, want %d", x.hint, got, x.want)
		}
	}
}

func TestConfigNamesAllItsFaults(t *testing.T) {
	bad := Config{Self: 9, Term: -1, Live: 0, EpsPPM: 0, Guard: -1, Directory: directory()}
	err := bad.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	n := len(err.(interface{ Unwrap() []error }).Unwrap())
	if n != 6 {
		t.Errorf("%d faults: %v", n, err)
	}
	if err := config(directory()).Validate(); err != nil {
		t.Errorf("good one: %v", err)
	}
}

func TestStatusTellsTheStateOfNodesAndLoans(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	f.now = 100 * ms
	r := f.row(c, incC, 2, 1, f.epoch, Loan{a, 3 * unit})
	r.Digest = 77
	f.merge(r)
	var s Status
	f.l.Status(f.now, &s)
	f.l.Status(f.now, &s) // reuse changes nothing
	if !s.Proved || !s.Acked || s.Quarantine != 0 || s.Active != f.epoch.ID || len(s.Members) != 3 ||
		s.Members[1].Age != 100*time.Millisecond || s.Members[2].Digest != 77 || !s.Members[2].Live {
		t.Errorf("status %+v", s)
	}
	if want := (BudgetStatus{"origin", 10 * unit, 10 * unit, 6 * unit, 3 * unit}); s.Budgets[0] != want {
		t.Errorf("budget %+v", s.Budgets[0])
	}
	if len(s.Loans) != 2 || s.Loans[0] != (LoanStatus{0, a, b, 6 * unit}) || s.Loans[1] != (LoanStatus{0, c, a, 3 * unit}) {
		t.Errorf("loans %+v", s.Loans)
	}
}

func TestPublishLogIsBounded(t *testing.T) {
	var log publishLog
	for i := range uint64(3 * publishLogMax) {
		log.add(i+1, 0, 1)
	}
	if n := len(log.entries); n > publishLogMax {
		t.Errorf("%d entries", n)
	}
	if _, ok := log.at(3 * publishLogMax); !ok {
		t.Error("the newest is lost")
	}
}
