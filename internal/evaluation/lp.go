package evaluation

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"subak/allocator"
)

// Range is what the optima of the two-class LP (most throughput of the whole
// budget, all classes alike) serve of the first class. All of them serve as much in
// all, min(B, D); which of them a solver returns is decided by how it breaks ties,
// so that a single figure without the solver's name means nothing.
type Range struct{ Offered, Least, Most Total }

// add counts a cycle: first and rest are the demand of the first class and of all
// others.
func (r *Range) add(budget, first, rest allocator.Rate) {
	r.Offered.Add(first)
	r.Least.Add(min(first, max(0, budget-rest)))
	r.Most.Add(min(budget, first))
}

// Percent is the range of the part of the first class's demand that is served.
func (r *Range) Percent() (least, most float64) {
	return r.Least.Percent(r.Offered), r.Most.Percent(r.Offered)
}

// Throughput solves, by gonum's simplex, the LP of most throughput:
// maximise the sum of x over all cells, with 0 <= x <= demand and the sum of x at
// most budget. It returns the vertex that this solver ends in. The figures are
// floating point, for comparison with the closed forms only.
func Throughput(budget allocator.Rate, demand []allocator.Rate) ([]float64, error) {
	// Standard form, in budgets: each cell has its x and the slack of its demand;
	// the budget has a slack of its own, in the last column.
	n := len(demand)
	columns := 2*n + 1
	costs, a, b := make([]float64, columns), mat.NewDense(n+1, columns, nil), make([]float64, n+1)
	scale := float64(budget)
	for c, d := range demand {
		costs[c] = -1
		a.Set(c, c, 1)
		a.Set(c, n+c, 1)
		b[c] = float64(d) / scale
		a.Set(n, c, 1)
	}
	a.Set(n, columns-1, 1)
	b[n] = 1
	// The slacks are a basis to begin with: nothing is served.
	basis := make([]int, n+1)
	for c := range basis {
		basis[c] = n + c
	}
	_, x, err := lp.Simplex(costs, a, b, 1e-10, basis)
	if err != nil {
		return nil, fmt.Errorf("simplex over %d cells: %w", n, err)
	}
	for c := range demand {
		x[c] *= scale / float64(allocator.Unit)
	}
	return x[:n], nil
}

// Vertex is what gonum's simplex, named here because it decides ties, serves of
// the first class in every so-many-th cycle of a trace.
func Vertex(t Trace, spec *allocator.Spec, every int) (percent float64, cycles int, err error) {
	demand, legit := make([]allocator.Rate, t.Nodes()*t.Classes()), make([]allocator.Rate, t.Nodes())
	var offered, served float64
	for at := 0; ; at++ {
		ok, err := t.Next(demand, legit)
		if err != nil || !ok {
			if offered == 0 {
				return 100, cycles, err
			}
			return 100 * served / offered, cycles, err
		}
		if at%every != 0 {
			continue
		}
		x, err := Throughput(spec.Budget, demand)
		if err != nil {
			return 0, cycles, fmt.Errorf("cycle %d: %w", at, err)
		}
		cycles++
		for i := range t.Nodes() {
			offered += float64(demand[i]) / float64(allocator.Unit)
			served += x[i]
		}
	}
}
