package core

import (
	"subak/allocator/ledger"
	"subak/internal/drift"
)

// A lease is safe while the clocks of lender and borrower run alike within eps.
// That is watched (package drift): a peer whose clock is proven to break it gets
// no loan and gives none until the proof is a minute old. It stays a member.

// observe feeds a row that was just merged to the watch.
func (c *Core) observe(now int64, row *ledger.Row) {
	if sent, ok := c.led.EchoOf(row); ok && c.drift.Observe(drift.Observation{
		Peer: int(row.Node), Inc: row.Inc, Clock: row.Clock, Sent: sent, Merged: now,
	}) {
		c.heedClocks(now)
	}
}

// heedClocks stops loans with peers whose clock is proven wrong, and allows them
// again when that has passed.
func (c *Core) heedClocks(now int64) {
	for _, m := range c.epoch.Roster {
		bad := c.drift.Verdict(now, int(m.ID)) != drift.Within
		if m.ID != c.self && bad != c.led.Distrusted(m.ID) {
			c.led.Distrust(m.ID, bad)
			c.urgent = true
		}
	}
}

// Clock returns what is known of the rate of a peer's lease clock.
func (c *Core) Clock(now int64, id ledger.NodeID) drift.Bounds { return c.drift.Bounds(now, int(id)) }
