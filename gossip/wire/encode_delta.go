package wire

import (
	"encoding/binary"
	"slices"

	"subak/allocator/ledger"
)

// history is what the encoder remembers of the own rows: in which row each part
// of each section last changed.
type history struct {
	last    *ledger.Row
	seq     uint64   // of last
	first   uint64   // seq of the first row of this life and epoch
	changed []stamps // by section
	seqs    []uint64 // of the rows before last, rising: what may be a base
}

// stamps are the seqs of the rows in which the parts of a section last changed.
type stamps struct{ ceiling, demand, loans, caps uint64 }

// historyMax is how many rows back a base may be: 12 s of ticks. Whoever has
// missed more asks.
const historyMax = 64

// note takes in the next row. A row that does not continue the one before, in
// life, epoch and order, starts anew.
func (h *history) note(r *ledger.Row) {
	switch {
	case h.last == nil || h.last.Node != r.Node || h.last.Inc != r.Inc || h.last.Epoch != r.Epoch ||
		len(h.last.Sections) != len(r.Sections) || r.Seq < h.seq || r.Seq == h.seq && h.last != r:
		h.restart(r)
		return
	case r.Seq == h.seq:
		return
	}
	for i := range r.Sections {
		h.changed[i].note(&h.last.Sections[i], &r.Sections[i], r.Seq)
	}
	if len(h.seqs) == historyMax {
		h.seqs = h.seqs[:copy(h.seqs, h.seqs[1:])]
	}
	h.seqs = append(h.seqs, h.seq)
	h.last, h.seq = r, r.Seq
}

func (h *history) restart(r *ledger.Row) {
	h.last, h.seq, h.first, h.seqs = r, r.Seq, r.Seq, h.seqs[:0]
	h.changed = slices.Grow(h.changed[:0], len(r.Sections))[:len(r.Sections)]
	for i := range h.changed {
		h.changed[i] = stamps{r.Seq, r.Seq, r.Seq, r.Seq}
	}
}

func (s *stamps) note(was, is *ledger.Section, seq uint64) {
	if was.Ceiling != is.Ceiling {
		s.ceiling = seq
	}
	if !slices.Equal(was.Demand, is.Demand) {
		s.demand = seq
	}
	if !slices.Equal(was.Loans, is.Loans) {
		s.loans = seq
	}
	if !slices.Equal(was.Caps, is.Caps) {
		s.caps = seq
	}
}

// since returns the mask of what changed after row base.
func (s *stamps) since(base uint64) (mask uint64) {
	if s.ceiling > base {
		mask |= changedCeiling
	}
	if s.demand > base {
		mask |= changedDemand
	}
	if s.loans > base {
		mask |= changedLoans
	}
	if s.caps > base {
		mask |= changedCaps
	}
	return mask
}

// Bits of the mask of a changed section.
const (
	changedCeiling = 1 << iota
	changedDemand
	changedLoans
	changedCaps
	maskSize
)

// putChanges fills sections with what changed after row base.
func (e *Encoder) putChanges(r *ledger.Row, n *names, self int, base uint64) error {
	e.sections, e.base = e.sections[:0], r.Seq-base
	last := -1
	for i := range e.history.changed {
		mask := e.history.changed[i].since(base)
		if mask == 0 {
			continue
		}
		e.sections = binary.AppendUvarint(e.sections, uint64(i-last-1)*maskSize+mask)
		last = i
		if err := e.putChange(r, n, self, &r.Sections[i], mask); err != nil {
			return err
		}
	}
	return nil
}

func (e *Encoder) putChange(r *ledger.Row, n *names, self int, s *ledger.Section, mask uint64) error {
	if mask&changedCeiling != 0 {
		if err := e.putCeiling(s.Ceiling); err != nil {
			return err
		}
	}
	if mask&changedDemand != 0 {
		if err := e.putDemand(s.Demand); err != nil {
			return err
		}
	}
	if mask&changedLoans != 0 {
		if err := e.putLoans(n, self, s.Loans); err != nil {
			return err
		}
	}
	if mask&changedCaps != 0 {
		return e.putCaps(r, n, self, s.Caps)
	}
	return nil
}

// fitWhole writes the row with all sections and reports whether a datagram holds
// it. A row that certainly is too large is not encoded at all, unless nothing is
// there to take a delta from.
func (e *Encoder) fitWhole(r *ledger.Row, n *names, self int, digest uint64) (fits bool, err error) {
	alone := len(e.history.seqs) == 0
	least := len(e.heard)
	for i := range r.Sections {
		least += 2 + len(r.Sections[i].Demand)
	}
	if least > MaxPacket && !alone {
		return false, nil
	}
	if err := e.putSections(r, n, self); err != nil {
		return false, err
	}
	e.writeRow(r, self, digest, false)
	return alone || e.buf.Len() <= MaxPacket, nil
}

// fitDelta writes the delta from the oldest base with which it stays within the
// limit; from the row before if there is none.
func (e *Encoder) fitDelta(r *ledger.Row, n *names, self int, digest uint64) error {
	write := func() int {
		e.writeRow(r, self, digest, false)
		return e.buf.Len()
	}
	return e.oldestBase(r, n, self, write)
}

// oldestBase leaves in sections, and written, the changes since the oldest base
// that keeps the size that write returns within the limit. The size never rises
// with the base, so it is found by halving.
func (e *Encoder) oldestBase(r *ledger.Row, n *names, self int, write func() int) error {
	low, high := 0, len(e.history.seqs)-1 // high is taken if nothing fits
	for {
		at := (low + high) / 2
		if err := e.putChanges(r, n, self, e.history.seqs[at]); err != nil {
			return err
		}
		fits := write() <= e.limit
		switch {
		case low == high:
			return nil
		case fits:
			high = at
		default:
			low = at + 1
		}
	}
}

// Repair encodes the newest row for a node that has row have of the life inc: as
// a delta from there, or whole. The packet is valid until the next call. It may be
// over MaxPacket: send it by stream then. It is nil if no row was encoded yet or
// the asker is as far. Whoever calls it limits how often it answers.
func (e *Encoder) Repair(ep *ledger.Epoch, inc, have uint64) ([]byte, error) {
	h := &e.history
	r := h.last
	if r == nil || ep == nil || r.Epoch != ep.ID || inc == r.Inc && have >= r.Seq {
		return nil, nil
	}
	if inc != r.Inc || have < h.first {
		return e.Whole(r, ep)
	}
	n, self, err := e.prepare(r, ep)
	if err != nil {
		return nil, err
	}
	if err := e.putChanges(r, n, self, have); err != nil {
		return nil, err
	}
	digest := uint64(0)
	if len(e.incs) > 0 {
		digest = digestOf(e.incs)
		e.vectors.put(digest, e.incs)
	}
	e.writeRow(r, self, digest, false)
	if size := e.buf.Len(); size > MaxLong {
		return nil, &TooLargeError{Size: size}
	}
	return e.buf.Bytes(), nil
}

// copied is the row that copies are being made of.
type copied struct {
	row   *ledger.Row
	names *names
	self  int
}

// StartCopies prepares r, published at ep, for [Encoder.Copy]. The errors are
// those of Row. No other method may be called before the last copy was made.
func (e *Encoder) StartCopies(r *ledger.Row, ep *ledger.Epoch) error {
	n, self, err := e.prepare(r, ep)
	if err != nil {
		return err
	}
	e.history.note(r)
	e.copied = copied{r, n, self}
	if err := e.putSections(r, n, self); err != nil {
		return err
	}
	if len(e.Copy(r.Node)) > MaxPacket && len(e.history.seqs) > 0 {
		return e.oldestBase(r, n, self, func() int { return len(e.Copy(r.Node)) })
	}
	return nil
}

// Copy returns the copy of the row for one peer, valid until the next call. One
// over MaxPacket goes by stream. It is nil for a peer outside the epoch's rosters,
// which gets the row itself.
func (e *Encoder) Copy(to ledger.NodeID) []byte {
	r, ref := e.copied.row, e.copied.names.ref(to)
	if ref < 0 {
		return nil
	}
	e.startRow(r, e.copied.self, KindCopy, copyFields+3)
	e.uint(e.base)
	e.uint(uint64(ref))
	h := ledger.Heard{}
	if int(to) < len(r.Heard) {
		h = r.Heard[to]
	}
	e.uint(h.Inc)
	e.uint(heardCode(r.Seq, h))
	e.writeTail(r, 3)
	return e.buf.Bytes()
}
