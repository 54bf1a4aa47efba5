package ledger

import (
	"math"

	"subak/allocator"
)

// book is the account of one budget: what is lent, borrowed and given back.
type book struct {
	name    string
	grain   allocator.Rate // loans are multiples of it
	index   int            // position in the current epoch; -1 when dropped by it
	ceiling allocator.Rate // c: base that may be used or lent once proved and out of quarantine
	demand  []allocator.Rate

	in   []borrowed // by lender
	caps []release  // by lender
	out  [][]lentRow

	// The outstanding total, valid before outUntil while outKnown.
	outTotal allocator.Rate
	outUntil int64
	outKnown bool

	loans       []Loan         // of the newest own row, sorted by To
	pubCeiling  allocator.Rate // of the newest own row
	want        []Loan         // what the settlement asks for, in roster order
	keep        allocator.Rate // own target: new loans leave this much
	releasedNow allocator.Rate // given back since the newest own row
	moved       bool           // a merged row changed what is lent or borrowed, see News
}

// borrowed is a loan in use: it counts while the clock is before end, which is
// already Guard early.
type borrowed struct {
	amount allocator.Rate
	end    int64
}

// release is this node's promise to a lender (rule L7); seq 0 is none.
type release struct {
	seq    uint64
	amount allocator.Rate
}

// lentRow is one published loan that the borrower may be using: it counts until
// the clock reads end.
type lentRow struct {
	seq        uint64 // of the own row
	hInc, hSeq uint64 // the borrower's row that the own row had heard
	amount     allocator.Rate
	end        int64
}

func newBook(name string, classes, nodes int) *book {
	b := &book{name: name, grain: 1, demand: make([]allocator.Rate, classes)}
	b.grow(nodes)
	return b
}

// grainOf is the grain of loans of a budget with these bases: the greatest power
// of two within a millionth of the budget, at least 1. Coarse amounts are short on
// the wire; what a loan loses by it nobody misses.
func grainOf(bases []allocator.Rate) allocator.Rate {
	var total allocator.Rate
	for _, r := range bases {
		total += r // within MaxRate, see Epoch.Validate
	}
	grain := allocator.Rate(1)
	for grain <= total>>21 {
		grain <<= 1
	}
	return grain
}

func (b *book) grow(n int) {
	if d := n - len(b.in); d > 0 {
		b.in = append(b.in, make([]borrowed, d)...)
		b.caps = append(b.caps, make([]release, d)...)
		b.out = append(b.out, make([][]lentRow, d)...)
	}
}

// outstanding is the most that borrowers may be using at now: the sum over
// borrowers of Out (L5). It prunes what has expired.
func (b *book) outstanding(now int64) allocator.Rate {
	if b.outKnown && now < b.outUntil {
		return b.outTotal
	}
	b.outTotal, b.outUntil, b.outKnown = 0, math.MaxInt64, true
	for j := range b.out {
		if len(b.out[j]) > 0 {
			b.outTotal += b.outTo(NodeID(j), now)
		}
	}
	return b.outTotal
}

// outTo is Out to one borrower: the sum over the borrower's incarnations of the
// maximum over unexpired rows, not the newest amount (L5, traps 4 and 16). An
// older row may still arrive and be used as long as nothing newer was heard of.
func (b *book) outTo(j NodeID, now int64) (total allocator.Rate) {
	kept := b.out[j][:0]
	var inc uint64
	var most allocator.Rate
	for _, e := range b.out[j] { // hInc never falls along the list
		if e.end <= now {
			continue
		}
		kept = append(kept, e)
		b.outUntil = min(b.outUntil, e.end)
		if e.hInc != inc {
			total += most
			inc, most = e.hInc, 0
		}
		most = max(most, e.amount)
	}
	b.out[j] = kept
	return total + most
}

// renewable is what is outstanding to borrower j in incarnation inc: a new row
// with at most this amount adds nothing to Out.
func (b *book) renewable(j NodeID, inc uint64, now int64) (most allocator.Rate) {
	for _, e := range b.out[j] {
		if e.hInc == inc && e.end > now {
			most = max(most, e.amount)
		}
	}
	return most
}

// lendRow records a loan that is about to be published.
//
// An earlier row e1 to the same incarnation is dropped when the new row e2 has
// at least its amount, expiry and heard seq. That changes no sum: while e2 is
// there it is at least e1 in the maximum, and e2 outlives e1 under every rule:
// it expires no earlier; an acknowledgement removes rows below a seq, and e2's
// is higher; a release lowers rows below a heard seq, and where it lowers e2 it
// lowers e1 to no more than e2. So a steady loan is a list of one.
func (b *book) lendRow(j NodeID, e lentRow) {
	list := b.out[j]
	for n := len(list); n > 0; n-- {
		old := list[n-1]
		if old.hInc != e.hInc || old.amount > e.amount || old.end > e.end || old.hSeq > e.hSeq {
			break
		}
		list = list[:n-1]
	}
	b.out[j] = append(list, e)
	b.outKnown = false
}

// acknowledge applies L6 for borrower j, heard in incarnation inc to have merged
// the own row seq and to announce release c (zero for none). Rows lent to
// another incarnation of j only expire (trap 15).
func (b *book) acknowledge(j NodeID, inc, seq uint64, c release) {
	list := b.out[j]
	if len(list) == 0 {
		return
	}
	before := greatest(list)
	kept := list[:0]
	for _, e := range list {
		if e.hInc == inc {
			if e.seq < seq {
				continue
			}
			if e.hSeq < c.seq {
				e.amount = min(e.amount, c.amount)
			}
		}
		if e.amount > 0 {
			kept = append(kept, e)
		}
	}
	b.out[j] = kept
	b.outKnown = false
	b.moved = b.moved || greatest(kept) != before
}

// greatest is the greatest amount of a list.
func greatest(list []lentRow) (most allocator.Rate) {
	for i := range list {
		most = max(most, list[i].amount)
	}
	return most
}

// lease is what a lender's row says about the time its loans may be used.
type lease struct {
	heard uint64 // own seq that the lender had heard, 0 if none of this life
	valid bool   // and it is in the publish log
	end   int64
}

// borrow applies L2 for one budget: the lender's row lists amount for this node
// (0 if it lists none).
func (b *book) borrow(lender NodeID, amount allocator.Rate, s lease) {
	if c := &b.caps[lender]; c.seq != 0 {
		b.moved = true
		if s.heard >= c.seq {
			*c = release{}
		} else {
			amount = min(amount, c.amount)
		}
	}
	if !s.valid || amount == 0 {
		b.moved = b.moved || b.in[lender].amount != 0
		b.in[lender] = borrowed{}
		return
	}
	b.moved = b.moved || b.in[lender].amount != amount
	b.in[lender] = borrowed{amount, s.end}
}

// giveBack lowers the loan of lender to rest at once and promises, from the own
// row next on, to use no more of any row published before hearing it (L7).
func (b *book) giveBack(lender NodeID, rest allocator.Rate, next uint64) {
	b.releasedNow = addSat(b.releasedNow, b.in[lender].amount-rest)
	b.in[lender].amount = rest
	b.caps[lender] = release{next, rest}
}

// held is the borrowed total in use at now.
func (b *book) held(now int64) (total allocator.Rate) {
	for i := range b.in {
		if x := &b.in[i]; x.amount > 0 && now < x.end {
			total = addSat(total, x.amount)
		}
	}
	return total
}

// loanTo finds the amount lent to id in a list sorted by borrower.
func loanTo(loans []Loan, id NodeID) allocator.Rate {
	for i := range loans {
		if loans[i].To >= id {
			if loans[i].To == id {
				return loans[i].Amount
			}
			break
		}
	}
	return 0
}
