//go:build linux

package wan

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The public addresses of twoNATs.
var publicA, publicB = netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")

// twoNATs puts hosts 0 and 1 behind translation; host 2 has none.
func twoNATs() []NAT {
	return []NAT{
		{Host: 0, Public: publicA, Ports: []Port{{Public: 17946, Inside: 7946}, {Public: 80, Inside: 8080}}},
		{Host: 1, Public: publicB, Ports: []Port{{Public: 27946, Inside: 7946}}},
	}
}

// segmentBytes is a TCP segment or UDP datagram in IPv4, with its checksums.
func segmentBytes(protocol byte, from, to netip.AddrPort, options int, payload []byte) []byte {
	length := map[byte]int{protocolTCP: 20, protocolUDP: 8}[protocol]
	b := make([]byte, header4+options, header4+options+length+len(payload))
	b[0] = 0x40 | byte(len(b)/4)
	b[8], b[9] = 64, protocol
	copy(b[12:], from.Addr().AsSlice())
	copy(b[16:], to.Addr().AsSlice())
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = append(b, make([]byte, length-4)...)
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	if protocol == protocolUDP {
		binary.BigEndian.PutUint16(b[header4+options+4:], uint16(length+len(payload)))
	}
	setSums(b)
	return b
}

// setSums computes both checksums from everything they cover.
func setSums(b []byte) {
	header := int(b[0]&15) * 4
	data := b[header:]
	at := map[byte]int{protocolTCP: 16, protocolUDP: 6}[b[9]]
	b[10], b[11], data[at], data[at+1] = 0, 0, 0, 0
	binary.BigEndian.PutUint16(b[10:], ^fullSum(b[:header]))
	pseudo := append(bytes.Clone(b[12:20]), 0, b[9], byte(len(data)>>8), byte(len(data)))
	sum := ^fullSum(append(pseudo, data...))
	if sum == 0 && b[9] == protocolUDP {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(data[at:], sum)
}

// fullSum is the one's complement sum. Source: RFC 1071.
func fullSum(b []byte) uint16 {
	sum := uint64(0)
	for i, c := range b {
		sum += uint64(c) << (8 * (1 - i%2))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

func portsOf(b []byte) (from, to netip.AddrPort) {
	data := b[int(b[0]&15)*4:]
	from = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:16])), binary.BigEndian.Uint16(data))
	to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), binary.BigEndian.Uint16(data[2:]))
	return from, to
}

func TestTranslatedPacketsAreAsIfSentFromThePublicAddress(t *testing.T) {
	protocols := rapid.SampledFrom([]byte{protocolTCP, protocolUDP})
	port := rapid.Uint16Min(1)
	rapid.Check(t, func(t *rapid.T) {
		n := newNAT(twoNATs())
		protocol := protocols.Draw(t, "protocol")
		options := 4 * rapid.IntRange(0, 10).Draw(t, "options")
		payload := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
		inside := netip.AddrPortFrom(address4(0), port.Draw(t, "inside port"))
		remote := netip.AddrPortFrom(address4(2), port.Draw(t, "remote port"))
		p := segmentBytes(protocol, inside, remote, options, payload)
		dst, ok := n.translate(0, p)
		from, to := portsOf(p)
		if !ok || dst != 2 || to != remote || from.Addr() != publicA {
			t.Fatalf("%s to %s became %s to %s for %d, %v", inside, remote, from, to, dst, ok)
		}
		if want := segmentBytes(protocol, from, to, options, payload); !bytes.Equal(p, want) {
			t.Fatalf("got  %x\nwant %x", p, want)
		}
		back := segmentBytes(protocol, remote, from, options, payload)
		dst, ok = n.translate(2, back)
		if !ok || dst != 0 {
			t.Fatalf("the answer goes to %d, %v", dst, ok)
		}
		if want := segmentBytes(protocol, remote, inside, options, payload); !bytes.Equal(back, want) {
			t.Fatalf("got  %x\nwant %x", back, want)
		}
	})
}

func TestADatagramWithoutAChecksumStaysWithoutOne(t *testing.T) {
	p := segmentBytes(protocolUDP, netip.AddrPortFrom(address4(0), 5), netip.AddrPortFrom(address4(2), 6), 0, nil)
	p[header4+6], p[header4+7] = 0, 0
	if _, ok := newNAT(twoNATs()).translate(0, p); !ok || p[header4+6] != 0 || p[header4+7] != 0 {
		t.Errorf("%v: %x", ok, p)
	}
}

func TestAChecksumThatComesOutAsZeroIsSentAsItsOtherForm(t *testing.T) {
	// Some payload makes it so; each of the 65,536 is tried.
	n := newNAT(twoNATs())
	seen := false
	for word := range 1 << 16 {
		payload := []byte{byte(word >> 8), byte(word)}
		p := segmentBytes(protocolUDP, netip.AddrPortFrom(address4(0), 7946), netip.AddrPortFrom(address4(2), 6), 0, payload)
		n.translate(0, p)
		from, to := portsOf(p)
		if want := segmentBytes(protocolUDP, from, to, 0, payload); !bytes.Equal(p, want) {
			t.Fatalf("got  %x\nwant %x", p, want)
		}
		seen = seen || binary.BigEndian.Uint16(p[header4+6:]) == 0xffff
	}
	if !seen {
		t.Error("no checksum came out as zero")
	}
}

func TestWhatATranslationLetsThrough(t *testing.T) {
	const free = 9
	a, b, c := address4(0), address4(1), address4(2)
	at := netip.AddrPortFrom
	for _, k := range []struct {
		name         string
		host         int
		from, to     netip.AddrPort
		dst          int // nobody: dropped
		fromIs, toIs netip.AddrPort
		change       func(p []byte)
		learned      bool // host 0 has sent UDP from port 9 before
		protocol     byte // 0: UDP
	}{
		{name: "mapped out", host: 0, from: at(a, 7946), to: at(c, 1), dst: 2, fromIs: at(publicA, 17946), toIs: at(c, 1)},
		{name: "mapped in", host: 2, from: at(c, 1), to: at(publicA, 80), dst: 0, fromIs: at(c, 1), toIs: at(a, 8080)},
		{name: "unmapped out", host: 0, from: at(a, free), to: at(c, 1), dst: 2, fromIs: at(publicA, dynamicFirst), toIs: at(c, 1)},
		{name: "answer", learned: true, host: 2, from: at(c, 5), to: at(publicA, dynamicFirst), dst: 0, fromIs: at(c, 5), toIs: at(a, free)},
		{name: "other protocol", learned: true, protocol: protocolTCP, host: 2, from: at(c, 5), to: at(publicA, dynamicFirst), dst: nobody},
		{name: "unmapped in", host: 2, from: at(c, 1), to: at(publicA, 7946), dst: nobody},
		{name: "hidden address", host: 2, from: at(c, 1), to: at(a, 7946), dst: nobody},
		{name: "both", host: 0, from: at(a, 7946), to: at(publicB, 27946), dst: 1, fromIs: at(publicA, 17946), toIs: at(b, 7946)},
		{name: "hairpin", host: 0, from: at(a, 7946), to: at(publicA, 80), dst: 0, fromIs: at(publicA, 17946), toIs: at(a, 8080)},
		{name: "no NAT at either end", host: 2, from: at(c, 1), to: at(c, 2), dst: 2, fromIs: at(c, 1), toIs: at(c, 2)},
		{name: "first fragment", host: 0, from: at(a, 1), to: at(c, 1), dst: nobody, change: func(p []byte) { p[6] = 0x20 }},
		{name: "later fragment", host: 0, from: at(a, 1), to: at(c, 1), dst: nobody, change: func(p []byte) { p[7] = 9 }},
		{name: "not to be fragmented", host: 0, from: at(a, 7946), to: at(c, 1), dst: 2, fromIs: at(publicA, 17946), toIs: at(c, 1), change: func(p []byte) { p[6] = 0x40 }},
		{name: "ICMP", host: 0, from: at(a, 1), to: at(c, 1), dst: nobody, change: func(p []byte) { p[9] = 1 }},
	} {
		t.Run(k.name, func(t *testing.T) {
			n := newNAT(twoNATs())
			if k.learned {
				n.translate(0, segmentBytes(protocolUDP, at(a, free), at(c, 1), 0, nil))
			}
			protocol := byte(protocolUDP)
			if k.protocol != 0 {
				protocol = k.protocol
			}
			p := segmentBytes(protocol, k.from, k.to, 0, []byte("payload"))
			if k.change != nil {
				k.change(p)
			}
			dst, ok := n.translate(k.host, p)
			if ok != (k.dst != nobody) || dst != k.dst {
				t.Fatalf("for %d, %v, want %d", dst, ok, k.dst)
			}
			if from, to := portsOf(p); ok && (from != k.fromIs || to != k.toIs) {
				t.Errorf("%s to %s, want %s to %s", from, to, k.fromIs, k.toIs)
			}
		})
	}
}

func TestASegmentShorterThanItsHeaderDoesNotPass(t *testing.T) {
	for protocol, header := range map[byte]int{protocolTCP: 20, protocolUDP: 8} {
		for length := range header {
			// As in the switch, the buffer is longer than the packet.
			p := packet4(0, 2, make([]byte, 60))[:header4+length]
			p[3], p[9] = byte(len(p)), protocol
			if _, ok := newNAT(twoNATs()).translate(0, p); ok {
				t.Errorf("%d bytes of protocol %d pass", length, protocol)
			}
		}
	}
}

func TestTheTableOfMappingsIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	n := newNAT(twoNATs())
	to := netip.AddrPortFrom(address4(2), 1)
	out := func(protocol byte, port uint16) netip.AddrPort {
		p := segmentBytes(protocol, netip.AddrPortFrom(address4(0), port), to, 0, nil)
		if _, ok := n.translate(0, p); !ok {
			t.Fatalf("port %d does not pass", port)
		}
		from, _ := portsOf(p)
		return from
	}
	kept := out(protocolTCP, 65535)
	seen := map[netip.AddrPort]bool{}
	for port := uint16(1); port < 60_000; port++ {
		out(protocolUDP, port)
		if port%1000 == 0 {
			if got := out(protocolTCP, 65535); got != kept {
				t.Fatalf("a mapping in use became %s, was %s", got, kept)
			}
		}
	}
	for port := uint16(59_000); port < 60_000; port++ {
		seen[out(protocolUDP, port)] = true
	}
	if len(seen) != 1000 {
		t.Errorf("1000 ports share %d mappings", len(seen))
	}
	x := n.hosts[0]
	fixed := 2 * 2 // two ports, two protocols
	if x.dynamic.Len() != dynamicMax || len(x.in) != dynamicMax+fixed || len(x.out) != dynamicMax+fixed {
		t.Errorf("%d dynamic, %d in, %d out", x.dynamic.Len(), len(x.in), len(x.out))
	}
}

func TestHostsBehindNATWithUnequalPortsReachOneAnother(t *testing.T) {
	n := network(t, Config{Hosts: []string{"ams", "fra", "sin"}, NAT: twoNATs()})
	a, b := n.Hosts()[0], n.Hosts()[1]
	if a.Public != publicA || n.Hosts()[2].Public.IsValid() {
		t.Errorf("public addresses are %s and %s", a.Public, n.Hosts()[2].Public)
	}
	listen := func(h *Host) *net.UDPConn {
		c, err := h.ListenPacket("udp4", ":7946")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.UDPConn)
	}
	x, y := listen(a), listen(b)
	if _, err := x.WriteToUDPAddrPort([]byte("ping"), netip.AddrPortFrom(publicB, 27946)); err != nil {
		t.Fatal(err)
	}
	expect(t, y, "ping")
	if _, err := y.WriteToUDPAddrPort([]byte("pong"), netip.AddrPortFrom(publicA, 17946)); err != nil {
		t.Fatal(err)
	}
	expect(t, x, "pong")

	l, err := b.Listen("tcp4", ":7946")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, from := range n.Hosts() {
		c, err := from.DialContext(ctx, "tcp", "203.0.113.2:27946") // b reaches itself, too
		if err != nil {
			t.Fatalf("from %s: %v", from.Name, err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		want := from.V4
		if from.Public.IsValid() {
			want = from.Public
		}
		if got := s.RemoteAddr().(*net.TCPAddr).AddrPort(); got.Addr() != want {
			t.Errorf("%s is seen as %s, want %s", from.Name, got, want)
		}
		c.Close()
		s.Close()
	}
	before := n.Stats().Untranslated
	if _, err := x.WriteToUDPAddrPort([]byte("lost"), netip.AddrPortFrom(b.V4, 7946)); err != nil {
		t.Fatal(err)
	}
	for n.Stats().Untranslated == before && ctx.Err() == nil {
	}
	if ctx.Err() != nil {
		t.Error("the hidden address was reached")
	}
}

func TestAFaultyConfigurationIsRefusedWithEveryFault(t *testing.T) {
	cfg := Config{
		Hosts: []string{"ams", "ams", "Fra", ""}, MTU: 1000, InFlight: -1,
		NAT: []NAT{
			{Host: 4, Public: publicA, Ports: []Port{{0, 1}}},
			{Host: 1, Public: publicA, Ports: []Port{{1, 2}, {1, 3}, {4, 2}}},
			{Host: 1, Public: address4(3)},
			{Host: 2, Public: netip.MustParseAddr("::1")},
			{Host: 3, Public: netip.MustParseAddr("224.0.0.1")},
			{Host: 0},
		},
	}
	_, err := New(cfg)
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{
		`"ams" is used twice`, `"Fra"`, `""`, "MTU 1000", "-1 packets",
		"NAT 0: host 4", "NAT 0: port 0 to 1", "NAT 1: public address 203.0.113.1 is used twice",
		"NAT 1: port 1 to 3", "NAT 1: port 4 to 2", "NAT 2: host 1 has one", "NAT 2: public address 10.77.0.4 is one of",
		"NAT 3: public address ::1 is no IPv4", "NAT 4: public address 224.0.0.1 is no unicast", "NAT 5: public address invalid IP is no IPv4",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %s in\n%v", want, err)
		}
	}
	if err := (&Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "0 hosts") {
		t.Errorf("no hosts: %v", err)
	}
	good := Config{Hosts: []string{"a", "b", "c"}, NAT: twoNATs()}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func FuzzTranslate(f *testing.F) {
	at := netip.AddrPortFrom
	f.Add(segmentBytes(protocolUDP, at(address4(0), 7946), at(publicB, 27946), 8, []byte("x")))
	f.Add(segmentBytes(protocolTCP, at(address4(0), 1), at(address4(2), 2), 0, nil))
	f.Add(packet6(0, 1, []byte("payload")))
	f.Fuzz(func(t *testing.T, p []byte) {
		c := newCore(3, mtuDefault, 10, 1)
		c.nat = newNAT(twoNATs())
		c.receive(0, bytes.Clone(p), 0)
		s := c.snapshot()
		if s.Received != 1 || ended(s) != 1 {
			t.Fatalf("%+v", s)
		}
		packets, _ := drain(c, 1)
		if len(packets) == 1 && len(packets[0]) != len(p) {
			t.Fatalf("%d bytes became %d", len(p), len(packets[0]))
		}
	})
}
