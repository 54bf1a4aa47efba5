package node

import (
	"time"

	"subak/allocator"
	"subak/internal/api"
)

// Shares implements web.Backend: what the data plane enforces now, without the
// loop's help, so that it is told also while the loop stands still.
func (n *Node) Shares() api.Shares {
	now := n.clock.Now()
	s := api.Shares{Time: time.Now(), Budgets: []api.Share{}}
	for _, b := range n.force.Load().budgets {
		rates := make([]allocator.Rate, len(b.Classes))
		share := api.Share{Name: b.Name, Total: units(b.Limiter.Share(now, rates)), Classes: make([]float64, len(rates))}
		for k, r := range rates {
			share.Classes[k] = units(r)
		}
		s.Budgets = append(s.Budgets, share)
	}
	return s
}
