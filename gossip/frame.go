package gossip

import (
	"encoding/binary"
	"errors"
)

// Every packet travels in a frame, because memberlist does not tell its
// delegate who sent a message or by which way:
//
//	version(1) kind|flags(1) fingerprint(8) counter(2) name length(1) name packet
//
// A relayed frame keeps name and fingerprint of the publisher.
const (
	frameVersion = 1
	frameFixed   = 1 + 1 + 8 + 2 + 1
	frameCopy    = 0x80 // second copy of a row, sent 25 ms after the first
	frameOnly    = 0x40 // a form of a row for its receiver alone: never relayed, never a duplicate
	frameKind    = 0x0f
)

type kind uint8

const (
	kindRow     kind = iota + 1 // a published row, straight from its publisher
	kindRelay                   // a published row by way of a broadcast
	kindUnicast                 // to this node alone: never relayed, never a duplicate
	kindState                   // the blob of a push/pull
	kindLeave                   // the sender goes by its own will; no packet
	kindReach                   // a call for the sake of calling, see reach.go
)

var (
	errFrameShort   = errors.New("frame: too short")
	errFrameVersion = errors.New("frame: unknown version")
	errFrameKind    = errors.New("frame: unknown kind")
	errFrameName    = errors.New("frame: bad node name")
)

type frame struct {
	kind        kind
	copied      bool // see frameCopy
	only        bool // see frameOnly
	fingerprint uint64
	counter     uint16 // rows only: how many the sender has sent to this peer, modulo 65536
	from        string
	packet      []byte // aliases the parsed bytes
}

// encode returns a new slice with the frame.
func (f *frame) encode() []byte {
	return f.append(make([]byte, 0, frameFixed+len(f.from)+len(f.packet)))
}

// setCounter replaces the counter of an encoded frame.
func setCounter(b []byte, counter uint16) { binary.BigEndian.PutUint16(b[10:], counter) }

// append appends the frame to b.
func (f *frame) append(b []byte) []byte {
	k := byte(f.kind)
	if f.copied {
		k |= frameCopy
	}
	if f.only {
		k |= frameOnly
	}
	b = append(b, frameVersion, k)
	b = binary.BigEndian.AppendUint64(b, f.fingerprint)
	b = binary.BigEndian.AppendUint16(b, f.counter)
	b = append(b, byte(len(f.from)))
	b = append(b, f.from...)
	return append(b, f.packet...)
}

// parseFrame reads foreign bytes. Unknown flag bits are ignored.
func parseFrame(b []byte) (frame, error) {
	if len(b) < frameFixed {
		return frame{}, errFrameShort
	}
	if b[0] != frameVersion {
		return frame{}, errFrameVersion
	}
	f := frame{
		kind:        kind(b[1] & frameKind),
		copied:      b[1]&frameCopy != 0,
		only:        b[1]&frameOnly != 0,
		fingerprint: binary.BigEndian.Uint64(b[2:]),
		counter:     binary.BigEndian.Uint16(b[10:]),
	}
	if f.kind < kindRow || f.kind > kindReach {
		return frame{}, errFrameKind
	}
	end := frameFixed + int(b[12])
	if len(b) < end {
		return frame{}, errFrameShort
	}
	f.from = string(b[frameFixed:end])
	if !validName(f.from) {
		return frame{}, errFrameName
	}
	f.packet = b[end:]
	return f, nil
}

// Node metadata, at most 512 bytes in memberlist: version(1) fingerprint(8).
// Later versions keep these nine bytes and append to them.
const (
	metaVersion = 1
	metaBytes   = 1 + 8
)

func encodeMeta(fingerprint uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{metaVersion}, fingerprint)
}

func parseMeta(b []byte) (fingerprint uint64, ok bool) {
	if len(b) < metaBytes || b[0] < metaVersion {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[1:]), true
}
