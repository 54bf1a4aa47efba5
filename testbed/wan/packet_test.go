//go:build linux

package wan

import (
	"encoding/binary"
	"testing"
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

// edited is a packet with one change.
func edited(p []byte, change func(p []byte)) []byte {
	change(p)
	return p
}

func TestHostilePacketsAreCountedAndDropped(t *testing.T) {
	solicitation := packet6(0, 1, make([]byte, 16)) // to all routers, from nobody
	copy(solicitation[8:], make([]byte, 16))
	copy(solicitation[24:], []byte{0xff, 2, 15: 2})
	for name, c := range map[string]struct {
		packet                            []byte
		malformed, unroutable, forwarding int64
	}{
		"good v4":             {packet4(0, 1, []byte("x")), 0, 0, 1},
		"good v6":             {packet6(0, 1, []byte("x")), 0, 0, 1},
		"to itself":           {packet4(0, 0, nil), 0, 0, 1},
		"empty":               {nil, 1, 0, 0},
		"short v4":            {packet4(0, 1, nil)[:19], 1, 0, 0},
		"short v6":            {packet6(0, 1, nil)[:39], 1, 0, 0},
		"version 5":           {edited(packet4(0, 1, nil), func(p []byte) { p[0] = 0x55 }), 1, 0, 0},
		"header of 16 bytes":  {edited(packet4(0, 1, nil), func(p []byte) { p[0] = 0x44 }), 1, 0, 0},
		"header past the end": {edited(packet4(0, 1, nil), func(p []byte) { p[0] = 0x46 }), 1, 0, 0},
		"longer than it says": {append(packet4(0, 1, nil), 0), 1, 0, 0},
		"shorter than said":   {packet6(0, 1, make([]byte, 9))[:48], 1, 0, 0},
		"above the MTU":       {packet4(0, 1, make([]byte, mtuDefault)), 1, 0, 0},
		"of another host":     {packet4(1, 1, nil), 1, 0, 0},
		"of nobody":           {edited(packet4(0, 1, nil), func(p []byte) { p[12] = 8 }), 1, 0, 0},
		"to nobody":           {edited(packet4(0, 1, nil), func(p []byte) { p[16] = 8 }), 0, 1, 0},
		"to a host not there": {packet4(0, 2, nil), 0, 1, 0},
		"to the network":      {packet4(0, -1, nil), 0, 1, 0},
		"broadcast":           {packet4(0, 1<<16-2, nil), 0, 1, 0},
		"v6 to nobody":        {edited(packet6(0, 1, nil), func(p []byte) { p[30] = 1 }), 0, 1, 0},
		"router solicitation": {solicitation, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCore(2, mtuDefault, 10, 1)
			s.receive(0, c.packet, 0)
			got := s.snapshot()
			if got.Malformed != c.malformed || got.Unroutable != c.unroutable || got.InFlight != c.forwarding {
				t.Errorf("%+v, want %+v", got, c)
			}
		})
	}
}

func TestAddressesLeadBackToTheirHost(t *testing.T) {
	for host := range hostsMax {
		a4, a6 := address4(host).As4(), address6(host).As16()
		if host4(a4[:]) != host || host6(a6[:]) != host {
			t.Errorf("host %d: %d and %d", host, host4(a4[:]), host6(a6[:]))
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{})
	f.Add(packet4(0, 1, []byte("payload")))
	f.Add(packet6(0, 1, []byte("payload")))
	f.Fuzz(func(t *testing.T, p []byte) {
		c := newCore(2, mtuDefault, 10, 1)
		c.receive(0, p, 0)
		s := c.snapshot()
		if s.Received != 1 || ended(s) != 1 {
			t.Fatalf("%+v", s)
		}
		if packets, _ := drain(c, 1); len(packets) == 1 && len(packets[0]) != len(p) {
			t.Fatalf("%d bytes became %d", len(p), len(packets[0]))
		}
	})
}
