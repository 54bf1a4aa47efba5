package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"subak/allocator"
	"subak/allocator/ledger"
)

// world is two sides that know the same epoch under different numbers. Some of
// the names outside the epoch are unknown to the receiver.
type world struct {
	from, to *side
	ep       *ledger.Epoch
	names    []string
}

func drawWorld(t *rapid.T) world {
	names := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.RuneFrom([]rune("abz09-.é界")), 1, 12, MaxName), 1, 40, rapid.ID).Draw(t, "names")
	inRoster := rapid.IntRange(1, len(names)).Draw(t, "roster size")
	inParents := rapid.IntRange(0, len(names)-inRoster).Draw(t, "further parents")
	roster := slices.Sorted(slices.Values(names[:inRoster]))
	// The parent roster shares some names with the roster and comes in any order.
	parents := rapid.Permutation(names[inRoster/2:inRoster+inParents]).Draw(t, "parents")
	id := ledger.EpochID{Version: rapid.Uint64Max(MaxValue).Draw(t, "version"), Hash: rapid.Uint64().Draw(t, "hash")}

	w := world{names: names}
	w.from = newSide(rapid.Permutation(names).Draw(t, "sender's order")...)
	known := rapid.IntRange(inRoster+inParents, len(names)).Draw(t, "known to the receiver")
	w.to = newSide(rapid.Permutation(names[:known]).Draw(t, "receiver's order")...)
	w.ep = w.from.learn(id, roster, parents)
	w.to.learn(id, roster, rapid.Permutation(parents).Draw(t, "parents again"))
	return w
}

func drawNode(w world) *rapid.Generator[ledger.NodeID] {
	return rapid.Map(rapid.IntRange(0, len(w.names)-1), func(i int) ledger.NodeID { return ledger.NodeID(i) })
}

func drawRate() *rapid.Generator[allocator.Rate] {
	return rapid.Map(rapid.Int64Range(0, MaxValue), func(v int64) allocator.Rate { return allocator.Rate(v) })
}

// drawSeq draws sequence numbers close to and far from own.
func drawSeq(own uint64) *rapid.Generator[uint64] {
	near := rapid.Map(rapid.Int64Range(-200, 200), func(d int64) uint64 {
		return uint64(min(max(int64(own)+d, 1), MaxValue))
	})
	return rapid.OneOf(near, rapid.Uint64Range(1, MaxValue))
}

func drawRow(t *rapid.T, w world) *ledger.Row {
	node := drawNode(w)
	r := &ledger.Row{
		Node: node.Draw(t, "node"), Inc: rapid.Uint64Min(1).Draw(t, "inc"), Seq: rapid.Uint64Range(1, MaxValue).Draw(t, "seq"),
		Term:  time.Duration(rapid.Int64Range(int64(time.Millisecond), MaxTermMillis*int64(time.Millisecond)).Draw(t, "term")),
		Epoch: w.ep.ID, Acked: rapid.Bool().Draw(t, "acked"), Recovering: rapid.Bool().Draw(t, "recovering"),
		Digest: rapid.Uint32().Draw(t, "digest"), Clock: rapid.Uint32().Draw(t, "clock"),
		Extra: rapid.SliceOfN(node, 0, len(w.names)).Draw(t, "wait set"),
	}
	r.Heard = make([]ledger.Heard, rapid.IntRange(0, len(w.names)).Draw(t, "heard length"))
	for i := range r.Heard {
		switch rapid.IntRange(0, 4).Draw(t, "heard?") {
		case 0:
		case 1:
			r.Heard[i] = ledger.Heard{Inc: rapid.Uint64Min(1).Draw(t, "known inc")}
		default:
			r.Heard[i] = ledger.Heard{Inc: rapid.Uint64Min(1).Draw(t, "heard inc"), Seq: drawSeq(r.Seq).Draw(t, "heard seq")}
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "budgets") {
		r.Sections = append(r.Sections, drawSection(t, w, r))
	}
	return r
}

func drawSection(t *rapid.T, w world, r *ledger.Row) ledger.Section {
	s := ledger.Section{Ceiling: drawRate().Draw(t, "ceiling")}
	for range rapid.IntRange(1, MaxClasses).Draw(t, "classes") {
		d := drawRate().Draw(t, "demand")
		s.Demand = append(s.Demand, d-d%ledger.DemandGrain)
	}
	others := rapid.SliceOfDistinct(drawNode(w).Filter(func(id ledger.NodeID) bool { return id != r.Node }), rapid.ID)
	if len(w.names) == 1 {
		return s
	}
	for _, id := range slices.Sorted(slices.Values(others.Draw(t, "borrowers"))) {
		s.Loans = append(s.Loans, ledger.Loan{To: id, Amount: max(1, drawRate().Draw(t, "loan"))})
	}
	for _, id := range slices.Sorted(slices.Values(others.Draw(t, "lenders"))) {
		s.Caps = append(s.Caps, ledger.Cap{Lender: id, Seq: drawSeq(r.Seq).Draw(t, "cap seq"), Amount: drawRate().Draw(t, "cap")})
	}
	return s
}

func TestRowsArriveAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			r := drawRow(t, w)
			packet, extra, err := w.from.enc.Row(r, w.ep)
			if ReasonOf(err) == ReasonTooLarge {
				if len(packet) <= MaxPacket {
					t.Fatalf("%d bytes called too large", len(packet))
				}
			} else if err != nil {
				t.Fatalf("encode: %v", err)
			}
			if rapid.Bool().Draw(t, "vector packets arrive") {
				for _, p := range extra {
					if _, err := w.to.dec.Decode(p); err != nil {
						t.Fatalf("vector: %v", err)
					}
				}
			}
			packet = bytes.Clone(packet)
			got := decodeRow(t, w.from, w.to, packet)
			mustEqualRows(t, w.from, r, w.to, got)
			mustPeek(t, packet, r)
			mustSecondOpinion(t, packet)
		}
	})
}

// A relay's copy of a decoded row, encoded again, means the same.
func TestWhatDecodesEncodesToAnEqualRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		r := drawRow(t, w)
		packet, _, err := w.from.enc.Row(r, w.ep)
		if packet == nil {
			t.Fatalf("encode: %v", err)
		}
		there := decodeRow(t, w.from, w.to, bytes.Clone(packet))
		again, _, err := w.to.enc.Row(there, w.to.known[w.ep.ID])
		if again == nil {
			t.Fatalf("encode again: %v", err)
		}
		back := decodeRow(t, w.to, w.from, bytes.Clone(again))
		mustEqualRows(t, w.from, r, w.from, back)
	})
}

func mustPeek(t fataler, packet []byte, r *ledger.Row) {
	t.Helper()
	h, err := Peek(packet)
	if err != nil {
		t.Fatalf("peek: %v", err)
	}
	if !h.Kind.isRow() || h.Root != RootTag(testRoot) || h.Epoch != r.Epoch || h.Inc != r.Inc || h.Seq != r.Seq {
		t.Fatalf("peek read %+v of row %+v", h, r)
	}
}

// mustSecondOpinion reads the packet with the library's generic decoder: it must
// be one array of the announced head and nothing else.
func mustSecondOpinion(t fataler, packet []byte) {
	t.Helper()
	in := bytes.NewReader(packet)
	fields, err := msgpack.NewDecoder(in).DecodeSlice()
	if err != nil || in.Len() != 0 {
		t.Fatalf("library: %v, %d bytes left", err, in.Len())
	}
	if fields[0] != int8(FormatMajor*16+FormatMinor) || len(fields) < headFields {
		t.Fatalf("library reads another head: %v", fields)
	}
}

func TestARowIsPeekedAsThePublisherOfTheEpoch(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	r := fullRow(22)
	r.Node = 9
	r.Heard[9] = ledger.Heard{}
	packet, _, err := from.enc.Row(r, ep)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Peek(packet)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := to.dec.Node(h)
	if !ok || to.dir.Name(id) != "pop-009" {
		t.Errorf("publisher is %v %v, want pop-009", id, ok)
	}
}

func TestOnlyPublishersOfAKnownEpochsRostersAreTranslated(t *testing.T) {
	s := threeNodes()
	row := Header{Kind: KindRow, Epoch: testEpoch, Ref: 2}
	for name, spoil := range map[string]func(h *Header){
		"not a row":        func(h *Header) { h.Kind = KindEpoch },
		"unknown epoch":    func(h *Header) { h.Epoch.Hash++ },
		"outside rosters":  func(h *Header) { h.Ref = 3 },
		"epoch of nothing": func(h *Header) { s.known[ledger.EpochID{}] = &ledger.Epoch{}; h.Epoch = ledger.EpochID{} },
	} {
		h := row
		spoil(&h)
		if id, ok := s.dec.Node(h); ok {
			t.Errorf("%s: translated to %d", name, id)
		}
	}
	if id, ok := s.dec.Node(row); !ok || s.dir.Name(id) != "c" {
		t.Errorf("ref 2 is %d %v, want c", id, ok)
	}
}

func TestHavingHeardNobodyIsToldFromNotSaying(t *testing.T) {
	for name, heard := range map[string][]ledger.Heard{
		"not carried": nil, "nobody": make([]ledger.Heard, 22), "one life": {{}, {Inc: 5}},
	} {
		from, to, ep := pairOf(t, 22)
		r := fullRow(22)
		r.Heard = heard
		packet, _, err := from.enc.Row(r, ep)
		if err != nil {
			t.Fatal(err)
		}
		got := decodeRow(t, from, to, packet)
		if (got.Heard == nil) != (heard == nil) {
			t.Errorf("%s: arrives as %v", name, got.Heard)
		}
		mustEqualRows(t, from, r, to, got)
	}
}

func TestAStrangersUnknownVectorNamesNobody(t *testing.T) {
	s := threeNodes()
	fields := with(atVector, uint64(12345))
	fields[atNode], fields[atSections] = uint64(3), vars(1<<2, 5, 1)
	_, err := s.dec.Decode(pack(t, fields...))
	unknown, ok := errors.AsType[*UnknownVectorError](err)
	if !ok || unknown.Node != -1 || unknown.Digest != 12345 || s.dir.Len() != 3 {
		t.Errorf("got %+v and %d names", err, s.dir.Len())
	}
	if packets := s.enc.Vector(12345); packets != nil {
		t.Errorf("%d packets for a vector that is not held", len(packets))
	}
}

func TestQuietNodesShareOneVector(t *testing.T) {
	const n = 22
	from, to, ep := pairOf(t, n)
	for node := range n {
		r := fullRow(n)
		r.Node, r.Inc = ledger.NodeID(node), inc(node)
		for i := range r.Heard {
			r.Heard[i] = ledger.Heard{Inc: inc(i), Seq: tickSeq}
		}
		r.Heard[node] = ledger.Heard{}
		r.Sections[0].Loans = nil
		packet, _, err := from.enc.Row(r, ep)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.dec.Decode(packet); err != nil {
			t.Fatal(err)
		}
	}
	if got := to.vectors.Len(); got != 1 {
		t.Errorf("%d vectors held for %d nodes that heard the same lives, want 1", got, n)
	}
}

func TestAVectorGoesWithTheFirstRowsAfterAChangeAndEvery16th(t *testing.T) {
	from, _, ep := pairOf(t, 22)
	r := fullRow(22)
	inline := func() bool {
		r.Seq++
		packet, extra, err := from.enc.Row(r, ep)
		if err != nil || extra != nil {
			t.Fatalf("extra %d, err %v", len(extra), err)
		}
		_, err = newDecoderOf(t, 22).Decode(packet) // a receiver that holds no vector
		if err != nil && ReasonOf(err) != ReasonUnknownVector {
			t.Fatal(err)
		}
		return err == nil
	}
	for life := range 2 {
		r.Heard[5].Inc = inc(100 + life) // node 5 restarted
		for row := range 40 {
			if got, want := inline(), row < freshRows || row%repeatRows == 0; got != want {
				t.Errorf("life %d row %d: inline %v, want %v", life, row, got, want)
			}
		}
	}
}

func newDecoderOf(t *testing.T, n int) *Decoder {
	t.Helper()
	_, to, _ := pairOf(t, n)
	return to.dec
}

func TestAVectorThatDoesNotFitComesInPacketsOfItsOwn(t *testing.T) {
	const n = 330
	from, to, ep := pairOf(t, n)
	r := fullRow(n)
	packet, extra, err := from.enc.Row(r, ep)
	if err != nil {
		t.Fatal(err)
	}
	if len(extra) != 3 {
		t.Fatalf("%d vector packets, want 3 for %d bytes", len(extra), 8*n)
	}
	_, err = to.dec.Decode(packet)
	unknown, ok := errors.AsType[*UnknownVectorError](err)
	if !ok || to.dir.Name(unknown.Node) != "pop-000" {
		t.Fatalf("error %v, want the unknown vector of pop-000", err)
	}
	rand.New(rand.NewSource(1)).Shuffle(len(extra), func(i, j int) { extra[i], extra[j] = extra[j], extra[i] })
	for _, p := range append(extra[:2:2], extra...) { // out of order and twice
		if len(p) > MaxPacket {
			t.Errorf("vector packet of %d bytes", len(p))
		}
		if _, err := to.dec.Decode(p); err != nil {
			t.Fatal(err)
		}
	}
	m, err := to.dec.Decode(packet)
	if err != nil {
		t.Fatal(err)
	}
	mustEqualRows(t, from, r, to, m.Row)
}

func TestARelayAnswersForThePublishersVector(t *testing.T) {
	from, relay, ep := pairOf(t, 22)
	r := fullRow(22)
	var packet []byte
	for range freshRows + 1 {
		p, _, err := from.enc.Row(r, ep)
		if err != nil {
			t.Fatal(err)
		}
		packet = bytes.Clone(p)
		if _, err := relay.dec.Decode(packet); err != nil {
			t.Fatal(err)
		}
	}
	_, third, _ := pairOf(t, 22)
	got := decodeRow(t, relay, third, packet)
	mustEqualRows(t, from, r, third, got)
}

func TestEpochsArriveInParts(t *testing.T) {
	for _, size := range []int{1, PartSize, PartSize + 1, 10*PartSize - 1, MaxBody} {
		from, to, _ := pairOf(t, 3)
		body := make([]byte, size)
		rand.New(rand.NewSource(int64(size))).Read(body)
		ep := &ledger.Epoch{
			ID: ledger.EpochID{Version: 8, Hash: 1 << 63}, Parent: testEpoch, Root: testRoot, Body: body,
		}
		packets, err := from.enc.Epoch(ep)
		if err != nil {
			t.Fatal(err)
		}
		rand.New(rand.NewSource(2)).Shuffle(len(packets), func(i, j int) { packets[i], packets[j] = packets[j], packets[i] })
		for i, p := range packets {
			if len(p) > MaxPacket {
				t.Fatalf("part of %d bytes", len(p))
			}
			m, err := to.dec.Decode(p)
			if err != nil || m.Kind != KindEpoch || m.ID != ep.ID {
				t.Fatalf("part: %+v %v", m, err)
			}
			if last := i == len(packets)-1; last != (m.Epoch != nil) {
				t.Fatalf("size %d: complete at part %d of %d", size, i+1, len(packets))
			}
			if e := m.Epoch; e != nil {
				if !bytes.Equal(e.Body, body) || e.ID != ep.ID || e.Parent != ep.Parent || e.Root != testRoot {
					t.Fatalf("size %d: epoch changed on the way", size)
				}
			}
		}
	}
}

func TestAKnownEpochIsNotAssembledAgain(t *testing.T) {
	from, to, ep := pairOf(t, 3)
	packets, err := from.enc.Epoch(ep)
	if err != nil {
		t.Fatal(err)
	}
	m, err := to.dec.Decode(packets[0])
	if err != nil || m.Epoch != nil || m.ID != ep.ID {
		t.Errorf("got %+v %v, want the ID alone", m, err)
	}
}

func TestAnUnknownEpochIsNamed(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	delete(to.known, ep.ID)
	packet, _, err := from.enc.Row(fullRow(22), ep)
	if err != nil {
		t.Fatal(err)
	}
	_, err = to.dec.Decode(packet)
	unknown, ok := errors.AsType[*UnknownEpochError](err)
	if !ok || unknown.ID != ep.ID {
		t.Fatalf("error %v, want the unknown epoch", err)
	}
	m, err := from.dec.Decode(to.enc.EpochWanted(unknown.ID))
	if err != nil || m.Kind != KindEpochWanted || m.ID != ep.ID {
		t.Errorf("question arrives as %+v %v", m, err)
	}
}

func TestNamesOutsideTheRostersAreLearnedUpToALimit(t *testing.T) {
	from, to, _ := pairOf(t, 3)
	ep := from.known[testEpoch]
	next := 0
	send := func(names int) error {
		r := fullRow(3)
		r.Sections, r.Heard = nil, nil
		for range names {
			r.Extra = append(r.Extra, from.dir.Intern(fmt.Sprintf("stranger-%d", next)))
			next++
		}
		packet, _, _ := from.enc.Row(r, ep)
		_, err := to.dec.Decode(packet)
		return err
	}
	for range MaxLearned / MaxExtras {
		if err := send(MaxExtras); err != nil {
			t.Fatal(err)
		}
	}
	size := to.dir.Len()
	if err := send(1); ReasonOf(err) != ReasonDirectory {
		t.Errorf("one name over the limit: %v", err)
	}
	if to.dir.Len() != size || size != 3+MaxLearned {
		t.Errorf("directory of %d then %d names, want %d", size, to.dir.Len(), 3+MaxLearned)
	}
}

func TestZigzagIsUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, other := rapid.Uint64Max(MaxValue).Draw(t, "own"), rapid.Uint64Max(MaxValue).Draw(t, "other")
		if got := unzigzag(own, zigzag(own, other)); got != other {
			t.Fatalf("got %d, want %d", got, other)
		}
	})
}
