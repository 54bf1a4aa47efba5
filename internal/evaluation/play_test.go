package evaluation

import (
	"testing"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/internal/contention"
	"subak/testbed/topology"
)

func cities(t testing.TB) topology.Topology {
	t.Helper()
	top, err := topology.Find("cities22")
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// eight is one of the eight scenarios.
func eight(t testing.TB, name string) *contention.Scenario {
	t.Helper()
	s, err := contention.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// played is one method on one scenario.
func played(t testing.TB, method, scenario string, lag int) Result {
	t.Helper()
	ms, err := Find([]string{method})
	if err != nil {
		t.Fatal(err)
	}
	trace, err := Contended(eight(t, scenario), cities(t), 100_000, 1, 600)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Play(trace, &ms[0], ContendedSpec(cities(t), 100_000), lag)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNoMethodGivesMoreThanTheBudget(t *testing.T) {
	for _, m := range Methods() {
		for _, scenario := range contention.Names() {
			for lag := range 2 {
				if r := played(t, m.Name, scenario, lag); r.Over > 0 {
					t.Errorf("%s on %s at lag %d: %d over the budget", m.Name, scenario, lag, r.Over)
				}
			}
		}
	}
}

func TestAnIdealSystemLeavesNothingIdleWhileDemandReachesTheBudget(t *testing.T) {
	for _, method := range []string{"paper", "pool-first", "insurance10", "protect50", "maxmin", "lp2", "oracle"} {
		for _, scenario := range contention.Names() {
			r := played(t, method, scenario, 0)
			if r.ContendedCycles == 0 {
				t.Fatalf("%s never reaches the budget", scenario)
			}
			if r.Unplaced != (Total{}) {
				t.Errorf("%s on %s: %.1f requests/s of the budget in no target", method, scenario, r.Unplaced.Float())
			}
		}
	}
}

// slowServe serves by its rule, told cell by cell and in the plainest way.
func slowServe(nodes int, guard, may, demand []allocator.Rate) []allocator.Rate {
	classes := len(may) / nodes
	served := make([]allocator.Rate, len(may))
	for i := range nodes {
		for k := range classes {
			room := allocator.Rate(0)
			for j := range classes {
				c := j*nodes + i
				room += may[c] - served[c]
				if j > k { // what a lower class is sure of is not for this one
					room -= min(may[c], guard[c], demand[c])
				}
			}
			served[k*nodes+i] = min(room, demand[k*nodes+i])
		}
	}
	return served
}

func TestRevocableServiceIsWhatItsRuleSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, classes := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "classes")
		cells := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) allocator.Rate { return allocator.Rate(rapid.Int64Range(0, 20).Draw(t, "rate")) }), nodes*classes, nodes*classes)
		may, demand, guard := cells.Draw(t, "may"), cells.Draw(t, "demand"), cells.Draw(t, "guard")
		s := serving{nodes: nodes, guard: guard}
		got := make([]allocator.Rate, len(may))
		s.serve(got, may, demand)
		want := slowServe(nodes, guard, may, demand)
		for c := range got {
			if got[c] != want[c] {
				t.Fatalf("cell %d serves %d, want %d", c, got[c], want[c])
			}
			if got[c] < min(may[c], guard[c], demand[c]) {
				t.Fatalf("cell %d serves %d of %d, less than it is sure of", c, got[c], demand[c])
			}
		}
	})
}

func TestPartsAddUpAndAreInProportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, 1000), 1, 30).Draw(t, "weights")
		total := rapid.Int64Range(0, 1<<50).Draw(t, "total")
		parts := make([]int64, len(weights))
		apportion(parts, weights, total)
		var sum, all int64
		for i, w := range weights {
			sum += parts[i]
			all += w
		}
		if all == 0 {
			total = 0
		}
		if sum != total {
			t.Fatalf("parts add up to %d, want %d", sum, total)
		}
		for i, w := range weights {
			if all > 0 {
				if exact := muldiv(total, w, all); parts[i] < exact || parts[i] > exact+1 {
					t.Fatalf("part %d is %d, want %d or one more", i, parts[i], exact)
				}
			}
		}
	})
}

func TestMaxMinLeavesNoCellThatCouldHaveMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "cells")
		rates := func(least, most int64, name string) []allocator.Rate {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) allocator.Rate {
				return allocator.Rate(rapid.Int64Range(least, most).Draw(t, name))
			}), n, n).Draw(t, name)
		}
		base, demand := rates(1, 1000, "base"), rates(0, 5000, "demand")
		budget := sumOf(base)
		s := &maxmin{budget, base, make([]bool, n), make([]allocator.Rate, n), make([]allocator.Rate, n)}
		target := make([]allocator.Rate, n)
		if err := s.Share(target, demand); err != nil {
			t.Fatal(err)
		}
		if sum := sumOf(target); sum != budget {
			t.Fatalf("targets add up to %d, want the budget %d", sum, budget)
		}
		// Whoever is left short is at the highest level, but for rounding.
		for c := range target {
			for d := range target {
				if target[c] < demand[c] && target[d] > demand[d] {
					t.Fatalf("cell %d is short while cell %d has more than it asks for", c, d)
				}
				if target[c] < demand[c] && (target[c]+2)*base[d] < (target[d]-2)*base[c] {
					t.Fatalf("cell %d is short at a lower level than cell %d: %v of %v by %v", c, d, target, demand, base)
				}
			}
		}
	})
}

func TestASumOfRatesDoesNotOverflow(t *testing.T) {
	var sum, whole Total
	for range 1000 {
		sum.Add(1 << 62)
		whole.Add(1 << 62)
		whole.Add(1 << 62)
	}
	if p := sum.Percent(whole); p != 50 {
		t.Errorf("half of a large sum is %v %%", p)
	}
}
