package schedule

import (
	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
)

// recipe is what an epoch is to contain.
type recipe struct {
	members uint64
	limits  [maxBudgets]allocator.Rate // 0: the epoch lacks the budget
	classes [maxBudgets]int
	forced  map[ledger.NodeID]uint64
	version uint64
	heavy   bool // one member gets nearly everything, a joiner if there is one
}

func someRate(rng *chaos.Rand) allocator.Rate { return allocator.Rate(12+rng.IntN(50)) * 1000 }

func budgetName(u int) string { return "b0b1b2b3b4"[2*u : 2*u+2] }

// makeEpoch makes a child of parent, or the first epoch, by action id.
func (w *world) makeEpoch(rng *chaos.Rand, id int32, parent *ledger.Epoch, r recipe) *ledger.Epoch {
	e := &ledger.Epoch{Root: 1, ID: ledger.EpochID{Version: 1, Hash: 1}, Forced: r.forced}
	if parent != nil {
		e.ID = ledger.EpochID{Version: r.version, Hash: rng.Uint64()}
		e.Parent = parent.ID
		e.ParentRoster = make([]ledger.NodeID, len(parent.Roster))
		for i, m := range parent.Roster {
			e.ParentRoster[i] = m.ID
		}
	}
	e.Roster = make([]ledger.Member, 0, w.nodes)
	for i := range w.nodes {
		if r.members>>i&1 == 1 {
			e.Roster = append(e.Roster, ledger.Member{ID: ledger.NodeID(i), Weight: 1})
		}
	}
	heir := -1
	if r.heavy {
		heir = rng.IntN(len(e.Roster))
		for i, m := range e.Roster {
			if !isParent(e, m.ID) {
				heir = i
			}
		}
	}
	for u := range w.budgets {
		if r.limits[u] > 0 {
			e.Budgets = append(e.Budgets, ledger.BudgetBase{Name: budgetName(u), Classes: r.classes[u], Base: bases(rng, r.limits[u], len(e.Roster), heir)})
		}
	}
	w.list = append(w.list, edition{id, e})
	return e
}

// bases splits limit over n members, unevenly; an heir (-1 for none) gets
// nearly everything.
func bases(rng *chaos.Rand, limit allocator.Rate, n, heir int) []allocator.Rate {
	const parts = 12
	base := make([]allocator.Rate, n)
	if heir >= 0 {
		base[heir] = limit / parts * (parts - 1)
		base[rng.IntN(n)] += limit / parts
		return base
	}
	bits := rng.Uint64()
	for range parts {
		base[(bits&63)%uint64(n)] += limit / parts
		bits >>= 5
	}
	if rng.IntN(2) == 0 { // somebody gives all away
		x, y := rng.IntN(n), rng.IntN(n)
		if x != y {
			base[y] += base[x]
			base[x] = 0
		}
	}
	return base
}

// epochBy returns the epoch made by action id, the first one if there is none.
func (w *world) epochBy(id int32) *ledger.Epoch {
	for i := len(w.list) - 1; i > 0; i-- {
		if w.list[i].id == id {
			return w.list[i].epoch
		}
	}
	return w.list[0].epoch
}

// epochOf returns the epoch of an ID, nil if nobody made it.
func (w *world) epochOf(id ledger.EpochID) *ledger.Epoch {
	for i := len(w.list) - 1; i >= 0; i-- {
		if w.list[i].epoch.ID == id {
			return w.list[i].epoch
		}
	}
	return nil
}

// idOf returns the action that made e.
func (w *world) idOf(e *ledger.Epoch) int32 {
	for i := len(w.list) - 1; i >= 0; i-- {
		if w.list[i].epoch == e {
			return w.list[i].id
		}
	}
	return 0
}

// edit is an operator's change at p. A child is made only of an epoch that its
// editor has activated (E4); that there is a newer one under way does not stop
// the operator.
func (w *world) edit(a Action, p *process) {
	parent := w.epochOf(p.l.Active())
	if p.l.MayEdit() {
		parent = p.l.Epoch()
	}
	if !p.l.MayForce() {
		a.Ref &^= ForceOut
	}
	s := p.l.Standing()
	if p.paused || !s.Proved || s.Superseded || parent == nil {
		return
	}
	if w.hasDisk[p.name] && !w.save(p) {
		return // the operator is told that it cannot be remembered
	}
	rng := chaos.NewRand(uint64(a.Arg))
	r := w.change(&rng, a.Ref, p, parent)
	if a.Then > 0 && int(a.Then) <= w.nodes {
		r.members |= 1 << (a.Then - 1)
	} else if a.Then >= leaves {
		r.members &^= 1 << (a.Then - leaves)
	}
	if r.members == 0 {
		return
	}
	e := w.makeEpoch(&rng, a.ID, parent, r)
	for k, inc := range r.forced {
		w.gone[k] = max(w.gone[k], inc)
	}
	if w.telling {
		w.tell("n%d edits %v from %v: roster %v, forced %v, budgets %v", p.name, e.ID, parent.ID, e.Roster, e.Forced, e.Budgets)
	}
	w.adopt(p, e)
	w.control(p)
	w.install(p)
}

// change chooses what an edit changes.
func (w *world) change(rng *chaos.Rand, flags int32, p *process, parent *ledger.Epoch) recipe {
	r := recipe{version: parent.ID.Version + 1, heavy: flags&Heavy != 0}
	if flags&OnTop != 0 {
		r.version = max(r.version, p.l.Epoch().ID.Version+1)
	}
	for _, m := range parent.Roster {
		r.members |= 1 << m.ID
	}
	if flags&Roster != 0 {
		for range 1 + rng.IntN(2)*rng.IntN(2) {
			r.members ^= 1 << rng.IntN(w.nodes)
		}
	}
	if flags&ForceOut != 0 {
		r.forced = w.force(p, parent)
		for k := range r.forced {
			if flags&DropForced != 0 {
				r.members &^= 1 << k
			}
		}
	}
	for b := range parent.Budgets {
		u := budgetOf(parent, b)
		var sum allocator.Rate
		for _, x := range parent.Budgets[b].Base {
			sum += x
		}
		r.limits[u] = chaos.Pick(rng, sum, max(1200, sum/2), someRate(rng))
		r.classes[u] = parent.Budgets[b].Classes
	}
	if flags&Budgets != 0 {
		if u := rng.IntN(w.budgets); r.limits[u] == 0 {
			r.limits[u], r.classes[u] = someRate(rng), w.classes[u]
			w.seen[sawBudgetAdded]++
		} else if r.limits != onlyBudget(r.limits, u) {
			r.limits[u] = 0
		}
	}
	return r
}

func onlyBudget(limits [maxBudgets]allocator.Rate, u int) (only [maxBudgets]allocator.Rate) {
	only[u] = limits[u]
	return only
}

// force is the operator's true statement about who is gone (A7): the newest
// life that p knows of does not run, nor any before it. Fewer than half of the
// roster may be forced (E6).
func (w *world) force(p *process, parent *ledger.Epoch) map[ledger.NodeID]uint64 {
	var forced map[ledger.NodeID]uint64
	for _, m := range parent.Roster {
		known := p.l.PeerRow(m.ID)
		if m.ID == p.name || known == nil || 2*(len(forced)+1) >= len(parent.Roster) {
			continue
		}
		if q := w.procs[m.ID]; q != nil && q.l.Incarnation() <= known.Inc {
			continue
		}
		if forced == nil {
			forced = map[ledger.NodeID]uint64{}
		}
		forced[m.ID] = known.Inc
	}
	return forced
}
