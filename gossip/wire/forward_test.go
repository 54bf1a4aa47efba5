package wire

import (
	"bytes"
	"errors"
	"testing"
)

// later returns the packet as a later minor might send it: the minor raised and
// fields of any type appended.
func later(t *testing.T, packet []byte, more ...any) []byte {
	t.Helper()
	r := reader{b: packet}
	fields := r.array(fieldsLimit, "packet")
	body := bytes.Clone(packet[r.i:])
	body[0] = FormatMajor*16 + 5
	extra := pack(t, more...)
	head := reader{b: extra}
	head.array(fieldsLimit, "packet")
	if r.why != ReasonNone || head.why != ReasonNone {
		t.Fatal("not a packet")
	}
	out := append([]byte{0xdc, 0, byte(fields + len(more))}, body...)
	return append(out, extra[head.i:]...)
}

var laterFields = []any{nil, -5, 3.5, "text", []byte{1, 2}, []any{1, []any{nil, "x"}}, map[string]int{"a": 1}}

func TestFieldsOfALaterMinorAreSkipped(t *testing.T) {
	from, packets := samples(t)
	for k, p := range packets {
		head, err := Peek(p)
		if err != nil {
			t.Fatal(err)
		}
		old, now := receiverWith(from), receiverWith(from)
		want, err := old.dec.Decode(p)
		if err != nil {
			t.Fatalf("packet %d: %v", k, err)
		}
		if head.Kind == KindRow && fieldsOf(p) < rowFields+5 {
			continue // the optional fields come before the later ones
		}
		got, err := now.dec.Decode(later(t, p, laterFields...))
		if err != nil {
			t.Fatalf("packet %d (%v) with later fields: %v", k, head.Kind, err)
		}
		if got.Kind != want.Kind || got.Digest != want.Digest || got.ID != want.ID {
			t.Errorf("packet %d: got %+v, want %+v", k, got, want)
		}
		if want.Row != nil {
			mustEqualRows(t, old, want.Row, now, got.Row)
		}
		peeked, err := Peek(later(t, p, laterFields...))
		if err != nil || peeked != head {
			t.Errorf("packet %d: peek %+v %v, want %+v", k, peeked, err, head)
		}
	}
}

func fieldsOf(packet []byte) int {
	r := reader{b: packet}
	return r.array(fieldsLimit, "packet")
}

func TestPacketsOfALaterKindAreSkipped(t *testing.T) {
	for _, kind := range []uint64{0, uint64(kindEnd), 100, 1 << 40} {
		packet := pack(t, append([]any{uint64(16), kind, tag}, laterFields...)...)
		m, err := threeNodes().dec.Decode(packet)
		if err != nil || m.Kind != KindUnknown {
			t.Errorf("kind %d: %+v %v", kind, m, err)
		}
		if h, err := Peek(packet); err != nil || h.Kind != KindUnknown {
			t.Errorf("peek at kind %d: %+v %v", kind, h, err)
		}
	}
}

func TestALaterKindOfAnotherClusterIsForeign(t *testing.T) {
	_, err := threeNodes().dec.Decode(pack(t, uint64(16), uint64(99), tag^1))
	if foreign, ok := errors.AsType[*ForeignRootError](err); !ok || foreign.Tag != uint32(tag^1) {
		t.Errorf("got %v", err)
	}
}

func TestAJoinerWithoutARootReadsAnyLineageUntilItIsSet(t *testing.T) {
	from, to, ep := pairOf(t, 3)
	delete(to.known, ep.ID)
	packets, err := from.enc.Epoch(ep)
	if err != nil {
		t.Fatal(err)
	}
	to.dec.SetRoot(0)
	m, err := to.dec.Decode(packets[0])
	if err != nil || m.Epoch == nil || m.Epoch.Root != testRoot {
		t.Fatalf("got %+v %v", m, err)
	}
	to.dec.SetRoot(m.Epoch.Root + 1)
	if _, err := to.dec.Decode(packets[0]); ReasonOf(err) != ReasonForeignRoot {
		t.Errorf("after the root was set: %v", err)
	}
}

func TestAnEpochWhoseRootsDisagreeIsRefused(t *testing.T) {
	s := threeNodes()
	s.dec.SetRoot(0)
	packet := pack(t, uint64(16), uint64(KindEpoch), tag, uint64(1), uint64(2), uint64(0), uint64(0),
		uint64(testRoot+1), uint64(1), uint64(0), []byte{1})
	if _, err := s.dec.Decode(packet); ReasonOf(err) != ReasonMismatch {
		t.Errorf("got %v", err)
	}
}

func TestAnEncoderWritesOnlyItsOwnLineage(t *testing.T) {
	from, to, ep := pairOf(t, 22)
	from.enc.SetRoot(testRoot + 1)
	if _, _, err := from.enc.Row(fullRow(22), ep); ReasonOf(err) != ReasonForeignRoot {
		t.Errorf("row of another lineage's epoch: %v", err)
	}
	if _, err := to.dec.Decode(from.enc.EpochWanted(testEpoch)); ReasonOf(err) != ReasonForeignRoot {
		t.Errorf("question of another lineage: %v", err)
	}
}

func TestOnlyTheQuestionForTheLineageIsReadFromANodeWithoutOne(t *testing.T) {
	from, to, _ := pairOf(t, 22)
	from.enc.SetRoot(0)
	if m, err := to.dec.Decode(from.enc.LineageWanted()); err != nil || m.Kind != KindLineageWanted {
		t.Errorf("question of a node without a lineage arrives as %+v %v", m, err)
	}
	for _, other := range [][]byte{from.enc.EpochWanted(testEpoch), from.enc.VectorWanted(1)} {
		if _, err := to.dec.Decode(other); ReasonOf(err) != ReasonForeignRoot {
			t.Errorf("another packet of it: %v", err)
		}
	}
	from.enc.SetRoot(testRoot + 1)
	if _, err := to.dec.Decode(from.enc.LineageWanted()); ReasonOf(err) != ReasonForeignRoot {
		t.Errorf("question of a node of another lineage: %v", err)
	}
}
