package ledger

import (
	"fmt"

	"subak/allocator"
)

// market is the scratch of one settlement, by roster position.
type market struct {
	live     []bool
	surplus  []allocator.Rate // what a node has above its target
	need     []allocator.Rate // what a node lacks to its target
	in, lent []allocator.Rate
	loans    [][]position // by lender, sorted by borrower
}

// position is one loan seen in the rows.
type position struct {
	to     int
	amount allocator.Rate
}

// Settle turns the targets of budget b (node totals by roster position) into
// action: capacity borrowed above the own target is given back at once (Steps is
// lower from now on), and the loans that the next rows should list are chosen
// with as little change as possible, the same way on every node with the same
// view. It returns how much the next row would change against the newest one,
// releases included, and how much was released just now. Publish soon when
// change is over 1 % of the base. It panics if targets is not one per roster
// position. Nothing here bears on safety. Source: conservation.md, "Target and
// settlement", L7.
func (l *Ledger) Settle(now int64, b int, targets []allocator.Rate) (change, released allocator.Rate) {
	bk := l.books[b]
	if len(targets) != len(l.cur.Roster) {
		panic(fmt.Sprintf("ledger: %d targets for %d members", len(targets), len(l.cur.Roster)))
	}
	before := bk.releasedNow
	bk.want, bk.keep = bk.want[:0], 0
	if l.superseded {
		return 0, 0
	}
	m := &l.market
	l.survey(now, bk, targets, m)
	m.takeBack()
	m.recall()
	l.release(now, bk, m)
	if l.selfPos >= 0 {
		m.match(l.selfPos)
		bk.keep = targets[l.selfPos]
		for _, p := range m.loans[l.selfPos] {
			if amount := p.amount - p.amount%bk.grain; amount > 0 {
				bk.want = append(bk.want, Loan{l.cur.Roster[p.to].ID, amount})
			}
		}
	}
	return l.pending(now, bk), bk.releasedNow - before
}

// pending is how much the next row would differ from the newest one.
func (l *Ledger) pending(now int64, b *book) allocator.Rate {
	change := addSat(b.releasedNow, distance(l.offered(b), b.pubCeiling))
	l.plan = l.feasible(now, b, l.plan[:0])
	var renewed, listed allocator.Rate
	for _, x := range l.plan {
		had := loanTo(b.loans, x.to)
		renewed += had
		change = addSat(change, distance(x.give, had))
	}
	for _, x := range b.loans {
		listed += x.Amount
	}
	return addSat(change, listed-renewed) // loans that would go altogether
}

func distance(a, b allocator.Rate) allocator.Rate {
	if a > b {
		return a - b
	}
	return b - a
}

// survey fills m from the newest rows: who is live, what each has above or below
// its target, and the loans between live members, with announced releases
// counted as done.
func (l *Ledger) survey(now int64, b *book, targets []allocator.Rate, m *market) {
	n := len(l.cur.Roster)
	m.reset(n)
	for i, mem := range l.cur.Roster {
		var ceiling allocator.Rate
		if i == l.selfPos {
			m.live[i] = true
			ceiling = l.offered(b)
		} else if m.live[i] = l.live(now, mem.ID); m.live[i] {
			if s := l.sectionOf(mem.ID, b); s != nil {
				ceiling = s.Ceiling
			}
		}
		if m.live[i] {
			m.surplus[i] = max(0, ceiling-targets[i])
			m.need[i] = max(0, targets[i]-ceiling)
		}
	}
	for i, mem := range l.cur.Roster {
		if m.live[i] {
			l.surveyLender(b, i, mem.ID, m)
		}
	}
}

func (l *Ledger) surveyLender(b *book, i int, lender NodeID, m *market) {
	loans := b.loans
	if i != l.selfPos {
		s := l.sectionOf(lender, b)
		if s == nil {
			return
		}
		loans = s.Loans
	}
	for _, x := range loans {
		j := l.position[x.To]
		if j < 0 || !m.live[j] {
			continue
		}
		amount := min(x.Amount, l.releasedTo(b, lender, x.To, x.Amount))
		if amount > 0 {
			m.add(i, int(j), amount)
		}
	}
}

// releasedTo is what borrower says it still uses at most of the lender's newest
// row, which lists amount.
func (l *Ledger) releasedTo(b *book, lender, borrower NodeID, amount allocator.Rate) allocator.Rate {
	var c release
	var life uint64
	if borrower == l.cfg.Self {
		c, life = b.caps[lender], l.inc
	} else if s := l.sectionOf(borrower, b); s != nil {
		c, life = capOn(s.Caps, lender), l.peers[borrower].row.Inc
	}
	if c.seq == 0 {
		return amount
	}
	row := l.last
	if lender != l.cfg.Self {
		row = l.peers[lender].row
	}
	if row.heardOf(borrower).before(Heard{life, c.seq}) {
		return c.amount
	}
	return amount
}

func (m *market) reset(n int) {
	m.live = sized(m.live, n)
	m.surplus = sized(m.surplus, n)
	m.need = sized(m.need, n)
	m.in = sized(m.in, n)
	m.lent = sized(m.lent, n)
	for len(m.loans) < n {
		m.loans = append(m.loans, nil)
	}
	for i := range m.loans {
		m.loans[i] = m.loans[i][:0]
	}
}

// add books amount from lender i to borrower j.
func (m *market) add(i, j int, amount allocator.Rate) {
	m.in[j] = addSat(m.in[j], amount)
	m.lent[i] = addSat(m.lent[i], amount)
	list := m.loans[i]
	x := len(list)
	for x > 0 && list[x-1].to >= j {
		x--
	}
	if x < len(list) && list[x].to == j {
		list[x].amount = addSat(list[x].amount, amount)
		return
	}
	list = append(list, position{})
	copy(list[x+1:], list[x:])
	list[x] = position{j, amount}
	m.loans[i] = list
}

// reduce takes amount off the x-th loan of lender i.
func (m *market) reduce(i, x int, amount allocator.Rate) {
	p := &m.loans[i][x]
	p.amount -= amount
	m.in[p.to] -= amount
	m.lent[i] -= amount
}

// takeBack ends loans to borrowers that hold more than they need: first for
// lenders that lent more than their surplus, then for all.
func (m *market) takeBack() {
	for _, onlyOver := range [...]bool{true, false} {
		for i := range m.lent {
			for x := range m.loans[i] {
				p := m.loans[i][x]
				take := min(m.in[p.to]-m.need[p.to], p.amount)
				if onlyOver {
					take = min(take, m.lent[i]-m.surplus[i])
				}
				if take > 0 {
					m.reduce(i, x, take)
				}
			}
		}
	}
}

// recall ends loans of lenders that need the capacity themselves, the last
// borrower first.
func (m *market) recall() {
	for i := range m.lent {
		for x := len(m.loans[i]) - 1; x >= 0; x-- {
			if take := min(m.lent[i]-m.surplus[i], m.loans[i][x].amount); take > 0 {
				m.reduce(i, x, take)
			}
		}
	}
}

// match pairs what surplus is left with what need is left, in roster order (the
// north-west corner), as far as the lender self.
func (m *market) match(self int) {
	j := 0
	for i := 0; i <= self; i++ {
		for left := m.surplus[i] - m.lent[i]; left > 0 && j < len(m.need); {
			t := min(left, m.need[j]-m.in[j])
			if t <= 0 {
				j++
				continue
			}
			m.add(i, j, t)
			left -= t
		}
	}
}

// release gives back what is held above the own target (L7): from the lenders
// from which the settlement takes it, then from any, so that borrower and lenders
// mostly mean the same loans.
func (l *Ledger) release(now int64, b *book, m *market) {
	over := b.held(now)
	if l.selfPos >= 0 {
		over -= min(over, m.need[l.selfPos])
	}
	give := func(lender NodeID, rest allocator.Rate) {
		x := &b.in[lender]
		if over <= 0 || x.amount <= rest || now >= x.end {
			return
		}
		rest = max(rest, x.amount-over)
		rest -= rest % b.grain
		over -= x.amount - rest
		b.giveBack(lender, rest, l.seq+1)
	}
	if l.selfPos >= 0 {
		for i, mem := range l.cur.Roster {
			if m.live[i] && i != l.selfPos {
				give(mem.ID, m.loanTo(i, l.selfPos))
			}
		}
	}
	for k := range b.in {
		if l.position[k] < 0 { // lenders that left the roster
			give(NodeID(k), 0)
		}
	}
	for _, mem := range l.cur.Roster {
		give(mem.ID, 0)
	}
}

func (m *market) loanTo(i, j int) allocator.Rate {
	for _, p := range m.loans[i] {
		if p.to == j {
			return p.amount
		}
	}
	return 0
}

// Freeze is the operator's kill switch. On, everything borrowed is given back at
// once, what is lent is recalled, and the node is outside the pool: it lends and
// borrows nothing and enforces its own base as loans come back. Publish at once.
func (l *Ledger) Freeze(on bool) {
	l.frozen = on
	if !on {
		return
	}
	for _, b := range l.books {
		for k := range b.in {
			if b.in[k].amount > 0 {
				b.giveBack(NodeID(k), 0, l.seq+1)
			}
		}
	}
}

// Frozen reports whether the kill switch is on.
func (l *Ledger) Frozen() bool { return l.frozen }
