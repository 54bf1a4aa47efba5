package allocator

import (
	"pgregory.net/rapid"
)

// A scenario is a valid specification with, perhaps, ceilings, and a demand.
type scenario struct {
	spec     Spec
	ceilings []Rate
	demand   []Rate
}

// shape narrows the scenarios drawn.
type shape struct {
	maxNodes, maxClasses int
	modes                []Mode
	headrooms            []Headroom
	rules                []Rule
	limits               bool // lend and borrow limits
	cells                bool // floors and caps
	preempt              bool
	insurance            bool
	ceilings             bool
}

func everything(nodes, classes int) shape {
	return shape{nodes, classes, []Mode{PoolFirst, Paper}, []Headroom{HeadroomByBase, HeadroomOwnerKeeps, HeadroomByDemand},
		[]Rule{Proportional, MaxMin}, true, true, true, true, true}
}

// magnitude draws a rate below most, small, middling or huge.
func magnitude(t *rapid.T, most Rate, label string) Rate {
	bits := rapid.IntRange(0, 62).Draw(t, label+" bits")
	return Rate(rapid.Int64Range(0, int64(min(most, 1<<bits))).Draw(t, label))
}

func (sh shape) draw(t *rapid.T) scenario {
	n := rapid.IntRange(1, sh.maxNodes).Draw(t, "N")
	k := rapid.IntRange(1, sh.maxClasses).Draw(t, "K")
	return sh.drawSized(t, n, k)
}

// drawSized draws a scenario of exactly n locations and k classes.
func (sh shape) drawSized(t *rapid.T, n, k int) scenario {
	most := Rate(1) << rapid.IntRange(2, 61).Draw(t, "scale")
	s := Spec{
		Mode:     rapid.SampledFrom(sh.modes).Draw(t, "mode"),
		Headroom: rapid.SampledFrom(sh.headrooms).Draw(t, "headroom"),
		Weights:  make([]int64, n), Classes: make([]ClassSpec, k),
	}
	equal := rapid.Bool().Draw(t, "equal weights")
	for i := range s.Weights {
		s.Weights[i] = 1 + int64(magnitude(t, 1000, "weight"))
		if equal {
			s.Weights[i] = s.Weights[0]
		}
	}
	if sh.insurance && rapid.Bool().Draw(t, "insured") {
		s.InsurancePPM = rapid.Int64Range(0, Whole).Draw(t, "insurance")
	}
	for c := range s.Classes {
		s.Classes[c] = sh.class(t, most/Rate(k))
		s.Budget += s.Classes[c].Reservation
	}
	if s.Budget == 0 {
		s.Classes[0].Reservation, s.Budget = 1, 1
	}
	if s.validateRules() != nil {
		for c := range s.Classes {
			s.Classes[c].Rule = Proportional
		}
	}
	if sh.cells && rapid.Bool().Draw(t, "cells") {
		s.drawCells(t)
	}
	sc := scenario{spec: s}
	sc.demand = drawDemand(t, &s, most)
	if sh.ceilings && rapid.Bool().Draw(t, "ceilings") {
		sc.ceilings = drawCeilings(t, &s)
	}
	return sc
}

func (sh shape) class(t *rapid.T, most Rate) ClassSpec {
	c := ClassSpec{Reservation: magnitude(t, most, "reserve"), Lend: Unlimited, Borrow: Unlimited, Protect: Whole,
		Rule: rapid.SampledFrom(sh.rules).Draw(t, "rule")}
	if rapid.Bool().Draw(t, "full reservation") {
		c.Reservation = most
	}
	if sh.limits && rapid.Bool().Draw(t, "limits") {
		c.Lend = rapid.Int64Range(Unlimited, Whole).Draw(t, "lend")
		c.Borrow = rapid.Int64Range(Unlimited, 2*Whole).Draw(t, "borrow")
	}
	if sh.preempt {
		c.Preempts = rapid.Bool().Draw(t, "preempts")
		c.Protect = rapid.SampledFrom([]PPM{0, 300_000, Whole}).Draw(t, "protect")
	}
	return c
}

func (s *Spec) drawCells(t *rapid.T) {
	s.Floors, s.Caps = make([][]Rate, len(s.Classes)), make([][]Rate, len(s.Classes))
	n := Rate(len(s.Weights))
	for k := range s.Classes {
		s.Floors[k], s.Caps[k] = make([]Rate, n), make([]Rate, n)
		for i := range s.Weights {
			each := s.Classes[k].Reservation / n
			floor := Rate(0)
			if rapid.Bool().Draw(t, "floored") {
				floor = Rate(rapid.Int64Range(0, int64(each)).Draw(t, "floor"))
			}
			limit := Rate(-1)
			if rapid.Bool().Draw(t, "capped") {
				limit = floor + Rate(rapid.Int64Range(0, int64(min(3*uint64(each), 1<<61))).Draw(t, "cap"))
			}
			s.Floors[k][i], s.Caps[k][i] = floor, limit
		}
	}
}

// drawDemand draws demand around the fair base, zero, or of any size.
func drawDemand(t *rapid.T, s *Spec, most Rate) []Rate {
	n := len(s.Weights)
	out := make([]Rate, n*len(s.Classes))
	scale := rapid.Int64Range(0, 30).Draw(t, "demand scale")
	for k := range s.Classes {
		for i := range n {
			base := s.Classes[k].Reservation / Rate(n)
			var d Rate
			switch rapid.IntRange(0, 4).Draw(t, "demand kind") {
			case 0:
				d = 0
			case 1:
				d = base
			case 2:
				d = magnitude(t, most, "demand")
			default:
				d = Rate(rapid.Int64Range(0, int64(base)).Draw(t, "demand")) / 10 * Rate(scale)
			}
			out[k*n+i] = min(d, 1<<62/Rate(len(out)))
		}
	}
	return out
}

func drawCeilings(t *rapid.T, s *Spec) []Rate {
	out := make([]Rate, len(s.Weights))
	for i := range out {
		fair := s.Budget / Rate(len(out))
		switch rapid.IntRange(0, 3).Draw(t, "ceiling kind") {
		case 0:
		case 1:
			out[i] = fair
		default:
			out[i] = Rate(rapid.Int64Range(0, int64(min(2*uint64(fair), 1<<62/uint64(len(out))))).Draw(t, "ceiling"))
		}
	}
	return out
}

// build makes the allocator of a scenario.
func (sc *scenario) build(t interface {
	Helper()
	Fatal(...any)
}) *Allocator {
	t.Helper()
	a, err := New(sc.spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SetCeilings(sc.ceilings); err != nil {
		t.Fatal(err)
	}
	return a
}

// run allocates demand and fails the test on an error.
func run(t interface {
	Helper()
	Fatal(...any)
}, a *Allocator, demand []Rate) []Rate {
	t.Helper()
	out := make([]Rate, len(demand))
	if err := a.Allocate(out, demand); err != nil {
		t.Fatal(err)
	}
	return out
}

func total(v []Rate) (sum Rate) {
	for _, x := range v {
		sum += x
	}
	return sum
}
