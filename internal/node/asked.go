package node

import "subak/enforce"

// Asked is what was asked of all budgets since the start, in units of cost. It may be
// called at any time.
func (n *Node) Asked() (sum int64) {
	for _, b := range n.force.Load().budgets {
		counts := make([]enforce.Counts, len(b.Classes))
		b.Limiter.Counts(counts)
		for _, c := range counts {
			sum += c.Admitted + c.Refused
		}
	}
	return sum
}
