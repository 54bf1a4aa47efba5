package ledger

// Dealing reports whether k and this node lend to one another: loans in use or
// possibly in use either way, or a release that stands. Their rows are each
// other's leases and acknowledgements.
func (l *Ledger) Dealing(k NodeID) bool {
	for _, b := range l.books {
		if int(k) < len(b.in) && b.dealing(int(k)) {
			return true
		}
	}
	return false
}

// Quiet reports whether this node is dealing with nobody.
func (l *Ledger) Quiet() bool {
	for _, b := range l.books {
		for k := range b.in {
			if b.dealing(k) {
				return false
			}
		}
	}
	return true
}

func (b *book) dealing(k int) bool {
	return b.in[k].amount > 0 || b.caps[k].seq != 0 || len(b.out[k]) > 0
}

// News reports whether rows merged since the last call changed what budget b has
// lent or borrowed, or bear on a release that stands: then Steps and Settle may
// answer otherwise than before, at one and the same time.
func (l *Ledger) News(b int) bool {
	moved := l.books[b].moved
	l.books[b].moved = false
	return moved
}
