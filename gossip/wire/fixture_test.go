package wire

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"subak/allocator"
	"subak/allocator/ledger"
)

const testRoot = 0xfeedfacecafe1234

// side is one node's half of a conversation: its own directory, so that the same
// name has different numbers on the two sides.
type side struct {
	dir     *ledger.Directory
	vectors *Vectors
	enc     *Encoder
	dec     *Decoder
	known   map[ledger.EpochID]*ledger.Epoch
}

// newSide interns the names in the order given.
func newSide(order ...string) *side {
	s := &side{dir: ledger.NewDirectory(), vectors: NewVectors(), known: map[ledger.EpochID]*ledger.Epoch{}}
	for _, name := range order {
		s.dir.Intern(name)
	}
	s.enc = NewEncoder(testRoot, s.dir, s.vectors)
	s.dec = NewDecoder(testRoot, s.dir, s.vectors, func(id ledger.EpochID) *ledger.Epoch { return s.known[id] })
	return s
}

// learn makes the epoch known to this side and returns this side's record of it.
func (s *side) learn(id ledger.EpochID, roster, parents []string) *ledger.Epoch {
	ep := &ledger.Epoch{ID: id, Root: testRoot, Body: []byte("body")}
	for _, name := range roster {
		ep.Roster = append(ep.Roster, ledger.Member{ID: s.dir.Intern(name), Weight: 1})
	}
	for _, name := range parents {
		ep.ParentRoster = append(ep.ParentRoster, s.dir.Intern(name))
	}
	s.known[id] = ep
	return ep
}

func rosterOf(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("pop-%03d", i)
	}
	return names
}

// inc returns a 64-bit incarnation that looks random and is the same each time.
func inc(i int) uint64 { return (uint64(i)+1)*0x9e3779b97f4a7c15 | 1 }

const tickSeq = 460_123_456 // 200 ms ticks since 2024, in 2026

var testEpoch = ledger.EpochID{Version: 7, Hash: 0xa1b2c3d4e5f60718}

// fullRow is an ordinary row of a budget of 2 classes: node 0 of n, everybody
// heard within a few ticks, two loans.
func fullRow(n int) *ledger.Row {
	r := &ledger.Row{
		Node: 0, Inc: inc(0), Seq: tickSeq, Term: 3 * time.Second, Epoch: testEpoch, Acked: true, Digest: 0xdeadbeef, Clock: 3_456_789_012,
		Heard: make([]ledger.Heard, n), Extra: make([]ledger.NodeID, n),
		Sections: []ledger.Section{{
			Ceiling: 4_000_000_000,
			Demand:  []allocator.Rate{4_000_000_000, 2_718_281_000},
			Loans:   []ledger.Loan{{To: 3, Amount: 912_345_678}, {To: 17, Amount: 1_123_456_789}},
		}},
	}
	for i := range n {
		r.Extra[i] = ledger.NodeID(i)
		if i > 0 {
			r.Heard[i] = ledger.Heard{Inc: inc(i), Seq: tickSeq - uint64(i%5)}
		}
	}
	return r
}

// namedRow is a row without numbers that only mean something on one side.
type namedRow struct {
	Node                  string
	Inc, Seq              uint64
	Term                  time.Duration
	Epoch                 ledger.EpochID
	Acked, Recovering     bool
	Digest, Clock         uint32
	CarriesHeard          bool
	Heard                 map[string]ledger.Heard
	Extra                 []string
	Ceilings              []allocator.Rate
	Demands               [][]allocator.Rate
	Loans, CapSeqs, CapTo []map[string]uint64
}

func (s *side) named(r *ledger.Row) namedRow {
	out := namedRow{
		Node: s.dir.Name(r.Node), Inc: r.Inc, Seq: r.Seq, Term: r.Term.Truncate(time.Millisecond), Epoch: r.Epoch,
		Acked: r.Acked, Recovering: r.Recovering, Digest: r.Digest, CarriesHeard: len(r.Heard) > 0,
		Heard: map[string]ledger.Heard{},
	}
	if out.CarriesHeard {
		out.Clock = r.Clock
	}
	for id, h := range r.Heard {
		if h != (ledger.Heard{}) {
			out.Heard[s.dir.Name(ledger.NodeID(id))] = h
		}
	}
	for _, id := range r.Extra {
		out.Extra = append(out.Extra, s.dir.Name(id))
	}
	slices.Sort(out.Extra)
	out.Extra = slices.Compact(out.Extra)
	for _, sec := range r.Sections {
		loans, seqs, amounts := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
		for _, l := range sec.Loans {
			loans[s.dir.Name(l.To)] = uint64(l.Amount)
		}
		for _, c := range sec.Caps {
			seqs[s.dir.Name(c.Lender)], amounts[s.dir.Name(c.Lender)] = c.Seq, uint64(c.Amount)
		}
		out.Ceilings = append(out.Ceilings, sec.Ceiling)
		out.Demands = append(out.Demands, sec.Demand)
		out.Loans, out.CapSeqs, out.CapTo = append(out.Loans, loans), append(out.CapSeqs, seqs), append(out.CapTo, amounts)
	}
	return out
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustEqualRows(t fataler, from *side, want *ledger.Row, to *side, got *ledger.Row) {
	t.Helper()
	if diff := cmp.Diff(from.named(want), to.named(got)); diff != "" {
		t.Fatalf("row changed on the way (-sent +got):\n%s", diff)
	}
	for i := range got.Sections {
		s := got.Sections[i]
		byTo := func(a, b ledger.Loan) int { return int(a.To - b.To) }
		byLender := func(a, b ledger.Cap) int { return int(a.Lender - b.Lender) }
		if !slices.IsSortedFunc(s.Loans, byTo) || !slices.IsSortedFunc(s.Caps, byLender) {
			t.Fatalf("section %d is not sorted by this side's numbers: %+v", i, s)
		}
	}
}

// decodeRow decodes and follows the protocol: an unknown vector is asked for.
func decodeRow(t fataler, from, to *side, packet []byte) *ledger.Row {
	t.Helper()
	m, err := to.dec.Decode(packet)
	if unknown, ok := errors.AsType[*UnknownVectorError](err); ok {
		answer(t, from, to, to.enc.VectorWanted(unknown.Digest))
		m, err = to.dec.Decode(packet)
	}
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if m.Kind != KindRow || m.Row == nil {
		t.Fatalf("decoded %v instead of a row", m.Kind)
	}
	return m.Row
}

// answer lets from answer to's question for a vector.
func answer(t fataler, from, to *side, question []byte) {
	t.Helper()
	q, err := from.dec.Decode(question)
	if err != nil || q.Kind != KindVectorWanted {
		t.Fatalf("question: %v %v", q.Kind, err)
	}
	packets := from.enc.Vector(q.Digest)
	for i, p := range packets {
		m, err := to.dec.Decode(p)
		if err != nil || m.Kind != KindVector {
			t.Fatalf("vector part: %v %v", m.Kind, err)
		}
		if last := i == len(packets)-1; last != (m.Digest == q.Digest) {
			t.Fatalf("part %d of %d says complete=%v", i+1, len(packets), m.Digest == q.Digest)
		}
	}
}

// pairOf returns two sides that know an epoch of n nodes, the second with other
// numbers for the names.
func pairOf(t *testing.T, n int) (from, to *side, ep *ledger.Epoch) {
	t.Helper()
	roster := rosterOf(n)
	from = newSide(roster...)
	backwards := slices.Clone(roster)
	slices.Reverse(backwards)
	to = newSide(backwards...)
	ep = from.learn(testEpoch, roster, nil)
	to.learn(testEpoch, roster, nil)
	return from, to, ep
}
