package schedule

import (
	"subak/allocator/ledger"
	"subak/chaos"
)

// Scenes are short plays of several steps. Odd interplay comes up in them by the
// dozen that single random steps bring about once in a million; who does what to
// whom, and what is left out, is still random.

// everybody is the set of all names.
func (w *world) everybody() uint64 { return 1<<w.nodes - 1 }

// some is a random set of names.
func (w *world) some() uint64 { return w.rng.Uint64() & w.everybody() }

// chat lets the names of who publish and those of hearers hear it; one row in
// ten is lost. It takes one step.
func (w *world) chat(who, hearers uint64) {
	if w.failed != nil {
		return
	}
	w.step++
	old := w.up
	for i := range w.nodes {
		w.up[i] = hearers
		if w.rng.IntN(10) == 0 {
			w.up[i] &^= 1 << w.rng.IntN(w.nodes)
		}
	}
	w.round(who)
	w.up = old
}

// hot lets one name want everything of every budget, and the others nothing.
func (w *world) hot(n uint8) {
	for u := range w.budgets {
		for i := range w.nodes {
			if w.procs[i] == nil {
				continue
			}
			d := int64(0)
			if i == int(n) {
				d = int64(w.limits[u])
			}
			w.do(Action{Kind: Demand, Node: uint8(i), Ref: int32(u), Arg: d})
		}
	}
}

// calmDown lets everybody know everything, and often somebody borrow.
func (w *world) calmDown() {
	all := w.everybody()
	for i := range w.nodes {
		if p := w.procs[i]; p != nil && p.paused {
			w.do(Action{Kind: Resume, Node: uint8(i)})
		}
	}
	if q := w.anyone(); q != nil && w.rng.IntN(2) == 0 {
		w.hot(uint8(q.name))
	}
	for range 1 + w.rng.IntN(3) {
		w.chat(all, all)
	}
}

// outlast lets a quarantine and every loan run out.
func (w *world) outlast() {
	w.do(Action{Kind: Pass, Arg: 2_000_000_000 + w.rng.Int64N(2_500_000_000)})
}

// scene: news has spread; then a cut, and within it restarts, edits and changed
// demand; then time, and in the end it heals. Most mutants about epochs and
// proof need several of these at once.
func (w *world) scene() {
	w.rewire(100)
	w.rush()
	side := w.cut()
	for range 1 + w.rng.IntN(5) {
		p := w.anyone()
		if p == nil || w.failed != nil {
			return
		}
		w.step++
		n := uint8(p.name)
		switch w.rng.IntN(8) {
		case 0, 1:
			if w.spoils(n) {
				continue
			}
			w.do(Action{Kind: Crash, Node: n})
			if w.rng.Chance(70) {
				w.startAgain(n)
			}
		case 2, 3:
			w.editBy(n)
		case 4:
			w.demand(n)
		case 5:
			w.revive()
		case 6:
			w.do(Action{Kind: Wake, Node: n, Arg: 4_000_000_000})
		case 7:
			w.do(Action{Kind: Pass, Arg: w.rng.Int64N(3_000_000_000)})
		}
		if w.rng.IntN(2) == 0 {
			w.step++
			w.round(chaos.Pick(&w.rng, side, ^side&(1<<w.nodes-1), 1<<w.nodes-1))
		}
	}
	if w.rng.IntN(3) > 0 {
		w.rewire(pick(&w.rng, w.habit.links))
		w.rush()
	}
}

// outsider returns a name that is not a member, plus one; 0 if there is none.
func (w *world) outsider(not uint8) uint8 {
	at := w.rng.IntN(w.nodes)
	for range w.nodes {
		if w.greatest.Position(ledger.NodeID(at)) < 0 && uint8(at+1) != not {
			return uint8(at + 1)
		}
		at = (at + 1) % w.nodes
	}
	return 0
}

// race: two edits one after the other, of which each is heard in full by few: a
// joiner, or whoever comes first, may activate the one while others go on to the
// other.
func (w *world) race() {
	all := w.everybody()
	w.calmDown()
	one := w.outsider(0)
	two := w.outsider(one)
	pickFirst := func(joiner uint8) uint64 {
		if joiner > 0 && w.rng.IntN(3) > 0 {
			return 1 << (joiner - 1)
		}
		return 1 << w.rng.IntN(w.nodes)
	}
	first, second := pickFirst(one), pickFirst(two)
	for turn := range 2 {
		p := w.anyone()
		if p == nil {
			return
		}
		joiner, deaf, only := one, second, first
		flags := int32(Heavy)
		if turn == 1 {
			joiner, deaf, only = two, chaos.Pick(&w.rng, first, first, w.some()), second
			flags |= chaos.Pick[int32](&w.rng, OnTop, 0)
		}
		if w.rng.IntN(3) == 0 {
			joiner, flags = 0, flags|Roster
		}
		w.editWith(uint8(p.name), flags, joiner)
		hearers := all &^ deaf
		w.chat(hearers, hearers)
		w.chat(hearers, only)
		if w.rng.IntN(2) == 0 {
			w.chat(hearers|only, hearers|only)
			w.chat(hearers|only, only)
		}
	}
	w.chat(all, all)
}

// comeback: a forced-out name is taken in again by those who know, and comes
// back with its memory, while the one who has its base has not heard of that.
func (w *world) comeback(n uint8) {
	all, self := w.everybody(), uint64(1)<<n
	if w.spoils(n) {
		return
	}
	w.calmDown()
	w.do(Action{Kind: Crash, Node: n})
	heir := w.anyone()
	if heir == nil {
		return
	}
	w.editWith(uint8(heir.name), ForceOut|chaos.Pick[int32](&w.rng, Heavy, 0), 0)
	w.chat(all, all)
	w.outlast()
	w.chat(all, all)
	w.chat(all, all)
	if w.rng.IntN(3) == 0 {
		w.startAgain(n)
	}
	deaf := uint64(1) << w.rng.IntN(w.nodes) &^ self
	if q := w.anyone(); q != nil {
		w.editWith(uint8(q.name), chaos.Pick[int32](&w.rng, Heavy, 0), n+1)
	}
	w.chat(all&^deaf, all&^deaf)
	if w.procs[n] == nil {
		w.startAgain(n)
	}
	for range 3 {
		w.chat(all&^deaf, all&^deaf)
	}
	w.outlast()
	w.chat(all&^deaf, all&^deaf)
	w.chat(all&^deaf, all&^deaf)
	w.chat(all, all)
}

// widow: a lender dies while its loans are in use; it comes back or not; an
// operator who knows of the death, and not of the return, forces it out or edits
// otherwise.
func (w *world) widow(n uint8) {
	all, dead := w.everybody(), uint64(1)<<n
	q := w.anyone()
	if q == nil || w.spoils(n) {
		return
	}
	borrower := uint8(q.name)
	w.calmDown()
	w.hot(borrower)
	w.chat(all, all)
	w.chat(all, all)
	w.do(Action{Kind: Crash, Node: n})
	editor := w.anyone()
	if editor == nil {
		return
	}
	unaware := uint64(1) << editor.name
	hidden := chaos.Pick(&w.rng, 0, uint64(1)<<borrower, unaware) // does not hear the new life
	if w.rng.IntN(3) > 0 {
		w.startAgain(n)
		for range w.rng.IntN(4) {
			w.chat(all, all&^hidden)
			w.chat(all&^dead, unaware)
		}
		if w.rng.IntN(3) == 0 {
			w.outlast()
			w.chat(all, all&^hidden)
		}
	}
	w.editWith(uint8(editor.name), Heavy|chaos.Pick[int32](&w.rng, ForceOut, ForceOut, 0), 0)
	deaf := chaos.Pick(&w.rng, dead, 0) // does not hear of the edit
	apart := hidden != 0 && w.rng.IntN(2) == 0
	for range 2 + w.rng.IntN(2) {
		if apart { // the new life hears all, and the hidden one hears all but it
			w.chat(all&^dead, all)
			w.chat(dead, all&^hidden)
		} else {
			w.chat(all&^deaf, all&^deaf)
		}
	}
	if w.rng.IntN(3) == 0 {
		w.outlast()
		w.chat(all&^deaf, all&^deaf)
	}
	w.chat(all, all)
}

// haste: a lender restarts at once, and before its former life's loans have run
// out, and without a borrower's having heard of the restart, the config changes.
func (w *world) haste(n uint8) {
	all, self := w.everybody(), uint64(1)<<n
	q := w.anyone()
	if q == nil || uint8(q.name) == n || w.spoils(n) {
		return
	}
	borrower := uint64(1) << q.name
	w.calmDown()
	w.hot(uint8(q.name))
	w.chat(all, all)
	w.chat(all, all)
	w.chat(all, all)
	w.do(Action{Kind: Crash, Node: n})
	w.startAgain(n)
	if p := w.anyone(); p != nil {
		w.editWith(uint8(p.name), chaos.Pick[int32](&w.rng, Heavy, Heavy|Roster, 0), 0)
	}
	for range 3 + w.rng.IntN(4) {
		w.chat(all&^self, all)
		w.chat(self, all&^borrower)
	}
	w.chat(all, all)
}

// namesake: a name dies and comes back with its memory; an operator who hears of
// the return from nobody but others forces the dead life out.
func (w *world) namesake(n uint8) {
	all, self := w.everybody(), uint64(1)<<n
	p := w.anyone()
	if p == nil || uint8(p.name) == n || w.spoils(n) {
		return
	}
	editor := uint64(1) << p.name
	w.calmDown()
	w.do(Action{Kind: Crash, Node: n})
	w.startAgain(n)
	rest := all &^ editor
	w.chat(rest, rest)
	w.outlast()
	w.chat(rest, rest)
	w.chat(rest, rest)
	w.editWith(uint8(p.name), ForceOut|Heavy, 0)
	others := all &^ self
	w.chat(others, others)
	w.chat(others, others)
	w.outlast()
	w.chat(others, others)
	w.chat(others, others)
	w.chat(all, all)
}

// leaver: a borrower leaves the roster, and its lender restarts before the loan
// has run out and without the borrower's having heard of that.
func (w *world) leaver(n uint8) {
	all, self := w.everybody(), uint64(1)<<n
	q := w.anyone()
	if q == nil || uint8(q.name) == n || w.spoils(n) {
		return
	}
	borrower := uint64(1) << q.name
	w.calmDown()
	w.hot(uint8(q.name))
	w.chat(all, all)
	w.chat(all, all)
	w.editWith(n, 0, leaves+uint8(q.name))
	for range w.rng.IntN(3) {
		w.chat(all, all)
	}
	w.do(Action{Kind: Publish, Node: n})
	w.do(Action{Kind: Crash, Node: n})
	w.startAgain(n)
	for range 3 {
		w.chat(self, all&^borrower)
		w.chat(all, all&^borrower)
	}
	w.chat(all, all)
}

// lapse: a name hears of an edit, says so to the editor alone, forgets it all,
// and comes back among others that never heard of it.
func (w *world) lapse(n uint8) {
	all, self := w.everybody(), uint64(1)<<n
	p := w.anyone()
	if p == nil || uint8(p.name) == n || w.spoils(n) {
		return
	}
	w.calmDown()
	editor := uint64(1) << p.name
	old, before := w.lastOf(uint8(p.name)), w.greatest
	w.editWith(uint8(p.name), Heavy, 0)
	w.chat(editor, self)
	w.chat(self, editor)
	w.do(Action{Kind: Crash, Node: n})
	if w.rng.IntN(2) == 0 && !w.spoilsDisk(n) {
		w.do(Action{Kind: Lose, Node: n})
	}
	if w.rng.IntN(4) > 0 {
		w.do(Action{Kind: Start, Node: n, Ref: w.idOf(before), Arg: int64(w.rng.Uint64() &^ 1)})
	}
	w.startAgain(n) // if it does not run yet
	rest := all &^ editor
	w.outlast()
	for range 3 {
		w.chat(rest, rest)
		w.deliverTo(old, OwnBody, n)
	}
	w.chat(rest, self)
	others := chaos.Pick(&w.rng, all&^self, all&^self, all)
	for range 2 {
		w.chat(editor, all&^self)
		w.chat(others, editor)
	}
	w.chat(all, all)
}

// lastOf returns the newest row of a name, 0 if none is left.
func (w *world) lastOf(n uint8) int32 {
	for k := len(w.pool) - 1; k >= 0 && k > len(w.pool)-100; k-- {
		if uint8(w.pool[k].row.Node) == n {
			return w.pool[k].id
		}
	}
	return 0
}

// oblivion: an epoch is in force everywhere; then nearly all forget it at once
// and come back among themselves with an older file, and hear old rows of the
// one who remembers.
func (w *world) oblivion(n uint8) {
	all, keeper := w.everybody(), uint64(1)<<n
	before := w.greatest
	w.calmDown()
	old := w.lastOf(n)
	w.editWith(n, Heavy, 0)
	w.chat(all, all)
	w.chat(all, all)
	w.chat(all, all)
	for i := range w.nodes {
		if i == int(n) || w.rng.IntN(12) == 0 {
			continue
		}
		w.do(Action{Kind: Crash, Node: uint8(i)})
		w.do(Action{Kind: Lose, Node: uint8(i)})
		w.do(Action{Kind: Start, Node: uint8(i), Ref: w.idOf(before), Arg: int64(w.rng.Uint64() &^ 1)})
	}
	rest := all &^ keeper
	w.outlast()
	for range 3 {
		w.chat(rest, rest)
		for i := range w.nodes {
			if i != int(n) {
				w.deliverTo(old, OwnBody, uint8(i))
			}
		}
	}
	w.outlast()
	w.chat(rest, rest)
	w.chat(rest, rest)
	w.chat(all, all)
}
