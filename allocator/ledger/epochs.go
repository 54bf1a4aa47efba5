package ledger

import (
	"errors"
	"fmt"

	"subak/allocator"
)

// Errors of [Ledger.Adopt] on which a caller branches.
var (
	// ErrNotGreater: the epoch is not above the adopted one. It is remembered,
	// so that rows under it can be read.
	ErrNotGreater = errors.New("epoch is not above the adopted one")
	// ErrForeignRoot: the epoch is of another lineage.
	ErrForeignRoot = errors.New("epoch is of another root")
)

// Adopt takes up epoch e, learned at lease-clock reading now, if it is above the
// adopted one: ceilings are lowered to the new bases at once and raised only by
// activation. Giving the adopted epoch again does nothing. An epoch that is not
// adopted may still be remembered for reading rows. Persist before publishing.
// Source: conservation.md E1.
func (l *Ledger) Adopt(now int64, e *Epoch) error {
	if e == l.cur {
		return nil
	}
	if err := e.Validate(l.cfg.Directory); err != nil {
		return fmt.Errorf("adopt epoch %v: %w", e.ID, err)
	}
	if e.Root != l.cur.Root {
		return fmt.Errorf("adopt epoch %v: %w", e.ID, ErrForeignRoot)
	}
	if e.ID == l.cur.ID {
		return nil
	}
	l.grow()
	if !l.cur.ID.Less(e.ID) {
		l.learn(e)
		return fmt.Errorf("adopt epoch %v over %v: %w", e.ID, l.cur.ID, ErrNotGreater)
	}
	if l.held {
		l.learn(e)
		return fmt.Errorf("adopt epoch %v: %w", e.ID, ErrHeld)
	}
	l.enter(e)
	l.strayed = l.strayed || e.Parent != l.act || l.selfPos < 0
	// The former life may have known it already, if its file is an old copy, and
	// lent to members that the file does not name.
	l.shortcut = false
	for _, b := range l.books {
		if l.proved {
			b.ceiling = min(b.ceiling, l.base(b))
		} else {
			b.ceiling = 0 // trap 25: it may be an ancestor's base, given away since
		}
	}
	l.acked = false
	l.adoptedAt = now
	l.wait.addMembers(e)
	l.changed()
	return nil
}

// enter makes e the current epoch: accounts are matched by name, those of
// budgets that e lacks stay behind the listed ones until it is activated.
func (l *Ledger) enter(e *Epoch) {
	l.cur = e
	books := make([]*book, 0, len(e.Budgets)+len(l.books))
	for i := range e.Budgets {
		spec := &e.Budgets[i]
		b := l.bookNamed(spec.Name)
		if b == nil {
			b = newBook(spec.Name, spec.Classes, len(l.peers))
		}
		if len(b.demand) != spec.Classes {
			b.demand = make([]allocator.Rate, spec.Classes)
		}
		b.index, b.grain = i, grainOf(spec.Base)
		books = append(books, b)
	}
	for _, b := range l.books {
		if b.index >= len(books) || b.index < 0 || books[b.index] != b {
			b.index = -1
			b.want = nil
			books = append(books, b)
		}
	}
	l.books, l.listed = books, len(e.Budgets)
	for i := range l.position {
		l.position[i] = -1
	}
	for i, m := range e.Roster {
		l.position[m.ID] = int32(i)
	}
	l.selfPos = int(l.position[l.cfg.Self])
	l.parent = nil
	for _, id := range e.parentMembers() {
		l.parent.add(id)
	}
	l.learn(e)
	for _, y := range l.layouts {
		l.bind(y)
	}
}

// base is this node's base of b in the current epoch.
func (l *Ledger) base(b *book) allocator.Rate {
	if b.index < 0 || l.selfPos < 0 {
		return 0
	}
	return l.cur.Budgets[b.index].Base[l.selfPos]
}

// tryAck acknowledges the current epoch once nothing more than the ceiling is
// lent, for every budget, and never in quarantine, when a former life's loans
// are unknown. Source: conservation.md E2, traps 17 and 18.
func (l *Ledger) tryAck(now int64) {
	if l.acked || l.quarantine || now < l.ackFrom {
		return
	}
	for _, b := range l.books {
		if b.outstanding(now) > b.ceiling {
			return
		}
	}
	l.acked = true
}

// tryActivate raises the ceilings to the current epoch's bases once everybody
// concerned has acknowledged exactly this epoch. Source: conservation.md E3.
func (l *Ledger) tryActivate(now int64) {
	if !l.acked || !l.proved || l.held || l.act == l.cur.ID {
		return
	}
	w := l.closure()
	for k := range l.peers {
		if id := NodeID(k); w.has(id) && id != l.cfg.Self && !l.concurs(now, id) {
			return
		}
	}
	if !l.incarnationsClosed(w) {
		return
	}
	l.activate()
}

// closure is W and, repeatedly, the wait sets that members of it published
// under the current epoch: rosters of sibling epochs that this node never saw
// (trap 23).
func (l *Ledger) closure() nodeSet {
	w := append(nodeSet(nil), l.wait...)
	for grown := true; grown; {
		grown = false
		for k := range l.peers {
			r := l.peers[k].row
			if r == nil || !w.has(NodeID(k)) || r.Epoch != l.cur.ID {
				continue
			}
			for _, id := range r.Extra {
				if !w.has(id) {
					w.add(id)
					grown = true
				}
			}
		}
	}
	return w
}

// concurs reports whether k counts as having acknowledged the current epoch: by
// its newest row, exactly (trap 24), and by one that carries what k has heard,
// which may be older: it is as if the rows since had not arrived yet. Or because the operator forced out a life of
// k that is not known to have a successor, and its loans have run out (E6,
// trap 26).
func (l *Ledger) concurs(now int64, k NodeID) bool {
	p := &l.peers[k]
	if m, forced := l.cur.Forced[k]; forced && p.floor <= m {
		return now >= l.forceEnd()
	}
	r, f := p.row, p.full
	return r != nil && r.Inc >= p.floor && r.Epoch == l.cur.ID && r.Acked &&
		(f == r || f != nil && f.Epoch == l.cur.ID && f.Acked)
}

// forceEnd is when the loans of the forced nodes have run out. A loan is used for
// the shorter of two terms, the lender's and the borrower's. The lender's may not
// be known here, when no row of it was merged in this life, or a former life of it
// had a longer one; borrowers, however, are heard before they count as having
// acknowledged. So it is the longest term of anybody.
func (l *Ledger) forceEnd() int64 {
	term := l.cfg.Term
	for k := range l.peers {
		if r := l.peers[k].row; r != nil {
			term = max(term, r.Term)
		}
	}
	return l.adoptedAt + l.leaseWait(term)
}

// incarnationsClosed reports that no row heard of a life of a member of w newer
// than the life whose acknowledgement is counted (trap 20); for a forced member,
// newer than the operator's statement covers (trap 26).
func (l *Ledger) incarnationsClosed(w nodeSet) bool {
	for k := range l.peers {
		r := l.peers[k].full
		if r == nil || !w.has(NodeID(k)) {
			continue
		}
		for x, h := range r.Heard {
			if h.Inc != 0 && w.has(NodeID(x)) && h.Inc > l.knownLife(NodeID(x)) {
				return false
			}
		}
	}
	return true
}

// knownLife is the life of x that an activation takes into account.
func (l *Ledger) knownLife(x NodeID) uint64 {
	if x == l.cfg.Self {
		return l.inc
	}
	life := l.cur.Forced[x]
	if r := l.peers[x].row; r != nil {
		life = max(life, r.Inc)
	}
	return life
}

func (l *Ledger) activate() {
	l.act = l.cur.ID
	l.strayed = l.selfPos < 0
	for _, b := range l.books {
		b.ceiling = l.base(b)
	}
	l.books = l.books[:l.listed] // acknowledged, so nothing is lent from the rest
	for _, y := range l.layouts {
		l.bind(y)
	}
	clear(l.wait)
	for _, m := range l.cur.Roster {
		l.wait.add(m.ID)
	}
	l.changed()
}
