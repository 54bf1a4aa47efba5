package wire

import (
	"testing"
)

// FuzzDecode: no packet panics the decoder, every refusal has a reason, and what
// is accepted can be encoded and reads back equal.
func FuzzDecode(f *testing.F) {
	from, packets := samples(f)
	for _, p := range packets {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		to := receiverWith(from)
		m, err := to.dec.Decode(packet)
		if err != nil {
			if ReasonOf(err) == ReasonOther || m.Row != nil {
				t.Fatalf("refused with %v and a row %v", err, m.Row)
			}
			return
		}
		if m.Row == nil {
			return
		}
		mustPeek(t, packet, m.Row)
		ep := to.known[m.Row.Epoch]
		again, _, err := to.enc.Row(m.Row, ep)
		if again == nil {
			t.Fatalf("accepted a row that cannot be encoded: %v", err)
		}
		mustEqualRows(t, to, m.Row, to, decodeRow(t, to, to, again))
	})
}

// FuzzPeek: no packet panics Peek, and it refuses nothing that Decode accepts.
func FuzzPeek(f *testing.F) {
	from, packets := samples(f)
	for _, p := range packets {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		h, peekErr := Peek(packet)
		to := receiverWith(from)
		m, err := to.dec.Decode(packet)
		if err == nil && (peekErr != nil || h.Kind != m.Kind) {
			t.Fatalf("decoded %v, peeked %v with %v", m.Kind, h.Kind, peekErr)
		}
		to.dec.Node(h)
	})
}

// FuzzState: no state panics, and what it yields makes up the same state again.
func FuzzState(f *testing.F) {
	_, packets := samples(f)
	var state []byte
	for _, p := range packets {
		state, _ = AppendState(state, p)
	}
	f.Add(state)
	f.Add(state[:100])
	f.Fuzz(func(t *testing.T, state []byte) {
		to := receiver()
		var again []byte
		clean := true
		for p, err := range Packets(state) {
			if err != nil {
				clean = false
				continue
			}
			_, _ = to.dec.Decode(p)
			if again, err = AppendState(again, p); err != nil {
				t.Fatal(err)
			}
		}
		if clean && string(again) != string(state) || len(again) > len(state) {
			t.Fatalf("state of %d bytes became %d", len(state), len(again))
		}
	})
}
