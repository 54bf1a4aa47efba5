package demo

import "math"

// cells is an amount for each class and node: [class][node].
type cells [][]float64

func newCells(classes, nodes int) cells {
	c := make(cells, classes)
	for k := range c {
		c[k] = make([]float64, nodes)
	}
	return c
}

func (c cells) class(k int) (sum float64) {
	for _, v := range c[k] {
		sum += v
	}
	return sum
}

// references computes what two other ways would have served of the same
// arrivals, bin by bin, in requests by class. Both start with full buckets.
//
// The static split gives every cell its base and a bucket of the demo's burst:
// what five nodes do that never talk.
//
// The ideal knows all arrivals of a bin at once and has the whole limit in one
// bucket. It serves everything while the tokens last; otherwise it splits them as
// pool-first does: every cell keeps what it needs of its base, the rest is one
// pool taken by class priority.
type references struct {
	plan   *plan
	tokens cells   // of the static split
	pool   float64 // tokens of the ideal
}

func newReferences(p *plan) *references {
	r := &references{plan: p, tokens: newCells(len(p.classes), len(p.nodes))}
	r.pool = float64(p.limit) * p.burst.Seconds()
	for k := range p.classes {
		for i := range p.nodes {
			r.tokens[k][i] = p.base(k, i) * p.burst.Seconds()
		}
	}
	return r
}

// step takes the arrivals of one bin of the given length in seconds, those left
// out that no node could have served, and returns what each way serves by class.
func (r *references) step(offered cells, seconds float64) (static, ideal []float64) {
	return r.static(offered, seconds), r.ideal(offered, seconds)
}

func (r *references) static(offered cells, seconds float64) []float64 {
	served := make([]float64, len(offered))
	for k := range offered {
		for i, d := range offered[k] {
			have := r.tokens[k][i] + r.plan.base(k, i)*seconds
			s := math.Min(d, have)
			served[k] += s
			r.tokens[k][i] = math.Min(have-s, r.plan.base(k, i)*r.plan.burst.Seconds())
		}
	}
	return served
}

func (r *references) ideal(offered cells, seconds float64) []float64 {
	limit := float64(r.plan.limit)
	have := r.pool + limit*seconds
	served := make([]float64, len(offered))
	left := have
	for k := range offered { // what each cell keeps of its own
		for i, d := range offered[k] {
			served[k] += math.Min(d, r.plan.base(k, i)*have/limit)
		}
		left -= served[k]
	}
	for k := range offered { // the pool, by priority
		more := math.Min(offered.class(k)-served[k], math.Max(left, 0))
		served[k] += more
		left -= more
	}
	r.pool = math.Min(math.Max(left, 0), limit*r.plan.burst.Seconds())
	return served
}
