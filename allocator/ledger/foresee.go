package ledger

import "subak/allocator"

// Borrowed capacity that is passed on to data planes which enforce it by
// themselves cannot be given back at once. All that a node does about it could
// have happened by loss or delay alone: it merges a lender's row later, and
// acknowledges an epoch later.

// Leased is a loan in use: what may be enforced of it until an instant.
type Leased struct {
	Amount allocator.Rate
	End    int64 // lease clock
}

// Foresee returns what this node borrows of budget b from the publisher of r, and
// what merging r would make of it.
func (l *Ledger) Foresee(b int, r *Row) (before, after Leased) {
	bk := l.books[b]
	if r.Node < 0 || int(r.Node) >= len(bk.in) {
		return before, after
	}
	x := &bk.in[r.Node]
	before = Leased{x.amount, x.end}
	h := r.heardOf(l.cfg.Self)
	at, ok := l.log.at(h.Seq)
	y := l.layoutOf(r.Epoch)
	if h.Inc != l.inc || !ok || y == nil || len(r.Sections) != len(y.books) || l.refuses(r.Node) {
		return before, after
	}
	if s := y.section(r, bk); s != nil {
		after.Amount = loanTo(s.Loans, l.cfg.Self)
	}
	if c := bk.caps[r.Node]; c.seq != 0 && h.Seq < c.seq {
		after.Amount = min(after.Amount, c.amount)
	}
	after.End = at + int64(min(l.cfg.Term, r.Term)) - int64(l.cfg.Guard)
	return before, after
}

// DeferAck puts the acknowledgement of epochs off until an instant, when nothing
// above the ceilings is enforced on this node's word any more (E2: acknowledging
// is a promise about that).
func (l *Ledger) DeferAck(until int64) { l.ackFrom = max(l.ackFrom, until) }
