package node

import (
	"slices"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/enforce"
	"subak/gossip/wire"
)

// sample meters demand since the last call and says whether any class jumped,
// which is worth a publication at once.
func (c *core) sample(now int64) (jumped bool) {
	for _, b := range c.budgets {
		b.counts, b.before = b.before, b.counts
		b.limiter.Counts(b.counts)
		b.recent.note(now, b.counts)
		for k, m := range b.meters {
			rate, jump := m.Update(now, b.counts[k].Offered-b.before[k].Offered)
			if c.leaving {
				rate, jump = 0, false // what still drains is served, not asked for
			}
			b.demand[k] = rate
			jumped = jumped || jump
		}
		b.group.led.SetDemand(b.index, b.demand)
	}
	return jumped
}

// pass brings every decision up to date with the news: proof, quarantine,
// epochs, targets, settlement, publication, and the schedules of the data plane.
// A tick publishes in any case; otherwise a row leaves if it asks for a change
// over 1 % of base and the last one left at least gapMin ago. The returned
// instant is when pass wants to be called again at the latest.
func (c *core) pass(now int64, wallMillis uint64, tick bool) (wake int64) {
	wake = now + c.cfg.tick.Nanoseconds()
	for _, g := range c.groups {
		g.led.Control(now)
		c.settle(now, g)
		changed := g.urgent
		if tick || changed && now-g.published >= c.cfg.gapMin.Nanoseconds() {
			g.urgent = false
			c.publish(now, wallMillis, g, changed)
		} else {
			c.install(now, g)
			if changed {
				wake = min(wake, g.published+c.cfg.gapMin.Nanoseconds())
			}
		}
		wake = min(wake, g.led.NextEvent(now))
	}
	return max(wake, now+1)
}

// settle computes the targets of every budget of g from the present view and
// lets the ledger release, recall and lend towards them.
func (c *core) settle(now int64, g *group) {
	for _, b := range c.budgets {
		if b.group != g {
			continue
		}
		g.led.View(now, b.index, &b.view)
		err := b.alloc.SetCeilings(b.view.Ceilings)
		if err == nil {
			err = b.alloc.Allocate(b.target, b.view.Demand)
		}
		if err != nil {
			// Only an overflow of a sum gets here: the rows themselves are
			// validated. The last good targets stay in force.
			c.cfg.countDrop("demand-overflow")
			continue
		}
		n := len(b.total)
		for i := range b.total {
			b.total[i] = 0
			for k := range b.meters {
				b.total[i] += b.target[k*n+i]
			}
		}
		change, _ := g.led.Settle(now, b.index, b.total)
		if base := c.epoch.Budgets[g.first+b.index].Base[c.pos]; change > base/100 {
			g.urgent = true
		}
	}
}

// publish sends the group's next row: what must be durable is saved and the
// data plane is lowered before the row can leave (rule L4).
func (c *core) publish(now int64, wallMillis uint64, g *group, changed bool) {
	g.led.SetDigest(c.digest(g))
	row := g.led.Publish(now, wallMillis/uint64(c.cfg.tick.Milliseconds()))
	g.published = now
	c.install(now, g)
	if row == nil {
		return // superseded: nothing is said until the new life
	}
	g.trailOf(c.self).note(ledger.Heard{Inc: row.Inc, Seq: row.Seq}, c.rowHash(row))
	if g.led.StoredVersion() != g.saved && !c.save() {
		c.cfg.countDrop("state-not-saved")
		return
	}
	packet, extra, err := c.enc.Row(row, c.epochs[row.Epoch])
	if packet == nil {
		c.cfg.countDrop("row-" + wire.ReasonOf(err).String())
		return
	}
	for _, p := range extra {
		c.out.Spread(p)
	}
	key := packetKey{c.self, row.Group}
	c.packets[key] = append(c.packets[key][:0], packet...)
	c.out.Publish(packet, changed)
}

// save makes the memory of all groups durable. A row that was built without it
// must not leave; the ledger counts it as sent, which is safe.
func (c *core) save() bool {
	stored := make([]ledger.Stored, len(c.groups))
	for i, g := range c.groups {
		stored[i] = g.led.Stored()
	}
	if c.out.Save(stored) != nil {
		return false
	}
	for _, g := range c.groups {
		g.saved = g.led.StoredVersion()
	}
	return true
}

// install puts the shares in force, where they differ from what is in force.
func (c *core) install(now int64, g *group) {
	for _, b := range c.budgets {
		if b.group != g {
			continue
		}
		b.steps = g.led.Steps(now, b.index, b.steps[:0])
		b.plan = b.plan[:0]
		for _, s := range b.steps {
			b.plan = appendStep(b.plan, s, len(b.meters))
			classes := b.plan[len(b.plan)-1].Classes
			if b.doc.Revocable {
				b.alloc.SplitRevocable(classes, s.Rate, c.pos, b.target)
			} else {
				b.alloc.Split(classes, s.Rate, c.pos, b.target)
			}
		}
		ceiling, from := g.led.Fallback(b.index)
		b.alloc.Split(b.static, ceiling, c.pos, b.zero)
		b.plane.fallBack(ceiling, b.static, from)
		if !slices.EqualFunc(b.plan, b.applied, sameStep) || b.plane.overridden() {
			b.plane.set(now, b.plan)
			b.plan, b.applied = b.applied, b.plan
		}
	}
}

// appendStep grows plan by one step, reusing the class slice that lies behind
// its end, if there is one.
func appendStep(plan []enforce.Step, s ledger.Step, classes int) []enforce.Step {
	if len(plan) < cap(plan) {
		plan = plan[:len(plan)+1]
	} else {
		plan = append(plan, enforce.Step{})
	}
	last := &plan[len(plan)-1]
	last.Until, last.Total = s.Until, s.Rate
	if len(last.Classes) != classes {
		last.Classes = make([]allocator.Rate, classes)
	}
	return plan
}

func sameStep(a, b enforce.Step) bool {
	return a.Until == b.Until && a.Total == b.Total && slices.Equal(a.Classes, b.Classes)
}

// urge makes every group publish as soon as gapMin allows.
func (c *core) urge() {
	for _, g := range c.groups {
		g.urgent = true
	}
}
