package schedule

import "subak/allocator/ledger"

// startAgain starts a name with any config file that ever was.
func (w *world) startAgain(n uint8) {
	a := Action{Kind: Start, Node: n, Ref: w.list[w.rng.IntN(len(w.list))].id, Arg: int64(w.rng.Uint64() &^ 1)}
	if w.rng.Chance(w.habit.regress) {
		a.Arg |= 1
	}
	w.do(a)
}

// revive starts a name that does not run, if there is one.
func (w *world) revive() bool {
	at := w.rng.IntN(w.nodes)
	for range w.nodes {
		if w.procs[at] == nil {
			w.startAgain(uint8(at))
			return true
		}
		at = (at + 1) % w.nodes
	}
	return false
}

func (w *world) crashOrRevive(n uint8) {
	if w.rng.IntN(3) > 0 && w.revive() {
		w.rush()
		return
	}
	if w.spoils(n) {
		return
	}
	w.do(Action{Kind: Crash, Node: n})
	if w.rng.Chance(w.habit.back) {
		w.startAgain(n)
	}
	w.aftermath()
}

// spoils reports that a crash of n would probably leave a world in which little
// can happen any more: half of the members or more without memory. It is allowed
// at times.
func (w *world) spoils(n uint8) bool {
	if w.disks[n] != nil || w.rng.IntN(32) == 0 {
		return false
	}
	return w.forgets(n)
}

func (w *world) spoilsDisk(n uint8) bool { return w.rng.IntN(32) > 0 && w.forgets(n) }

// forgets reports that without the memory of n at most half of the members of the
// greatest epoch remember.
func (w *world) forgets(n uint8) bool {
	left := 0
	for _, m := range w.greatest.Roster {
		p := w.procs[m.ID]
		if m.ID != ledger.NodeID(n) && (w.disks[m.ID] != nil || p != nil && !p.l.Standing().Recovering) {
			left++
		}
	}
	return 2*left <= len(w.greatest.Roster)
}

// bounce is a restart that takes no time, twice at times.
func (w *world) bounce(n uint8) {
	if w.spoils(n) {
		return
	}
	for range 1 + w.rng.IntN(2) {
		w.do(Action{Kind: Crash, Node: n})
		w.startAgain(n)
	}
	if w.rng.IntN(2) == 0 {
		w.haunt(n)
	}
	w.aftermath()
}

// haunt lets rows that lend to a former life of n arrive after its new life has
// published some rows itself, numbered as the former life's were.
func (w *world) haunt(n uint8) {
	for range 1 + w.rng.IntN(6) {
		w.do(Action{Kind: Publish, Node: n})
	}
	found := 0
	for k := len(w.pool) - 1; k >= max(0, len(w.pool)-200) && found < 3; k-- {
		if lends(w.pool[k].row, ledger.NodeID(n)) && w.rng.IntN(3) == 0 {
			w.deliverTo(w.pool[k].id, w.body(), n)
			found++
		}
	}
}

func lends(r *ledger.Row, to ledger.NodeID) bool {
	for i := range r.Sections {
		for _, x := range r.Sections[i].Loans {
			if x.To == to {
				return true
			}
		}
	}
	return false
}

// aftermath is what follows a crash: an operator acts on it at times, and the
// news spreads while loans of before are still in use.
func (w *world) aftermath() {
	if w.rng.IntN(3) == 0 {
		if q := w.anyone(); q != nil {
			w.editBy(uint8(q.name))
		}
	}
	if w.rng.IntN(2) == 0 {
		w.rush()
	}
}

func (w *world) editBy(n uint8) { w.editWith(n, 0, 0) }

// editWith lets the operator edit at n, at least in the given ways; joiner-1
// joins, 0 is nobody in particular.
func (w *world) editWith(n uint8, flags int32, joiner uint8) {
	flag := func(percent int, f int32) {
		if w.rng.Chance(percent) {
			flags |= f
		}
	}
	flag(w.habit.force, ForceOut)
	flag(w.habit.roster, Roster)
	flag(w.habit.budget, Budgets)
	flag(50, DropForced)
	flag(30, OnTop)
	flag(w.habit.heavy, Heavy)
	w.do(Action{Kind: Edit, Node: n, Ref: flags, Arg: int64(w.rng.Uint64() >> 1), Then: joiner})
}

// operators edit at one node, or at two at once.
func (w *world) operators(n uint8) {
	w.editBy(n)
	if w.rng.Chance(w.habit.twin) {
		if q := w.anyone(); q != nil {
			before := len(w.list)
			w.editBy(uint8(q.name))
			if uint8(q.name) != n && len(w.list) > before {
				w.seen[sawTwinEdit]++
			}
		}
	}
	w.rush()
}

// rush lets news spread for some rounds, each of which is a step.
func (w *world) rush() {
	for range w.rng.IntN(w.habit.rush + 1) {
		if w.failed != nil {
			return
		}
		w.step++
		w.round(w.names())
	}
}

// echo lets a name hear a row of its own name.
func (w *world) echo(n uint8) {
	for range 8 {
		if len(w.pool) == 0 {
			return
		}
		if m := &w.pool[w.rng.IntN(len(w.pool))]; m.row.Node == ledger.NodeID(n) {
			w.deliverTo(m.id, NoBody, n)
			return
		}
	}
}

// replay lets a few old rows arrive at one process: if possible of lives that
// are over.
func (w *world) replay() {
	to := w.anyone()
	for range 4 {
		if len(w.pool) == 0 || to == nil {
			return
		}
		m := &w.pool[w.rng.IntN(len(w.pool))]
		if q := w.procs[m.row.Node]; q != nil && q.l.Incarnation() == m.row.Inc && w.rng.IntN(2) == 0 {
			continue
		}
		w.deliverTo(m.id, w.body(), uint8(to.name))
	}
}

// shuffle restarts everybody within a short time.
func (w *world) shuffle() {
	for i := range w.nodes {
		if w.procs[i] != nil {
			w.do(Action{Kind: Crash, Node: uint8(i)})
			w.startAgain(uint8(i))
		}
	}
	w.rush()
}
