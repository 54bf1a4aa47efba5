package ledger

import "sort"

// publishLogMax bounds the log. Losing the oldest entry is safe: a loan that
// rests on it is then not used.
const publishLogMax = 4096

// publishLog is P: the lease-clock reading taken before each own row could
// leave. A borrower's lease starts there (traps 6 and 7).
type publishLog struct {
	entries []published // seq and at rise
}

type published struct {
	seq uint64
	at  int64
}

// add appends row seq, read at the given time, and drops what is older than
// keep before it.
func (p *publishLog) add(seq uint64, at, keep int64) {
	stale := 0
	for stale < len(p.entries) && p.entries[stale].at < at-keep {
		stale++
	}
	if len(p.entries) == publishLogMax {
		stale = max(stale, publishLogMax/2)
	}
	// Shift only once half is stale, so that the cost per row is constant.
	if stale > 0 && stale >= len(p.entries)/2 {
		p.entries = p.entries[:copy(p.entries, p.entries[stale:])]
	}
	p.entries = append(p.entries, published{seq, at})
}

// at returns the reading of row seq, if it is still known.
func (p *publishLog) at(seq uint64) (int64, bool) {
	es := p.entries
	i := sort.Search(len(es), func(i int) bool { return es[i].seq >= seq })
	if i < len(es) && es[i].seq == seq {
		return es[i].at, true
	}
	return 0, false
}
