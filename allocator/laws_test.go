package allocator

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

var (
	bothModes    = []Mode{PoolFirst, Paper}
	allHeadrooms = []Headroom{HeadroomByBase, HeadroomOwnerKeeps, HeadroomByDemand}
	bothRules    = []Rule{Proportional, MaxMin}
)

// unlimited is everything but what may bind: no limits, caps, floors,
// preemption or insurance. Ceilings stay: they only move the bases.
func unlimited(nodes, classes int) shape {
	return shape{maxNodes: nodes, maxClasses: classes, modes: bothModes, headrooms: allHeadrooms, rules: bothRules, ceilings: true}
}

func TestAllocateEqualsTheSlowReference(t *testing.T) {
	for _, mode := range bothModes {
		for _, headroom := range allHeadrooms {
			for _, rule := range bothRules {
				t.Run(fmt.Sprintf("%v/%v/%v", mode, headroom, rule), func(t *testing.T) {
					sh := everything(9, 5)
					sh.modes, sh.headrooms, sh.rules = []Mode{mode}, []Headroom{headroom}, []Rule{rule, rule, Proportional}
					if mode == Paper && rule == MaxMin {
						sh.maxClasses, sh.insurance = 2, false // the pair is refused above
					}
					rapid.Check(t, func(t *rapid.T) { equalsReference(t, sh.draw(t)) })
				})
			}
		}
	}
}

func equalsReference(t *rapid.T, sc scenario) {
	a := sc.build(t)
	got := run(t, a, sc.demand)
	want, parked := refAllocate(sc.spec, sc.ceilings, sc.demand)
	for c := range want {
		if got[c] != want[c] {
			t.Fatalf("cell %d: got %d, want %d\ngot  %v\nwant %v", c, got[c], want[c], got, want)
		}
	}
	if a.Parked() != parked {
		t.Fatalf("parked: got %d, want %d", a.Parked(), parked)
	}
}

func TestBasesEqualTheSlowReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(9, 3).draw(t)
		a := sc.build(t)
		r := &reference{spec: sc.spec}
		for _, w := range sc.spec.Weights {
			r.weights = append(r.weights, big.NewInt(w))
		}
		for k := range sc.spec.Classes {
			base, park := r.refBase(k)
			if got := a.Park(k); got != Rate(park.Int64()) {
				t.Fatalf("class %d: park %d, want %v", k, got, park)
			}
			for i, b := range base {
				if got := a.Base(k, i); got != Rate(b.Int64()) {
					t.Fatalf("class %d, location %d: base %d, want %v", k, i, got, b)
				}
			}
		}
	})
}

// Lesson O6: the selection of the largest remainders, at sizes that use every
// digit width.
func TestLargestRemainderEqualsTheTextbook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		kinds := rapid.Int64Range(1, 1<<rapid.IntRange(1, 50).Draw(t, "bits")).Draw(t, "most")
		weights, v := make([]int64, n), make([]*big.Int, n)
		for i := range weights {
			weights[i] = rapid.Int64Range(0, kinds).Draw(t, "weight")
			v[i] = big.NewInt(weights[i])
		}
		amount := magnitude(t, math.MaxInt64, "total")
		got, err := LargestRemainder(amount, weights)
		if bigSum(v).Sign() == 0 {
			if (err == nil) != (amount == 0) {
				t.Fatalf("no weights: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range refRemainder(bigOf(amount), v) {
			if int64(got[i]) != want.Int64() {
				t.Fatalf("part %d: got %d, want %v", i, got[i], want)
			}
		}
	})
}

// inForce is the budget an allocator shares out: configured, or by ceilings.
func (sc *scenario) inForce() Rate {
	if sc.ceilings != nil {
		return total(sc.ceilings)
	}
	return sc.spec.Budget
}

func TestLaw1TargetsAndParkAddUpToTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(30, 8).draw(t)
		a := sc.build(t)
		out := run(t, a, sc.demand)
		if got := total(out) + a.Parked(); got != sc.inForce() {
			t.Fatalf("sum %d, want %d", got, sc.inForce())
		}
		for c, x := range out {
			if x < 0 {
				t.Fatalf("cell %d is %d", c, x)
			}
		}
	})
}

// Lesson O6: independent rounding loses or creates capacity.
func TestSharesOfLargeBudgetsAddUpExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(200, 20).drawSized(t, rapid.IntRange(1, 200).Draw(t, "N"), rapid.IntRange(1, 20).Draw(t, "K"))
		a := sc.build(t)
		out := run(t, a, sc.demand)
		if got := total(out) + a.Parked(); got != sc.inForce() {
			t.Fatalf("sum %d, want %d", got, sc.inForce())
		}
		for c, x := range out {
			if x < 0 {
				t.Fatalf("cell %d is %d", c, x)
			}
		}
		for c, x := range run(t, sc.build(t), sc.demand) {
			if x != out[c] {
				t.Fatalf("cell %d differs on another allocator: %d and %d", c, out[c], x)
			}
		}
	})
}

// asked is a cell's demand within floor and cap in force.
func (a *Allocator) asked(c int, d Rate) Rate {
	if a.floors != nil {
		d = max(d, a.floors[c])
	}
	if a.limits != nil {
		d = min(d, a.limits[c])
	}
	return d
}

func TestLaw2NoCellGetsLessThanItNeedsOfItsOwnBase(t *testing.T) {
	sh := everything(12, 5)
	sh.preempt = false
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		a := sc.build(t)
		for c, x := range run(t, a, sc.demand) {
			if d := a.asked(c, sc.demand[c]); x < min(d, a.base[c]) {
				t.Fatalf("cell %d: target %d, demand %d, base %d", c, x, d, a.base[c])
			}
		}
	})
}

func TestLaw2BetweennessWhereOwnersKeepTheirHeadroom(t *testing.T) {
	sh := everything(12, 5)
	sh.preempt, sh.insurance, sh.headrooms = false, false, []Headroom{HeadroomOwnerKeeps}
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		a := sc.build(t)
		for c, x := range run(t, a, sc.demand) {
			if d := a.asked(c, sc.demand[c]); x > max(d, a.base[c]) {
				t.Fatalf("cell %d: target %d, demand %d, base %d", c, x, d, a.base[c])
			}
		}
	})
}

func TestFloorsAndCapsHoldInEveryMode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(12, 5).draw(t)
		a := sc.build(t)
		for c, x := range run(t, a, sc.demand) {
			if a.floors != nil && x < a.floors[c] {
				t.Fatalf("cell %d: target %d under the floor %d", c, x, a.floors[c])
			}
			if a.limits != nil && x > a.limits[c] {
				t.Fatalf("cell %d: target %d over the cap %d", c, x, a.limits[c])
			}
		}
	})
}

func TestLaws3And4NothingIdlesOrOvercommitsUnlessALimitBinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := unlimited(12, 5).draw(t)
		a := sc.build(t)
		d, b := total(sc.demand), sc.inForce()
		for c, x := range run(t, a, sc.demand) {
			if d >= b && x > sc.demand[c] {
				t.Fatalf("cell %d idles: target %d, demand %d", c, x, sc.demand[c])
			}
			if d <= b && x < sc.demand[c] {
				t.Fatalf("cell %d goes short: target %d, demand %d", c, x, sc.demand[c])
			}
		}
	})
}

func TestLaw5AllocationFedBackAsDemandIsUnchanged(t *testing.T) {
	sh := everything(8, 5)
	sh.insurance = false
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		// Preemption on top of lending limits moves single units again.
		preempting := rapid.Bool().Draw(t, "preempting")
		for k := range sc.spec.Classes {
			c := &sc.spec.Classes[k]
			c.Preempts = c.Preempts && preempting
			if preempting {
				c.Lend, c.Borrow = Unlimited, Unlimited
			}
		}
		a := sc.build(t)
		once := run(t, a, sc.demand)
		parked := a.Parked()
		twice := run(t, a, once)
		for c := range once {
			if once[c] != twice[c] {
				t.Fatalf("cell %d moved from %d to %d\nbefore %v\nafter  %v", c, once[c], twice[c], once, twice)
			}
		}
		if a.Parked() != parked {
			t.Fatalf("parked moved from %d to %d", parked, a.Parked())
		}
	})
}

func TestLaw5AllocationHasNoMemoryOfEarlierCycles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(8, 5).draw(t)
		a := sc.build(t)
		fresh := run(t, a, sc.demand)
		run(t, a, drawDemand(t, &sc.spec, 1<<40))
		if err := a.SetCeilings(drawCeilings(t, &sc.spec)); err != nil {
			t.Fatal(err)
		}
		run(t, a, sc.demand)
		if err := a.SetCeilings(sc.ceilings); err != nil {
			t.Fatal(err)
		}
		for c, x := range run(t, a, sc.demand) {
			if x != fresh[c] {
				t.Fatalf("cell %d: %d at first, %d later", c, fresh[c], x)
			}
		}
	})
}

func TestLaw6MoreOwnDemandNeverGivesACellLess(t *testing.T) {
	sh := everything(8, 5)
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		a := sc.build(t)
		before := run(t, a, sc.demand)
		c := rapid.IntRange(0, len(before)-1).Draw(t, "cell")
		more := append([]Rate(nil), sc.demand...)
		more[c] += magnitude(t, 1<<58, "more")
		after := run(t, a, more)
		if after[c] < before[c]-1 {
			t.Fatalf("cell %d: %d at demand %d, %d at demand %d", c, before[c], sc.demand[c], after[c], more[c])
		}
	})
}

// renamed permutes the locations: location i becomes to[i].
func (sc *scenario) renamed(to []int) scenario {
	out := scenario{spec: sc.spec}
	n := len(to)
	out.spec.Weights = make([]int64, n)
	for i, j := range to {
		out.spec.Weights[j] = sc.spec.Weights[i]
	}
	cells := func(v [][]Rate) (out [][]Rate) {
		for _, row := range v {
			out = append(out, permuted(row, to))
		}
		return out
	}
	out.spec.Floors, out.spec.Caps = cells(sc.spec.Floors), cells(sc.spec.Caps)
	for k := range sc.spec.Classes {
		out.demand = append(out.demand, permuted(sc.demand[k*n:k*n+n], to)...)
	}
	if sc.ceilings != nil {
		out.ceilings = permuted(sc.ceilings, to)
	}
	return out
}

func permuted(row []Rate, to []int) []Rate {
	out := make([]Rate, len(row))
	for i, x := range row {
		out[to[i]] = x
	}
	return out
}

func TestLaw7RenamingLocationsMovesNoTargetByMoreThanThreeUnits(t *testing.T) {
	sh := everything(12, 4)
	sh.ceilings = false
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		n := len(sc.spec.Weights)
		to := make([]int, n)
		for i := range to {
			to[i] = i
		}
		to = rapid.Permutation(to).Draw(t, "names")
		other := sc.renamed(to)
		x, y := run(t, sc.build(t), sc.demand), run(t, other.build(t), other.demand)
		for k := range sc.spec.Classes {
			for i, j := range to {
				if d := x[k*n+i] - y[k*n+j]; d < -3 || d > 3 {
					t.Fatalf("class %d, location %d: %d, renamed %d", k, i, x[k*n+i], y[k*n+j])
				}
			}
		}
	})
}

func TestLaw9InflatingAReportUnderMaxMinGainsNothing(t *testing.T) {
	sh := everything(8, 5)
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		a := sc.build(t)
		n := len(sc.spec.Weights)
		c := rapid.IntRange(0, len(sc.demand)-1).Draw(t, "cell")
		if sc.spec.Classes[c/n].Rule != MaxMin {
			return
		}
		honest := run(t, a, sc.demand)
		lie := append([]Rate(nil), sc.demand...)
		lie[c] += magnitude(t, 1<<58, "inflation")
		lied := run(t, a, lie)
		if gain := min(lied[c], sc.demand[c]) - min(honest[c], sc.demand[c]); gain > 0 {
			t.Fatalf("cell %d asked %d: served %d, %d more by asking %d", c, sc.demand[c], honest[c], gain, lie[c])
		}
	})
}
