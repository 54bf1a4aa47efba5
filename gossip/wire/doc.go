// Package wire is the codec of what Subak nodes send each other: rows, the
// incarnation vectors that rows refer to, and config epochs.
//
// # Model
//
// A packet is one msgpack array. A packet sent alone is at most [MaxPacket]
// bytes, so that it survives an MTU of 1280 with the transport's label and
// encryption around it. Numbers are unsigned integers; nothing else is accepted
// where a number is due. Every packet starts with the same three fields:
//
//	format   16*major + minor. Another major is refused, any minor is read.
//	kind     1 row, 2 vector, 3 vector wanted, 4 epoch, 5 epoch wanted,
//	         6 lineage wanted, 7 delta, 8 copy, 9 row wanted. Others are skipped
//	         (KindUnknown), so that new ones can be added.
//	root     32 bits of the lineage's fingerprint (RootTag): packets of another
//	         cluster are refused before anything else is read. 0 in a lineage
//	         wanted of a node that does not know its own yet.
//
// The fields after these, by kind:
//
//	row            version, hash   the epoch the row was published at (EpochID)
//	               node            ref: who published it
//	               inc, seq        each >= 1
//	               marks           2*recovering + acked; higher bits are a later minor's
//	               term            lease length in ms, rounded down, >= 1
//	               digest          32 bits, shown to operators
//	               sections        bin, below
//	               -- the rest may be missing, from the right, when empty --
//	               vector          uint: the digest of the incarnation vector, or
//	                               bin: the vector itself
//	               heard           bin, below; empty: the row does not carry it
//	               wait            bin: the wait set, as lengths of runs of refs
//	                               that are out, in, out, in ... of it
//	               extras          array of names (str), sorted
//	               clock           the publisher's lease clock in ms modulo 2^32;
//	                               only with heard, without which it bounds nothing
//	vector         digest, total, offset, part (bin)
//	vector wanted  digest
//	epoch          version, hash, parent version, parent hash, root (64 bits),
//	               total, offset, part (bin)
//	epoch wanted   version, hash
//	delta          as a row, with the sections that changed since the base, and
//	               before the optional fields:
//	               base            seq of the row - seq of the base, >= 1
//	copy           as a row, with all sections or those that changed, then
//	               base            as above; 0: all sections
//	               of              ref: the peer that the copy is for
//	               life            the incarnation heard of it, 0 for none
//	               heard           code as in heard below
//	               and of the optional fields wait, extras and clock
//	row wanted     inc of the asked node, seq of the row that the asker has, or 0
//	lineage wanted nothing; the answer is the epoch that the asked node works under
//
// A later minor may append fields to the array of a kind; they are skipped. A
// relay forwards the bytes it got, so nothing it does not know is lost.
//
// A ref is an index into a list of names: the epoch's roster, then the names of
// its parent roster that are not in the roster, sorted, then the row's extras,
// which are all the other names the row mentions. Rows thus carry no names as
// long as nobody outside two rosters matters.
//
// Inside the bins of a row all numbers are varints (unsigned LEB128, shortest
// form), because msgpack has no integer between 4 and 8 bytes:
//
//	sections  for each budget: shape = 4*K + 2*(has loans) + (has caps); ceiling;
//	          K demands in steps of DemandGrain; if any, the number of loans and
//	          for each: ref, amount; if any, the number of caps and for each:
//	          ref, zigzag(seq of the row - seq of the cap), amount.
//	          Loans and caps strictly ascend by ref.
//	changes   in a delta: for each changed section: 16 * (index - index of the one
//	          before - 1) + mask of what changed (1 ceiling, 2 demand, 4 loans,
//	          8 caps); then those, as in sections but without the shape, and with
//	          a number of loans or caps that may be 0, and each amount as
//	          4 * (amount >> 8s) + s, where s bytes of zeros are left out
//	heard     for each ref: 0 for never heard, 1 for an incarnation of which no row
//	          was merged, else 2 + zigzag(seq of the row - heard seq)
//
// # The incarnation vector
//
// Who was heard in which incarnation changes only with restarts, so a row names
// that list by its 64-bit hash (xxhash) instead of carrying it. The vector is
// the incarnations of all refs, 8 bytes each, big endian, 0 for never heard.
// The publisher's own place holds its own incarnation, so in quiet times every
// node's vector is the same and one copy serves for all. Vectors are kept by
// their hash ([Vectors]), whoever sent them: a relay can answer for the
// publisher. The encoder puts the vector itself into the first rows after a
// change and every 16th row. Where that does not fit, it returns separate vector
// packets with the first rows after a change. A receiver that lacks a vector
// cannot read the row ([UnknownVectorError]): it treats the row as lost and asks.
//
// # Deltas and copies
//
// A row that does not fit in a datagram goes as a delta: the sections that
// changed since an earlier row of the same life and epoch, the base. The encoder
// takes the oldest base with which the packet stays within MaxDelta bytes, or a
// lower limit that it is given, so
// that as many receivers as can be are able to apply it. A receiver applies it if
// the newest row it merged is of that life and epoch and not older than the base:
// what a delta says is absolute, so a younger row serves as well. What it rebuilds
// is the row itself, unchanged loans and all, and shares the memory of unchanged
// sections with the row before. Otherwise the delta counts as lost
// ([LostBaseError]) and the receiver asks the publisher (row wanted), who answers
// with a delta from what the asker has or with the whole row ([Encoder.Repair]).
// Where not even the changes since the row before fit, they go by stream. Nothing
// is cut into parts: such bursts are rare, and a part lost is a row lost.
//
// A copy is made for one peer and carries, of heard, only that peer's entry. The
// vector grows with the cluster; the copy does not.
//
// An older node skips both kinds, as it does all kinds it does not know: the rows
// count as lost. A cluster whose rows fit in a datagram never sends them.
//
// # Invariants
//
//   - Bytes from outside never panic, never block, and never allocate by a length
//     they claim: every length is bounded by the bytes that are there or by a
//     limit below first.
//   - A packet is accepted whole or not at all. A refused packet changes nothing
//     but, for a part, the bounded store of unfinished assemblies.
//   - Nothing is dropped from a row to make it fit. A row over MaxPacket is
//     returned with a [TooLargeError]: it is whole and may travel by stream.
//   - A decoded message shares no memory with the packet. Its sections may be those
//     of rows decoded before, which said the same: nobody may change them.
//
// # Concurrency
//
// Nothing here is safe for concurrent use, and [Peek] and [Packets] keep no
// state. One goroutine owns an Encoder, a Decoder and their Vectors, together
// with the ledger.Directory they share.
//
// The library's decoder is not used: it takes nil, floats, negative numbers and
// trailing bytes without an error and allocates by claimed lengths when it
// skips. Tests use it as the second opinion on every packet.
//
// Source: conservation.md "State and row", "Row size and scale"; lessons.md O13,
// O16, O18, O19, O22.
package wire

// Format of the packets this package writes. FormatMajor changes only with a
// format that an older node must not read.
const (
	FormatMajor = 1
	FormatMinor = 0
)

// Limits on everything that arrives. All are part of the format: raising one
// needs every node to know it.
const (
	// MaxPacket is the size in bytes up to which a packet may be a datagram:
	// 1280 (the smallest IPv6 MTU) less IP, UDP, label, encryption, MAC and the
	// frame around a packet, with names of up to 30 bytes.
	MaxPacket = 1100
	// MaxDelta is the size in bytes that a delta has at most, if it can: with
	// the frame, the encryption and the label around it, a datagram of 1000.
	MaxDelta = 920
	// MaxLong is the size in bytes up to which a packet is read at all. Between
	// MaxPacket and MaxLong it can come by stream only.
	MaxLong = 64 << 10
	// MaxState is the size in bytes of a push/pull state.
	MaxState = 4 << 20
	// MaxName is the length of a node name in bytes; names are valid UTF-8 and
	// not empty.
	MaxName = 64
	// MaxNodes bounds a roster, MaxExtras the names of one row outside the
	// rosters, and MaxRefs everything a row can refer to.
	MaxNodes  = 4096
	MaxExtras = 256
	MaxRefs   = 2*MaxNodes + MaxExtras
	// MaxLearned bounds the names that a decoder adds to the directory on the
	// word of rows alone. Config epochs are not counted.
	MaxLearned = 1024
	// MaxClasses bounds the classes of a budget, MaxSections the budgets of a row.
	MaxClasses  = 64
	MaxSections = 4096
	// MaxValue bounds rates in micro-units/s, sequence numbers and epoch versions.
	MaxValue = 1 << 62
	// MaxTermMillis bounds the lease length: one day.
	MaxTermMillis = 24 * 60 * 60 * 1000
	// MaxBody is the size in bytes of an epoch's body over all its parts.
	MaxBody = 256 << 10
	// PartSize is the payload in bytes of every part but the last.
	PartSize = 1000
)

// Kind says what a packet is.
type Kind uint8

// The kinds of packet. The numbers are part of the format.
const (
	KindUnknown Kind = iota // of a later version: skip it
	KindRow
	KindVector
	KindVectorWanted
	KindEpoch
	KindEpochWanted
	KindLineageWanted
	KindDelta
	KindCopy
	KindRowWanted
	kindEnd
)

// String returns a stable word for logs and metric labels.
func (k Kind) String() string {
	switch k {
	case KindRow:
		return "row"
	case KindVector:
		return "vector"
	case KindVectorWanted:
		return "vector_wanted"
	case KindEpoch:
		return "epoch"
	case KindEpochWanted:
		return "epoch_wanted"
	case KindLineageWanted:
		return "lineage_wanted"
	case KindDelta:
		return "delta"
	case KindCopy:
		return "copy"
	case KindRowWanted:
		return "row_wanted"
	default:
		return "unknown"
	}
}

// isRow reports whether packets of the kind carry a row in some form.
func (k Kind) isRow() bool { return k == KindRow || k == KindDelta || k == KindCopy }

// ForAll reports whether packets of the kind carry a row that means the same to
// every node, so that it may be relayed and told from a duplicate by Peek.
func (k Kind) ForAll() bool { return k == KindRow || k == KindDelta }

// RootTag returns the 32 bits by which packets name the lineage root. Two
// clusters share a tag once in 2^32; their rows are then still refused, because
// they name epochs that the other never heard of.
func RootTag(root uint64) uint32 { return uint32(root ^ root>>32) }
