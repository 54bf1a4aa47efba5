package wire

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"subak/allocator"
	"subak/allocator/ledger"
)

// pair is a loan or a cap on its way to or from the wire.
type pair struct {
	ref    int
	seq    uint64
	amount allocator.Rate
}

// putSections fills sections with all of them.
func (e *Encoder) putSections(r *ledger.Row, n *names, self int) error {
	e.sections, e.base = e.sections[:0], 0
	for i := range r.Sections {
		if err := e.putSection(r, n, self, &r.Sections[i]); err != nil {
			return err
		}
	}
	return nil
}

// putSection appends one budget's part.
func (e *Encoder) putSection(r *ledger.Row, n *names, self int, s *ledger.Section) error {
	k := len(s.Demand)
	if k < 1 || k > MaxClasses {
		return malformed(ReasonLength, "demand")
	}
	shape := uint64(k) << 2
	if len(s.Loans) > 0 {
		shape |= hasLoans
	}
	if len(s.Caps) > 0 {
		shape |= hasCaps
	}
	e.sections = binary.AppendUvarint(e.sections, shape)
	if err := e.putCeiling(s.Ceiling); err != nil {
		return err
	}
	if err := e.putDemand(s.Demand); err != nil {
		return err
	}
	if len(s.Loans) > 0 {
		if err := e.putLoans(n, self, s.Loans); err != nil {
			return err
		}
	}
	if len(s.Caps) > 0 {
		return e.putCaps(r, n, self, s.Caps)
	}
	return nil
}

func (e *Encoder) putCeiling(c allocator.Rate) error {
	if c < 0 || c > MaxValue {
		return malformed(ReasonRange, "ceiling")
	}
	e.sections = binary.AppendUvarint(e.sections, uint64(c))
	return nil
}

func (e *Encoder) putDemand(demand []allocator.Rate) error {
	b := e.sections
	for _, d := range demand {
		if d < 0 || d > MaxValue || d%ledger.DemandGrain != 0 {
			return malformed(ReasonRange, "demand")
		}
		b = binary.AppendUvarint(b, uint64(d/ledger.DemandGrain))
	}
	e.sections = b
	return nil
}

// Bits of a section's shape.
const (
	hasCaps  = 1
	hasLoans = 2
)

func (e *Encoder) putLoans(n *names, self int, loans []ledger.Loan) error {
	e.pairs = e.pairs[:0]
	for _, loan := range loans {
		if loan.Amount <= 0 || loan.Amount > MaxValue {
			return malformed(ReasonRange, "loans")
		}
		e.pairs = append(e.pairs, pair{ref: e.ref(n, loan.To), amount: loan.Amount})
	}
	if !e.sortPairs(self) {
		return malformed(ReasonOrder, "loans")
	}
	e.sections = binary.AppendUvarint(e.sections, uint64(len(e.pairs)))
	for _, p := range e.pairs {
		e.sections = binary.AppendUvarint(e.sections, uint64(p.ref))
		e.putAmount(p.amount)
	}
	return nil
}

func (e *Encoder) putCaps(r *ledger.Row, n *names, self int, caps []ledger.Cap) error {
	e.pairs = e.pairs[:0]
	for _, c := range caps {
		if c.Amount < 0 || c.Amount > MaxValue || c.Seq == 0 || c.Seq > MaxValue {
			return malformed(ReasonRange, "caps")
		}
		e.pairs = append(e.pairs, pair{ref: e.ref(n, c.Lender), seq: c.Seq, amount: c.Amount})
	}
	if !e.sortPairs(self) {
		return malformed(ReasonOrder, "caps")
	}
	e.sections = binary.AppendUvarint(e.sections, uint64(len(e.pairs)))
	for _, p := range e.pairs {
		e.sections = binary.AppendUvarint(e.sections, uint64(p.ref))
		e.sections = binary.AppendUvarint(e.sections, zigzag(r.Seq, p.seq))
		e.putAmount(p.amount)
	}
	return nil
}

// putAmount appends the amount of a loan or cap: in a delta without the zeros that
// a multiple of a power of two ends in.
func (e *Encoder) putAmount(a allocator.Rate) {
	v := uint64(a)
	if e.base != 0 {
		zeros := uint64(min(bits.TrailingZeros64(v)/8, amountShifts-1))
		v = v>>(8*zeros)*amountShifts + zeros
	}
	e.sections = binary.AppendUvarint(e.sections, v)
}

// amountShifts is how many shifts, by bytes, an amount in a delta may have. Times
// four, amounts up to MaxValue still fit in 64 bits.
const amountShifts = 4

// sortPairs sorts by ref, since the order by NodeID differs between nodes. It
// reports false for a name that occurs twice or is the publisher's.
func (e *Encoder) sortPairs(self int) bool {
	slices.SortFunc(e.pairs, func(a, b pair) int { return cmp.Compare(a.ref, b.ref) })
	for i := range e.pairs {
		if e.pairs[i].ref == self || i > 0 && e.pairs[i].ref == e.pairs[i-1].ref {
			return false
		}
	}
	return true
}
