package ledger

import (
	"time"

	"subak/allocator"
)

// Row is what one node publishes about its budgets. It never changes
// for a given (Node, Inc, Seq), so it may be kept, relayed and merged by pointer.
type Row struct {
	Node     NodeID
	Inc, Seq uint64
	// Term is the lease length of the loans in this row: the lender's word. A
	// borrower uses the smaller of this and its own.
	Term  time.Duration
	Epoch EpochID
	// Acked says that the publisher acknowledged Epoch (rule E2).
	Acked bool
	// Recovering marks a publisher without memory of its former life: it is no
	// witness for others.
	Recovering bool
	// Clock is the publisher's lease clock when it made the row (P[Seq]), in
	// milliseconds, rounded down, modulo 2^32 (49 days); 0 means not told. It is
	// compared with other readings of the same clock only, to bound the rate at
	// which that clock runs; nothing of the protocol is decided by it.
	Clock uint32
	// Digest of the publisher's view and targets, shown to operators as
	// agreement; nothing is decided by it.
	Digest uint32
	// Heard is indexed by NodeID: the newest row of each node merged by the
	// publisher. A zero entry means none, as does one that a shorter slice does
	// not reach. Merging is applying, so it is also the acknowledgement of that
	// row's loans. An entry with an incarnation but Seq 0 says that no row of
	// that life was merged, only that the life is known (from disk or from a
	// witness). Heard is either complete or nil; nil means that this copy of the
	// row does not carry it, and then the row proves and activates nothing.
	Heard []Heard
	// Only is set in a copy made for one peer, which carries that peer's entry
	// of Heard in place of all. It is enough for loans, acknowledgements and
	// liveness between the two. Heard is nil then.
	Only *Entry
	// Extra is the publisher's wait set W (closure of rule E3).
	Extra []NodeID
	// Sections, one for each budget, in the epoch's order.
	Sections []Section
}

// Entry is what a row's publisher had heard of one node.
type Entry struct {
	Of NodeID
	Heard
}

// heardOf returns what the publisher had heard of id, as far as this copy of
// the row says.
func (r *Row) heardOf(id NodeID) Heard {
	if r.Only != nil && r.Only.Of == id {
		return r.Only.Heard
	}
	if int(id) < len(r.Heard) {
		return r.Heard[id]
	}
	return Heard{}
}

// newerThan orders the rows of one node (L1).
func (r *Row) newerThan(o *Row) bool {
	return r.Inc > o.Inc || r.Inc == o.Inc && r.Seq > o.Seq
}

// Heard names one row by its publisher's incarnation and sequence number.
type Heard struct{ Inc, Seq uint64 }

func (h Heard) before(o Heard) bool {
	return h.Inc < o.Inc || h.Inc == o.Inc && h.Seq < o.Seq
}

// Section is one budget's part of a row.
type Section struct {
	// Ceiling is the base the publisher may use or lend now: 0 in quarantine,
	// before proof and before activation.
	Ceiling allocator.Rate
	// Demand per class, in steps of 1000 micro-units (DemandGrain).
	Demand []allocator.Rate
	Loans  []Loan // sorted by To, amounts > 0
	Caps   []Cap  // sorted by Lender
}

// DemandGrain is the resolution of published demand. Every node, the publisher
// included, allocates from the published figure.
const DemandGrain allocator.Rate = 1000

// Loan is base lent to one node.
type Loan struct {
	To     NodeID
	Amount allocator.Rate
}

// Cap is a release (rule L7): "of every row that Lender published before it
// heard my row Seq, I use at most Amount".
type Cap struct {
	Lender NodeID
	Seq    uint64
	Amount allocator.Rate
}
