package ledger

import "subak/allocator"

// Fallback returns the share of budget b that needs no peer and no further row
// of this node: its whole ceiling, from the instant on at which every loan out
// must have ended. A watchdog may enforce it while the owner of the ledger
// stands still; a row the owner publishes afterwards can only name leases that
// start from what it then hears. Asked anew after each Publish.
func (l *Ledger) Fallback(b int) (ceiling allocator.Rate, from int64) {
	bk := l.books[b]
	for _, rows := range bk.out {
		for i := range rows {
			from = max(from, rows[i].end)
		}
	}
	return l.ceiling(bk), from
}
