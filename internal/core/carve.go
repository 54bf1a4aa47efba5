package core

import (
	"math"
	"slices"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/enforce"
)

// Part of a share may be carved out of a limiter: other data planes, such as the
// Envoys of a quota service, enforce it by themselves until an instant and cannot
// be told to stop sooner. To the ledger such a part is like a loan out: the node
// must not give away what is behind it.
//
//   - The settlement takes the own target for at least what is carved, so that
//     nothing behind it is released or lent (tradeKeeping).
//   - A row by which a lender takes back what is behind it is merged later, as if
//     the network had delayed it, and its loans run on by the row before it. They
//     end by their leases at the latest, within which everything was carved.
//   - An epoch that lowers the base is adopted at once and acknowledged when the
//     former assignments are over (E2); so is one that drops a budget.
//   - The kill switch gives loans back when nothing carved needs them any more.
//   - A new life of the node does not use its base before the assignments of the
//     former one are over.
//
// Meanwhile Step.Carvable tells the carver what it may go on with, so each of
// these waits ends within one time to live of an assignment. What none of this
// covers is capacity that is gone without a wait: an own name seen higher, or a
// lender whose clock is found to be wrong. Limiter.CarveShort counts those.

// carve is the state of that.
type carve struct {
	late    map[ledger.NodeID]lateRow
	freezes bool // the kill switch is on and loans are still to be given back
	begun   int64
}

// lateRow is a row that is kept back.
type lateRow struct {
	row    *ledger.Row
	packet []byte
}

// tradeKeeping settles with the own target so high that no more is released or
// lent than what is carved leaves at every instant to come. From here to the
// installation no carver grows.
func (c *Core) tradeKeeping(now int64, b *Budget) allocator.Rate {
	if b.Limiter.Pin(now) == 0 || c.pos < 0 {
		return c.trade(now, b)
	}
	b.steps = c.allowed(now, b, b.steps)
	own := b.steps[len(b.steps)-1].Rate
	ceiling, _ := c.led.Fallback(b.Index)
	target := b.Total[c.pos]
	keep := b.steps[0].Rate - own - spare(now, b.steps, b.Limiter.CarvedProfile(now))
	b.Total[c.pos] = max(target, ceiling+keep+ceiling>>16+1) // loans are rounded
	change := c.trade(now, b)
	b.Total[c.pos] = target
	return change
}

// spare is how much less than steps would do for what is carved.
func spare(now int64, steps []ledger.Step, profile []enforce.Hold) allocator.Rate {
	least, from := allocator.Rate(math.MaxInt64), now
	for _, s := range steps { // a step is tightest where it begins
		least = min(least, s.Rate-carvedAt(profile, from))
		from = s.Until
	}
	return max(0, least)
}

// entitle notes in b.plan what of each class may be carved.
func (c *Core) entitle(now int64, b *Budget) {
	if !b.Limiter.Carving() || c.pos < 0 {
		for i := range b.plan {
			b.plan[i].Carvable = nil
		}
		return
	}
	most := b.Total[c.pos]
	if c.frozen {
		most = b.plan[len(b.plan)-1].Total // outside the pool: what is its own
	}
	most = max(0, min(most, b.plan[0].Total-c.recalled(now, b)))
	for i := range b.plan {
		st := &b.plan[i]
		if len(st.Carvable) != len(b.meters) {
			st.Carvable = make([]allocator.Rate, len(b.meters))
		}
		b.alloc.Split(st.Carvable, min(most, st.Total), c.pos, b.Target)
	}
}

func carvedAt(profile []enforce.Hold, t int64) allocator.Rate {
	for _, h := range profile {
		if t < h.Until {
			return h.Rate
		}
	}
	return 0
}

// recalled is what rows that are kept back take away.
func (c *Core) recalled(now int64, b *Budget) (sum allocator.Rate) {
	for _, x := range c.carve.late {
		before, after := c.led.Foresee(b.Index, x.row)
		sum += lessAt(now, before, after)
	}
	return sum
}

// lessAt is how much less of a loan there is at t.
func lessAt(t int64, before, after ledger.Leased) allocator.Rate {
	at := func(x ledger.Leased) allocator.Rate {
		if t < x.End {
			return x.Amount
		}
		return 0
	}
	return max(0, at(before)-at(after))
}

// comesLate keeps a row back that takes away what is carved. A newer row of the
// same node takes its place.
func (c *Core) comesLate(now int64, row *ledger.Row, packet []byte) bool {
	before := c.led.PeerRow(row.Node)
	if before == nil || row.Inc < before.Inc || row.Inc == before.Inc && row.Seq <= before.Seq {
		return false // not to be applied in any case
	}
	if x, ok := c.carve.late[row.Node]; ok && (row.Inc < x.row.Inc || row.Inc == x.row.Inc && row.Seq <= x.row.Seq) {
		return true // older than the one that waits
	}
	delete(c.carve.late, row.Node)
	for i, b := range c.budgets {
		if c.takesCarved(now, b, row) {
			if c.carve.late == nil {
				c.carve.late = map[ledger.NodeID]lateRow{}
			}
			c.carve.late[row.Node] = lateRow{row, slices.Clone(packet)}
			c.stale.mark(i)
			return true
		}
	}
	return false
}

// takesCarved reports whether merging row would leave less than is carved.
func (c *Core) takesCarved(now int64, b *Budget, row *ledger.Row) bool {
	if !b.Limiter.Carving() {
		return false
	}
	before, after := c.led.Foresee(b.Index, row)
	if before.Amount == 0 || now >= before.End {
		return false
	}
	profile := b.Limiter.CarvedProfile(now)
	if len(profile) == 0 {
		return false
	}
	b.steps = c.allowed(now, b, b.steps)
	check := func(t int64) bool {
		for _, s := range b.steps {
			if t < s.Until {
				return s.Rate-lessAt(t, before, after) < carvedAt(profile, t)
			}
		}
		return false
	}
	// The shares fall at ends of leases only, what is carved at ends of holds.
	if check(now) || after.End > now && check(after.End) {
		return true
	}
	for _, s := range b.steps {
		if s.Until < profile[len(profile)-1].Until && check(s.Until) {
			return true
		}
	}
	return false
}

// bringLate merges what was kept back and takes away nothing carved any more, and
// turns the kill switch when nothing carved needs the loans.
func (c *Core) bringLate(now int64) {
	if len(c.carve.late) > 0 {
		for _, id := range c.lateNodes() {
			x := c.carve.late[id]
			c.merge(now, x.row, x.packet)
		}
	}
	if c.carve.freezes && c.looseFromLoans(now) {
		c.carve.freezes = false
		c.led.Freeze(true)
		c.stale.all, c.urgent = true, true
	}
}

func (c *Core) lateNodes() []ledger.NodeID {
	ids := make([]ledger.NodeID, 0, len(c.carve.late))
	for id := range c.carve.late {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// looseFromLoans reports whether the own parts hold all that is carved.
func (c *Core) looseFromLoans(now int64) bool {
	for _, b := range c.budgets {
		if !b.Limiter.Carving() || c.pos < 0 {
			continue
		}
		b.steps = c.allowed(now, b, b.steps)
		if b.Limiter.Pin(now) > b.steps[len(b.steps)-1].Rate {
			return false
		}
	}
	return true
}

// awaitCarved puts off acknowledging the epoch that is being taken up until what
// its shares do not hold is over.
func (c *Core) awaitCarved(now int64, former []*Budget) {
	wait := func(l *enforce.Limiter, share allocator.Rate) {
		profile := l.CarvedProfile(now)
		for i := len(profile) - 1; i >= 0; i-- {
			if profile[i].Rate > share {
				c.led.DeferAck(profile[i].Until)
				l.Cover(profile[i].Until)
				return
			}
		}
	}
	for _, old := range former {
		if c.budgetNamed(old.Name) == nil {
			wait(old.Limiter, 0)
		}
	}
	for _, b := range c.budgets {
		if b.Limiter == nil {
			continue // new
		}
		share := allocator.Rate(0)
		if c.pos >= 0 {
			b.steps = c.allowed(now, b, b.steps)
			share = b.steps[len(b.steps)-1].Rate
		}
		wait(b.Limiter, share)
	}
}

// reserveFormer keeps out of a new limiter what data planes may be spending since
// a former life: at most the base, and loans whose leases the lenders wait for.
func (c *Core) reserveFormer(now int64, b *Budget) {
	if c.carve.begun == 0 {
		c.carve.begun = now
	}
	until := c.carve.begun + c.cfg.CarvedBefore.Nanoseconds()
	if c.cfg.CarvedBefore <= 0 || now >= until || c.pos < 0 {
		return
	}
	b.Limiter.Reserve(now, c.epoch.Budgets[b.Index].Base[c.pos], until)
}
