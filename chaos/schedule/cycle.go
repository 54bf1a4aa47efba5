package schedule

import (
	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
)

// cycle is what a node's loop does before it publishes: control, then view,
// allocation and settlement of every budget.
func (w *world) cycle(p *process) {
	now := p.clock.At(w.t)
	w.control(p)
	e := p.l.Epoch()
	digest := uint32(0)
	for b := range p.l.Budgets() {
		u := budgetOf(e, b)
		parts := w.parts[:e.Budgets[b].Classes]
		left := p.demand[u]
		for k := range parts { // a third of what is left, the rest in the last class
			parts[k] = left / 3
			if k == len(parts)-1 {
				parts[k] = left
			}
			left -= parts[k]
		}
		p.l.SetDemand(b, parts)
		v := &w.view
		p.l.View(now, b, v)
		w.target(e, b, v)
		if w.calm {
			digest ^= allocator.Digest(w.targets, v.Demand)
		}
		if _, released := p.l.Settle(now, b, w.targets); released > 0 {
			w.seen[sawReleased]++
		}
	}
	p.digest = digest
	p.l.SetDigest(digest)
}

// target computes the targets of budget b, node totals, from a view.
func (w *world) target(e *ledger.Epoch, b int, v *ledger.View) {
	if w.exactly {
		w.allocate(e, b, v)
		return
	}
	w.targets = sized(w.targets, v.N)
	var total, ceilings allocator.Rate
	live := allocator.Rate(0)
	for i := range v.N {
		d := allocator.Rate(0)
		for k := range v.K {
			d += v.Demand[k*v.N+i]
		}
		w.targets[i] = d
		total += d
		ceilings += v.Ceilings[i]
		if v.Live[i] {
			live++
		}
	}
	if total <= ceilings { // all demand, and the rest in equal parts
		spare := (ceilings - total) / max(1, live)
		for i := range w.targets {
			if v.Live[i] {
				w.targets[i] += spare
			}
		}
		return
	}
	// Each its demand within its own base; the rest in roster order.
	left := ceilings
	for i := range w.targets {
		left -= min(w.targets[i], v.Ceilings[i])
	}
	for i, d := range w.targets {
		own := min(d, v.Ceilings[i])
		more := min(left, d-own)
		w.targets[i] = own + more
		left -= more
	}
}

type exactKey struct {
	epoch  *ledger.Epoch
	budget int
}

// allocate is target by the product's allocator.
func (w *world) allocate(e *ledger.Epoch, b int, v *ledger.View) {
	key := exactKey{e, b}
	a := w.exact[key]
	if a == nil {
		var err error
		if a, err = allocator.New(spec(e, b)); err != nil {
			w.fail("allocator", "epoch %v: %v", e.ID, err)
			return
		}
		w.exact[key] = a
	}
	w.targets, w.cells = sized(w.targets, v.N), sized(w.cells, v.N*v.K)
	if err := a.SetCeilings(v.Ceilings); err != nil {
		w.fail("allocator", "ceilings: %v", err)
		return
	}
	if err := a.Allocate(w.cells, v.Demand); err != nil {
		w.fail("allocator", "demand: %v", err)
		return
	}
	for k := range v.K {
		for i := range v.N {
			w.targets[i] += w.cells[k*v.N+i]
		}
	}
}

// spec describes budget b of e to the allocator; classes differ in their rules.
func spec(e *ledger.Epoch, b int) allocator.Spec {
	x := &e.Budgets[b]
	s := allocator.Spec{Weights: make([]int64, len(e.Roster)), Classes: make([]allocator.ClassSpec, x.Classes)}
	for i := range s.Weights {
		s.Weights[i] = 1
	}
	for _, r := range x.Base {
		s.Budget += r
	}
	left := s.Budget
	for k := range s.Classes {
		c := &s.Classes[k]
		*c = allocator.ClassSpec{Name: string(rune('a' + k)), Reservation: left / 2, Lend: allocator.Unlimited, Borrow: allocator.Unlimited, Protect: allocator.Whole, Rule: allocator.Rule(k % 2)}
		if k == x.Classes-1 {
			c.Reservation = left
		}
		left -= c.Reservation
	}
	return s
}

// sized returns s with length n and zero elements, reusing its memory.
func sized(s []allocator.Rate, n int) []allocator.Rate {
	if cap(s) < n {
		return make([]allocator.Rate, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// dropsReleases is the mode NoRelease, until healing ends all faults.
func (w *world) dropsReleases() bool { return w.mode == chaos.NoRelease }
