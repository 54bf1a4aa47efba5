package demo

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// twoByTwo: limit 100, classes 60/40, nodes of weight 1 and 3, almost no burst.
func twoByTwo() plan {
	return plan{
		limit: 100, burst: time.Nanosecond,
		classes: []classPlan{{"high", 60}, {"low", 40}},
		nodes:   []nodePlan{{"a", 1, ""}, {"b", 3, ""}},
	}
}

func near(got, want []float64) bool {
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-3 {
			return false
		}
	}
	return len(got) == len(want)
}

func TestReferencesOnCasesDoneByHand(t *testing.T) {
	// Bases: high 15 and 45, low 10 and 30.
	for _, c := range []struct {
		name          string
		offered       cells
		static, ideal []float64
	}{
		{"nothing", cells{{0, 0}, {0, 0}}, []float64{0, 0}, []float64{0, 0}},
		{"all fits", cells{{10, 40}, {5, 25}}, []float64{50, 30}, []float64{50, 30}},
		{"misplaced but fits in all", cells{{50, 0}, {30, 0}}, []float64{15, 10}, []float64{50, 30}},
		{"flood of low takes only what is unused", cells{{20, 30}, {500, 0}}, []float64{45, 10}, []float64{50, 50}},
		{"high takes the unused base of low first", cells{{90, 30}, {500, 0}}, []float64{45, 10}, []float64{90, 10}},
		{"everybody floods", cells{{500, 500}, {500, 500}}, []float64{60, 40}, []float64{60, 40}},
	} {
		p := twoByTwo()
		static, ideal := newReferences(&p).step(c.offered, 1)
		if !near(static, c.static) || !near(ideal, c.ideal) {
			t.Errorf("%s: static %v, ideal %v; want %v, %v", c.name, static, ideal, c.static, c.ideal)
		}
	}
}

func TestReferencesKeepTheBudgetAndTheIdealIsNoWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := script(1000, 1)
		r := newReferences(&p)
		var static, ideal float64
		seconds := 0.0
		for range rapid.IntRange(1, 40).Draw(t, "bins") {
			offered := newCells(2, 5)
			for k := range offered {
				for i := range offered[k] {
					offered[k][i] = float64(rapid.IntRange(0, 60).Draw(t, "d"))
				}
			}
			s, b := r.step(offered, 0.1)
			seconds += 0.1
			for k := range s {
				if s[k] > offered.class(k)+1e-6 || b[k] > offered.class(k)+1e-6 {
					t.Fatalf("class %d: served %g and %g of %g", k, s[k], b[k], offered.class(k))
				}
				static += s[k]
				ideal += b[k]
			}
			if most := 1000*(seconds+p.burst.Seconds()) + 1e-6; static > ideal+1e-6 || ideal > most {
				t.Fatalf("after %g s: static %g, ideal %g, budget %g", seconds, static, ideal, most)
			}
		}
	})
}
