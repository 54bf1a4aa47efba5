package ledger

import "subak/allocator"

// Outcome says what became of a row given to [Ledger.Merge].
type Outcome uint8

// The outcomes of Merge.
const (
	// Applied: the row is the newest of its node and took effect.
	Applied Outcome = iota
	// Stale: not newer than the row already merged.
	Stale
	// BelowFloor: of a life that is known to be over.
	BelowFloor
	// Malformed: breaks a bound or contradicts what this node knows of itself.
	Malformed
	// UnknownEpoch: newer, but its epoch's body is needed to read it. Give the
	// epoch to Adopt, then merge again.
	UnknownEpoch
	// OwnNameHigher: the own name was seen above this life (trap 2, lesson
	// O17), or in a life between this one and the memory that it started from,
	// which is then an old copy ([Status].MemoryOld). The ledger enforces and
	// publishes nothing until Restart.
	OwnNameHigher
	// Unsaved: of a life not known before, which cannot be remembered at present
	// (see [Ledger.Hold]). It counts as lost.
	Unsaved
)

// String names the outcome for logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Stale:
		return "stale"
	case BelowFloor:
		return "below-floor"
	case Malformed:
		return "malformed"
	case UnknownEpoch:
		return "unknown-epoch"
	case OwnNameHigher:
		return "own-name-higher"
	case Unsaved:
		return "unsaved"
	}
	return "unknown"
}

// Merge applies a row heard at lease-clock reading now. A row is applied at most
// once and never after a newer one of its node (L1, trap 3); it may come by any
// way and be of any epoch that the ledger was told of. The row is kept and must
// not change. Source: conservation.md L1, L2, L6, L7.
func (l *Ledger) Merge(now int64, r *Row) Outcome {
	l.grow()
	switch {
	case l.superseded:
		return OwnNameHigher
	case r == nil || !l.wellFormed(r) || !l.forUs(r):
		return Malformed
	case r.Node == l.cfg.Self:
		return l.mergeOwnName(r)
	}
	p := &l.peers[r.Node]
	if r.Inc < p.floor {
		return BelowFloor
	}
	if p.row != nil && !r.newerThan(p.row) {
		return Stale
	}
	if h := r.heardOf(l.cfg.Self); (Heard{l.inc, l.seq}).before(h) || l.outdated(h.Inc) {
		// Somebody heard this name beyond what this life has said: a later life,
		// or this one before it was rolled back to a snapshot (A2).
		l.supersede(h.Inc)
		return OwnNameHigher
	}
	if l.held && r.Inc > p.floor {
		return Unsaved
	}
	y := l.layoutOf(r.Epoch)
	if y == nil {
		return UnknownEpoch
	}
	if !y.fits(r, l.cfg.Directory.Len()) {
		return Malformed
	}
	l.confirm(r.heardOf(l.cfg.Self))
	p.row, p.layout, p.at = r, y, now
	if r.Heard != nil {
		p.full = r
	} else if p.full != nil && p.full.Inc != r.Inc {
		p.full = nil
	}
	l.raiseFloor(r.Node, r.Inc)
	l.apply(r, y)
	return Applied
}

// mergeOwnName looks at a row that bears the own name: an echo, a former life,
// or a twin.
func (l *Ledger) mergeOwnName(r *Row) Outcome {
	if (r.Inc < l.inc || r.Inc == l.inc && r.Seq <= l.seq) && !l.outdated(r.Inc) {
		return Stale
	}
	l.supersede(r.Inc)
	return OwnNameHigher
}

// outdated reports whether life inc of the own name tells that the memory which
// this life started from is an old copy, such as a restored backup: what that
// later life lent and vouched for is not in it.
func (l *Ledger) outdated(inc uint64) bool {
	s := l.cfg.Stored
	return s != nil && inc > s.Incarnation && inc < l.inc
}

// confirm allows the quarantine's shortcut once a peer that knew this name, and
// had not yet heard of this life, knew of no life that the memory does not know:
// then the names on disk are all that may hold loans. Whoever heard a later life
// would have said so instead, or says nothing of former lives any more.
func (l *Ledger) confirm(h Heard) {
	if l.Unconfirmed() && h.Inc != 0 && h.Inc <= l.cfg.Stored.Incarnation {
		l.shortcut = true
	}
}

// Unconfirmed reports whether a row of a peer that has not heard of this life yet
// would cut the quarantine short. A node that speaks first will get none.
func (l *Ledger) Unconfirmed() bool {
	s := l.cfg.Stored
	return l.quarantine && !l.shortcut && s != nil && l.cfg.Durable && !s.LentUnknown && l.cur.ID == s.Epoch
}

// supersede stops this life: no own part, no loans, no rows.
func (l *Ledger) supersede(inc uint64) {
	l.superseded = true
	l.memoryOld = l.memoryOld || l.outdated(inc)
	l.ownHigh = max(l.ownHigh, inc)
	for _, b := range l.books {
		clear(b.in)
	}
}

// raiseFloor notes that a life of k is known (kept on disk: a restarted node
// must not take up rows of a life that it knew to be over).
func (l *Ledger) raiseFloor(k NodeID, inc uint64) {
	if inc > l.peers[k].floor {
		l.peers[k].floor = inc
		l.changed()
	}
}

// apply takes over what the newest row r says to this node: loans (L2), and
// acknowledged rows and releases (L6).
func (l *Ledger) apply(r *Row, y *layout) {
	self := l.cfg.Self
	h := r.heardOf(self)
	mine := h.Inc == l.inc
	var s lease
	if mine { // trap 1: a seq means nothing without its incarnation
		s.heard = h.Seq
		if at, ok := l.log.at(h.Seq); ok {
			s.valid = true
			s.end = at + int64(min(l.cfg.Term, r.Term)) - int64(l.cfg.Guard) // trap 12
		}
	}
	for _, b := range l.books {
		sec := y.section(r, b)
		var amount allocator.Rate
		var c release
		if sec != nil {
			amount = loanTo(sec.Loans, self)
			c = capOn(sec.Caps, self)
		}
		b.borrow(r.Node, amount, s)
		if l.refuses(r.Node) && b.in[r.Node].amount > 0 {
			b.giveBack(r.Node, 0, l.seq+1)
		}
		if mine {
			b.acknowledge(r.Node, r.Inc, h.Seq, c)
		}
	}
	l.lengthenQuarantine(r.Term)
}

// capOn finds the release announced to a lender in a list sorted by lender.
func capOn(caps []Cap, lender NodeID) release {
	for i := range caps {
		if caps[i].Lender >= lender {
			if caps[i].Lender == lender {
				return release{caps[i].Seq, caps[i].Amount}
			}
			break
		}
	}
	return release{}
}

// wellFormed checks what can be checked without the row's epoch. Heard vectors
// may hold a life without a seq, never a seq without a life.
func (l *Ledger) wellFormed(r *Row) bool {
	n := l.cfg.Directory.Len()
	if r.Node < 0 || int(r.Node) >= n || r.Inc == 0 || r.Inc > MaxIncarnation || r.Seq == 0 || r.Seq > MaxSeq {
		return false
	}
	if r.Term <= 0 || r.Term > MaxTerm || len(r.Heard) > n || len(r.Extra) > n {
		return false
	}
	for i := range r.Heard {
		if !r.Heard[i].wellFormed() {
			return false
		}
	}
	for _, id := range r.Extra {
		if id < 0 || int(id) >= n {
			return false
		}
	}
	return true
}

func (h Heard) wellFormed() bool {
	return h.Inc <= MaxIncarnation && h.Seq <= MaxSeq && (h.Inc != 0 || h.Seq == 0)
}

// forUs refuses a copy that was made for another peer. Merged, it would end
// every loan from its publisher, since it does not say what the publisher has
// heard of this node; and the copy for this node could then not be applied.
func (l *Ledger) forUs(r *Row) bool {
	return r.Only == nil || r.Heard == nil && r.Only.Of == l.cfg.Self && r.Only.wellFormed()
}

// fits checks the sections against the row's epoch and n known names.
func (y *layout) fits(r *Row, n int) bool {
	if len(r.Sections) != len(y.books) {
		return false
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		if len(s.Demand) != y.epoch.Budgets[i].Classes || s.Ceiling < 0 || s.Ceiling > MaxRate {
			return false
		}
		left := MaxRate
		for _, d := range s.Demand {
			if d < 0 || d > left {
				return false
			}
			left -= d
		}
		if !goodLoans(s.Loans, r.Node, n) || !goodCaps(s.Caps, r, n) {
			return false
		}
	}
	return true
}

func goodLoans(loans []Loan, lender NodeID, n int) bool {
	last, left := NodeID(-1), MaxRate
	for _, x := range loans {
		if x.To <= last || int(x.To) >= n || x.To == lender || x.Amount <= 0 || x.Amount > left {
			return false
		}
		last = x.To
		left -= x.Amount
	}
	return true
}

// goodCaps also refuses a promise about rows that the borrower has not reached.
func goodCaps(caps []Cap, r *Row, n int) bool {
	last := NodeID(-1)
	for _, c := range caps {
		if c.Lender <= last || int(c.Lender) >= n || c.Seq == 0 || c.Seq > r.Seq || c.Amount < 0 || c.Amount > MaxRate {
			return false
		}
		last = c.Lender
	}
	return true
}
