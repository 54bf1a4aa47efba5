package schedule

import (
	"errors"
	"slices"

	"subak/allocator/ledger"
	"subak/gossip/wire"
)

// versions is the mode MixedVersions: rows travel as packets. Every second name
// runs a later version, whose rows have fields that ours does not know.
type versions struct {
	on      bool
	vectors *wire.Vectors
	enc     *wire.Encoder
	dec     *wire.Decoder
	packets map[int32]parcel
}

// parcel is a row as it travels.
type parcel struct {
	packet []byte
	extra  [][]byte // the incarnation vector, where it does not fit
}

// reset makes the codecs of a world. One encoder and one decoder serve all
// names: they translate, and keep nothing that decides.
func (v *versions) reset(on bool, w *world) {
	*v = versions{on: on}
	if on {
		v.vectors = wire.NewVectors()
		v.enc = wire.NewEncoder(1, w.dir, v.vectors)
		v.dec = wire.NewDecoder(1, w.dir, v.vectors, w.epochOf)
		v.packets = map[int32]parcel{}
	}
}

// encode makes the packet of a row that was just posted.
func (w *world) encode(id int32, r *ledger.Row, e *ledger.Epoch) {
	v := &w.versions
	if !v.on {
		return
	}
	packet, extra, err := v.enc.Row(r, e)
	var long *wire.TooLargeError
	if err != nil && (packet == nil || !errors.As(err, &long)) {
		w.fail("codec", "row %d/%d of n%d: %v", r.Inc, r.Seq, r.Node, err)
		return
	}
	packet = slices.Clone(packet)
	if r.Node%2 == 1 {
		packet = ofLaterVersion(packet)
	}
	v.packets[id] = parcel{packet, extra}
}

// decode is the row as p reads it, nil if it cannot be read yet.
func (w *world) decode(m *letter, p *process) *ledger.Row {
	v := &w.versions
	if !v.on {
		return m.row
	}
	x := v.packets[m.id]
	for _, part := range x.extra {
		if _, err := v.dec.Decode(part); err != nil {
			w.fail("codec", "vector of action %d: %v", m.id, err)
			return nil
		}
	}
	got, err := v.dec.Decode(x.packet)
	if err != nil {
		w.fail("codec", "row of action %d at n%d: %v", m.id, p.name, err)
		return nil
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
