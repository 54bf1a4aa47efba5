package node

import (
	"subak/allocator/ledger"
	"subak/enforce/gate"
	"subak/internal/core"
)

// inForce is what the rest of the node uses of the core's present epoch: the
// doors its limiters, the watchdog its planes. It is immutable. The loop replaces
// it as a whole whenever the core changed its budgets or was itself replaced.
type inForce struct {
	epoch   ledger.EpochID
	budgets gate.Budgets
	planes  []*core.Plane
}

// putInForce shares what the core works under now: on the loop, or before it
// runs.
func (n *Node) putInForce() {
	f := &inForce{epoch: n.core.Epoch().ID, budgets: n.gateBudgets()}
	for _, b := range n.core.Budgets() {
		f.planes = append(f.planes, b.Plane)
	}
	n.force.Store(f)
}
