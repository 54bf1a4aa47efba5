package schedule

import (
	"errors"

	"subak/allocator/ledger"
	"subak/gossip/wire"
)

// versions is the mode MixedVersions: rows travel as packets, and every second
// name runs a later version, whose rows have fields that ours does not know.
type versions struct {
	on  bool
	enc *wire.Encoder
	dec *wire.Decoder
}

// reset makes the codecs of a world. One encoder and one decoder serve all
// names: they translate, and keep nothing that decides.
func (v *versions) reset(on bool, w *world) {
	*v = versions{on: on}
	if on {
		vectors := wire.NewVectors()
		v.enc = wire.NewEncoder(1, w.dir, vectors)
		v.dec = wire.NewDecoder(1, w.dir, vectors, w.epochOf)
	}
}

// travel is the row as everybody reads it. What is read does not hang on the
// reader, so one reading serves for all.
func (w *world) travel(r *ledger.Row, e *ledger.Epoch) *ledger.Row {
	v := &w.versions
	if !v.on {
		return r
	}
	packet, extra, err := v.enc.Row(r, e)
	var long *wire.TooLargeError
	if err != nil && (packet == nil || !errors.As(err, &long)) {
		w.fail("codec", "row %d/%d of n%d: %v", r.Inc, r.Seq, r.Node, err)
		return r
	}
	packet = append(w.packet[:0], packet...)
	if r.Node%2 == 1 {
		packet = ofLaterVersion(packet)
	}
	w.packet = packet
	for _, part := range extra {
		if _, err := v.dec.Decode(part); err != nil {
			w.fail("codec", "vector of row %d/%d of n%d: %v", r.Inc, r.Seq, r.Node, err)
		}
	}
	got, err := v.dec.Decode(packet)
	if err != nil || got.Row == nil {
		w.fail("codec", "row %d/%d of n%d: %v", r.Inc, r.Seq, r.Node, err)
		return r
	}
	return got.Row
}

// ofLaterVersion is a packet as the next minor version would write it: with two
// more fields at its end. A packet is one array of up to 65535 fields, whose
// first says the format.
func ofLaterVersion(packet []byte) []byte {
	const fix16, array16 = 0x90, 0xdc
	more := []byte{0x07, 0xa5, 'l', 'a', 't', 'e', 'r'}
	switch n := len(packet); {
	case n > 1 && packet[0]&0xf0 == fix16 && packet[0]&0x0f < 14:
		packet[0] += 2
		packet[1]++
	case n > 1 && packet[0]&0xf0 == fix16:
		fields := packet[0]&0x0f + 2
		packet = append([]byte{array16, 0, fields}, packet[1:]...)
		packet[3]++
	case n > 3 && packet[0] == array16:
		packet[2] += 2
		packet[3]++
	default:
		return packet
	}
	return append(packet, more...)
}
