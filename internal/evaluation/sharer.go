package evaluation

import (
	"fmt"
	"slices"

	"subak/allocator"
)

// Sharer computes what every cell may use from the demand that it is told.
type Sharer interface {
	Share(target, demand []allocator.Rate) error
}

// allocated is the product's own allocation.
type allocated struct{ *allocator.Allocator }

func (a allocated) Share(target, demand []allocator.Rate) error { return a.Allocate(target, demand) }

// fixed gives every cell the same in all cycles.
type fixed []allocator.Rate

func (f fixed) Share(target, _ []allocator.Rate) error {
	copy(target, f)
	return nil
}

// apart is every location for itself: its classes lend to one another, but nothing
// moves between locations (no level 1).
type apart struct {
	alone          []*allocator.Allocator
	demand, target []allocator.Rate // of one location
}

func newApart(spec *allocator.Spec) (Sharer, error) {
	whole, err := allocator.New(*spec)
	if err != nil {
		return nil, err
	}
	classes := len(spec.Classes)
	s := &apart{demand: make([]allocator.Rate, classes), target: make([]allocator.Rate, classes)}
	for i := range spec.Weights {
		one := *spec
		one.Weights, one.Floors, one.Caps = []int64{1}, cellsOf(spec.Floors, i), cellsOf(spec.Caps, i)
		one.Classes = slices.Clone(spec.Classes)
		one.Budget = 0
		for k := range one.Classes {
			one.Classes[k].Reservation = whole.Base(k, i)
			one.Budget += whole.Base(k, i)
		}
		if one.Budget == 0 {
			s.alone = append(s.alone, nil)
			continue
		}
		a, err := allocator.New(one)
		if err != nil {
			return nil, fmt.Errorf("location %d: %w", i, err)
		}
		s.alone = append(s.alone, a)
	}
	return s, nil
}

// cellsOf is column i of bounds of cells.
func cellsOf(bounds [][]allocator.Rate, i int) [][]allocator.Rate {
	if bounds == nil {
		return nil
	}
	column := make([][]allocator.Rate, len(bounds))
	for k, row := range bounds {
		if row != nil {
			column[k] = row[i : i+1]
		}
	}
	return column
}

func (s *apart) Share(target, demand []allocator.Rate) error {
	n := len(s.alone)
	for i, a := range s.alone {
		clear(s.target)
		for k := range s.demand {
			s.demand[k] = demand[k*n+i]
		}
		if a != nil {
			if err := a.Allocate(s.target, s.demand); err != nil {
				return err
			}
		}
		for k, r := range s.target {
			target[k*n+i] = r
		}
	}
	return nil
}

// maxmin fills all cells like water, weighted by their bases, whatever their class.
// Beyond all demand it adds by base.
type maxmin struct {
	budget allocator.Rate
	base   []allocator.Rate
	open   []bool
	weight []allocator.Rate
	part   []allocator.Rate
}

func (s *maxmin) Share(target, demand []allocator.Rate) error {
	left := s.budget
	for c := range demand {
		s.open[c] = s.base[c] > 0
	}
	clear(target)
	for settled := true; settled; {
		settled = false
		var sum allocator.Rate
		for c := range demand {
			s.weight[c] = 0
			if s.open[c] {
				s.weight[c] = s.base[c]
				sum += s.base[c]
			}
		}
		level := left // what is left at the start of the round
		for c, d := range demand {
			if s.open[c] && sum > 0 && d <= allocator.Rate(muldiv(level, s.base[c], sum)) {
				target[c], s.open[c], settled = d, false, true
				left -= d
			}
		}
	}
	weights := s.weight
	if !slices.Contains(s.open, true) {
		weights = s.base
	}
	apportion(s.part, weights, left)
	for c, more := range s.part {
		target[c] += more
	}
	return nil
}

// byDemand is an optimum of throughput over all cells, the one that serves every
// cell the same part of its demand: the centre of the two-class LP's optima.
type byDemand struct{ budget allocator.Rate }

func (s byDemand) Share(target, demand []allocator.Rate) error {
	sum := sumOf(demand)
	if sum >= s.budget {
		apportion(target, demand, s.budget)
		return nil
	}
	apportion(target, demand, s.budget-sum)
	for c, d := range demand {
		target[c] += d
	}
	return nil
}

// ranked serves the classes one after the other: in order of priority it is the
// oracle that knows no reservations, and last class first it is the other end of
// the two-class LP's optima. Headroom goes to the first class.
type ranked struct {
	budget allocator.Rate
	nodes  int
	last   bool // the last class first
}

func (s ranked) Share(target, demand []allocator.Rate) error {
	left, classes := s.budget, len(demand)/s.nodes
	row := func(v []allocator.Rate, k int) []allocator.Rate {
		if s.last {
			k = classes - 1 - k
		}
		return v[k*s.nodes : (k+1)*s.nodes]
	}
	for k := range classes {
		sum := min(left, sumOf(row(demand, k)))
		apportion(row(target, k), row(demand, k), sum)
		left -= sum
	}
	room := make([]allocator.Rate, s.nodes)
	apportion(room, row(demand, 0), left)
	for i, more := range room {
		row(target, 0)[i] += more
	}
	return nil
}

// alone is one throughput LP for each class over its own reservation: what is above
// all demand of the class goes by weight.
type alone struct {
	reserved []allocator.Rate
	weights  []int64
}

func (s alone) Share(target, demand []allocator.Rate) error {
	n := len(s.weights)
	for k, reserved := range s.reserved {
		out, asked := target[k*n:(k+1)*n], demand[k*n:(k+1)*n]
		sum := sumOf(asked)
		if sum >= reserved {
			apportion(out, asked, reserved)
			continue
		}
		apportion(out, s.weights, reserved-sum)
		for i, d := range asked {
			out[i] += d
		}
	}
	return nil
}
