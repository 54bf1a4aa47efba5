package node

import (
	"context"
	"sync"
	"time"
)

// leaveMax bounds how long the announcement of a leave may take (lesson O23).
const leaveMax = 1500 * time.Millisecond

// DefaultDrain bounds how long requests under way may hold up the end.
const DefaultDrain = 10 * time.Second

// leave ends a node's part in the cluster in order: first readiness goes, what
// was borrowed is released and the leave is announced; only then are the doors
// drained, so that peers never wait for a slow request. The own share stays
// enforced to the last request: it needs no peer.
func (n *Node) leave() {
	n.leaving.Store(true)
	n.log.Info("leaving: handing back what was borrowed")
	if !n.ask(func() { n.core.Leave(n.clock.Now(), wallMillis()) }) {
		n.log.Warn("leaving: the loop did not answer; loans run out by themselves")
	}
	if err := n.gossip.Leave(leaveMax); err != nil {
		n.log.Warn("leaving: the announcement may not have reached everybody", "err", err)
	}
	n.muted.Store(true)
	n.log.Info("leaving: draining requests", "at_most", n.drainMax)
	ctx, cancel := context.WithTimeout(context.Background(), n.drainMax)
	defer cancel()
	var doors sync.WaitGroup
	for _, d := range n.doors.end() {
		doors.Go(func() {
			if d.drain(ctx) {
				n.log.Warn("leaving: requests still under way were cut off", "listener", d.name)
			}
		})
	}
	doors.Wait()
	n.doors.retiring.Wait() // each within its own drainMax, begun earlier
}
