package schedule

import "math"

// A ghost is a process that hangs for good while its data plane goes on, and that
// somebody took for dead: another process of its name is started beside it. The
// design does not make that safe (assumption A4), because a ghost goes on using
// its own base. But rules L5 and L6 count loans by the borrower's life, so what a
// ghost has borrowed stays covered. Hence only a process without a base of its
// own becomes a ghost, and only where no lender restarts: the shortcut of the
// quarantine (L8) asks names, not lives.

// hang makes p a ghost, if it may be one.
func (w *world) hang(p *process) {
	if !w.mayHang(p) || !w.mayForget(p.name, false) {
		return
	}
	w.tell("n%d (%d) hangs", p.name, p.l.Incarnation())
	w.seen[sawHung]++
	w.procs[p.name] = nil
	w.ghosts = append(w.ghosts, p)
}

// mayHang reports that all p enforces is borrowed and that it lends nothing.
func (w *world) mayHang(p *process) bool {
	now := p.clock.At(w.t)
	borrows := false
	for u := range w.budgets {
		pl := &p.planes[u]
		if n := len(pl.steps); n > 0 && pl.steps[n-1].Rate > 0 {
			return false
		}
		borrows = borrows || pl.rate > 0
	}
	for b := range p.l.Budgets() {
		if _, until := p.l.Fallback(b); until > now || p.l.Claim(now, b) > 0 {
			return false
		}
	}
	return borrows
}

// fade lets the planes of the ghosts step down by their clocks. A ghost that has
// nothing left is gone.
func (w *world) fade() {
	kept := w.ghosts[:0]
	for _, g := range w.ghosts {
		w.advance(g)
		if g.next < math.MaxInt64 {
			kept = append(kept, g)
		} else {
			w.stop(g)
			w.spare = append(w.spare, g)
		}
	}
	w.ghosts = kept
}

// replaces lets somebody hang whom another process of its name replaces, and the
// news of that spread.
func (w *world) replaces() {
	for i := range w.nodes {
		p := w.procs[i]
		if p == nil || p.paused || !w.mayHang(p) {
			continue
		}
		w.do(Action{Kind: Hang, Node: uint8(i)})
		w.startAgain(uint8(i))
		w.rush()
		return
	}
}
