package core

import (
	"slices"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
)

// sampleEvery is the time between two readings of the meters: ten to a tick of
// the default length. A step of demand is told after the first whole interval,
// so one and a half intervals after it came, on average.
const sampleEvery = int64(20 * time.Millisecond)

// A node without any demand for idleAfter reads its meters once in idleEvery
// at most, or half a tick: on a machine that does nothing else, waking up is what costs.
// Its first requests are served from its base; what they ask beyond it is told so
// much later.
const (
	idleAfter = int64(time.Second)
	idleEvery = int64(100 * time.Millisecond)
)

// quietSettle is how often a node that trades with nobody settles budgets of which
// there is no news.
const quietSettle = int64(time.Second)

// Turn does what is due at lease-clock reading now and returns when it wants to
// be called again at the latest. news says that something was received or asked
// since the last turn. wallMillis is a wall-clock reading: sequence numbers of
// all nodes stay close by it, nothing else uses it.
func (c *Core) Turn(now int64, wallMillis uint64, news bool) (next int64) {
	tick := now >= c.tickDue
	if now >= c.sampleDue || tick && c.sampleGap(now) > sampleEvery { // to wake up once, not twice
		if c.sample(now) {
			c.urgent = true
			news = true
		}
		c.sampleDue = now + c.sampleGap(now)
	}
	if tick {
		c.tickDue = max(c.tickDue+c.cfg.Tick.Nanoseconds(), now+c.cfg.Tick.Nanoseconds()/2)
	}
	if tick || news || now >= c.wakeDue {
		c.wakeDue = c.pass(now, wallMillis, tick)
	}
	return min(c.sampleDue, c.tickDue, c.wakeDue)
}

// sampleGap is the time to the next reading of the meters.
func (c *Core) sampleGap(now int64) int64 {
	if now-c.busyAt < idleAfter {
		return sampleEvery
	}
	return max(sampleEvery, min(idleEvery, c.cfg.Tick.Nanoseconds()/2))
}

// sample meters demand since the last call and says whether any class jumped,
// which is worth a publication at once.
func (c *Core) sample(now int64) (jumped bool) {
	for _, b := range c.budgets {
		b.counts, b.before = b.before, b.counts
		b.Limiter.Counts(b.counts)
		b.recent.note(now, b.counts)
		for k, m := range b.meters {
			offered := b.counts[k].Offered - b.before[k].Offered
			rate, jump := m.Update(now, offered)
			if offered != 0 || rate != 0 {
				c.busyAt = now
			}
			if c.leaving {
				rate, jump = 0, false // what still drains is served, not asked for
			}
			if b.Demand[k] != rate {
				b.Demand[k] = rate
				c.stale.mark(b.Index)
				c.traffic.moved = now
			}
			jumped = jumped || jump
		}
		c.led.SetDemand(b.Index, b.Demand)
	}
	return jumped
}

// pass brings every decision up to date with the news: proof, quarantine,
// epochs, targets, settlement, publication, and the schedules of the data plane.
// A tick publishes, unless the node is quiet (see "How rows travel"); otherwise a
// row leaves if it asks for a change over 1 % of base and the last one left at least
// GapMin ago. The returned
// instant is when pass wants to be called again at the latest.
func (c *Core) pass(now int64, wallMillis uint64, tick bool) (wake int64) {
	wake = now + c.cfg.Tick.Nanoseconds()
	if tick {
		quiet := c.led.Quiet()
		if !quiet || !c.wasQuiet || now-c.settledAll >= quietSettle {
			c.stale.all, c.settledAll = true, now
		}
		c.wasQuiet = quiet
		c.catchUp(now)
		c.remind(now)
		c.heedClocks(now)
		if c.unsaved {
			c.probe(now)
		}
	}
	c.bringLate(now)
	c.led.Control(now)
	if s := c.standing(); s != c.told {
		if s.active != c.told.active {
			c.forgetLeavers()
		}
		c.told = s
		c.urgent, c.stale.all = true, true
	}
	if at := c.led.Standing(); at != c.stood {
		c.stood, c.stale.all = at, true
	}
	c.settleNews(now)
	changed := c.urgent
	listens := c.listens(now)
	if !listens && (tick && !c.spare(now) || changed && now-c.published >= c.gap()) {
		c.urgent = false
		c.publish(now, wallMillis, changed)
		c.stale.clear()
	} else {
		c.installNews(now)
		if changed && !listens {
			wake = min(wake, c.published+c.gap())
		}
	}
	return max(min(wake, c.led.NextEvent(now)), now+1)
}

// settle computes the targets of every budget from the present view and
// lets the ledger release, recall and lend towards them.
func (c *Core) settle(now int64) {
	for _, b := range c.budgets {
		c.settleOne(now, b)
	}
}

func (c *Core) settleOne(now int64, b *Budget) {
	c.look(now, b)
	if b.due && !c.aim(b) {
		return
	}
	change := c.tradeKeeping(now, b)
	if c.pos < 0 && change > 0 || c.pos >= 0 && change > max(c.epoch.Budgets[b.Index].Base[c.pos]/100, c.oneEachTick()) {
		c.urgent = true
	}
}

// look refreshes the view of a budget. Most of the time it shows what it showed
// before, and then everything that follows from it alone stands.
func (c *Core) look(now int64, b *Budget) {
	b.View, b.former = b.former, b.View
	c.led.View(now, b.Index, &b.View)
	if !sameView(&b.View, &b.former) {
		b.due, c.viewHash.due = true, true
	}
}

func sameView(a, b *ledger.View) bool {
	return a.Self == b.Self && a.N == b.N && a.K == b.K && slices.Equal(a.Live, b.Live) &&
		slices.Equal(a.Ceilings, b.Ceilings) && slices.Equal(a.Demand, b.Demand) && slices.Equal(a.Weights, b.Weights)
}

// aim computes the targets of a budget from its view.
func (c *Core) aim(b *Budget) bool {
	ceilings, demand := c.believed(b)
	err := b.alloc.SetCeilings(ceilings)
	if err == nil {
		err = b.alloc.Allocate(b.Target, demand)
	}
	if err != nil {
		// Only an overflow of a sum gets here: the rows themselves are
		// validated. The last good targets stay in force.
		c.cfg.CountDrop("demand-overflow")
		return false
	}
	n := len(b.Total)
	for i := range b.Total {
		b.Total[i] = 0
		for k := range b.meters {
			b.Total[i] += b.Target[k*n+i]
		}
	}
	b.due = false
	return true
}

// oneEachTick is the rate of one unit in a tick: a change below it is not worth a
// row before the next tick, in which it moves less than a unit. Where nodes get
// few requests 1 % of a base is far less, and every row of one node would be
// answered by a row of all others.
func (c *Core) oneEachTick() allocator.Rate {
	return allocator.Unit * allocator.Rate(time.Second) / allocator.Rate(c.cfg.Tick)
}

// standing is what others wait for during a change of epoch: worth a row at
// once.
type standing struct {
	epoch, active ledger.EpochID
	acked         bool
}

func (c *Core) standing() standing {
	return standing{c.epoch.ID, c.led.Active(), c.led.Concurs(0, c.self)}
}

// publish sends the next row: what must be durable is saved and the
// data plane is lowered before the row can leave (rule L4).
func (c *Core) publish(now int64, wallMillis uint64, changed bool) {
	c.led.SetDigest(c.digest())
	if c.led.Remember(now) {
		c.save()
	}
	row := c.led.Publish(now, wallMillis/uint64(c.cfg.Tick.Milliseconds()))
	c.published = now
	quiet := c.led.Quiet()
	if !quiet {
		c.stale.all = true // any budget may lend more by this row
	}
	c.installNews(now)
	if row == nil {
		return // superseded: nothing is said until the new life
	}
	before := c.trailOf(c.self).hash
	hash := c.rowHash(row)
	if hash != before {
		c.traffic.moved = now
	}
	c.trailOf(c.self).note(ledger.Heard{Inc: row.Inc, Seq: row.Seq}, hash)
	if c.led.StoredVersion() != c.saved && !c.save() {
		c.cfg.CountDrop("state-not-saved")
		return
	}
	c.emit(now, row, c.lineage.epoch(row.Epoch), changed, quiet)
}
