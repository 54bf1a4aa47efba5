//go:build linux

package wan

import (
	"encoding/binary"
	"net/netip"
)

const (
	header4 = 20 // bytes of an IPv4 header without options
	header6 = 40
	bits4   = 16 // length of the prefix all hosts share
	bits6   = 64
)

// nobody stands for an address that is no host's.
const nobody = -1

// address4 and address6 are the addresses of a host by its position.
func address4(host int) netip.Addr {
	id := host + 1
	return netip.AddrFrom4([4]byte{10, 77, byte(id >> 8), byte(id)})
}

func address6(host int) netip.Addr {
	id := host + 1
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 14: byte(id >> 8), 15: byte(id)})
}

// host4 and host6 are the inverse, on the four or 16 bytes of an address.
func host4(b []byte) int {
	if b[0] != 10 || b[1] != 77 {
		return nobody
	}
	return int(binary.BigEndian.Uint16(b[2:])) - 1
}

func host6(b []byte) int {
	if b[0] != 0xfd || b[1] != 0x77 {
		return nobody
	}
	for _, zero := range b[2:14] {
		if zero != 0 {
			return nobody
		}
	}
	return int(binary.BigEndian.Uint16(b[14:])) - 1
}

// ends says between which hosts a packet travels; either may be nobody. False
// when the bytes are no IP packet: too short, of another version, or with
// lengths that contradict one another.
func ends(p []byte) (src, dst int, ok bool) {
	if len(p) < header4 {
		return nobody, nobody, false
	}
	switch p[0] >> 4 {
	case 4:
		header := int(p[0]&15) * 4
		total := int(binary.BigEndian.Uint16(p[2:]))
		if header < header4 || total < header || total != len(p) {
			return nobody, nobody, false
		}
		return host4(p[12:16]), host4(p[16:20]), true
	case 6:
		if len(p) < header6 || header6+int(binary.BigEndian.Uint16(p[4:])) != len(p) {
			return nobody, nobody, false
		}
		return host6(p[8:24]), host6(p[24:40]), true
	}
	return nobody, nobody, false
}
