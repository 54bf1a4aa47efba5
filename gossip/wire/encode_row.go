package wire

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"subak/allocator/ledger"
)

// Row encodes r, which was published at ep: whole if that fits in a datagram,
// else as a delta (see the package comment). The packet is valid until the next
// call of any method. Rows of one publisher are to be encoded in their order.
//
// While the vector that the row refers to is fresh and does not fit into the
// row, extra holds it in packets of its own, to be sent beside the row; they are
// the caller's to keep. That, a vector used for the first time and an epoch seen
// for the first time are the only cases that allocate.
//
// A packet over MaxPacket is returned together with a *[TooLargeError]: it is
// complete, and the caller counts it and sends it by stream. With any other error
// there is no packet: a *[MalformedError] for a row that the format cannot carry,
// a *[ForeignRootError] for an epoch of another lineage, a *[TooLargeError] for a
// row over MaxLong.
// Errors name the first fault; nothing is ever left out or rounded up. The term
// is rounded down to milliseconds, which is safe: a borrower uses the smaller
// term, and the lender waits by its own.
func (e *Encoder) Row(r *ledger.Row, ep *ledger.Epoch) (packet []byte, extra [][]byte, err error) {
	names, self, err := e.prepare(r, ep)
	if err != nil {
		return nil, nil, err
	}
	e.history.note(r)
	digest, fresh, repeat := e.vectorOf()
	inline := fresh || repeat
	whole, err := e.fitWhole(r, names, self, digest)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !whole:
		inline = false
		if err := e.fitDelta(r, names, self, digest); err != nil {
			return nil, nil, err
		}
	case inline:
		e.writeRow(r, self, digest, true)
		if inline = e.buf.Len() <= MaxPacket; !inline {
			e.writeRow(r, self, digest, false)
		}
	}
	if fresh && !inline {
		packet = slices.Clone(e.buf.Bytes()) // the vector packets use buf too
		extra = e.Vector(digest)
	} else {
		packet = e.buf.Bytes()
	}
	return limited(packet, extra)
}

// limited judges the size of a packet.
func limited(packet []byte, extra [][]byte) ([]byte, [][]byte, error) {
	switch size := len(packet); {
	case size > MaxLong:
		return nil, nil, &TooLargeError{Size: size}
	case size > MaxPacket:
		return packet, extra, &TooLargeError{Size: size}
	}
	return packet, extra, nil
}

// Whole encodes r with all its sections, whoever published it, and with its
// vector if the cluster is small: for a push/pull state, whose reader may know
// nothing yet. The packet is valid until the next call; it may be over MaxPacket.
func (e *Encoder) Whole(r *ledger.Row, ep *ledger.Epoch) ([]byte, error) {
	names, self, err := e.prepare(r, ep)
	if err != nil {
		return nil, err
	}
	if err := e.putSections(r, names, self); err != nil {
		return nil, err
	}
	digest := uint64(0)
	if len(e.incs) > 0 {
		digest = digestOf(e.incs)
		e.vectors.put(digest, e.incs)
	}
	e.writeRow(r, self, digest, len(e.incs) > 0 && len(e.incs) <= inlineMax)
	if size := e.buf.Len(); size > MaxLong {
		return nil, &TooLargeError{Size: size}
	}
	return e.buf.Bytes(), nil
}

// inlineMax is the size in bytes of a vector that is worth repeating in each of
// several packets to one receiver: 64 names.
const inlineMax = 64 * 8

// vectorOf says which vector the row refers to and whether it is due to be sent.
func (e *Encoder) vectorOf() (digest uint64, fresh, repeat bool) {
	if len(e.incs) == 0 {
		return 0, false, false
	}
	digest = digestOf(e.incs)
	g := &e.current
	if g.digest != digest {
		*g = vectorState{digest: digest}
	}
	fresh = g.rows < freshRows
	repeat = g.rows%repeatRows == 0
	g.rows++
	if fresh || repeat {
		e.vectors.put(digest, e.incs) // held as long as this node publishes it
	}
	return digest, fresh, repeat
}

// prepare checks the row and fills the scratch with its parts but the sections.
// It returns what refs index and the publisher's ref.
func (e *Encoder) prepare(r *ledger.Row, ep *ledger.Epoch) (n *names, self int, err error) {
	if ep.Root != e.root {
		return nil, 0, &ForeignRootError{Tag: RootTag(ep.Root)}
	}
	if r.Epoch != ep.ID {
		return nil, 0, malformed(ReasonMismatch, "epoch")
	}
	if n, err = e.names.of(ep); err != nil {
		return nil, 0, err
	}
	switch millis := r.Term / time.Millisecond; {
	case r.Inc == 0 || r.Seq == 0 || r.Seq > MaxValue:
		return nil, 0, malformed(ReasonRange, "seq")
	case r.Epoch.Version > MaxValue:
		return nil, 0, malformed(ReasonRange, "epoch")
	case millis < 1 || millis > MaxTermMillis:
		return nil, 0, malformed(ReasonRange, "term")
	case len(r.Sections) > MaxSections:
		return nil, 0, malformed(ReasonLength, "sections")
	}
	if err := e.gatherExtras(r, n); err != nil {
		return nil, 0, err
	}
	self = e.ref(n, r.Node)
	if err := e.putHeard(r, n); err != nil {
		return nil, 0, err
	}
	e.putWait(r, n)
	return n, self, nil
}

// gatherExtras collects the names the row mentions that the epoch does not.
func (e *Encoder) gatherExtras(r *ledger.Row, n *names) error {
	e.extras = e.extras[:0]
	ok := e.mention(n, r.Node)
	for id := range r.Heard {
		if r.Heard[id] != (ledger.Heard{}) {
			ok = e.mention(n, ledger.NodeID(id)) && ok
		}
	}
	for _, id := range r.Extra {
		ok = e.mention(n, id) && ok
	}
	for i := range r.Sections {
		for _, loan := range r.Sections[i].Loans {
			ok = e.mention(n, loan.To) && ok
		}
		for _, c := range r.Sections[i].Caps {
			ok = e.mention(n, c.Lender) && ok
		}
	}
	switch {
	case !ok:
		return malformed(ReasonRange, "ref")
	case len(e.extras) > MaxExtras:
		return malformed(ReasonLength, "extras")
	}
	if len(e.extras) > 1 {
		slices.SortFunc(e.extras, func(a, b ledger.NodeID) int { return cmp.Compare(e.dir.Name(a), e.dir.Name(b)) })
	}
	for _, id := range e.extras {
		if name := e.dir.Name(id); name == "" || len(name) > MaxName {
			return malformed(ReasonText, "extras")
		}
	}
	return nil
}

// mention notes id if it is outside the epoch's names. It reports false for a
// number that is not of the directory.
func (e *Encoder) mention(n *names, id ledger.NodeID) bool {
	if n.ref(id) >= 0 {
		return true
	}
	if id < 0 || int(id) >= e.dir.Len() {
		return false
	}
	if len(e.extras) <= MaxExtras && !slices.Contains(e.extras, id) {
		e.extras = append(e.extras, id)
	}
	return true
}

// ref returns the ref of a name that was mentioned.
func (e *Encoder) ref(n *names, id ledger.NodeID) int {
	if ref := n.ref(id); ref >= 0 {
		return ref
	}
	return len(n.ids) + slices.Index(e.extras, id)
}

// id returns the name behind a ref.
func (e *Encoder) id(n *names, ref int) ledger.NodeID {
	if ref < len(n.ids) {
		return n.ids[ref]
	}
	return e.extras[ref-len(n.ids)]
}

// putHeard fills heard and the incarnation vector; both stay empty if the row does
// not carry Heard. A Heard of zeros is carried: it says that nobody was heard.
func (e *Encoder) putHeard(r *ledger.Row, n *names) error {
	e.heard, e.incs = e.heard[:0], e.incs[:0]
	if len(r.Heard) == 0 {
		return nil
	}
	for ref := range len(n.ids) + len(e.extras) {
		id := e.id(n, ref)
		h := ledger.Heard{}
		if int(id) < len(r.Heard) {
			h = r.Heard[id]
		}
		if h.Inc == 0 && h.Seq != 0 || h.Seq > MaxValue {
			return malformed(ReasonRange, "heard")
		}
		e.heard = binary.AppendUvarint(e.heard, heardCode(r.Seq, h))
		if h == (ledger.Heard{}) && id == r.Node {
			h.Inc = r.Inc // so that quiet nodes share one vector
		}
		e.incs = binary.BigEndian.AppendUint64(e.incs, h.Inc)
	}
	return nil
}

func heardCode(seq uint64, h ledger.Heard) uint64 {
	switch {
	case h.Seq != 0:
		return heardRow + zigzag(seq, h.Seq)
	case h.Inc != 0:
		return heardLife
	}
	return heardNever
}

// Codes of what was heard of a name.
const (
	heardNever = 0 // nothing
	heardLife  = 1 // the incarnation is known, but no row of it was merged
	heardRow   = 2 // and more: a row, by the distance of its seq from the own
)

// zigzag returns the difference own - other of two numbers up to MaxValue as an
// unsigned number that is small if the difference is.
func zigzag(own, other uint64) uint64 {
	d := int64(own - other)
	return uint64(d)<<1 ^ uint64(d>>63)
}

// unzigzag returns the other number.
func unzigzag(own, code uint64) uint64 {
	return own - (code>>1 ^ -(code & 1))
}

// putWait fills wait with the lengths of alternate runs of refs out of and in
// the wait set, ending with one that is in.
func (e *Encoder) putWait(r *ledger.Row, n *names) {
	e.wait = e.wait[:0]
	if len(r.Extra) == 0 {
		return
	}
	e.waiting = slices.Grow(e.waiting[:0], len(n.ids)+len(e.extras))[:len(n.ids)+len(e.extras)]
	clear(e.waiting)
	for _, id := range r.Extra {
		e.waiting[e.ref(n, id)] = true
	}
	run, in := uint64(0), false
	for _, w := range e.waiting {
		if w != in {
			e.wait = binary.AppendUvarint(e.wait, run)
			run, in = 0, w
		}
		run++
	}
	if in {
		e.wait = binary.AppendUvarint(e.wait, run)
	}
}

// writeRow writes a row or a delta from the scratch.
func (e *Encoder) writeRow(r *ledger.Row, self int, digest uint64, inline bool) {
	tail := e.tailFields(r)
	if e.base == 0 {
		e.startRow(r, self, KindRow, rowFields+tail)
	} else {
		e.startRow(r, self, KindDelta, deltaFields+tail)
		e.uint(e.base)
	}
	if tail > 0 {
		if inline {
			e.bin(e.incs)
		} else {
			e.uint(digest)
		}
	}
	if tail > 1 {
		e.bin(e.heard)
	}
	e.writeTail(r, tail-2)
}

// startRow writes what every form of a row begins with, its sections included.
func (e *Encoder) startRow(r *ledger.Row, self int, k Kind, fields int) {
	e.start(k, fields-headFields)
	e.epochID(r.Epoch)
	e.uint(uint64(self))
	e.uint(r.Inc)
	e.uint(r.Seq)
	e.uint(marksOf(r))
	e.uint(uint64(r.Term / time.Millisecond))
	e.uint(uint64(r.Digest))
	e.bin(e.sections)
}

// writeTail writes the first n of the fields that every form of a row ends with.
func (e *Encoder) writeTail(r *ledger.Row, n int) {
	if n > 0 {
		e.bin(e.wait)
	}
	if n > 1 {
		_ = e.out.EncodeArrayLen(len(e.extras))
		for _, id := range e.extras {
			_ = e.out.EncodeString(e.dir.Name(id))
		}
	}
	if n > 2 {
		e.uint(uint64(r.Clock))
	}
}

// tailFields returns how many of the five optional fields are written.
func (e *Encoder) tailFields(r *ledger.Row) int {
	switch {
	case r.Clock != 0 && len(e.heard) > 0:
		return 5
	case len(e.extras) > 0:
		return 4
	case len(e.wait) > 0:
		return 3
	case len(e.heard) > 0:
		return 2
	default:
		return 0
	}
}

func marksOf(r *ledger.Row) (marks uint64) {
	if r.Recovering {
		marks |= markRecovering
	}
	if r.Acked {
		marks |= markAcked
	}
	return marks
}

// Bits of marks.
const (
	markAcked      = 1
	markRecovering = 2
)
