package ledger

import (
	"testing"

	"subak/allocator"
)

func TestLoansAreMultiplesOfAMillionthOfTheBudgetAlsoAfterARestart(t *testing.T) {
	f := newFixture(t, bootstrapped, map[NodeID]allocator.Rate{a: 100_000, b: 100_000, c: 100_000})
	f.meet()
	grain := f.l.books[0].grain
	if grain <= 1 || grain > 300_000*unit/1_000_000 {
		t.Fatalf("grain of %d for a budget of %d", grain, 300_000*unit)
	}
	odd := 12_345*unit + 6789
	f.l.Settle(f.now, 0, []allocator.Rate{100_000*unit - odd, 100_000*unit + odd, 100_000 * unit})
	loan := loanTo(f.publish().Sections[0].Loans, b)
	if loan != odd-odd%grain {
		t.Errorf("lends %d of %d, want it within %d", loan, odd, grain)
	}
	if change, _ := f.l.Settle(f.now, 0, []allocator.Rate{100_000*unit - odd, 100_000*unit + odd, 100_000 * unit}); change != 0 {
		t.Errorf("what the rounding left over asks for a change of %d", change)
	}
	if err := f.l.Restart(f.now, incA+1); err != nil {
		t.Fatal(err)
	}
	if got := f.l.books[0].grain; got != grain {
		t.Errorf("grain %d after a restart", got)
	}
}

func TestASmallBudgetIsLentToTheLastUnit(t *testing.T) {
	for _, total := range []allocator.Rate{0, 1, 1 << 20, 1<<21 - 1} {
		if got := grainOf([]allocator.Rate{total / 2, total - total/2}); got != 1 {
			t.Errorf("budget %d: grain %d", total, got)
		}
	}
}
