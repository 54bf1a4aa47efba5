package evaluation

import (
	"fmt"

	"subak/allocator"
)

// Trace is the demand of every cycle.
type Trace interface {
	// Nodes and Classes are the size of a cycle's demand.
	Nodes() int
	Classes() int
	// Next puts the next cycle's demand into demand[class*Nodes+node], micro-units
	// per second, and the legitimate part of the last class's into legit[node]. It
	// returns false after the last cycle, and the error that ended the trace.
	Next(demand, legit []allocator.Rate) (bool, error)
}

// Served is what was asked for and what was served of it.
type Served struct{ Offered, Served Total }

// Percent is what was served of what was asked for.
func (s *Served) Percent() float64 { return s.Served.Percent(s.Offered) }

// Result is what a method made of a trace.
type Result struct {
	Cycles  int
	Classes []Served // in order of priority
	Legit   Served   // the legitimate part of the last class
	All     Served
	// Contended is the budget of the cycles in which demand reached it, Idle what
	// was not served of it, and Unplaced what the targets left of it although the
	// demand that they were made from reached the budget.
	Contended, Idle, Unplaced Total
	ContendedCycles           int
	// LP is the range of the two-class LP in the same cycles; its optima know each
	// cycle's demand.
	LP Range
	// Over is the most by which targets exceeded the budget in any cycle.
	Over allocator.Rate
	// Worst is the least part of the highest class's demand served in any cycle,
	// in ppm.
	Worst int64
}

// Uncounted is the number of first cycles that are played and not counted: a lag
// needs a past.
const Uncounted = 2

// Play runs one method over a trace. lag is 0 or 1: whether the targets of a cycle
// follow its own demand or that of the cycle before.
func Play(t Trace, m *Method, spec *allocator.Spec, lag int) (Result, error) {
	p, err := newPlayer(t, m, spec, lag)
	if err != nil {
		return Result{}, err
	}
	for {
		ok, err := t.Next(p.demand, p.legit)
		if err != nil || !ok {
			return p.result, err
		}
		if err := p.cycle(); err != nil {
			return p.result, fmt.Errorf("method %s, cycle %d: %w", m.Name, p.at, err)
		}
		p.at++
	}
}

type player struct {
	result        Result
	spec          *allocator.Spec
	sharer        Sharer
	serving       serving
	lag, at       int
	demand, known []allocator.Rate // of this cycle; of the last, as the sharer knows it
	legit         []allocator.Rate
	target        []allocator.Rate
	served        []allocator.Rate
}

func newPlayer(t Trace, m *Method, spec *allocator.Spec, lag int) (*player, error) {
	nodes, classes := t.Nodes(), t.Classes()
	if nodes != len(spec.Weights) || classes != len(spec.Classes) {
		return nil, fmt.Errorf("the trace has %d nodes and %d classes, the budget %d and %d", nodes, classes, len(spec.Weights), len(spec.Classes))
	}
	if lag < 0 || lag > 1 {
		return nil, fmt.Errorf("lag %d: want 0 or 1", lag)
	}
	sharer, guard, err := m.start(spec)
	if err != nil {
		return nil, fmt.Errorf("method %s: %w", m.Name, err)
	}
	cells := nodes * classes
	return &player{
		result: Result{Classes: make([]Served, classes), Worst: allocator.Whole},
		spec:   spec, sharer: sharer, serving: serving{nodes: nodes, guard: guard}, lag: lag,
		demand: make([]allocator.Rate, cells), known: make([]allocator.Rate, cells), legit: make([]allocator.Rate, nodes),
		target: make([]allocator.Rate, cells), served: make([]allocator.Rate, cells),
	}, nil
}

// cycle shares, serves and counts one cycle.
func (p *player) cycle() error {
	if p.lag == 0 || p.at == 0 {
		copy(p.known, p.demand)
	}
	if err := p.sharer.Share(p.target, p.known); err != nil {
		return err
	}
	p.serving.serve(p.served, p.target, p.demand)
	if p.at >= Uncounted {
		p.count()
	}
	copy(p.known, p.demand)
	return nil
}

func sumOf(rates []allocator.Rate) (sum allocator.Rate) {
	for _, r := range rates {
		sum += r
	}
	return sum
}

func (p *player) count() {
	r, n := &p.result, p.serving.nodes
	r.Cycles++
	var demand, served allocator.Rate
	first := sumOf(p.demand[:n])
	for k := range r.Classes {
		d, s := sumOf(p.demand[k*n:k*n+n]), sumOf(p.served[k*n:k*n+n])
		r.Classes[k].Offered.Add(d)
		r.Classes[k].Served.Add(s)
		if k == 0 && d > 0 {
			r.Worst = min(r.Worst, muldiv(s, allocator.Whole, d))
		}
		demand, served = demand+d, served+s
	}
	r.LP.add(p.spec.Budget, first, demand-first)
	r.All.Offered.Add(demand)
	r.All.Served.Add(served)
	last := (len(r.Classes) - 1) * n
	for i, legit := range p.legit {
		r.Legit.Offered.Add(legit)
		if d := p.demand[last+i]; d > 0 {
			r.Legit.Served.Add(allocator.Rate(muldiv(legit, int64(p.served[last+i]), d)))
		}
	}
	targets := sumOf(p.target)
	r.Over = max(r.Over, targets-p.spec.Budget)
	if demand >= p.spec.Budget {
		r.ContendedCycles++
		r.Contended.Add(p.spec.Budget)
		r.Idle.Add(p.spec.Budget - served)
	}
	if sumOf(p.known) >= p.spec.Budget {
		r.Unplaced.Add(max(0, p.spec.Budget-targets))
	}
}
