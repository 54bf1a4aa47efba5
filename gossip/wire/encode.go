package wire

import (
	"bytes"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"subak/allocator/ledger"
)

// Encoder writes packets of one node. It reuses its memory: encoding a row does
// not allocate but in the rare cases that [Encoder.Row] names.
type Encoder struct {
	root    uint64
	dir     *ledger.Directory
	names   nameCache
	vectors *Vectors
	current vectorState
	history history
	limit   int // bytes that deltas are kept within, if they can be

	buf bytes.Buffer
	out *msgpack.Encoder // into buf

	// Scratch of one row.
	extras   []ledger.NodeID // sorted by name; refs after the epoch's names
	incs     []byte
	heard    []byte
	wait     []byte
	waiting  []bool // by ref
	sections []byte // all of them, or changes since base
	base     uint64 // seq of the row less that of the base; 0: all sections
	pairs    []pair
	copied   copied
}

// vectorState says which vector the rows refer to and how often that one was
// published.
type vectorState struct {
	digest uint64
	rows   uint64
}

// How often the vector itself goes with a row: the first rows after a change,
// which half of the losses of a bad link do not outlast, and then now and then,
// for those who joined in between.
const (
	freshRows  = 3
	repeatRows = 16
)

// NewEncoder returns an encoder for the lineage with that root fingerprint.
// Vectors and the directory are shared with the node's Decoder.
func NewEncoder(root uint64, dir *ledger.Directory, vectors *Vectors) *Encoder {
	e := &Encoder{root: root, dir: dir, vectors: vectors, names: nameCache{dir: dir}, limit: MaxDelta}
	e.buf.Grow(MaxPacket)
	e.out = msgpack.NewEncoder(&e.buf)
	return e
}

// SetLimit says how many bytes the next deltas may take, at most MaxDelta, by
// reaching back to an older base. What has changed since the row before goes in
// any case.
func (e *Encoder) SetLimit(bytes int) { e.limit = min(bytes, MaxDelta) }

// SetRoot changes the lineage, for a node that learned it only after its start.
func (e *Encoder) SetRoot(root uint64) { e.root = root }

// start begins a packet of n fields after the ones all packets share.
// Writing to a bytes.Buffer cannot fail, so the library's errors are always nil
// and are not looked at, here and in the other methods.
func (e *Encoder) start(k Kind, n int) {
	e.buf.Reset()
	_ = e.out.EncodeArrayLen(headFields + n)
	e.uint(FormatMajor*16 + FormatMinor)
	e.uint(uint64(k))
	e.uint(uint64(RootTag(e.root)))
}

func (e *Encoder) uint(n uint64) { _ = e.out.EncodeUint(n) }

func (e *Encoder) bin(b []byte) {
	_ = e.out.EncodeBytesLen(len(b))
	e.buf.Write(b)
}

func (e *Encoder) epochID(id ledger.EpochID) {
	e.uint(id.Version)
	e.uint(id.Hash)
}

// finish returns a copy of the packet.
func (e *Encoder) finish() []byte { return slices.Clone(e.buf.Bytes()) }

// EpochWanted returns a packet that asks a peer for an epoch. The answer is
// [Encoder.Epoch].
func (e *Encoder) EpochWanted(id ledger.EpochID) []byte {
	e.start(KindEpochWanted, epochWantedFields-headFields)
	e.epochID(id)
	return e.finish()
}

// LineageWanted returns a packet that asks a peer for the epoch that it works
// under. An encoder of root 0 makes one that every lineage reads. The answer is
// [Encoder.Epoch].
func (e *Encoder) LineageWanted() []byte {
	e.start(KindLineageWanted, lineageWantedFields-headFields)
	return e.finish()
}

// VectorWanted returns a packet that asks a peer for an incarnation vector. The
// answer is [Encoder.Vector].
func (e *Encoder) VectorWanted(digest uint64) []byte {
	e.start(KindVectorWanted, vectorWantedFields-headFields)
	e.uint(digest)
	return e.finish()
}

// RowWanted returns a packet that asks the publisher for its newest row, in the
// life inc, for a node that has row have of it (0 for none). The answer is
// [Encoder.Repair].
func (e *Encoder) RowWanted(inc, have uint64) []byte {
	e.start(KindRowWanted, rowWantedFields-headFields)
	e.uint(inc)
	e.uint(have)
	return e.finish()
}

// Vector returns the packets that carry the vector of that digest, published by
// this node or by another, or nil if it is not held. A vector of n names takes
// about n/137 packets; the caller limits how often it answers.
func (e *Encoder) Vector(digest uint64) [][]byte {
	incs := e.vectors.get(digest)
	if incs == nil {
		return nil
	}
	packets := make([][]byte, 0, partCount(len(incs)))
	for offset := 0; offset < len(incs); offset += PartSize {
		e.start(KindVector, vectorFields-headFields)
		e.uint(digest)
		e.part(incs, offset)
		packets = append(packets, e.finish())
	}
	return packets
}

func (e *Encoder) part(all []byte, offset int) {
	e.uint(uint64(len(all)))
	e.uint(uint64(offset))
	e.bin(all[offset:min(len(all), offset+PartSize)])
}

// Epoch returns the packets that carry the epoch's body, its ID, its parent's
// and the root. It refuses a body that is empty or over MaxBody and an epoch of
// another root.
func (e *Encoder) Epoch(ep *ledger.Epoch) ([][]byte, error) {
	if ep.Root != e.root {
		return nil, &ForeignRootError{Tag: RootTag(ep.Root)}
	}
	if len(ep.Body) == 0 || len(ep.Body) > MaxBody {
		return nil, malformed(ReasonLength, "part")
	}
	if ep.ID.Version > MaxValue || ep.Parent.Version > MaxValue {
		return nil, malformed(ReasonRange, "epoch")
	}
	packets := make([][]byte, 0, partCount(len(ep.Body)))
	for offset := 0; offset < len(ep.Body); offset += PartSize {
		e.start(KindEpoch, epochFields-headFields)
		e.epochID(ep.ID)
		e.epochID(ep.Parent)
		e.uint(ep.Root)
		e.part(ep.Body, offset)
		packets = append(packets, e.finish())
	}
	return packets, nil
}
