package wire

import (
	"subak/allocator"
	"subak/allocator/ledger"
)

// Message is one packet, decoded. Which fields are set hangs on Kind.
type Message struct {
	Kind Kind
	// Row of a KindRow, KindDelta or KindCopy.
	Row *ledger.Row
	// Inc and Have of a KindRowWanted: the asked node's life, and the seq of the
	// row that the asker has of it, 0 for none.
	Inc, Have uint64
	// Digest of a KindVector that is now complete (0 while parts are missing) or
	// of a KindVectorWanted.
	Digest uint64
	// ID of a KindEpoch or KindEpochWanted.
	ID ledger.EpochID
	// Epoch is set by the last missing part of a KindEpoch. It stays nil for
	// other parts and for an epoch that is known already.
	Epoch *EpochBody
}

// EpochBody is an epoch as it travels. The body is opaque here: whoever knows its
// encoding checks that it hashes to ID and derives the rest.
type EpochBody struct {
	ID, Parent ledger.EpochID
	Root       uint64
	Body       []byte
}

// Decoder reads packets of other nodes.
type Decoder struct {
	root    uint64
	dir     *ledger.Directory
	vectors *Vectors
	epochs  func(ledger.EpochID) *ledger.Epoch
	merged  func(ledger.NodeID) *ledger.Row
	cells   []allocator.Rate // room for the demand of the row that is being read
	names   nameCache
	parts   assemblies
	learned int                    // names added to the directory, at most MaxLearned
	said    map[ledger.NodeID]said // by publisher, of the newest row read, at most MaxPacket each

	// Scratch of one row.
	ids    []ledger.NodeID // by ref
	width  int             // of the directory once the row's names are learned
	extras [][]byte        // into the packet
	short  bool            // the row's amounts are in the form of deltas
}

// NewDecoder returns a decoder for the lineage with that root fingerprint. epochs
// returns the epoch of an ID, always the same pointer for the same ID, or nil if
// it is not known.
//
// Root 0 accepts every lineage. It is for a joiner that has yet to learn its root
// from the first epoch it is sent; it then calls SetRoot.
func NewDecoder(root uint64, dir *ledger.Directory, vectors *Vectors, epochs func(ledger.EpochID) *ledger.Epoch) *Decoder {
	return &Decoder{root: root, dir: dir, vectors: vectors, epochs: epochs, names: nameCache{dir: dir}, said: map[ledger.NodeID]said{}}
}

// SetMerged tells the decoder where to find the newest row of a node that was
// merged, nil if there is none: what deltas rest on, and what makes a row stale.
// Without it every delta counts as lost, and every row is read.
func (d *Decoder) SetMerged(merged func(ledger.NodeID) *ledger.Row) { d.merged = merged }

// SetRoot changes the lineage, for a node that learned it only after its start.
func (d *Decoder) SetRoot(root uint64) { d.root = root }

// Node translates the publisher in a row's header. It reports false while the
// epoch is unknown and for publishers outside the epoch's rosters.
func (d *Decoder) Node(h Header) (ledger.NodeID, bool) {
	if !h.Kind.isRow() {
		return 0, false
	}
	ep := d.epochs(h.Epoch)
	if ep == nil {
		return 0, false
	}
	n, err := d.names.of(ep)
	if err != nil || h.Ref >= len(n.ids) {
		return 0, false
	}
	return n.ids[h.Ref], true
}

// Decode reads one packet. The result shares no memory with it, but perhaps with
// results before: it must not be changed.
//
// A packet of a kind of a later version gives KindUnknown and no error. Errors
// are *[MalformedError], *[TooLargeError], *[ForeignRootError],
// *[UnknownEpochError], *[UnknownVectorError], *[LostBaseError] and [StaleError];
// after each the packet counts as
// lost. Lessons O13, O16, O22.
func (d *Decoder) Decode(packet []byte) (Message, error) {
	if len(packet) > MaxLong {
		return Message{}, &TooLargeError{Size: len(packet)}
	}
	r := &reader{b: packet}
	h, fields := r.header()
	if err := r.err(); err != nil {
		return Message{}, err
	}
	asksForOurs := h.Kind == KindLineageWanted && h.Root == 0
	if d.root != 0 && h.Root != RootTag(d.root) && !asksForOurs {
		return Message{}, &ForeignRootError{Tag: h.Root}
	}
	switch h.Kind {
	case KindRow, KindDelta, KindCopy:
		row, err := d.row(r, h, fields)
		return Message{Kind: h.Kind, Row: row}, err
	case KindRowWanted:
		m := Message{Kind: h.Kind, Inc: r.uint(1<<64-1, "inc"), Have: r.uint(MaxValue, "seq")}
		return m, r.rest(fields - (rowWantedFields - headFields))
	case KindVector:
		return d.vector(r, fields)
	case KindEpoch:
		return d.epoch(r, h, fields)
	case KindVectorWanted:
		m := Message{Kind: h.Kind, Digest: r.uint(1<<64-1, "digest")}
		return m, r.rest(fields - 1)
	case KindLineageWanted:
		return Message{Kind: h.Kind}, r.rest(fields)
	case KindEpochWanted:
		m := Message{Kind: h.Kind, ID: r.epochID("epoch")}
		return m, r.rest(fields - 2)
	default:
		return Message{Kind: KindUnknown}, r.rest(fields)
	}
}

// rest skips the n fields of a later minor, refuses bytes behind them and
// returns the packet's first fault.
func (r *reader) rest(n int) error {
	r.skip(n, "later")
	r.end()
	return r.err()
}

// part reads what all kinds that travel in parts end with.
func (r *reader) part(limit int) (total, offset int, part []byte) {
	total = int(r.uint(uint64(limit), "total"))
	offset = int(r.uint(uint64(limit), "offset"))
	part = r.bin(PartSize, "part")
	if r.why == ReasonNone && !partFits(total, offset, len(part)) {
		r.fail(ReasonMismatch, "part")
	}
	return total, offset, part
}

func (d *Decoder) vector(r *reader, fields int) (Message, error) {
	digest := r.uint(1<<64-1, "digest")
	total, offset, part := r.part(8 * MaxRefs)
	if total%8 != 0 {
		r.fail(ReasonMismatch, "total")
	}
	if err := r.rest(fields - (vectorFields - headFields)); err != nil {
		return Message{}, err
	}
	m := Message{Kind: KindVector, Digest: digest}
	if d.vectors.Has(digest) {
		return m, nil
	}
	incs := d.parts.add(whole{kind: KindVector, digest: digest, total: total}, offset, part)
	if incs == nil {
		m.Digest = 0
		return m, nil
	}
	if digestOf(incs) != digest {
		return Message{}, malformed(ReasonMismatch, "digest")
	}
	d.vectors.put(digest, incs)
	return m, nil
}

func (d *Decoder) epoch(r *reader, h Header, fields int) (Message, error) {
	w := whole{kind: KindEpoch, id: r.epochID("epoch"), parent: r.epochID("parent")}
	root := r.uint(1<<64-1, "root")
	total, offset, part := r.part(MaxBody)
	if err := r.rest(fields - (epochFields - headFields)); err != nil {
		return Message{}, err
	}
	if d.root != 0 && root != d.root {
		return Message{}, &ForeignRootError{Tag: RootTag(root)}
	}
	if RootTag(root) != h.Root {
		return Message{}, malformed(ReasonMismatch, "root")
	}
	m := Message{Kind: KindEpoch, ID: w.id}
	if d.epochs(w.id) != nil {
		return m, nil
	}
	w.digest, w.total = root, total
	if body := d.parts.add(w, offset, part); body != nil {
		m.Epoch = &EpochBody{ID: w.id, Parent: w.parent, Root: root, Body: body}
	}
	return m, nil
}
