package wire

import (
	"slices"

	"subak/allocator"
	"subak/allocator/ledger"
)

// base reads the distance of a base from the row seq.
func (r *reader) base(seq uint64, needed bool) uint64 {
	base := r.uint(MaxValue, "base")
	if base == 0 && needed || base >= max(seq, 1) {
		r.fail(ReasonRange, "base")
	}
	return base
}

// copyFrame is the part of a copy that only copies have.
type copyFrame struct {
	of        int // ref
	inc, code uint64
}

func (r *reader) copyFrame() copyFrame {
	return copyFrame{of: int(r.uint(MaxRefs-1, "of")), inc: r.uint(1<<64-1, "life"), code: r.uint(1<<64-1, "heard")}
}

// only fills row.Only.
func (d *Decoder) only(row *ledger.Row, f *copyFrame) error {
	if f.of >= len(d.ids) {
		return malformed(ReasonMismatch, "of")
	}
	h, ok := heardOf(row.Seq, f.inc, f.code)
	if !ok {
		return malformed(ReasonRange, "heard")
	}
	row.Only = &ledger.Entry{Of: d.ids[f.of], Heard: h}
	return nil
}

// changes rebuilds row.Sections from the newest row merged of its publisher. Only
// what changed takes new memory, beside one slice of section headers.
func (d *Decoder) changes(row *ledger.Row, f *rowFrame) error {
	base, err := d.baseOf(row, f)
	if err != nil {
		return err
	}
	row.Sections = slices.Clone(base.Sections)
	r := &reader{b: f.sections}
	for at := -1; r.left() > 0; {
		step := r.varint(MaxSections*maskSize, "sections")
		at += 1 + int(step/maskSize)
		mask := step % maskSize
		if mask == 0 || at >= len(row.Sections) {
			r.fail(ReasonRange, "sections")
		}
		if r.why == ReasonNone {
			d.change(r, &row.Sections[at], mask, row.Seq, f.Ref)
		}
		if err := r.err(); err != nil {
			return err
		}
	}
	return nil
}

// mergedOf returns the newest row merged of row's publisher, nil if there is none.
func (d *Decoder) mergedOf(row *ledger.Row) *ledger.Row {
	if d.merged == nil || int(row.Node) >= d.dir.Len() {
		return nil
	}
	return d.merged(row.Node)
}

// stale reports whether a row not older than this one was merged: by relay and by
// push/pull most rows come again.
func (d *Decoder) stale(row *ledger.Row) bool {
	m := d.mergedOf(row)
	return m != nil && m.Inc == row.Inc && m.Seq >= row.Seq
}

// baseOf returns a row that the changes can be applied to: any of the life and
// epoch that is not older than the base and not newer than the row.
func (d *Decoder) baseOf(row *ledger.Row, f *rowFrame) (*ledger.Row, error) {
	m := d.mergedOf(row)
	lost := &LostBaseError{Node: row.Node, Inc: row.Inc, Base: row.Seq - f.base, Seq: row.Seq}
	switch {
	case int(row.Node) >= d.dir.Len(): // not learned from a row that was not read
		lost.Node = -1
		return nil, lost
	case m == nil || m.Inc < row.Inc:
		return nil, lost
	case m.Inc > row.Inc:
		return nil, StaleError{}
	case m.Epoch != row.Epoch: // sections are in the order of the epoch
		return nil, lost
	case m.Seq < lost.Base:
		lost.Have = m.Seq
		return nil, lost
	}
	return m, nil
}

func (d *Decoder) change(r *reader, s *ledger.Section, mask, seq uint64, self int) {
	if mask&changedCeiling != 0 {
		s.Ceiling = r.rate("ceiling")
	}
	if mask&changedDemand != 0 {
		k := len(s.Demand)
		s.Demand = make([]allocator.Rate, k)
		for i := range s.Demand {
			s.Demand[i] = r.demand()
		}
	}
	if mask&changedLoans != 0 {
		s.Loans = d.loans(r, self, 0)
	}
	if mask&changedCaps != 0 {
		s.Caps = d.caps(r, seq, self, 0)
	}
}
