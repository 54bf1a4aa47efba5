package allocator

// The class level: from each class's sums to its quota Q. In all modes the
// quotas add up to the sum of reservations. Source: allocation.md "One cycle".

// moves records who gave what to whom, by index into classes: [from*len+to].
type moves struct {
	lent, seized []Rate
	own          []Rate // by class: own spare used for own deficits
}

func newMoves(classes int) *moves {
	return &moves{
		lent: make([]Rate, classes*classes), seized: make([]Rate, classes*classes), own: make([]Rate, classes),
	}
}

// entitle sets the quota of every class.
func (a *Allocator) entitle() {
	for k := range a.classes {
		c := &a.classes[k]
		c.lent, c.borrowed, c.quota = 0, 0, c.reserve
	}
	if a.spec.Mode == Paper {
		a.lendInProportion()
	} else {
		a.lendByPriority()
	}
	a.preempt()
}

// useOwn lets class k meet its deficits from its own spare and sets want, the
// deficit that is left, within its borrowing limit. The insurance has no spare
// of its own: it uses that of class 0, whose headroom it is, and borrows within
// what class 0 leaves of its limit.
func (a *Allocator) useOwn(k int) {
	c := &a.classes[k]
	own, limit := c, c.borrowMax
	if a.insured && k == 1 {
		own = &a.classes[0]
		limit = own.borrowMax - own.want
	}
	x := min(c.unmet, own.spare)
	own.spare -= x
	if own != c {
		own.quota -= x
		c.quota += x
	}
	if a.moves != nil {
		a.moves.own[k] = x
	}
	c.want = min(c.unmet-x, limit)
}

// lend moves x of class v's spare to class k.
func (a *Allocator) lend(v, k int, x Rate) {
	from, to := &a.classes[v], &a.classes[k]
	from.spare -= x
	from.lent += x
	from.quota -= x
	to.borrowed += x
	to.quota += x
	if a.moves != nil {
		a.moves.lent[v*len(a.classes)+k] += x
	}
}

// lendByPriority is mode PoolFirst: classes draw on the pool of unused base in
// priority order, each on its own part first, then from the lowest class up.
func (a *Allocator) lendByPriority() {
	for k := range a.classes {
		a.useOwn(k)
		want := a.classes[k].want
		for v := len(a.classes) - 1; v >= 0 && want > 0; v-- {
			if v == k {
				continue
			}
			from := &a.classes[v]
			if x := min(want, from.spare, from.lendMax-from.lent); x > 0 {
				a.lend(v, k, x)
				want -= x
			}
		}
	}
}

// lendInProportion is mode Paper: what is spare after every class served its
// own deficits is lent in proportion to what each class may lend, to the
// classes in proportion to what each may borrow. Spare that no cell of the
// lender could hold goes first, or the allocation would not be a fixed point
// (law 5).
func (a *Allocator) lendInProportion() {
	can, stuck, want, out, in := a.ask[0], a.ask[1], a.ask[2], a.ask[3], a.ask[4]
	var cans, stucks, wants Rate
	for k := range a.classes {
		a.useOwn(k)
		want[k] = a.classes[k].want
		wants += want[k]
	}
	for k := range a.classes {
		c := &a.classes[k]
		can[k] = min(c.spare, c.lendMax)
		cans += can[k]
		stuck[k] = 0
		if a.limits != nil {
			stuck[k] = min(can[k], max(0, c.spare-c.room))
			stucks += stuck[k]
		}
	}
	total := min(cans, wants)
	if total == 0 {
		return
	}
	clear(out)
	clear(in)
	first := min(total, stucks)
	a.s.addShare(out, stuck, first, stucks)
	for k := range can {
		can[k] -= out[k]
	}
	a.s.addShare(out, can, total-first, cans-first)
	a.s.addShare(in, want, total, wants)
	a.pair(out, in)
}

// pair matches what classes lend with what they borrow, both in class order.
// Only the totals matter to the allocation.
func (a *Allocator) pair(out, in []Rate) {
	v := 0
	for k := range in {
		for in[k] > 0 {
			if out[v] == 0 {
				v++
				continue
			}
			x := min(in[k], out[v])
			a.lend(v, k, x)
			in[k] -= x
			out[v] -= x
		}
	}
}

// preempt lets each preempting class, highest first, take what it still needs
// from lower classes, lowest first, down to their protection and their floors.
// A borrowing limit bounds this too (lesson O7). Sums are unsigned, as demand
// and reservation together may pass 2^63.
func (a *Allocator) preempt() {
	for k := range a.classes {
		c := &a.classes[k]
		if !c.preempts {
			continue
		}
		asked, room := uint64(c.met)+uint64(c.unmet), uint64(c.reserve)+uint64(c.borrowMax)-uint64(c.quota)
		if asked <= uint64(c.quota) {
			continue
		}
		if k == 0 && a.insured {
			room -= min(room, uint64(a.classes[1].quota))
		}
		need := min(asked-uint64(c.quota), room)
		for v := len(a.classes) - 1; v > k && need > 0; v-- {
			from := &a.classes[v]
			spare := from.quota - max(from.protect, from.floor)
			if spare <= 0 {
				continue
			}
			x := Rate(min(need, uint64(spare)))
			from.quota -= x
			c.quota += x
			need -= uint64(x)
			if a.moves != nil {
				a.moves.seized[v*len(a.classes)+k] += x
			}
		}
	}
}
