package evaluation

import (
	"fmt"
	"slices"
	"strings"

	"subak/allocator"
)

// Method is a way to share a budget.
type Method struct {
	Name  string // as typed
	Title string
	Words string // what it is, in a sentence
	// Revocable lets a location's classes use each other's unused part.
	Revocable bool
	// change makes the method's own specification of the budget's; nil leaves it.
	change func(*allocator.Spec)
	// make returns the sharer; nil is the product's allocation.
	make func(*allocator.Spec) (Sharer, error)
	// estimate, if set, returns what turns the demand seen into the demand told, for so
	// many nodes.
	estimate func(nodes int) estimator
	// guardPPM is the part of a cell's base that it keeps from the location's other
	// classes when they are lent to revocably.
	guardPPM int64
}

// start returns what shares by m, and the guard of every cell.
func (m *Method) start(budget *allocator.Spec) (Sharer, []allocator.Rate, error) {
	spec := *budget
	spec.Classes = slices.Clone(budget.Classes)
	if m.change != nil {
		m.change(&spec)
	}
	a, err := allocator.New(spec)
	if err != nil {
		return nil, nil, err
	}
	var sharer Sharer = allocated{a}
	if m.make != nil {
		if sharer, err = m.make(&spec); err != nil {
			return nil, nil, err
		}
	}
	if m.estimate != nil {
		sharer = &told{Sharer: sharer, by: m.estimate(len(spec.Weights))}
	}
	if !m.Revocable {
		return sharer, nil, nil
	}
	guard := bases(a)
	for c := range guard {
		guard[c] = allocator.Rate(muldiv(guard[c], m.guardPPM, allocator.Whole))
	}
	return sharer, guard, nil
}

// bases are what all cells have when nobody borrows, class by class.
func bases(a *allocator.Allocator) []allocator.Rate {
	var all []allocator.Rate
	for k := range a.Classes() {
		for i := range a.Nodes() {
			all = append(all, a.Base(k, i))
		}
	}
	return all
}

// Product is the name of the method whose ideal the protocol is compared with: what a
// node of the testbed is configured to do.
const Product = "revocable10"

// Configured is the name of the method that takes the budget as its file says.
const Configured = "configured"

// Methods are all ways to share, in the order of the tables.
func Methods() []Method {
	return []Method{
		{Name: "static-equal", Title: "static, equal", Words: "every location has the same part of each reservation for ever", make: static,
			change: func(s *allocator.Spec) {
				s.Weights = slices.Repeat([]int64{1}, len(s.Weights))
				s.Floors, s.Caps = nil, nil
			}},
		{Name: "static", Title: "static, by weight", Words: "every location has its base for ever", make: static},
		{Name: "no-level1", Title: "no level 1", Words: "the classes of a location lend to each other, locations do not", change: paper, make: newApart},
		{Name: "no-borrowing", Title: "no borrowing", Words: "locations share within each class, classes lend nothing", change: func(s *allocator.Spec) {
			paper(s)
			for k := range s.Classes {
				s.Classes[k].Lend, s.Classes[k].Borrow = 0, 0
			}
		}},
		{Name: "paper", Title: "paper", Words: "the two levels of the source paper: within a class first, then borrowing", change: paper},
		{Name: "pool-first", Title: "pool-first", Words: "all unused base is one pool, taken by class priority", change: poolFirst(0)},
		{Name: "insurance10", Title: "pool-first, insurance 10 %", Words: "and the first class has a tenth of its demand in reserve", change: poolFirst(10)},
		{Name: "insurance20", Title: "pool-first, insurance 20 %", Words: "and the first class has a fifth of its demand in reserve", change: poolFirst(20)},
		{Name: Product, Title: "+ insurance 10 %, revocable", Words: "with a tenth in reserve, a location's classes use each other's unused part at once", change: poolFirst(10),
			Revocable: true, guardPPM: allocator.Whole},
		{Name: "revocable", Title: "+ insurance 20 %, revocable", Words: "and a location's classes use each other's unused part at once", change: poolFirst(20),
			Revocable: true, guardPPM: allocator.Whole},
		protecting(75), protecting(50), protecting(25),
		{Name: "maxmin", Title: "max-min over cells", Words: "all cells fill like water, whatever their class", make: func(s *allocator.Spec) (Sharer, error) {
			a, err := allocator.New(*s)
			if err != nil {
				return nil, err
			}
			b := bases(a)
			return &maxmin{s.Budget, b, make([]bool, len(b)), make([]allocator.Rate, len(b)), make([]allocator.Rate, len(b))}, nil
		}},
		{Name: "lp1", Title: "single-class LP", Words: "each class by itself: most throughput of its own reservation", make: func(s *allocator.Spec) (Sharer, error) {
			lp := alone{weights: s.Weights}
			for _, c := range s.Classes {
				lp.reserved = append(lp.reserved, c.Reservation)
			}
			return lp, nil
		}},
		{Name: "lp2", Title: "two-class LP, centre", Words: "most throughput of all cells; of its many optima the one that serves every cell the same part", make: func(s *allocator.Spec) (Sharer, error) {
			return byDemand{s.Budget}, nil
		}},
		{Name: "lp2-low", Title: "two-class LP, last class first", Words: "the optimum that serves the first class least", make: func(s *allocator.Spec) (Sharer, error) {
			return ranked{s.Budget, len(s.Weights), true}, nil
		}},
		{Name: "oracle", Title: "strict priority", Words: "the first class first, without any reservation: nothing serves it better", make: func(s *allocator.Spec) (Sharer, error) {
			return ranked{s.Budget, len(s.Weights), false}, nil
		}},
		{Name: Configured, Title: "as configured", Words: "the budget as its file says"},
	}
}

// Find returns the methods of some names, of [Methods] and [Ablations].
func Find(names []string) ([]Method, error) {
	all := append(Methods(), Ablations()...)
	var found []Method
	for _, name := range names {
		i := slices.IndexFunc(all, func(m Method) bool { return m.Name == name })
		if i < 0 {
			var known []string
			for _, m := range all {
				known = append(known, m.Name)
			}
			return nil, fmt.Errorf("no method %q; mend: one of %s", name, strings.Join(known, ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}

func static(s *allocator.Spec) (Sharer, error) {
	a, err := allocator.New(*s)
	if err != nil {
		return nil, err
	}
	return fixed(bases(a)), nil
}

// paper is the mode of the source paper, with nothing added to it.
func paper(s *allocator.Spec) {
	s.Mode, s.InsurancePPM = allocator.Paper, 0
	for k := range s.Classes {
		s.Classes[k].Preempts = false
	}
}

func poolFirst(insurancePercent int64) func(*allocator.Spec) {
	return func(s *allocator.Spec) {
		s.Mode, s.InsurancePPM = allocator.PoolFirst, insurancePercent*allocator.Whole/100
		for k := range s.Classes {
			s.Classes[k].Preempts = false
		}
	}
}

// protecting lets every class take from lower ones what is above a part of their
// reservations.
func protecting(percent int64) Method {
	ppm := percent * allocator.Whole / 100
	return Method{
		Name: fmt.Sprintf("protect%d", percent), Title: fmt.Sprintf("+ insurance 20 %%, revocable, protect %d %%", percent),
		Words: fmt.Sprintf("and a higher class may take what is above %d %% of a lower one's reservation", percent),
		change: func(s *allocator.Spec) {
			poolFirst(20)(s)
			for k := range s.Classes {
				s.Classes[k].Preempts, s.Classes[k].Protect = true, ppm
			}
		},
		Revocable: true, guardPPM: ppm,
	}
}
