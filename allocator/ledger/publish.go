package ledger

import (
	"slices"

	"subak/allocator"
)

// planned is one loan of the row in the making.
type planned struct {
	to         NodeID
	want, give allocator.Rate
}

// Publish makes the next row, at lease-clock reading now: read before the row
// can leave (L4, trap 6). Its seq is the next one, or seqHint if that is higher
// and within MaxSeq; hints from a shared clock keep the seqs of all nodes close.
// Afterwards Steps is lowered by what the row newly lends: lower the data plane,
// write Stored if its version moved, then send. A row that is never sent is
// harmless. Publish returns nil when the own name was seen above this life.
func (l *Ledger) Publish(now int64, seqHint uint64) *Row {
	if l.superseded {
		return nil
	}
	l.grow()
	l.seq++
	if seqHint > l.seq && seqHint <= MaxSeq {
		l.seq = seqHint
	}
	l.log.add(l.seq, now, max(l.leaseWait(l.cfg.Term), int64(l.cfg.Live)))
	r := &Row{
		Node: l.cfg.Self, Inc: l.inc, Seq: l.seq, Term: l.cfg.Term,
		Epoch: l.cur.ID, Acked: l.acked, Recovering: l.recovering,
		Digest: l.digest, Clock: rowClock(now),
		Heard: l.heardVector(), Sections: make([]Section, l.listed),
	}
	r.Extra = make([]NodeID, 0, l.wait.count())
	for k, in := range l.wait {
		if in {
			r.Extra = append(r.Extra, NodeID(k))
		}
	}
	for i := range r.Sections {
		l.section(now, l.books[i], &r.Sections[i])
	}
	for _, b := range l.books[l.listed:] {
		b.loans = nil
	}
	l.last = r
	return r
}

// rowClock is a lease-clock reading as rows carry it. A reading that would look
// like "not told" is told a millisecond less: the true reading is then within
// two of it, as whoever bounds rates by it allows for.
func rowClock(now int64) uint32 {
	if c := uint32(now / 1_000_000); c != 0 {
		return c
	}
	return 1<<32 - 1
}

// EchoOf returns the lease-clock reading taken before the own row that r says to
// have heard could leave (P), if that row is of this life and recent enough to be
// remembered: at least for a term.
func (l *Ledger) EchoOf(r *Row) (published int64, ok bool) {
	h := r.heardOf(l.cfg.Self)
	if h.Inc != l.inc {
		return 0, false
	}
	return l.log.at(h.Seq)
}

// heardVector is what this life has heard of everybody. Of a life that is known
// but of which nothing was merged it says the life alone, so that whoever counts
// on an older life's acknowledgement sees that it is over (trap 20).
func (l *Ledger) heardVector() []Heard {
	h := make([]Heard, len(l.peers))
	for k := range l.peers {
		p := &l.peers[k]
		if p.row != nil && p.row.Inc >= p.floor {
			h[k] = Heard{p.row.Inc, p.row.Seq}
		} else {
			h[k].Inc = p.floor
		}
	}
	return h
}

// section fills in one budget's part of the row l.seq and records its loans.
func (l *Ledger) section(now int64, b *book, s *Section) {
	s.Ceiling = l.offered(b)
	s.Demand = make([]allocator.Rate, len(b.demand))
	if !l.frozen {
		copy(s.Demand, b.demand)
	}
	l.plan = l.feasible(now, b, l.plan[:0])
	if len(l.plan) > 0 {
		s.Loans = make([]Loan, len(l.plan))
	}
	for i, x := range l.plan {
		s.Loans[i] = Loan{x.to, x.give}
		l.lend(b, x)
	}
	slices.SortFunc(s.Loans, func(a, b Loan) int { return int(a.To - b.To) })
	s.Caps = b.announced()
	b.loans, b.pubCeiling, b.releasedNow = s.Loans, s.Ceiling, 0
}

// announced lists the releases in force (L7).
func (b *book) announced() []Cap {
	n := 0
	for i := range b.caps {
		if b.caps[i].seq != 0 {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	caps := make([]Cap, 0, n)
	for k, c := range b.caps {
		if c.seq != 0 {
			caps = append(caps, Cap{NodeID(k), c.seq, c.amount})
		}
	}
	return caps
}

// lend records one loan of the row l.seq. Its expiry hangs on when the borrower
// was last heard, so that neither repetition to a silent borrower nor a stale
// relay prolongs it (L4, trap 7).
func (l *Ledger) lend(b *book, x planned) {
	p := &l.peers[x.to]
	b.lendRow(x.to, lentRow{
		seq: l.seq, hInc: p.row.Inc, hSeq: p.row.Seq,
		amount: x.give, end: p.at + l.leaseWait(l.cfg.Term),
	})
	if !l.lent.has(x.to) {
		l.lent.add(x.to)
		if !l.onDisk.has(x.to) {
			l.changed()
		}
	}
}

// feasible appends to dst the loans that the next row may list at now, out of
// those the settlement wants: only to fresh members of the adopted epoch (L9);
// in total at most the ceiling; and adding no more to Out than is free, so that
// the sum of Out stays within the ceiling (L4). Borrowed capacity is never lent
// (trap 14). What Out holds already is renewed first, which costs nothing; what
// adds to it leaves the own target untouched.
func (l *Ledger) feasible(now int64, b *book, dst []planned) []planned {
	if !l.usable() || l.frozen || l.selfPos < 0 {
		return dst
	}
	room := b.ceiling
	for _, w := range b.want {
		if !l.mayBorrow(now, w.To) || l.unknownLent(w.To) {
			continue
		}
		covered := b.renewable(w.To, l.peers[w.To].row.Inc, now)
		x := planned{w.To, w.Amount, min(w.Amount, covered, room)}
		room -= x.give
		dst = append(dst, x)
	}
	free := min(b.ceiling-b.outstanding(now)-b.keep, room)
	kept := dst[:0]
	for _, x := range dst {
		if more := min(x.want-x.give, free); more > 0 {
			x.give += more
			free -= more
		}
		if x.give > 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

// mayBorrow reports whether k may get or keep a loan in a row published at now.
func (l *Ledger) mayBorrow(now int64, k NodeID) bool {
	return k != l.cfg.Self && l.position[k] >= 0 && l.fresh(now, k) && !l.distrusted.has(k) &&
		now < l.peers[k].at+l.leaseWait(l.cfg.Term)
}
