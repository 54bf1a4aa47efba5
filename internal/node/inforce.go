package node

import (
	"subak/allocator/ledger"
	"subak/enforce/gate"
	"subak/internal/core"
)

// noted is the epoch that the log told of last, and whether as in force.
type noted struct {
	id     ledger.EpochID
	active bool
}

// inForce is what the rest of the node uses of the core's present epoch: the
// doors its limiters, the watchdog its planes. It is immutable. The loop replaces
// it as a whole whenever the core changed its budgets or was itself replaced.
type inForce struct {
	budgets gate.Budgets
	planes  []*core.Plane
}

// putInForce shares what the core works under now: on the loop, or before it
// runs.
func (n *Node) putInForce() {
	f := &inForce{budgets: n.gateBudgets()}
	for _, b := range n.core.Budgets() {
		f.planes = append(f.planes, b.Plane)
	}
	n.force.Store(f)
}

// installed follows the core into an epoch or other limiters, on the loop: the
// limiters before admit nothing any more, so no request should meet them.
func (n *Node) installed([]*core.Budget) {
	n.putInForce()
	if !n.reloading {
		n.renewGates()
	}
	n.noteEpoch()
}

// noteEpoch logs, once each, that another epoch was taken up and that it is in
// force here: on the loop.
func (n *Node) noteEpoch() {
	if n.joiner != nil {
		return
	}
	id, active := n.core.Epoch().ID, n.core.Active() == n.core.Epoch().ID
	if n.noted.id == (ledger.EpochID{}) { // the log of the start told of it
		n.noted = noted{id, active}
	}
	if id != n.noted.id {
		n.log.Info("epoch taken up: bases that it lowers are lowered; others rise when all have acknowledged it", "epoch", id.String(), "before", n.noted.id.String())
		n.noted = noted{id: id}
		n.knownFor(n.clock.Now(), id)
	}
	if active && !n.noted.active {
		n.log.Info("epoch in force here", "epoch", id.String())
	}
	n.noted.active = n.noted.active || active
}
