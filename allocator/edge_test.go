package allocator

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check compares one allocation with the reference and with law 1.
func check(t *testing.T, sc scenario) []Rate {
	t.Helper()
	a := sc.build(t)
	got := run(t, a, sc.demand)
	want, parked := refAllocate(sc.spec, sc.ceilings, sc.demand)
	if !slices.Equal(got, want) || a.Parked() != parked {
		t.Fatalf("got  %v parked %d\nwant %v parked %d", got, a.Parked(), want, parked)
	}
	if sum := total(got) + parked; sum != sc.inForce() {
		t.Fatalf("sum %d, want %d", sum, sc.inForce())
	}
	return got
}

func TestEdgesEqualTheSlowReference(t *testing.T) {
	uniform := func(n, k int, budget Rate, rule Rule) Spec {
		s := Spec{Budget: budget, Weights: slices.Repeat([]int64{1}, n)}
		parts, _ := LargestRemainder(budget, slices.Repeat([]int64{1}, k))
		for _, r := range parts {
			s.Classes = append(s.Classes, ClassSpec{Reservation: r, Lend: Unlimited, Borrow: Unlimited, Protect: Whole, Rule: rule})
		}
		return s
	}
	for _, rule := range bothRules {
		for _, headroom := range allHeadrooms {
			for _, c := range []struct {
				name      string
				n, k      int
				budget    Rate
				demand    func(cell int) Rate
				ceilings  []Rate
				insurance PPM
			}{
				{"one cell", 1, 1, 1, func(int) Rate { return 5 }, nil, 0},
				{"one location, 64 classes", 1, 64, 1000, func(c int) Rate { return Rate(c) }, nil, 0},
				{"64 classes, flooded", 3, 64, 1000, func(c int) Rate { return Rate(c % 7 * 10) }, nil, 200_000},
				{"no demand", 5, 3, 1001, func(int) Rate { return 0 }, nil, 0},
				{"all remainders equal", 90, 2, 1000, func(int) Rate { return 100 }, nil, 0},
				{"fewer units than cells", 50, 2, 7, func(c int) Rate { return Rate(c % 2) }, nil, 0},
				{"largest budget", 4, 2, math.MaxInt64, func(c int) Rate { return Rate(c) << 58 }, nil, 0},
				{"largest demand", 2, 2, 1 << 62, func(c int) Rate { return 1<<61 - Rate(c) }, nil, 0},
				{"tiny budget, largest demand", 2, 2, 3, func(c int) Rate { return 1<<61 - Rate(c) }, nil, 0},
				{"insured largest demand", 2, 2, 1 << 62, func(c int) Rate { return 1<<60 - Rate(c) }, nil, Whole},
				{"all ceilings 0", 3, 2, 900, func(c int) Rate { return 100 }, []Rate{0, 0, 0}, 0},
				{"one live location", 3, 2, 900, func(c int) Rate { return 100 * Rate(c) }, []Rate{0, 300, 0}, 0},
				{"ceilings above the bases", 3, 2, 900, func(c int) Rate { return 100 * Rate(c) }, []Rate{1000, 5000, 1}, 0},
				{"largest ceilings", 2, 2, 900, func(c int) Rate { return 1 << 60 }, []Rate{1 << 62, 1<<62 - 1}, 0},
			} {
				t.Run(c.name, func(t *testing.T) {
					s := uniform(c.n, c.k, c.budget, rule)
					s.Headroom, s.InsurancePPM = headroom, c.insurance
					sc := scenario{spec: s, ceilings: c.ceilings}
					for cell := range c.n * c.k {
						sc.demand = append(sc.demand, c.demand(cell))
					}
					check(t, sc)
				})
			}
		}
	}
}

func TestBasesAndParksAddUpToTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(20, 6).draw(t)
		a := sc.build(t)
		var sum Rate
		for i := range a.Nodes() {
			sum += a.NodeBase(i)
		}
		for k := range a.Classes() {
			sum += a.Park(k)
		}
		if sum != sc.spec.Budget {
			t.Fatalf("sum %d, budget %d", sum, sc.spec.Budget)
		}
	})
}

func TestCeilingsEqualToTheBasesChangeNothingWithoutPark(t *testing.T) {
	sh := everything(8, 4)
	sh.ceilings = false
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		a := sc.build(t)
		for k := range a.Classes() {
			if a.Park(k) > 0 {
				return // no location's ceiling holds it
			}
		}
		want := run(t, a, sc.demand)
		for i := range a.Nodes() {
			sc.ceilings = append(sc.ceilings, a.NodeBase(i))
		}
		if got := run(t, sc.build(t), sc.demand); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// A live location never holds more than its ceiling of its own.
func TestBasesInForceAddUpToTheCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(8, 4).draw(t)
		sc.ceilings = drawCeilings(t, &sc.spec)
		a := sc.build(t)
		for i, ceiling := range sc.ceilings {
			var sum Rate
			for k := range a.Classes() {
				sum += a.BaseInForce(k, i)
			}
			if sum > ceiling || sum < ceiling && sc.spec.Caps == nil {
				t.Fatalf("location %d: cells add up to %d, ceiling %d", i, sum, ceiling)
			}
		}
	})
}

func TestFloorIsServedOutOfTheCeilingOnly(t *testing.T) {
	s := twoClasses()
	s.Floors = [][]Rate{{20, 10}, nil}
	got := check(t, scenario{spec: s, ceilings: []Rate{0, 25}, demand: []Rate{0, 0, 0, 100}})
	if want := []Rate{0, 15, 0, 10}; got[1] < 10 || got[0] != 0 {
		t.Errorf("got %v, want something like %v", got, want)
	}
}

// Lesson O7: a class that may not borrow stays within its reservation, even on
// an idle system, and a class never falls under what it keeps by limits.
func TestClassesStayWithinTheirLimits(t *testing.T) {
	sh := everything(8, 5)
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		a := sc.build(t)
		out := run(t, a, sc.demand)
		for k := range a.Classes() {
			c := &a.classes[a.classIndex[k]]
			got := total(a.row(out, k))
			if got > c.reserve+min(c.borrowMax, math.MaxInt64-c.reserve) {
				t.Fatalf("class %d holds %d of %d and may borrow %d", k, got, c.reserve, c.borrowMax)
			}
		}
	})
}

func TestWithoutPreemptionAClassKeepsWhatItMayNotLend(t *testing.T) {
	sh := everything(8, 5)
	sh.preempt = false
	rapid.Check(t, func(t *rapid.T) {
		sc := sh.draw(t)
		a := sc.build(t)
		out := run(t, a, sc.demand)
		for k := range a.Classes() {
			c := &a.classes[a.classIndex[k]]
			var asked uint64
			for i, d := range a.row(sc.demand, k) {
				asked += uint64(a.asked(k*a.n+i, d))
			}
			keeps := c.reserve - c.lendMax
			if sc.spec.Mode == Paper {
				keeps = c.reserve // spare is lent only after the class's own deficits
			}
			if got := total(a.row(out, k)); uint64(got) < min(asked, uint64(keeps)) {
				t.Fatalf("class %d holds %d, asked %d and keeps %d of %d", k, got, asked, keeps, c.reserve)
			}
		}
	})
}

func TestAQuietClassThatWakesHasItsReservationInOneCycle(t *testing.T) {
	a := (&scenario{spec: twoClasses()}).build(t)
	run(t, a, []Rate{0, 0, 500, 500})
	if got := run(t, a, []Rate{45, 15, 500, 500}); got[0] != 45 || got[1] != 15 {
		t.Errorf("got %v, want 45 and 15 for class 0", got)
	}
}

func TestInsuranceComesAfterClass0DemandAndBeforeLowerDeficits(t *testing.T) {
	s := twoClasses()
	s.InsurancePPM = 200_000
	for _, c := range []struct {
		name   string
		demand []Rate
		want   Rate // class 0 in all
	}{
		{"demand 50, insured 60", []Rate{40, 10, 400, 400}, 60},
		{"demand 80, low class idle", []Rate{70, 10, 0, 0}, 96},
		{"demand above all there is", []Rate{90, 30, 0, 0}, 100},
		{"low class needs its base", []Rate{70, 10, 400, 400}, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := check(t, scenario{spec: s, demand: c.demand})
			if got[0]+got[1] != c.want {
				t.Errorf("class 0 got %d, want %d", got[0]+got[1], c.want)
			}
		})
	}
}

func TestPoolFirstServesTheHighClassWhereALowFloodWouldSoakUpItsOwn(t *testing.T) {
	demand := []Rate{90, 0, 200, 0} // class 1 floods location 0 and leaves location 1 unused
	s := twoClasses()
	s.Weights = []int64{1, 1}
	pool := check(t, scenario{spec: s, demand: demand})
	s.Mode = Paper
	paper := check(t, scenario{spec: s, demand: demand})
	if pool[0] != 80 || paper[0] != 60 {
		t.Errorf("class 0 got %d pool first and %d by the paper, want 80 and 60", pool[0], paper[0])
	}
}
