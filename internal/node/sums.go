package node

import (
	"subak/allocator/ledger"
	"subak/internal/api"
	"subak/internal/core"
)

// Sums implements web.Backend: what Status says of whole budgets, without its
// cells. A loop that does not answer leaves a gap in the history.
func (n *Node) Sums() []api.Sum {
	sums, _ := answered(n, func(now int64) ([]api.Sum, error) { return n.sums(now), nil })
	return sums
}

func (n *Node) sums(now int64) []api.Sum {
	n.core.Status(now, &n.report)
	sums := make([]api.Sum, 0, len(n.report.Budgets))
	for _, b := range n.core.Budgets() {
		sums = append(sums, n.sum(now, b, &n.report))
	}
	return sums
}

func (n *Node) sum(now int64, b *core.Budget, l *ledger.Status) api.Sum {
	s := api.Sum{Budget: b.Name, Unit: b.Doc.Unit, Limit: units(b.Doc.Spec.Budget)}
	for _, share := range n.shares(now, b, l) {
		s.Share += share
	}
	for _, demand := range b.View.Demand {
		s.Demand += units(demand)
	}
	return s
}
