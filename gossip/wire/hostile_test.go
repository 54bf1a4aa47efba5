package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"subak/allocator"
	"subak/allocator/ledger"
)

// pack writes any values by the library, as a hostile or later peer could.
func pack(t testing.TB, fields ...any) []byte {
	t.Helper()
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	if err := e.Encode(fields); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// vars writes varints.
func vars(numbers ...uint64) []byte {
	b := []byte{}
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func incsOf(incs ...uint64) []byte {
	b := []byte{}
	for _, n := range incs {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// Places of a row's fields.
const (
	atFormat = iota
	atKind
	atRoot
	atVersion
	atHash
	atNode
	atInc
	atSeq
	atMarks
	atTerm
	atDigest
	atSections
	atVector
	atHeard
	atWait
	atExtras
)

var tag = uint64(RootTag(testRoot))

// goodRow is the fields of a row by node 1 of three that mentions one stranger.
func goodRow() []any {
	return []any{
		uint64(16), uint64(KindRow), tag, testEpoch.Version, testEpoch.Hash, uint64(1), uint64(99), uint64(1000), uint64(1),
		uint64(3000), uint64(5),
		vars(2<<2|hasLoans|hasCaps, 500, 7, 8, 1, 0, 60, 1, 2, zigzag(1000, 990), 5),
		incsOf(11, 99, 13, 14), vars(2, 0, 1, 6), vars(0, 3), []string{"stranger"},
	}
}

func with(field int, value any) []any {
	fields := goodRow()
	fields[field] = value
	return fields
}

func threeNodes() *side {
	s := newSide()
	s.learn(testEpoch, []string{"a", "b", "c"}, []string{"a"})
	return s
}

func TestTheRowThatTheHostileOnesAreMadeFromIsAccepted(t *testing.T) {
	s := threeNodes()
	m, err := s.dec.Decode(pack(t, goodRow()...))
	if err != nil {
		t.Fatal(err)
	}
	want := &ledger.Row{
		Node: 1, Inc: 99, Seq: 1000, Term: 3 * time.Second, Epoch: testEpoch, Acked: true, Digest: 5,
		Heard: []ledger.Heard{{Inc: 11, Seq: 1000}, {}, {Inc: 13}, {Inc: 14, Seq: 998}},
		Extra: []ledger.NodeID{0, 1, 2},
		Sections: []ledger.Section{{
			Ceiling: 500, Demand: []allocator.Rate{7000, 8000},
			Loans: []ledger.Loan{{To: 0, Amount: 60}}, Caps: []ledger.Cap{{Lender: 2, Seq: 990, Amount: 5}},
		}},
	}
	mustEqualRows(t, s, want, s, m.Row)
	if id, ok := s.dir.Lookup("stranger"); !ok || id != 3 {
		t.Errorf("stranger has number %v %v, want 3", id, ok)
	}
}

func TestHostileRowsAreRefusedForTheRightReason(t *testing.T) {
	sections := func(numbers ...uint64) []any { return with(atSections, vars(numbers...)) }
	huge := uint64(MaxValue) + 1
	lifeless := with(atVector, incsOf(11, 99, 0, 14))
	cases := []struct {
		name   string
		fields []any
		want   Reason
	}{
		{"nil for a number", with(atSeq, nil), ReasonType},
		{"NaN for a number", with(atSeq, math.NaN()), ReasonType},
		{"float for a number", with(atTerm, float32(3)), ReasonType},
		{"negative fixint", with(atSeq, int64(-1)), ReasonType},
		{"negative int64", with(atInc, int64(math.MinInt64)), ReasonType},
		{"bool for a number", with(atNode, true), ReasonType},
		{"string for a number", with(atDigest, "5"), ReasonType},
		{"array for a number", with(atMarks, []int{1}), ReasonType},
		{"map for a bin", with(atSections, map[string]int{}), ReasonType},
		{"string for a bin", with(atHeard, "abc"), ReasonType},
		{"nil for a bin", with(atWait, nil), ReasonType},
		{"nil for a vector", with(atVector, nil), ReasonType},
		{"nil for names", with(atExtras, nil), ReasonType},
		{"number for a name", with(atExtras, []int{1}), ReasonType},
		{"nil for a name", with(atExtras, []any{nil}), ReasonType},

		{"root over 32 bits", with(atRoot, uint64(1)<<32), ReasonRange},
		{"another root", with(atRoot, tag^1), ReasonForeignRoot},
		{"another major", with(atFormat, uint64(32)), ReasonFormat},
		{"major 0", with(atFormat, uint64(1)), ReasonFormat},
		{"epoch version over the limit", with(atVersion, huge), ReasonRange},
		{"unknown epoch version", with(atVersion, testEpoch.Version+1), ReasonUnknownEpoch},
		{"unknown epoch hash", with(atHash, testEpoch.Hash+1), ReasonUnknownEpoch},
		{"node over the limit", with(atNode, uint64(MaxRefs)), ReasonRange},
		{"node outside the names", with(atNode, uint64(4)), ReasonMismatch},
		{"inc 0", with(atInc, uint64(0)), ReasonRange},
		{"seq 0", with(atSeq, uint64(0)), ReasonRange},
		{"seq over the limit", with(atSeq, huge), ReasonRange},
		{"seq 2^64-1", with(atSeq, uint64(math.MaxUint64)), ReasonRange},
		{"group over 255", with(atMarks, uint64(1024)), ReasonRange},
		{"term 0", with(atTerm, uint64(0)), ReasonRange},
		{"term over a day", with(atTerm, uint64(MaxTermMillis+1)), ReasonRange},
		{"digest over 32 bits", with(atDigest, uint64(1)<<32), ReasonRange},

		{"no classes", sections(0, 500), ReasonRange},
		{"65 classes", sections(65<<2, 500), ReasonRange},
		{"more classes than bytes", sections(64<<2, 500, 1), ReasonTruncated},
		{"ceiling over the limit", sections(1<<2, huge, 1), ReasonRange},
		{"demand over the limit", sections(1<<2, 5, MaxValue/1000+1), ReasonRange},
		{"shape only", sections(1<<2, 5), ReasonTruncated},
		{"loan count 0", sections(1<<2|hasLoans, 5, 1, 0, 9, 9), ReasonRange},
		{"more loans than names", sections(1<<2|hasLoans, 5, 1, 5, 0, 1, 2, 1, 3, 1, 1, 1, 1, 1), ReasonRange},
		{"more loans than bytes", sections(1<<2|hasLoans, 5, 1, 2, 0, 1, 2), ReasonTruncated},
		{"loan to nobody", sections(1<<2|hasLoans, 5, 1, 1, 4, 9), ReasonRange},
		{"loan to itself", sections(1<<2|hasLoans, 5, 1, 1, 1, 9), ReasonOrder},
		{"loan of 0", sections(1<<2|hasLoans, 5, 1, 1, 0, 0), ReasonRange},
		{"loan over the limit", sections(1<<2|hasLoans, 5, 1, 1, 0, huge), ReasonRange},
		{"loans unsorted", sections(1<<2|hasLoans, 5, 1, 2, 2, 9, 0, 9), ReasonOrder},
		{"loan twice", sections(1<<2|hasLoans, 5, 1, 2, 2, 9, 2, 9), ReasonOrder},
		{"cap twice", sections(1<<2|hasCaps, 5, 1, 2, 2, 0, 9, 2, 0, 9), ReasonOrder},
		{"cap of itself", sections(1<<2|hasCaps, 5, 1, 1, 1, 0, 9), ReasonOrder},
		{"cap seq below 1", sections(1<<2|hasCaps, 5, 1, 1, 0, zigzag(1000, 0), 9), ReasonRange},
		{"cap seq over the limit", sections(1<<2|hasCaps, 5, 1, 1, 0, zigzag(1000, huge), 9), ReasonRange},
		{"varint of 11 bytes", with(atSections, append(vars(1<<2), bytes.Repeat([]byte{0x80}, 11)...)), ReasonRange},
		{"varint longer than need be", with(atSections, []byte{1 << 2, 0x85, 0x00, 1}), ReasonRange},
		{"varint cut off", with(atSections, []byte{1 << 2, 5, 0x85}), ReasonTruncated},
		{"too many sections", with(atSections, bytes.Repeat(vars(1<<2, 5, 1), MaxSections+1)), ReasonLength},

		{"vector unknown", with(atVector, uint64(12345)), ReasonUnknownVector},
		{"vector too short", with(atVector, incsOf(11, 99, 13)), ReasonMismatch},
		{"vector too long", with(atVector, incsOf(11, 99, 13, 14, 15)), ReasonMismatch},
		{"vector of odd length", with(atVector, incsOf(11, 99, 13, 14)[1:]), ReasonMismatch},
		{"heard without incarnation", with(atVector, incsOf(0, 99, 13, 14)), ReasonRange},
		{"life without incarnation", lifeless, ReasonRange},
		{"vector but nobody heard", with(atHeard, []byte{}), ReasonMismatch},
		{"heard too few", with(atHeard, vars(2, 0, 1)), ReasonTruncated},
		{"heard too many", with(atHeard, vars(2, 0, 1, 6, 1)), ReasonTrailing},
		{"heard seq 0 as a row", with(atHeard, vars(2+zigzag(1000, 0), 0, 3, 5)), ReasonRange},
		{"heard seq below 0", with(atHeard, vars(2+zigzag(1000, 0)+2, 0, 3, 5)), ReasonRange},
		{"heard seq over the limit", with(atHeard, vars(2+zigzag(1000, huge), 0, 3, 5)), ReasonRange},
		{"heard code 2^64-1", with(atHeard, vars(math.MaxUint64, 0, 3, 5)), ReasonRange},

		{"wait set past the names", with(atWait, vars(0, 5)), ReasonRange},
		{"wait set gap past the names", with(atWait, vars(5, 1)), ReasonRange},
		{"wait set ends in a gap", with(atWait, vars(0, 1, 1)), ReasonTruncated},
		{"wait set with an empty run", with(atWait, vars(0, 1, 0, 1)), ReasonOrder},
		{"wait set of nobody", with(atWait, vars(1, 0)), ReasonOrder},

		{"empty name", with(atExtras, []string{""}), ReasonText},
		{"name not UTF-8", with(atExtras, []string{"\xff\xfe"}), ReasonText},
		{"name of 65 bytes", with(atExtras, []string{strings.Repeat("x", 65)}), ReasonLength},
		{"name of 300 bytes", with(atExtras, []string{strings.Repeat("x", 300)}), ReasonLength},
		{"names unsorted", with(atExtras, []string{"y", "x"}), ReasonOrder},
		{"clock of 33 bits", append(goodRow(), uint64(1<<32)), ReasonRange},
		{"nil for a clock", append(goodRow(), nil), ReasonType},
		{"name twice", with(atExtras, []string{"x", "x"}), ReasonOrder},
		{"name that the epoch has", with(atExtras, []string{"b"}), ReasonOrder},
		{"257 names", with(atExtras, make([]string, 257)), ReasonLength},

		{"no fields", []any{}, ReasonShort},
		{"format alone", []any{uint64(16)}, ReasonShort},
		{"head alone", goodRow()[:3], ReasonShort},
		{"last needed field missing", goodRow()[:atSections], ReasonShort},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := threeNodes()
			m, err := s.dec.Decode(pack(t, c.fields...))
			if got := ReasonOf(err); got != c.want {
				t.Errorf("got %v (%v), want %v", got, err, c.want)
			}
			if m.Row != nil {
				t.Error("a refused row came back")
			}
			if s.dir.Len() != 3 || s.vectors.Len() != 0 {
				t.Errorf("a refused row left %d names and %d vectors", s.dir.Len()-3, s.vectors.Len())
			}
		})
	}
}

func TestOtherHostilePacketsAreRefusedForTheRightReason(t *testing.T) {
	part := func(kind Kind, fields ...any) []byte {
		return pack(t, append([]any{uint64(16), uint64(kind), tag}, fields...)...)
	}
	eight := incsOf(7)
	epoch := func(root, total, offset uint64, body []byte) []byte {
		return part(KindEpoch, uint64(1), uint64(2), uint64(0), uint64(0), root, total, offset, body)
	}
	cases := []struct {
		name   string
		packet []byte
		want   Reason
	}{
		{"nothing", nil, ReasonTruncated},
		{"a number", []byte{16}, ReasonType},
		{"nil", []byte{0xc0}, ReasonType},
		{"a map", []byte{0x83, 16, 1, 1}, ReasonType},
		{"array of 4 G fields", []byte{0xdd, 255, 255, 255, 255, 16, 1}, ReasonLength},
		{"over MaxLong", make([]byte, MaxLong+1), ReasonTooLarge},
		{"kind negative", pack(t, uint64(16), int64(-1), tag), ReasonType},
		{"vector wanted without a digest", part(KindVectorWanted), ReasonShort},
		{"lineage wanted with bytes behind it", append(part(KindLineageWanted), 0), ReasonTrailing},
		{"epoch wanted without a hash", part(KindEpochWanted, uint64(1)), ReasonShort},
		{"epoch wanted of nil", part(KindEpochWanted, nil, nil), ReasonType},
		{"vector that hashes otherwise", part(KindVector, uint64(1), uint64(8), uint64(0), eight), ReasonMismatch},
		{"vector of 7 bytes", part(KindVector, digestOf(eight[:7]), uint64(7), uint64(0), eight[:7]), ReasonMismatch},
		{"vector of nothing", part(KindVector, digestOf(nil), uint64(0), uint64(0), []byte{}), ReasonMismatch},
		{"vector over the limit", part(KindVector, uint64(1), uint64(8*MaxRefs+8), uint64(0), eight), ReasonRange},
		{"part at an odd offset", part(KindVector, uint64(1), uint64(2400), uint64(8), eight), ReasonMismatch},
		{"part past the end", part(KindVector, uint64(1), uint64(8), uint64(PartSize), eight), ReasonMismatch},
		{"part too short", part(KindVector, uint64(1), uint64(2400), uint64(0), eight), ReasonMismatch},
		{"part too long", part(KindVector, uint64(1), uint64(2400), uint64(0), make([]byte, PartSize+1)), ReasonLength},
		{"bin of 4 GiB", append(part(KindVector, uint64(1), uint64(8), uint64(0), []byte{})[:len(part(KindVector, uint64(1), uint64(8), uint64(0), []byte{}))-2], 0xc6, 255, 255, 255, 255), ReasonLength},
		{"epoch body over the limit", epoch(testRoot, MaxBody+1, 0, eight), ReasonRange},
		{"epoch of a root that shares the tag", epoch(testRoot^1<<32^1, 8, 0, eight), ReasonForeignRoot},
		{"epoch without a body", epoch(testRoot, 0, 0, []byte{}), ReasonMismatch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := threeNodes()
			_, err := s.dec.Decode(c.packet)
			if got := ReasonOf(err); got != c.want {
				t.Errorf("got %v (%v), want %v", got, err, c.want)
			}
		})
	}
}

// samples is one packet of every kind, rows in all their forms included.
func samples(t testing.TB) (s *side, packets [][]byte) {
	t.Helper()
	s = newSide(rosterOf(22)...)
	ep := s.learn(testEpoch, rosterOf(22), nil)
	ep.Body = bytes.Repeat([]byte("body "), 500)
	add := func(r *ledger.Row) {
		packet, extra, err := s.enc.Row(r, ep)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, bytes.Clone(packet))
		packets = append(packets, extra...)
	}
	r := fullRow(22)
	r.Sections[0].Caps = []ledger.Cap{{Lender: 2, Seq: tickSeq - 1, Amount: 5}, {Lender: 4, Seq: tickSeq, Amount: 0}}
	for range freshRows + 1 {
		add(r)
	}
	add(bare(r))
	stranger := *r
	stranger.Recovering = true
	stranger.Extra = append(slices.Clone(r.Extra), s.dir.Intern("stranger"), s.dir.Intern("étrange"))
	add(&stranger)
	packets = append(packets, s.enc.EpochWanted(testEpoch), s.enc.VectorWanted(77), s.enc.LineageWanted(), NewEncoder(0, s.dir, NewVectors()).LineageWanted())
	packets = append(packets, s.enc.Vector(digestOf(s.enc.incs))...)
	if err := s.enc.StartCopies(&stranger, ep); err != nil {
		t.Fatal(err)
	}
	packets = append(packets, bytes.Clone(s.enc.Copy(5)), s.enc.RowWanted(99, 5))
	epochs, err := s.enc.Epoch(ep)
	if err != nil {
		t.Fatal(err)
	}
	return s, append(packets, epochs...)
}

// receiver is a side that knows the epoch of the samples under other numbers.
func receiver() *side {
	names := rosterOf(22)
	slices.Reverse(names)
	s := newSide(names...)
	s.learn(testEpoch, rosterOf(22), nil)
	return s
}

// receiverWith is a receiver that holds the vectors of the samples' sender.
func receiverWith(from *side) *side {
	to := receiver()
	for digest, el := range from.vectors.byDigest {
		to.vectors.put(digest, el.Value.(*vector).incs)
	}
	return to
}

func TestEveryCutAndEveryTrailingByteIsRefused(t *testing.T) {
	_, packets := samples(t)
	for k, p := range packets {
		for n := range p {
			if _, err := receiver().dec.Decode(p[:n]); ReasonOf(err) != ReasonTruncated {
				t.Fatalf("packet %d cut to %d of %d bytes: %v", k, n, len(p), err)
			}
		}
		for _, tail := range []byte{0, 0xc0, 0x90, 0xff} {
			if _, err := receiver().dec.Decode(append(bytes.Clone(p), tail)); ReasonOf(err) != ReasonTrailing {
				t.Fatalf("packet %d with a byte %x behind: %v", k, tail, err)
			}
		}
	}
}

func TestAChangedByteIsRefusedOrGivesAValidRow(t *testing.T) {
	from, packets := samples(t)
	for k, p := range packets {
		for i := range p {
			for _, b := range []byte{0, 1, 0x7f, 0x80, 0x90, 0xc0, 0xc4, 0xc6, 0xca, 0xcb, 0xcf, 0xd3, 0xdd, 0xff, p[i] ^ 1} {
				changed := bytes.Clone(p)
				changed[i] = b
				to := receiverWith(from)
				mustBeRefusedOrValid(t, to, changed, k)
			}
		}
	}
}

func mustBeRefusedOrValid(t *testing.T, to *side, packet []byte, k int) {
	t.Helper()
	m, err := to.dec.Decode(packet)
	if err != nil {
		if ReasonOf(err) == ReasonOther {
			t.Fatalf("packet %d: error without a reason: %v", k, err)
		}
		return
	}
	if m.Row == nil {
		return
	}
	if again, _, err := to.enc.Row(m.Row, to.known[m.Row.Epoch]); again == nil {
		t.Fatalf("packet %d: accepted a row that cannot be encoded: %v", k, err)
	}
}

func TestDeepNestingAndFalseCountsInLaterFieldsAreSafe(t *testing.T) {
	head := pack(t, uint64(16), uint64(99), tag, nil)
	head = head[:len(head)-1] // the later field is appended by hand
	cases := []struct {
		name  string
		field []byte
		want  Reason
	}{
		{"60,000 nested arrays", append(bytes.Repeat([]byte{0x91}, 60_000), 0xc0), ReasonNone},
		{"nested arrays without an end", bytes.Repeat([]byte{0x91}, 60_000), ReasonTruncated},
		{"array of 4 G", []byte{0xdd, 255, 255, 255, 255, 0}, ReasonTruncated},
		{"map of 4 G", []byte{0xdf, 255, 255, 255, 255, 0}, ReasonTruncated},
		{"str of 4 GiB", []byte{0xdb, 255, 255, 255, 255, 0}, ReasonTruncated},
		{"bin of 4 GiB", []byte{0xc6, 255, 255, 255, 255, 0}, ReasonTruncated},
		{"ext of 4 GiB", []byte{0xc9, 255, 255, 255, 255, 0}, ReasonTruncated},
		{"the code msgpack never uses", []byte{0xc1}, ReasonType},
		{"arrays of 4 G in arrays of 4 G", bytes.Repeat([]byte{0xdd, 255, 255, 255, 255}, 1000), ReasonTruncated},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			packet := append(bytes.Clone(head), c.field...)
			var err error
			allocs := testing.AllocsPerRun(5, func() { _, err = threeNodes().dec.Decode(packet) })
			if ReasonOf(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if allocs > 100 {
				t.Errorf("%v allocations", allocs)
			}
		})
	}
}

func TestTheEncoderRefusesWhatTheFormatCannotCarry(t *testing.T) {
	s := newSide(append(rosterOf(22), "", strings.Repeat("x", MaxName+1))...)
	ep := s.learn(testEpoch, rosterOf(22), nil)
	section := func(r *ledger.Row) *ledger.Section { return &r.Sections[0] }
	cases := []struct {
		name  string
		spoil func(r *ledger.Row)
		want  Reason
	}{
		{"another epoch", func(r *ledger.Row) { r.Epoch.Hash++ }, ReasonMismatch},
		{"inc 0", func(r *ledger.Row) { r.Inc = 0 }, ReasonRange},
		{"seq 0", func(r *ledger.Row) { r.Seq = 0 }, ReasonRange},
		{"seq over the limit", func(r *ledger.Row) { r.Seq = MaxValue + 1 }, ReasonRange},
		{"term below 1 ms", func(r *ledger.Row) { r.Term = time.Millisecond - 1 }, ReasonRange},
		{"term over a day", func(r *ledger.Row) { r.Term = 25 * time.Hour }, ReasonRange},
		{"unknown publisher", func(r *ledger.Row) { r.Node = 999 }, ReasonRange},
		{"negative publisher", func(r *ledger.Row) { r.Node = -1 }, ReasonRange},
		{"heard of nobody", func(r *ledger.Row) { r.Heard = append(r.Heard, make([]ledger.Heard, 100)...); r.Heard[99].Inc = 1 }, ReasonRange},
		{"heard without inc", func(r *ledger.Row) { r.Heard[3].Inc = 0 }, ReasonRange},
		{"heard seq over the limit", func(r *ledger.Row) { r.Heard[3].Seq = MaxValue + 1 }, ReasonRange},
		{"empty name", func(r *ledger.Row) { r.Extra = append(r.Extra, 22) }, ReasonText},
		{"name of 65 bytes", func(r *ledger.Row) { r.Extra = append(r.Extra, 23) }, ReasonText},
		{"negative ceiling", func(r *ledger.Row) { section(r).Ceiling = -1 }, ReasonRange},
		{"no classes", func(r *ledger.Row) { section(r).Demand = nil }, ReasonLength},
		{"65 classes", func(r *ledger.Row) { section(r).Demand = make([]allocator.Rate, 65) }, ReasonLength},
		{"demand off the grain", func(r *ledger.Row) { section(r).Demand[0]++ }, ReasonRange},
		{"negative demand", func(r *ledger.Row) { section(r).Demand[0] = -1000 }, ReasonRange},
		{"loan of 0", func(r *ledger.Row) { section(r).Loans[0].Amount = 0 }, ReasonRange},
		{"loan twice", func(r *ledger.Row) { section(r).Loans[0].To = 17 }, ReasonOrder},
		{"loan to itself", func(r *ledger.Row) { section(r).Loans[0].To = 0 }, ReasonOrder},
		{"negative cap", func(r *ledger.Row) { section(r).Caps = []ledger.Cap{{Lender: 1, Seq: 1, Amount: -1}} }, ReasonRange},
		{"cap without seq", func(r *ledger.Row) { section(r).Caps = []ledger.Cap{{Lender: 1}} }, ReasonRange},
		{"257 budgets", func(r *ledger.Row) { r.Sections = make([]ledger.Section, 257) }, ReasonLength},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := fullRow(22)
			c.spoil(r)
			packet, extra, err := s.enc.Row(r, ep)
			if ReasonOf(err) != c.want || packet != nil || extra != nil {
				t.Errorf("got %d bytes and %v, want %v", len(packet), err, c.want)
			}
		})
	}
}

func TestARowTooLargeForADatagramIsWholeAndSaysSo(t *testing.T) {
	const n = 330
	from, to, ep := pairOf(t, n)
	r := fullRow(n)
	r.Sections[0].Loans = nil
	for i := 1; i < n; i++ {
		r.Sections[0].Loans = append(r.Sections[0].Loans, ledger.Loan{To: ledger.NodeID(i), Amount: 1 << 40})
	}
	packet, extra, err := from.enc.Row(r, ep)
	tooLarge, ok := errors.AsType[*TooLargeError](err)
	if !ok || tooLarge.Size != len(packet) || len(packet) <= MaxPacket {
		t.Fatalf("%d bytes, error %v", len(packet), err)
	}
	for _, p := range extra {
		if _, err := to.dec.Decode(p); err != nil {
			t.Fatal(err)
		}
	}
	mustEqualRows(t, from, r, to, decodeRow(t, from, to, packet))
}

func TestTheEncoderRefusesEpochsItCannotCarry(t *testing.T) {
	s := threeNodes()
	for name, c := range map[string]struct {
		ep   ledger.Epoch
		want Reason
	}{
		"no body":       {ledger.Epoch{Root: testRoot}, ReasonLength},
		"body too long": {ledger.Epoch{Root: testRoot, Body: make([]byte, MaxBody+1)}, ReasonLength},
		"another root":  {ledger.Epoch{Root: 1, Body: []byte{1}}, ReasonForeignRoot},
		"version":       {ledger.Epoch{Root: testRoot, Body: []byte{1}, ID: ledger.EpochID{Version: MaxValue + 1}}, ReasonRange},
	} {
		if packets, err := s.enc.Epoch(&c.ep); ReasonOf(err) != c.want || packets != nil {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestErrorsSayWhatTheyAreAndKeepTheirReasonWhenWrapped(t *testing.T) {
	for _, c := range []struct {
		err  error
		text string
		want Reason
	}{
		{nil, "", ReasonNone},
		{io.EOF, "EOF", ReasonOther},
		{malformed(ReasonType, "seq"), "wire: seq: type", ReasonType},
		{&TooLargeError{Size: 1300}, "wire: packet of 1300 bytes", ReasonTooLarge},
		{&ForeignRootError{Tag: 0xab}, "wire: packet of another lineage 000000ab", ReasonForeignRoot},
		{&UnknownEpochError{ID: ledger.EpochID{Version: 7, Hash: 1}}, "wire: row of unknown epoch 7/0000000000000001", ReasonUnknownEpoch},
		{&UnknownVectorError{Digest: 2}, "wire: row of unknown incarnation vector 0000000000000002", ReasonUnknownVector},
	} {
		if c.err == nil {
			if got := ReasonOf(nil); got != ReasonNone {
				t.Errorf("nil: %v", got)
			}
			continue
		}
		if got := ReasonOf(fmt.Errorf("from ams: %w", c.err)); got != c.want || c.err.Error() != c.text {
			t.Errorf("got %v %q, want %v %q", got, c.err, c.want, c.text)
		}
	}
}

func TestReasonsHaveDistinctStableWords(t *testing.T) {
	seen := map[string]Reason{}
	for r := range reasonEnd {
		if other, ok := seen[r.String()]; ok || r.String() == "" {
			t.Errorf("reasons %d and %d are both %q", r, other, r)
		}
		seen[r.String()] = r
	}
}
