package schedule

import (
	"math/bits"

	"subak/chaos"
)

// Openings are scripted first scenes. Some counterexamples need six things to
// happen in one order and to the right nodes; random search would not meet them
// in a lifetime. An opening plays such a story, with who is who, the config and
// the time between chosen at random, and then the profile's habits go on from
// there. It works on the product as on a mutant: it asks for nothing that the
// adversary could not do by chance.

// openings are the profiles that begin with one.
func openings(b Profile) []Profile {
	return []Profile{
		// A borrower hangs and is replaced by another process of its name.
		b.with("ghosts", 6, func(p *Profile) {
			p.Weights[replaces], p.Weights[demands] = 20, 60
			p.Nodes, p.Members, p.Unsent, p.Force = []int{3, 3, 4, 4, 5}, []int{100}, []int{0}, []int{0}
			p.Budget, p.Heal = []int{0}, []int{0}
		}),
		// The acknowledgement of a life that is over (trap 20).
		b.with("stale-ack", 2, func(p *Profile) {
			p.Opening = (*world).staleAck
			p.Nodes, p.Members, p.Disks = []int{5, 5, 6, 7}, []int{100}, []int{0}
			p.Weights[waitsLong] = 0
		}),
		// Rows under an epoch that is only known of (trap 24).
		b.with("trial", 2, func(p *Profile) {
			p.Opening = (*world).trial
			p.Nodes, p.Members = []int{3, 4, 5}, []int{100}
			p.Weights[edits] = 10
		}),
		// A joiner vouches that none of those had to ask who replaced its epoch
		// (trap 22).
		b.with("outside-word", 2, func(p *Profile) {
			p.Opening = (*world).outsideWord
			p.Nodes, p.Members, p.Disks = []int{4, 5, 5, 6}, []int{66}, []int{100}
		}),
		// The only one who knows of a new life dies (E6).
		b.with("lone-witness", 2, func(p *Profile) {
			p.Opening = (*world).loneWitness
			p.Nodes, p.Members, p.Disks = []int{5, 5, 6}, []int{100}, []int{100}
		}),
		// The only one who knows of an epoch in force dies (E6).
		b.with("sole-heir", 2, func(p *Profile) {
			p.Opening = (*world).soleHeir
			p.Nodes, p.Members, p.Disks = []int{3}, []int{100}, []int{100}
		}),
		// A borrower leaves the roster with its loan (trap 27).
		b.with("moved-out", 2, func(p *Profile) {
			p.Opening = (*world).movedOut
			p.Nodes, p.Members, p.Disks, p.PassMax = []int{3, 4, 5}, []int{100}, []int{100}, []int{30, 100}
		}),
		// One edit carries on from another that is not in force (E4, trap 23).
		b.with("chained-edits", 2, func(p *Profile) {
			p.Opening = (*world).chainedEdits
			p.Nodes, p.Members, p.Disks = []int{4, 4, 5}, []int{100}, []int{100}
		}),
	}
}

// trial: two operators edit at once, and m hears of the other edit as one that
// is on trial: it reads rows under it and does not adopt it.
func (w *world) trial() {
	s := w.cast()
	m, k := s.names[0], s.names[1]
	rest := uint64(0)
	for i := 2; i < w.nodes; i++ {
		rest |= s.set(i)
	}
	w.meet(uint64(1)<<w.nodes-1, 2)
	w.do(Action{Kind: Edit, Node: m, Arg: int64(w.rng.Uint64() >> 1)})
	w.do(Action{Kind: Edit, Node: k, Arg: int64(w.rng.Uint64() >> 1)})
	for range 2 {
		w.meet(rest|1<<m, 2)
		w.do(Action{Kind: Publish, Node: k})
		w.do(Action{Kind: Deliver, Node: m, Ref: w.nextID, Arg: OwnBody, Then: learnOnly | thenControl | thenInstall})
		w.do(Action{Kind: Pass, Arg: w.rng.Int64N(3_000_000_000)})
	}
}

// outsideWord: a takes y in, tells x and y, and forgets it; x dies. The others,
// who never heard of that edit, force x out by another and share its base. Then x
// comes back with its memory, and y alone is at x's epoch.
func (w *world) outsideWord() {
	s := w.cast()
	joiner := w.outsider(0)
	if joiner == 0 {
		return
	}
	y := joiner - 1
	var m []uint8
	for _, n := range s.names {
		if w.members>>n&1 == 1 {
			m = append(m, n)
		}
	}
	if len(m) < 3 {
		return
	}
	a, b, x := m[0], m[1], m[2]
	staying := w.members &^ (1 << x)
	w.meet(w.everybody(), 3)
	w.do(Action{Kind: Edit, Node: a, Arg: int64(w.rng.Uint64() >> 1), Then: joiner})
	w.tellOf(a, y)
	w.tellOf(a, x)
	w.do(Action{Kind: Publish, Node: x})
	w.do(Action{Kind: Crash, Node: x})
	w.do(Action{Kind: Crash, Node: a})
	w.do(Action{Kind: Lose, Node: a})
	w.do(Action{Kind: Start, Node: a, Arg: int64(w.rng.Uint64() &^ 1)})
	w.sitOut(staying)
	w.do(Action{Kind: Edit, Node: b, Ref: ForceOut | DropForced, Arg: int64(w.rng.Uint64() >> 1)})
	w.meet(staying, 2)
	w.sitOut(staying)
	w.do(Action{Kind: Start, Node: x, Arg: int64(w.rng.Uint64() &^ 1)})
	w.sitOut(1<<x | 1<<y)
}

// movedOut: j borrows all it can, and an edit that it does not hear of removes it
// from the roster. Then a lender restarts, and everybody else has heard of that.
func (w *world) movedOut() {
	s := w.cast()
	lender, j := s.names[0], s.names[1]
	others := w.everybody() &^ (1 << j)
	w.meet(w.everybody(), 2)
	w.hot(j)
	w.meet(w.everybody(), 3)
	w.do(Action{Kind: Edit, Node: lender, Arg: int64(w.rng.Uint64() >> 1), Then: leaves + j})
	w.meet(others, 2)
	w.do(Action{Kind: Crash, Node: lender})
	w.do(Action{Kind: Start, Node: lender, Arg: int64(w.rng.Uint64() &^ 1)})
	w.meet(others, 4)
}

// story is who is who.
type story struct{ names []uint8 }

// cast gives everybody a part.
func (w *world) cast() story {
	s := story{names: make([]uint8, w.nodes)}
	for i := range s.names {
		s.names[i] = uint8(i)
	}
	for i := len(s.names) - 1; i > 0; i-- {
		j := w.rng.IntN(i + 1)
		s.names[i], s.names[j] = s.names[j], s.names[i]
	}
	return s
}

// set of the names at the given places.
func (s story) set(places ...int) (m uint64) {
	for _, i := range places {
		m |= 1 << s.names[i]
	}
	return m
}

// meet lets the given names, and nobody else, publish and hear one another.
func (w *world) meet(who uint64, times int) {
	links := w.up
	for i := range w.nodes {
		w.up[i] = 0
		if who>>i&1 == 1 {
			w.up[i] = who
		}
	}
	for range times {
		w.step++
		w.round(who)
		for m := who; m != 0; m &= m - 1 {
			w.do(Action{Kind: Control, Node: uint8(bits.TrailingZeros64(m))})
		}
	}
	w.up = links
}

// tellOf lets to hear the newest row that from publishes now, with the body of
// its epoch, and act on it.
func (w *world) tellOf(from, to uint8) int32 {
	w.do(Action{Kind: Publish, Node: from})
	row := w.nextID
	w.do(Action{Kind: Deliver, Node: to, Ref: row, Arg: OwnBody, Then: thenControl | thenInstall})
	return row
}

// sitOut lets a term pass while the given names hear one another.
func (w *world) sitOut(who uint64) {
	for range 12 {
		w.do(Action{Kind: Pass, Arg: 300_000_000 + w.rng.Int64N(200_000_000)})
		w.meet(who, 1)
	}
}

// staleAck: x acknowledges m's edit, dies without memory and comes back under the
// epoch before. A majority that has not heard of the edit proves it, and old rows
// activate the old epoch for it. Then the news of the edit spreads, and m holds
// x's acknowledgement in hand.
func (w *world) staleAck() {
	s := w.cast()
	m, x, rest := s.names[0], s.names[1], s.set()
	for i := 2; i < w.nodes; i++ {
		rest |= s.set(i)
	}
	everybody := uint64(1)<<w.nodes - 1
	w.meet(everybody, 3)
	old := w.tellOf(m, x) // m's last row under the first epoch
	w.do(Action{Kind: Edit, Node: m, Arg: int64(w.rng.Uint64() >> 1)})
	for range 2 {
		w.tellOf(m, x)
		w.tellOf(x, m)
	}
	w.do(Action{Kind: Crash, Node: x})
	w.do(Action{Kind: Lose, Node: x})
	w.do(Action{Kind: Start, Node: x, Arg: int64(w.rng.Uint64() &^ 1)})
	w.sitOut(rest | 1<<x)
	w.do(Action{Kind: Deliver, Node: x, Ref: old, Arg: NoBody, Then: thenControl | thenInstall})
	w.meet(rest|1<<x, 2)
	for range 3 {
		for k := rest; k != 0; k &= k - 1 {
			n := uint8(bits.TrailingZeros64(k))
			w.tellOf(m, n)
			w.tellOf(n, m)
		}
	}
}

// forgotten lets a restart, b alone hear of its new life and prove it, and b die.
// It returns who is left to act: nobody of them has heard of the new life.
func (w *world) forgotten() (c uint8, rest uint64) {
	s := w.cast()
	a, b := s.names[0], s.names[1]
	for i := 2; i < w.nodes; i++ {
		rest |= s.set(i)
	}
	w.meet(w.everybody(), 3)
	w.do(Action{Kind: Crash, Node: a})
	w.do(Action{Kind: Start, Node: a, Arg: int64(w.rng.Uint64() &^ 1)})
	w.sitOut(1<<a | 1<<b)
	w.do(Action{Kind: Crash, Node: b})
	return s.names[2], rest
}

// chainedEdits: the operator has a forgotten node's former life and its witness
// removed, one after the other, though fewer than half may be forced out at once.
func (w *world) chainedEdits() {
	c, rest := w.forgotten()
	for range 2 {
		w.do(Action{Kind: Edit, Node: c, Ref: ForceOut | DropForced | OnTop, Arg: int64(w.rng.Uint64() >> 1)})
		w.meet(rest, 1)
	}
	w.sitOut(rest)
}

// loneWitness: likewise, both at once.
func (w *world) loneWitness() {
	c, rest := w.forgotten()
	w.do(Action{Kind: Edit, Node: c, Ref: ForceOut | DropForced, Arg: int64(w.rng.Uint64() >> 1)})
	w.meet(rest, 1)
	w.sitOut(rest)
}

// soleHeir: an edit leaves everything to a, which puts it in force and dies before
// anybody has word of that. Another edit in its place has a removed. Then a comes
// back, and there is nobody whom its epoch tells it to ask.
func (w *world) soleHeir() {
	s := w.cast()
	a, b, c := s.names[0], s.names[1], s.names[2]
	w.meet(w.everybody(), 2)
	w.do(Action{Kind: Edit, Node: b, Ref: Roster, Arg: w.removal(s.set(1, 2))})
	w.tellOf(b, c)
	w.tellOf(c, a)
	w.tellOf(b, a)
	w.do(Action{Kind: Crash, Node: a})
	w.do(Action{Kind: Edit, Node: c, Ref: ForceOut | DropForced | OnTop, Arg: int64(w.rng.Uint64() >> 1)})
	w.sitOut(s.set(1, 2))
	w.do(Action{Kind: Start, Node: a, Arg: int64(w.rng.Uint64() &^ 1)})
	w.sitOut(s.set(0))
}

// removal is the detail of an edit of the roster that removes just these names;
// of some other edit, if none is found soon.
func (w *world) removal(who uint64) (detail int64) {
	for range 256 {
		detail = int64(w.rng.Uint64() >> 1)
		rng := chaos.NewRand(uint64(detail))
		toggled := uint64(0)
		for range 1 + rng.IntN(2)*rng.IntN(2) {
			toggled ^= 1 << rng.IntN(w.nodes)
		}
		if toggled == who {
			break
		}
	}
	return detail
}
