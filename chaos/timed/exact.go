package timed

import "subak/allocator"

// exact is law 1 of the allocation: targets add up to the ceilings that they
// share, to the last micro-unit. No cell of these worlds has a cap, so nothing is
// parked.
func (w *world) exact(h *host, i int) {
	b := h.budget(w.stocks[i].name)
	if b == nil {
		return
	}
	var ceilings, targets allocator.Rate
	for _, c := range b.View.Ceilings {
		ceilings += c
	}
	for _, t := range b.Total {
		targets += t
	}
	if targets != ceilings {
		w.object("exact", "%s has targets of %s that add up to %d, ceilings to %d", h.name, b.Name, targets, ceilings)
	}
}
