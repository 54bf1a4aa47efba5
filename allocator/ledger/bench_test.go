package ledger

import (
	"fmt"
	"testing"
	"time"

	"subak/allocator"
)

// benchLedger is a ledger among n nodes that have all met it; ids are 0 to n-1.
func benchLedger(b *testing.B, n int) (*Ledger, []*Row) {
	b.Helper()
	dir := NewDirectory()
	ep := &Epoch{ID: EpochID{1, 1}, Root: 1, Budgets: []BudgetBase{{Name: "origin", Classes: 2}}}
	for i := range n {
		ep.Roster = append(ep.Roster, Member{dir.Intern(fmt.Sprintf("n%03d", i)), 1})
		ep.Budgets[0].Base = append(ep.Budgets[0].Base, 10*unit)
	}
	l, err := New(Config{Self: 0, Inc: 1, Term: 3 * time.Second, Live: 3 * time.Second, EpsPPM: 10_000, Guard: guard, Bootstrap: true, Directory: dir}, ep, 0)
	if err != nil {
		b.Fatal(err)
	}
	l.Publish(0, 0)
	rows := make([]*Row, n)
	for i := 1; i < n; i++ {
		r := &Row{Node: NodeID(i), Inc: 1, Seq: 1, Term: 3 * time.Second, Epoch: ep.ID, Acked: true, Heard: make([]Heard, n)}
		for j := range r.Heard {
			r.Heard[j] = Heard{1, 1}
		}
		r.Sections = []Section{{Ceiling: 10 * unit, Demand: make([]allocator.Rate, 2)}}
		if i%4 == 0 {
			r.Sections[0].Loans = []Loan{{0, unit}}
		}
		rows[i] = r
		if l.Merge(0, r) != Applied {
			b.Fatal("row refused")
		}
	}
	return l, rows
}

var benchSizes = []int{22, 100}

func BenchmarkMerge(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("N%d", n), func(b *testing.B) {
			l, rows := benchLedger(b, n)
			b.ReportAllocs()
			var spare Row // the ledger keeps a row; two take turns
			turns := [2][]*Row{rows, nil}
			for _, r := range rows {
				if r != nil {
					spare = *r
				}
				next := spare
				turns[1] = append(turns[1], &next)
			}
			for i := 0; b.Loop(); i++ {
				k := 1 + i%(n-1)
				r := turns[(i/(n-1)+1)%2][k]
				r.Seq = uint64(i + 2)
				if l.Merge(int64(i), r) != Applied {
					b.Fatal("row refused")
				}
				l.Control(int64(i))
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("N%d", n), func(b *testing.B) {
			l, _ := benchLedger(b, n)
			targets := make([]allocator.Rate, n)
			for i := range targets {
				targets[i] = 10 * unit
			}
			targets[0], targets[n-1], targets[n-2] = 2*unit, 15*unit, 13*unit
			l.Settle(0, 0, targets)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.Publish(int64(i), 0)
			}
		})
	}
}

func BenchmarkSettle(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("N%d", n), func(b *testing.B) {
			l, _ := benchLedger(b, n)
			targets := make([]allocator.Rate, n)
			for i := range targets {
				targets[i] = 10 * unit
			}
			targets[0], targets[n-1], targets[n-2] = 2*unit, 15*unit, 13*unit
			var v View
			b.ReportAllocs()
			for b.Loop() {
				l.View(0, 0, &v)
				l.Settle(0, 0, targets)
			}
		})
	}
}

func BenchmarkSteps(b *testing.B) {
	l, _ := benchLedger(b, 22)
	var dst []Step
	b.ReportAllocs()
	for b.Loop() {
		dst = l.Steps(0, 0, dst)
	}
}
