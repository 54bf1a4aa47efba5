package allocator

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sumFlows(flows []Flow) (sum Rate) {
	for _, f := range flows {
		sum += f.Amount
	}
	return sum
}

func TestExplainAddsUpToTheTargetAndTheBase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(8, 5).draw(t)
		a := sc.build(t)
		target := run(t, a, sc.demand)
		n := a.Nodes()
		for c := range target {
			e, err := a.Explain(c/n, c%n, sc.demand)
			if err != nil {
				t.Fatal(err)
			}
			if e.Target != target[c] {
				t.Fatalf("cell %d: explained target %d, allocated %d", c, e.Target, target[c])
			}
			if got := e.Kept + e.InClass + sumFlows(e.Borrowed) + sumFlows(e.Seized) + e.Insurance + e.Headroom; got != e.Target {
				t.Fatalf("cell %d: sources add up to %d, target %d: %+v", c, got, e.Target, e)
			}
			if got := e.Kept + e.Taken + e.GivenInClass + sumFlows(e.Lent) + e.Idle; got != e.Base {
				t.Fatalf("cell %d: uses add up to %d, base %d: %+v", c, got, e.Base, e)
			}
			if (e.Reason == DemandMet) != (e.Target >= e.Demand) {
				t.Fatalf("cell %d: reason %q with %+v", c, e.Reason.Words(), e)
			}
		}
	})
}

// explained builds two classes over two equal locations, 100/s, 60 to 40.
func explained(t *testing.T, change func(*Spec), demand ...Rate) Explanation {
	t.Helper()
	s := Spec{Budget: 100 * Unit, Weights: []int64{1, 1}, Classes: []ClassSpec{
		{Name: "gold", Reservation: 60 * Unit, Lend: Whole, Borrow: Unlimited, Protect: Whole},
		{Name: "iron", Reservation: 40 * Unit, Lend: Whole, Borrow: Unlimited, Protect: Whole, Rule: MaxMin},
	}}
	change(&s)
	a, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range demand {
		demand[i] *= Unit
	}
	e, err := a.Explain(0, 0, demand)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExplainNamesWhatStandsInTheWay(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Spec)
		demand []Rate
		want   Reason
		words  string
	}{
		{"all met", func(*Spec) {}, []Rate{10, 10, 10, 10}, DemandMet,
			"It asked for 10/s. It kept 10/s of its own base of 30/s. Headroom that nobody asked for added 20/s. " +
				"Of its unused base, 20/s went to the headroom of the class. Its target is 30/s: all it asked for."},
		{"lender and classmate", func(*Spec) {}, []Rate{10, 35, 90, 0}, DemandMet,
			"It asked for 10/s. It kept 10/s of its own base of 30/s. Of its unused base, 5/s went to other locations in its class. " +
				"Of its unused base, 15/s was lent to class iron. Its target is 10/s: all it asked for."},
		{"borrower", func(*Spec) {}, []Rate{70, 0, 10, 20}, DemandMet,
			"It asked for 70/s. It kept 30/s of its own base of 30/s. It got 30/s of the unused base of other locations in its class. " +
				"It borrowed 10/s from class iron. Its target is 70/s: all it asked for."},
		{"cap", func(s *Spec) { s.Caps = [][]Rate{{20 * Unit, -1}, nil} }, []Rate{50, 0, 0, 0}, CapReached, ""},
		{"floor", func(s *Spec) { s.Floors = [][]Rate{{20 * Unit, 0}, nil} }, []Rate{5, 0, 0, 0}, DemandMet, ""},
		{"borrow limit", func(s *Spec) { s.Classes[0].Borrow = 0 }, []Rate{90, 0, 0, 0}, BorrowLimitReached, ""},
		{"lend limit", func(s *Spec) { s.Classes[1].Lend = 0 }, []Rate{90, 0, 0, 0}, LendLimitReached, ""},
		{"budget", func(*Spec) {}, []Rate{90, 30, 20, 20}, BudgetUsed, ""},
		{"preempting", func(s *Spec) { s.Classes[0].Preempts, s.Classes[1].Protect = true, 500_000 }, []Rate{90, 30, 20, 20}, BudgetUsed,
			"It asked for 90/s. It kept 30/s of its own base of 30/s. It took 20/s from class iron by preemption. " +
				"Its target is 50/s: no more, because the whole budget is in use and its class has shared out its part."},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := explained(t, c.change, c.demand...)
			if e.Reason != c.want {
				t.Errorf("got %q, want %q: %+v", e.Reason.Words(), c.want.Words(), e)
			}
			if got := strings.Join(e.Words(nil), " "); c.words != "" && got != c.words {
				t.Errorf("\ngot  %s\nwant %s", got, c.words)
			}
		})
	}
}

func TestExplainTellsAVictimWhatWasTaken(t *testing.T) {
	s := Spec{Budget: 100, Weights: []int64{1}, Classes: []ClassSpec{
		{Reservation: 60, Borrow: Unlimited, Preempts: true}, {Reservation: 40, Protect: 250_000},
	}}
	a, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := a.Explain(1, 0, []Rate{500, 40})
	if err != nil {
		t.Fatal(err)
	}
	if e.Kept != 10 || e.Taken != 30 || e.Target != 10 || e.Reason != Preempted {
		t.Fatalf("got %+v", e)
	}
}

func TestExplainRefusesAnUnknownCell(t *testing.T) {
	sc := scenario{spec: benchSpec(2, 2, func(int) Rule { return Proportional })}
	a := sc.build(t)
	for _, cell := range [][2]int{{-1, 0}, {2, 0}, {0, -1}, {0, 2}} {
		if _, err := a.Explain(cell[0], cell[1], make([]Rate, 4)); err == nil {
			t.Errorf("cell %v explained", cell)
		}
	}
}
