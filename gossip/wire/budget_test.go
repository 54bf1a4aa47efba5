package wire

import (
	"testing"

	"subak/allocator"
	"subak/allocator/ledger"
)

func TestBudgetsPerRow(t *testing.T) {
	for _, c := range []struct{ n, k, want int }{
		{0, 2, 0}, {MaxNodes + 1, 2, 0}, {5, 0, 0}, {5, MaxClasses + 1, 0},
		{1, 2, 53}, {5, 2, 22}, {22, 2, 18}, {22, 64, 2}, {100, 2, 13}, {330, 2, 5}, {1000, 2, 0}, {MaxNodes, 2, 0},
	} {
		if got := BudgetsPerRow(c.n, c.k); got != c.want {
			t.Errorf("BudgetsPerRow(%d, %d) = %d, want %d", c.n, c.k, got, c.want)
		}
	}
}

// Rows of a full group with busy budgets fit into a datagram: every section with
// two loans and a cap, one lending to 32 nodes, half the cluster silent for a day.
func TestABusyRowOfAFullGroupFitsInADatagram(t *testing.T) {
	for _, n := range []int{1, 2, 5, 22, 50, 100, 200, 330, 500} {
		for _, k := range []int{2, 4, 16, 64} {
			if BudgetsPerRow(n, k) > 0 {
				packetOfFullGroup(t, n, k)
			}
		}
	}
}

func packetOfFullGroup(t *testing.T, n, k int) {
	t.Helper()
	s := newSide(rosterOf(n)...)
	ep := s.learn(testEpoch, rosterOf(n), nil)
	r := fullRow(n)
	r.Sections = nil
	for i := 1; i < n; i += 3 {
		r.Heard[i].Seq -= 5000 // of 200 ms: a quarter of an hour
	}
	for m := range BudgetsPerRow(n, k) {
		sec := ledger.Section{Ceiling: 4_000_000_000_000, Demand: make([]allocator.Rate, k)}
		for i := range sec.Demand {
			sec.Demand[i] = 30_000_000_000_000
		}
		loans := min(n-1, 2)
		if m == 0 {
			loans = min(n-1, spreadLoans)
		}
		for i := range loans {
			sec.Loans = append(sec.Loans, ledger.Loan{To: ledger.NodeID(i + 1), Amount: 200_000_000_000})
		}
		if n > 1 {
			sec.Caps = []ledger.Cap{{Lender: ledger.NodeID(n - 1), Seq: tickSeq - 3, Amount: 200_000_000_000}}
		}
		r.Sections = append(r.Sections, sec)
	}
	if packet, _, err := s.enc.Row(r, ep); err != nil {
		t.Errorf("N=%d K=%d: %d budgets take %d bytes: %v", n, k, len(r.Sections), len(packet), err)
	}
}
