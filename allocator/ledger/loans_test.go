package ledger

import (
	"testing"
	"time"

	"subak/allocator"
)

func TestTrap01LoanByALenderThatHeardAFormerLifeIsNotUsed(t *testing.T) {
	f := three(t)
	f.publish() // this life has a row 1, as the former had
	r := f.row(b, incB, 1, 0, f.epoch, Loan{a, 5 * unit})
	r.Heard[a] = Heard{incA - 1, 1}
	f.merge(r)
	f.wantEnforced(10)
	f.merge(f.row(b, incB, 2, 1, f.epoch, Loan{a, 5 * unit}))
	f.wantEnforced(15)
}

func TestTrap01LoanRestingOnARowThatIsNotInThePublishLogIsNotUsed(t *testing.T) {
	f := three(t)
	f.l.Publish(f.now, 10)
	f.merge(f.row(b, incB, 1, 7, f.epoch, Loan{a, 5 * unit})) // seq 7 was never published
	f.wantEnforced(10)
}

func TestTrap02OwnNameSeenHigherStopsThisLife(t *testing.T) {
	cases := map[string]func(f *fixture) *Row{
		"a row of a later life":           func(f *fixture) *Row { return f.row(a, incA+5, 1, 0, f.epoch) },
		"a later row of this incarnation": func(f *fixture) *Row { return f.row(a, incA, 99, 0, f.epoch) },
		"a peer heard a later life": func(f *fixture) *Row {
			r := f.row(b, incB, 9, 0, f.epoch)
			r.Heard[a] = Heard{incA + 5, 1}
			return r
		},
		"a peer heard rows beyond the own last (rolled back to a snapshot)": func(f *fixture) *Row {
			return f.row(b, incB, 9, 50, f.epoch)
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			f := three(t)
			f.meet()
			f.merge(f.row(b, incB, 2, 1, f.epoch, Loan{a, 5 * unit}))
			f.wantEnforced(15)
			if got := f.l.Merge(f.now, make(f)); got != OwnNameHigher {
				t.Fatalf("outcome %v", got)
			}
			f.wantEnforced(0)
			if f.l.Publish(f.now, 0) != nil {
				t.Error("still publishes")
			}
			if err := f.l.Restart(f.now, f.l.HighestOwn()); err == nil {
				t.Error("restarted without a higher incarnation")
			}
			if err := f.l.Restart(f.now, f.l.HighestOwn()+1); err != nil {
				t.Fatal(err)
			}
			f.wantEnforced(0)
			if r := f.publish(); !r.Recovering || r.Acked || r.Sections[0].Ceiling != 0 || r.Seq != 1 {
				t.Errorf("first row of the new life: %+v", r)
			}
		})
	}
}

func TestTrap02IncarnationsAreUniqueAndRiseWithTime(t *testing.T) {
	const ms2026 = 1_790_000_000_000
	low, high := NewIncarnation(ms2026, 0xffffffff), NewIncarnation(ms2026+1, 0)
	if low >= high || high > MaxIncarnation {
		t.Errorf("%d then %d", low, high)
	}
	if NewIncarnation(ms2026, 0) == NewIncarnation(ms2026, 1<<31) {
		t.Error("random bits do not count")
	}
	above, err := IncarnationAbove(high, ms2026-10_000, 7) // the clock was set back
	if err != nil || above <= high {
		t.Errorf("%d above %d, %v", above, high, err)
	}
	if _, err := IncarnationAbove(MaxIncarnation, ms2026, 7); err == nil {
		t.Error("went beyond the largest incarnation")
	}
}

func TestTrap03AnOlderRowIsNeverAppliedAfterANewer(t *testing.T) {
	f := three(t)
	f.publish()
	older := f.row(b, incB, 1, 1, f.epoch, Loan{a, 5 * unit})
	f.merge(f.row(b, incB, 2, 1, f.epoch)) // recalled
	if got := f.l.Merge(f.now, older); got != Stale {
		t.Errorf("outcome %v", got)
	}
	f.wantEnforced(10)
	f.merge(f.row(b, incB+1, 1, 1, f.epoch))
	if got := f.l.Merge(f.now, f.row(b, incB, 3, 1, f.epoch, Loan{a, 5 * unit})); got != BelowFloor {
		t.Errorf("row of an ended life: %v", got)
	}
	f.wantEnforced(10)
}

func TestTrap04OutstandingIsTheMostThatMayStillArrive(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(10)
	second := f.lendToB(5)
	f.settle(2, 18, 10)
	f.lendToB(5) // 8 is not free before 10 is heard of; it stays 5
	f.wantOut(10)
	f.merge(f.row(b, incB, 2, second.Seq, f.epoch))
	f.wantOut(5)
	f.lendToB(8)
	f.lendToB(4)
	f.wantOut(8) // the row with 8 may yet arrive
	f.merge(f.row(b, incB, 3, second.Seq, f.epoch))
	f.wantOut(8)
	f.wantEnforced(2)
}

func TestTrap05AReleaseFreesOnlyRowsPublishedBeforeItWasHeard(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6) // had heard b's row 1
	f.merge(f.row(b, incB, 3, 1, f.epoch))
	f.lendToB(6) // had heard b's row 3
	release := func(seq, q uint64) {
		r := f.row(b, incB, seq, 2, f.epoch)
		r.Sections[0].Caps = []Cap{{a, q, unit}}
		f.merge(r)
	}
	release(4, 3) // "of rows that had not heard my row 3 I use at most 1"
	f.wantOut(6)
	release(5, 4)
	f.wantOut(1)
	f.wantEnforced(9)
}

func TestL7ABorrowerKeepsItsPromiseUntilTheLenderHeardIt(t *testing.T) {
	f := three(t)
	f.meet()
	f.merge(f.row(b, incB, 2, 1, f.epoch, Loan{a, 6 * unit}))
	f.wantEnforced(16)
	if change := f.settle(12, 8, 10); change < 4*unit { // needs 2 above its own 10
		t.Errorf("change %d", change)
	}
	f.wantEnforced(12) // at once
	row := f.publish()
	if got := capOn(row.Sections[0].Caps, b); got.amount != 2*unit || got.seq > row.Seq {
		t.Errorf("release %+v in row %d", got, row.Seq)
	}
	f.merge(f.row(b, incB, 3, 1, f.epoch, Loan{a, 6 * unit})) // b had not heard it
	f.wantEnforced(12)
	f.merge(f.row(b, incB, 4, row.Seq, f.epoch, Loan{a, 6 * unit})) // b has, and lends again
	f.wantEnforced(16)
	if caps := f.publish().Sections[0].Caps; caps != nil {
		t.Errorf("release still announced: %v", caps)
	}
}

func TestTrap06ALeaseStartsWhenTheHeardRowWasPublished(t *testing.T) {
	f := three(t)
	f.publish()
	f.now = 1500 * ms // the loan is long on its way
	f.merge(f.row(b, incB, 1, 1, f.epoch, Loan{a, 5 * unit}))
	steps := f.l.Steps(f.now, 0, nil)
	if end := int64(term - guard); len(steps) != 2 || steps[0] != (Step{end, 15 * unit}) || steps[1].Rate != 10*unit {
		t.Errorf("steps %v, want the loan to end at %d", steps, end)
	}
}

func TestTrap07RepeatingALoanToASilentBorrowerDoesNotProlongIt(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	end := f.l.leaseWait(term)
	for f.now < end-100*ms {
		f.now += 100 * ms
		f.merge(f.row(c, incC, uint64(f.now), 1, f.epoch))
		f.publish()
	}
	f.now = end - 1
	f.wantOut(6)
	if next := f.l.NextEvent(f.now); next != end {
		t.Errorf("next event at %d, want %d", next, end)
	}
	f.now = end
	f.wantOut(0)
	f.wantEnforced(10)
}

func TestTrap07HearingTheBorrowerProlongsALoan(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	f.now = 1000 * ms
	f.merge(f.row(b, incB, 2, 2, f.epoch))
	f.lendToB(6)
	f.now = f.l.leaseWait(term) + 1 // the first row's expiry
	f.wantOut(6)
	f.now = 1000*ms + f.l.leaseWait(term)
	f.wantOut(0)
}

func TestTrap08StepsAreLoweredByPublishAlready(t *testing.T) {
	f := three(t)
	f.meet()
	f.settle(4, 16, 10)
	f.wantEnforced(10)
	f.publish()
	f.wantEnforced(4)
}

func TestTrap09StepsFallToTheOwnPartByThemselves(t *testing.T) {
	f := three(t)
	f.publish()
	f.now = 100 * ms
	second := f.publish().Seq
	f.merge(f.row(b, incB, 1, 1, f.epoch, Loan{a, 5 * unit}))
	f.merge(f.row(c, incC, 1, second, f.epoch, Loan{a, 3 * unit}))
	first := int64(term - guard)
	want := []Step{{first, 18 * unit}, {first + 100*ms, 13 * unit}, {1<<63 - 1, 10 * unit}}
	got := f.l.Steps(f.now, 0, nil)
	if len(got) != len(want) {
		t.Fatalf("steps %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d is %v, want %v", i, got[i], want[i])
		}
	}
	f.now = first
	f.wantEnforced(13)
}

func TestTrap12TheShorterOfTwoTermsEndsALease(t *testing.T) {
	for name, carried := range map[string]time.Duration{"lender's is shorter": time.Second, "own is shorter": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			f := three(t)
			f.publish()
			r := f.row(b, incB, 1, 1, f.epoch, Loan{a, 5 * unit})
			r.Term = carried
			f.merge(r)
			if got, want := f.l.Steps(0, 0, nil)[0].Until, int64(min(carried, term)-guard); got != want {
				t.Errorf("lease ends at %d, want %d", got, want)
			}
		})
	}
}

func TestTrap13TheLenderWaitsLongerThanAnySlowClockHolds(t *testing.T) {
	f := three(t)
	wait := f.l.leaseWait(term)
	// Borrower's clock at 1-rho, lender's at 1+rho, with 1+eps = (1+rho)/(1-rho).
	rho := float64(10_000) / (2_000_000 + 10_000)
	if held, waited := float64(term-guard)/(1-rho), float64(wait)/(1+rho); waited <= held {
		t.Errorf("waits %.0f of true time, the lease may last %.0f", waited, held)
	}
	if f.l.leaseWait(1) != 2+int64(guard) {
		t.Error("the wait is not rounded up")
	}
}

func TestTrap14ARestartedNodeNeitherUsesNorLendsItsBaseInQuarantine(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10, d: 10, e: 10})
	f.publish()
	f.merge(f.row(b, incB, 1, 1, f.epoch))
	f.settle(0, 20, 10, 10, 10)
	f.publish() // all is lent to b
	s := store(t, f.l)
	g := startFixture(t, func(c *Config) { c.Inc, c.Stored, c.Durable = incA+1, s, true }, f.dir, f.epoch)
	seq := g.publish().Seq
	for i, id := range []NodeID{c, d, e} { // all but b, which may be using the loan
		g.merge(g.row(id, incC+uint64(i), 1, seq, g.epoch))
	}
	if !g.l.proved {
		t.Fatal("three of five do not prove")
	}
	g.wantEnforced(0)
	g.settle(0, 10, 20, 10, 10)
	if r := g.publish(); r.Sections[0].Loans != nil || r.Sections[0].Ceiling != 0 {
		t.Errorf("published %+v in quarantine", r.Sections[0])
	}
	g.now = g.l.leaseWait(term)
	g.l.Control(g.now)
	g.wantEnforced(10)
}

func TestTrap14ARestartedNodeMayBorrowAtOnce(t *testing.T) {
	f := newFixture(t, memoryless, map[NodeID]allocator.Rate{a: 10, b: 10, c: 10})
	f.publish()
	f.merge(f.row(b, incB, 1, 1, f.epoch, Loan{a, 5 * unit}))
	f.wantEnforced(5)
}

func TestTrap14BorrowedCapacityIsNeverLent(t *testing.T) {
	f := three(t)
	f.meet()
	f.merge(f.row(b, incB, 2, 1, f.epoch, Loan{a, 10 * unit}))
	f.l.books[0].want = []Loan{{c, 15 * unit}} // whatever the settlement may ask
	r := f.publish()
	if got := loanTo(r.Sections[0].Loans, c); got != 10*unit {
		t.Errorf("lends %d of a base of 10 units", got)
	}
	f.wantEnforced(10) // what b lent
}

func TestTrap15ANewLifeDoesNotAcknowledgeForTheOld(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	f.merge(f.row(b, incB+1, 1, f.l.seq, f.epoch)) // the new life heard the row too
	f.wantOut(6)
	r := f.row(b, incB+1, 2, f.l.seq, f.epoch)
	r.Sections[0].Caps = []Cap{{a, 2, 0}}
	f.merge(r)
	f.wantOut(6)
	f.now = f.l.leaseWait(term)
	f.wantOut(0)
}

func TestTrap16LoansToTwoLivesOfABorrowerAddUp(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(6)
	f.merge(f.row(b, incB+1, 1, f.l.seq, f.epoch))
	f.settle(0, 20, 10)
	r := f.publish()
	if got := loanTo(r.Sections[0].Loans, b); got != 4*unit {
		t.Errorf("lends %d to the new life while 6 units are out to the old", got)
	}
	f.wantOut(10)
	f.wantEnforced(0)
}

func TestL9OnlyFreshMembersGetLoans(t *testing.T) {
	f := three(t)
	f.meet()
	f.publish()
	f.merge(f.row(d, 4000, 1, 1, f.epoch)) // no member
	f.l.books[0].want = []Loan{{b, 3 * unit}, {d, 3 * unit}}
	if got := f.publish().Sections[0].Loans; len(got) != 1 || got[0].To != b {
		t.Errorf("loans %v", got)
	}
	f.now = int64(term) + 1
	if got := f.publish().Sections[0].Loans; got != nil {
		t.Errorf("loans %v to a node unheard for longer than the live window", got)
	}
}

func TestSteadyLoansAreKeptInOneEntryEach(t *testing.T) {
	f := three(t)
	f.meet()
	for range 500 {
		f.now += 40 * ms
		f.merge(f.row(b, incB, uint64(f.now), f.l.seq, f.epoch))
		f.lendToB(6)
	}
	if n := len(f.l.books[0].out[b]); n != 1 {
		t.Errorf("%d entries", n)
	}
	if n := len(f.l.log.entries); n > 200 {
		t.Errorf("%d publish times kept", n)
	}
}

func TestFreezeGivesBackRecallsAndLeavesThePool(t *testing.T) {
	f := three(t)
	f.meet()
	f.lendToB(4)
	f.merge(f.row(c, incC, 2, 1, f.epoch, Loan{a, 5 * unit}))
	f.l.SetDemand(0, []allocator.Rate{3 * unit})
	f.wantEnforced(11)
	f.l.Freeze(true)
	f.wantEnforced(6)
	var v View
	f.l.View(f.now, 0, &v)
	if v.Ceilings[0] != 0 || v.Demand[0] != 0 {
		t.Errorf("view %+v", v)
	}
	f.settle(0, 20, 10)
	r := f.publish()
	if s := r.Sections[0]; s.Loans != nil || s.Ceiling != 0 || capOn(s.Caps, c) != (release{r.Seq, 0}) {
		t.Errorf("section %+v", s)
	}
	f.merge(f.row(c, incC, 3, r.Seq, f.epoch, Loan{a, 5 * unit})) // c lends again
	f.wantEnforced(6)
	f.merge(f.row(b, incB, 2, r.Seq, f.epoch)) // b has dropped its loan
	f.wantEnforced(10)
	f.l.Freeze(false)
	if f.l.View(f.now, 0, &v); v.Ceilings[0] != 10*unit || v.Demand[0] != 3*unit {
		t.Errorf("view after the freeze %+v", v)
	}
}

func TestFallbackIsTheCeilingOnceAllLoansHaveEnded(t *testing.T) {
	f := three(t)
	if ceiling, from := f.l.Fallback(0); ceiling != 10*unit || from != 0 {
		t.Errorf("%d from %d with nothing lent", ceiling, from)
	}
	f.meet()
	f.lendToB(6)
	ceiling, from := f.l.Fallback(0)
	if ceiling != 10*unit || from != f.l.leaseWait(term) {
		t.Errorf("%d from %d", ceiling, from)
	}
	f.now = from
	f.wantOut(0)
}
