package ledger

import "subak/allocator"

// Standing is where a life stands: what simulators check and operators read.
type Standing struct {
	Proved     bool
	Recovering bool
	Acked      bool
	Frozen     bool
	Superseded bool
	// Quarantine is in force; it ends at QuarantineEnd at the latest.
	Quarantine    bool
	QuarantineEnd int64
}

// Standing returns where this life stands.
func (l *Ledger) Standing() Standing {
	s := Standing{Proved: l.proved, Recovering: l.recovering, Acked: l.acked, Frozen: l.frozen, Superseded: l.superseded, Quarantine: l.quarantine}
	if l.quarantine {
		s.QuarantineEnd = l.quarantineEnd()
	}
	return s
}

// Lent returns the most that any life of k may be using at now of this node's
// base of budget b: Out of rule L5. It changes nothing.
func (l *Ledger) Lent(now int64, b int, k NodeID) (total allocator.Rate) {
	bk := l.books[b]
	if int(k) >= len(bk.out) {
		return 0
	}
	var inc uint64
	var most allocator.Rate
	for _, e := range bk.out[k] {
		if e.end <= now {
			continue
		}
		if e.hInc != inc {
			total += most
			inc, most = e.hInc, 0
		}
		most = max(most, e.amount)
	}
	return total + most
}

// Borrowed returns what this node may use at now of k's base of budget b: In of
// rule L2.
func (l *Ledger) Borrowed(now int64, b int, k NodeID) allocator.Rate {
	in := l.books[b].in
	if int(k) >= len(in) || now >= in[k].end {
		return 0
	}
	return in[k].amount
}

// Claim returns what this node may use or have lent of its own base of budget b:
// the ceiling, or what is still lent if that is more, as after a cut. Before
// proof and in quarantine it is what is lent.
func (l *Ledger) Claim(now int64, b int) allocator.Rate {
	bk := l.books[b]
	return max(l.ceiling(bk), bk.outstanding(now))
}
