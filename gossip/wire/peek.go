package wire

import "subak/allocator/ledger"

// Header is what [Peek] reads. The fields from Epoch on are set for rows only.
type Header struct {
	Kind  Kind
	Root  uint32 // RootTag of the sender's lineage
	Epoch ledger.EpochID
	// Ref is the publisher as an index of the epoch's names; [Decoder.Node]
	// translates it once the epoch is known.
	Ref      int
	Inc, Seq uint64
}

// Peek reads the start of a packet, enough to tell a row seen before: a row is
// the same if Inc, Seq, Ref and Epoch are (an incarnation is never used
// twice, assumption A3). It does not look at the rest, so what it returns may
// still be refused by Decode. It does not allocate but for an error.
func Peek(packet []byte) (Header, error) {
	r := reader{b: packet}
	h, _ := r.header()
	if h.Kind.isRow() && r.why == ReasonNone {
		r.rowHeader(&h)
	}
	if err := r.err(); err != nil {
		return Header{}, err
	}
	return h, nil
}

// Fields each kind has at least, the three that all have included.
const (
	headFields          = 3
	rowFields           = 12
	vectorFields        = 7
	vectorWantedFields  = 4
	epochFields         = 11
	epochWantedFields   = 5
	lineageWantedFields = headFields
	deltaFields         = rowFields + 1
	copyFields          = rowFields + 4
	rowWantedFields     = 5
)

// fieldsLimit bounds the fields of a packet of a later minor.
const fieldsLimit = 1024

func (k Kind) fields() int {
	return [kindEnd]int{headFields, rowFields, vectorFields, vectorWantedFields, epochFields, epochWantedFields, lineageWantedFields, deltaFields, copyFields, rowWantedFields}[k]
}

// header reads the fields that all packets share and returns how many of the
// packet's fields are left.
func (r *reader) header() (h Header, fields int) {
	if len(r.b) > MaxLong {
		r.fail(ReasonTooLarge, "packet")
	}
	fields = r.array(fieldsLimit, "packet")
	if r.why == ReasonNone && fields < 1 {
		r.fail(ReasonShort, "packet")
	}
	if format := r.uint(255, "format"); r.why == ReasonNone && format/16 != FormatMajor {
		r.fail(ReasonFormat, "format")
	}
	if r.why == ReasonNone && fields < headFields {
		r.fail(ReasonShort, "packet")
	}
	if kind := r.uint(MaxValue, "kind"); kind < uint64(kindEnd) {
		h.Kind = Kind(kind)
	}
	h.Root = uint32(r.uint(1<<32-1, "root"))
	if r.why == ReasonNone && fields < h.Kind.fields() {
		r.fail(ReasonShort, h.Kind.String())
	}
	return h, fields - headFields
}

// rowHeader reads what tells one row from another.
func (r *reader) rowHeader(h *Header) (marks uint64) {
	h.Epoch = r.epochID("epoch")
	h.Ref = int(r.uint(MaxRefs-1, "node"))
	h.Inc = r.uint(1<<64-1, "inc")
	h.Seq = r.uint(MaxValue, "seq")
	marks = r.uint(1<<10-1, "marks")
	if h.Inc == 0 || h.Seq == 0 {
		r.fail(ReasonRange, "seq")
	}
	return marks
}

func (r *reader) epochID(field string) ledger.EpochID {
	return ledger.EpochID{Version: r.uint(MaxValue, field), Hash: r.uint(1<<64-1, field)}
}
