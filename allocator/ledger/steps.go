package ledger

import (
	"math"

	"subak/allocator"
)

// Step is a stretch of the enforced share: Rate holds while the lease clock reads
// less than Until.
type Step struct {
	Until int64
	Rate  allocator.Rate
}

// Steps appends to dst[:0] what this node may enforce for budget b from now on:
// the own part, which stays, plus each borrowed loan until its lease ends. Rates
// never rise; the last Until is math.MaxInt64, so that a data plane whose control
// is paused falls to the own part by its own clock (trap 9). Lower the data plane
// to it before the newest row leaves (L4, trap 8). Source: conservation.md L3.
func (l *Ledger) Steps(now int64, b int, dst []Step) []Step {
	bk := l.books[b]
	dst = dst[:0]
	for i := range bk.in {
		if x := &bk.in[i]; x.amount > 0 && now < x.end {
			dst = insertStep(dst, Step{x.end, x.amount})
		}
	}
	total := l.ownPart(now, bk)
	dst = append(dst, Step{math.MaxInt64, total})
	for i := len(dst) - 2; i >= 0; i-- { // amounts become running totals
		total = addSat(total, dst[i].Rate)
		dst[i].Rate = total
	}
	return dst
}

// ownPart is the own base that is neither lent nor unusable.
func (l *Ledger) ownPart(now int64, b *book) allocator.Rate {
	return max(0, l.ceiling(b)-b.outstanding(now))
}

// insertStep keeps dst sorted by Until, adding amounts that end together.
func insertStep(dst []Step, s Step) []Step {
	i := len(dst)
	for i > 0 && dst[i-1].Until > s.Until {
		i--
	}
	if i > 0 && dst[i-1].Until == s.Until {
		dst[i-1].Rate = addSat(dst[i-1].Rate, s.Rate)
		return dst
	}
	dst = append(dst, Step{})
	copy(dst[i+1:], dst[i:])
	dst[i] = s
	return dst
}
