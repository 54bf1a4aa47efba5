package ledger

// Distrust stops, or allows again, all loans between this node and k, for when
// its clock is proven to run outside of what leases allow for: a borrower whose
// clock is slow uses a loan for longer than the lender waits. What is borrowed
// from k is given back at once; what is lent to k is recalled, which takes effect
// by k's acknowledgement (L6), in which no clock has a part. Each side alone makes
// the pair safe. k stays a member and a witness. Publish at once.
func (l *Ledger) Distrust(k NodeID, on bool) {
	if l.distrusted.has(k) == on || int(k) >= len(l.peers) {
		return
	}
	l.distrusted.add(k)
	l.distrusted[k] = on
	if !on {
		return
	}
	for _, b := range l.books {
		if b.in[k].amount > 0 {
			b.giveBack(k, 0, l.seq+1)
		}
	}
}

// Distrusted reports whether loans with k are stopped.
func (l *Ledger) Distrusted(k NodeID) bool { return l.distrusted.has(k) }

// refuses reports whether a loan of k may not be used.
func (l *Ledger) refuses(k NodeID) bool { return l.frozen || l.distrusted.has(k) }
