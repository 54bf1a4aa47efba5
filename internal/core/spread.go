package core

import (
	"slices"
	"time"

	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// How an epoch gets around. Its editor tells every live peer at once. Whoever
// takes it up passes it on to some, so that a lost packet costs one more hop
// and not a timeout. Rows name their epoch, so whoever cannot read a row asks for
// it. And whoever sees a peer go on under an older epoch sends it again, ever
// more seldom.

const (
	// lagTicks is for how many ticks a peer may publish under an older epoch
	// before it is sent the newest again.
	lagTicks = 3
	// lagMax bounds the time between two such reminders of one peer, and
	// remindersMax their number in one tick.
	lagMax       = 30 * time.Second
	remindersMax = 8
)

// lag is how a peer that is behind is reminded.
type lag struct{ due, gap int64 }

// spread tells every live peer.
func (c *Core) spread(r *epoch.Record) {
	packets, err := c.enc.Epoch(r.Epoch)
	if err != nil {
		c.cfg.CountDrop("epoch-too-large")
		return
	}
	for _, p := range packets {
		c.out.Spread(p)
	}
}

// forward passes an epoch that was just taken up on to this node's neighbours.
func (c *Core) forward(now int64, r *epoch.Record) {
	for _, id := range c.neighbours(r) {
		c.lag[id] = lag{now + lagTicks*c.cfg.Tick.Nanoseconds(), c.cfg.Tick.Nanoseconds()}
		if row := c.led.PeerRow(id); row == nil || row.Epoch.Less(r.Epoch.ID) {
			c.send(id, r)
		}
	}
}

func (c *Core) send(to ledger.NodeID, r *epoch.Record) {
	packets, err := c.enc.Epoch(r.Epoch)
	if err != nil {
		c.cfg.CountDrop("epoch-too-large")
		return
	}
	for _, p := range packets {
		c.sendTo(c.dir.Name(to), p)
	}
}

// neighbours are the nodes that this one passes r on to: those 1, 2, 4, 8 ...
// places behind it in the list of everybody concerned, so that a few hops reach
// all and each is reached by several; all of them for the editor.
func (c *Core) neighbours(r *epoch.Record) []ledger.NodeID {
	all := make([]ledger.NodeID, 0, len(r.Epoch.Roster)+1)
	for _, m := range r.Epoch.Roster {
		all = append(all, m.ID)
	}
	all = append(append(all, r.Epoch.ParentRoster...), c.self)
	slices.Sort(all)
	all = slices.Compact(all)
	at, _ := slices.BinarySearch(all, c.self)
	var some []ledger.NodeID
	for step := 1; step < len(all); {
		some = append(some, all[(at+step)%len(all)])
		if c.edited == r.Epoch.ID {
			step++
		} else {
			step *= 2
		}
	}
	return some
}

// remind sends the newest epoch again to neighbours that go on under an older
// one. An epoch on trial is for its canary only.
func (c *Core) remind(now int64) {
	sent := 0
	for _, id := range c.neighbours(c.lineage.top) {
		r := c.lineage.top
		if r.Canary != "" && c.dir.Name(id) != r.Canary {
			r = c.lineage.cur
		}
		row, age := c.led.PeerRow(id), c.led.Age(now, id)
		if row == nil || age > c.cfg.Live.Nanoseconds() || !row.Epoch.Less(r.Epoch.ID) {
			delete(c.lag, id)
			continue
		}
		l, behind := c.lag[id]
		switch {
		case !behind:
			c.lag[id] = lag{now + lagTicks*c.cfg.Tick.Nanoseconds(), c.cfg.Tick.Nanoseconds()}
		case now >= l.due && sent < remindersMax:
			sent++
			gap := min(2*l.gap, lagMax.Nanoseconds())
			c.lag[id] = lag{now + gap, gap}
			c.send(id, r)
		}
	}
}
