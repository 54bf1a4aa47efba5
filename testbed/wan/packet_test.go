//go:build linux

package wan

import (
	"encoding/binary"
)

// packet4 is an IPv4 packet from one host to another.
func packet4(src, dst int, payload []byte) []byte {
	b := make([]byte, header4, header4+len(payload))
	b[0] = 0x45
	binary.BigEndian.PutUint16(b[2:], uint16(header4+len(payload)))
	b[8], b[9] = 64, 17
	copy(b[12:], address4(src).AsSlice())
	copy(b[16:], address4(dst).AsSlice())
	return append(b, payload...)
}

// packet6 is an IPv6 packet from one host to another.
func packet6(src, dst int, payload []byte) []byte {
	b := make([]byte, header6, header6+len(payload))
	b[0] = 0x60
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6], b[7] = 17, 64
	copy(b[8:], address6(src).AsSlice())
	copy(b[24:], address6(dst).AsSlice())
	return append(b, payload...)
}
