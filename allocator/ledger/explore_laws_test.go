package ledger

import (
	"fmt"
	"math"

	"subak/allocator"
)

// enforced is what the data plane of node i admits now, by its own clock.
func (w *smallWorld) enforced(s *instant, i int) allocator.Rate {
	p := s.actors[i]
	if p == nil {
		return 0
	}
	now := w.clock(i, s.t)
	for _, st := range p.plane {
		if now < st.Until {
			return st.Rate
		}
	}
	return 0
}

func (w *smallWorld) sum(s *instant) (total allocator.Rate) {
	for i := range w.nodes {
		total += w.enforced(s, i)
	}
	return total
}

// limit is the budget in force: that of the greatest activated epoch.
func (w *smallWorld) limit(s *instant) allocator.Rate { return limitOf(w.epochs[s.greatest], 0) }

// laws returns the law that s breaks, empty if none.
func (w *smallWorld) laws(s *instant) string {
	if sum, limit := w.sum(s), w.limit(s); sum > limit {
		return fmt.Sprintf("the sum enforced is %s, the budget %s", amount(sum), amount(limit))
	}
	for i := range w.nodes {
		for j := range w.nodes {
			if p, q := s.actors[i], s.actors[j]; i != j && p != nil && q != nil {
				if text := w.lawOfLoan(s, p.l, q.l); text != "" {
					return text
				}
			}
		}
	}
	return w.lawOfCeilings(s)
}

// lawOfLoan is invariant I2: a borrower never uses more of a lender's base than
// the lender counts as lent.
func (w *smallWorld) lawOfLoan(s *instant, lender, borrower *Ledger) string {
	i, j := lender.cfg.Self, borrower.cfg.Self
	r := borrower.peers[i].row
	if r == nil || r.Inc != lender.inc || lender.quarantine {
		return "" // a loan of a life that is over; the sum is the law for it
	}
	for _, b := range borrower.books {
		in := b.in[i]
		if in.amount == 0 || w.clock(int(j), s.t) >= in.end {
			continue
		}
		if out := outTo(lender.bookNamed(b.name), j, w.clock(int(i), s.t)); in.amount > out {
			return fmt.Sprintf("%s uses %s of %s's base, %s counts only %s as lent to it",
				w.call(j), amount(in.amount), w.call(i), w.call(i), amount(out))
		}
	}
	return ""
}

// outTo is rule L5 once more, without the ledger's shortcuts: over the borrower's
// lives, the sum of the largest amount of any row that has not run out.
func outTo(b *book, j NodeID, now int64) (total allocator.Rate) {
	if b == nil {
		return 0
	}
	var most [mostLives]allocator.Rate
	for _, e := range b.out[j] {
		if now < e.end {
			most[e.hInc] = max(most[e.hInc], e.amount)
		}
	}
	for _, x := range most {
		total += x
	}
	return total
}

// kept is K of invariant I4: what a process may use or has lent of its base.
func (w *smallWorld) kept(s *instant, i int) (k allocator.Rate) {
	p := s.actors[i]
	if p == nil || p.l.superseded {
		return 0
	}
	for _, b := range p.l.books {
		var out allocator.Rate
		for j := range w.nodes {
			out += outTo(b, NodeID(j), w.clock(i, s.t))
		}
		if p.l.proved {
			out = max(out, b.ceiling)
		}
		k += out
	}
	return k
}

// lawOfCeilings is invariant I4: the bases that are kept fit the greatest activated
// epoch. It breaks before the sum does.
func (w *smallWorld) lawOfCeilings(s *instant) string {
	var total allocator.Rate
	for i := range w.nodes {
		total += w.kept(s, i)
	}
	if limit := w.limit(s); total > limit {
		return fmt.Sprintf("the bases kept add up to %s, the budget is %s", amount(total), amount(limit))
	}
	return ""
}

// activated is looked at when p activates an epoch: whoever runs and is concerned
// must have acknowledged it, that is, keep no more than its new base.
func (w *smallWorld) activated(s *instant, p *actor) string {
	e := p.l.cur
	for i := range w.nodes {
		q := s.actors[i]
		if q == nil || q == p || e.ID.Less(q.l.act) || !q.l.proved {
			continue
		}
		var base allocator.Rate
		if k := e.Position(NodeID(i)); k >= 0 {
			base = e.Budgets[0].Base[k]
		}
		if kept := w.kept(s, i); kept > base {
			return fmt.Sprintf("%s activates epoch %s while %s keeps %s, its new base is %s",
				w.call(p.l.cfg.Self), w.epochName(e.ID), w.call(NodeID(i)), amount(kept), amount(base))
		}
	}
	return ""
}

// heals lets every fault end in s: the dead start again, the newest epoch is told
// to all, everybody hears everybody. It returns what is wrong if the whole budget
// is not in use after that.
func (w *smallWorld) heals(s instant) string {
	s.crashes = 0
	newest := uint8(0)
	for i := range w.nodes {
		if s.actors[i] == nil {
			w.begin(&s, NodeID(i), w.epochs[0], false)
		}
		newest = max(newest, w.index(s.actors[i].l.cur.ID))
	}
	do := func(m move) {
		if n, possible, broken := w.play(&s, m, nil); possible && broken == "" {
			s = n
		}
	}
	const rounds = 14
	for range rounds {
		for i := range NodeID(w.nodes) {
			do(move{kind: learn, node: i, arg: newest})
			do(move{kind: publish, node: i, arg: uint8(len(w.wants[i]) - 1)})
			for j := range NodeID(w.nodes) {
				do(move{hear, i, j, newestMail})
			}
		}
		do(move{kind: tick})
	}
	// Time must not stand between a loan and its use: one last round.
	for i := range NodeID(w.nodes) {
		do(move{kind: publish, node: i, arg: uint8(len(w.wants[i]) - 1)})
		for j := range NodeID(w.nodes) {
			do(move{hear, i, j, newestMail})
		}
	}
	if sum, limit := w.sum(&s), w.limit(&s); sum != limit {
		return fmt.Sprintf("after %d rounds without faults the sum enforced is %s of %s", rounds, amount(sum), amount(limit))
	}
	return ""
}

// untilForGood tells the last step of a plane.
func untilForGood(st Step) bool { return st.Until == math.MaxInt64 }
