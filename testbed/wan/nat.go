//go:build linux

package wan

import (
	"container/list"
	"encoding/binary"
	"net/netip"
)

const (
	protocolTCP = 6
	protocolUDP = 17
	// dynamicFirst is the first public port for ports that have no mapping of
	// their own; dynamicMax is how many of those a host has at most, TCP and UDP
	// together. The one used longest ago makes room.
	dynamicFirst = 40_000
	dynamicMax   = 4096
)

// nat is the address translation of all hosts that have one. Mapping and
// filtering do not depend on the remote end (RFC 4787, sections 4.1 and 5):
// whoever learns the public port of a socket can send to it. TCP and UDP over
// IPv4 only; fragments and other protocols (ICMP too) do not pass, since they
// have no port. IPv6 is not translated.
type nat struct {
	hosts    map[int]*translation
	byPublic map[[4]byte]int // to its host
}

// translation is that of one host.
type translation struct {
	public  [4]byte
	out     map[endpoint]*mapping // by port of the host
	in      map[endpoint]*mapping // by public port
	dynamic *list.List            // of *mapping, last used first
	next    uint16                // dynamic port to try
}

type endpoint struct {
	protocol byte
	port     uint16
}

type mapping struct {
	protocol       byte
	inside, public uint16
	used           *list.Element // nil for one that is configured
}

func newNAT(configs []NAT) *nat {
	n := &nat{hosts: map[int]*translation{}, byPublic: map[[4]byte]int{}}
	for _, c := range configs {
		t := &translation{
			public: c.Public.As4(), next: dynamicFirst, dynamic: list.New(),
			out: map[endpoint]*mapping{}, in: map[endpoint]*mapping{},
		}
		for _, p := range c.Ports {
			t.add(&mapping{protocol: protocolTCP, inside: p.Inside, public: p.Public})
			t.add(&mapping{protocol: protocolUDP, inside: p.Inside, public: p.Public})
		}
		n.hosts[c.Host] = t
		n.byPublic[t.public] = c.Host
	}
	return n
}

func (t *translation) add(m *mapping) {
	t.out[endpoint{m.protocol, m.inside}] = m
	t.in[endpoint{m.protocol, m.public}] = m
}

// outgoing is the mapping of a port of the host, made if there is none.
func (t *translation) outgoing(protocol byte, inside uint16) *mapping {
	if m, ok := t.out[endpoint{protocol, inside}]; ok {
		t.touch(m)
		return m
	}
	if t.dynamic.Len() >= dynamicMax {
		oldest := t.dynamic.Remove(t.dynamic.Back()).(*mapping)
		delete(t.out, endpoint{protocol: oldest.protocol, port: oldest.inside})
		delete(t.in, endpoint{protocol: oldest.protocol, port: oldest.public})
	}
	// There are more dynamic ports than can be in use, so one is free.
	for {
		_, taken := t.in[endpoint{protocol, t.next}]
		if !taken {
			break
		}
		t.advance()
	}
	m := &mapping{protocol: protocol, inside: inside, public: t.next}
	m.used = t.dynamic.PushFront(m)
	t.add(m)
	t.advance()
	return m
}

func (t *translation) advance() { t.next = max(t.next+1, dynamicFirst) } // 65535 wraps to 0

// incoming is the mapping of a public port, nil if there is none.
func (t *translation) incoming(protocol byte, public uint16) *mapping {
	m := t.in[endpoint{protocol, public}]
	if m != nil {
		t.touch(m)
	}
	return m
}

func (t *translation) touch(m *mapping) {
	if m.used != nil {
		t.dynamic.MoveToFront(m.used)
	}
}

// translate rewrites a well-formed packet that host sends and returns for whom it
// is (nobody for an address that no host has). False: it does not pass.
func (n *nat) translate(host int, packet []byte) (dst int, ok bool) {
	if packet[0]>>4 != 4 {
		return host6(packet[24:40]), true
	}
	to := [4]byte(packet[16:20])
	inside, public := n.byPublic[to]
	if public {
		dst = inside
	} else {
		dst = host4(to[:])
		if n.hosts[dst] != nil {
			return nobody, false // the address that the translation hides
		}
	}
	from := n.hosts[host]
	if from == nil && !public {
		return dst, true
	}
	s, ok := segmentOf(packet)
	if !ok {
		return nobody, false
	}
	if public {
		m := n.hosts[dst].incoming(s.protocol, s.port(2))
		if m == nil {
			return nobody, false
		}
		s.rewrite(16, address4(dst).As4(), 2, m.inside)
	}
	if from != nil {
		m := from.outgoing(s.protocol, s.port(0))
		s.rewrite(12, from.public, 0, m.public)
	}
	return dst, true
}

// segment is a TCP segment or UDP datagram in its IPv4 packet.
type segment struct {
	protocol byte
	ip, data []byte // the whole packet; from the ports on
	checksum []byte // of the segment
}

// segmentOf finds the segment in a well-formed IPv4 packet. False when there is
// none, or only a part of one.
func segmentOf(packet []byte) (segment, bool) {
	s := segment{protocol: packet[9], ip: packet, data: packet[int(packet[0]&15)*4:]}
	if binary.BigEndian.Uint16(packet[6:])&0x3fff != 0 { // more fragments, or an offset
		return segment{}, false
	}
	switch {
	case s.protocol == protocolTCP && len(s.data) >= 20:
		s.checksum = s.data[16:18]
	case s.protocol == protocolUDP && len(s.data) >= 8:
		s.checksum = s.data[6:8]
	default:
		return segment{}, false
	}
	return s, true
}

func (s *segment) port(at int) uint16 { return binary.BigEndian.Uint16(s.data[at:]) }

// rewrite puts in another address and port and mends both checksums.
func (s *segment) rewrite(addressAt int, address [4]byte, portAt int, port uint16) {
	old, header := s.ip[addressAt:addressAt+4], s.ip[10:12]
	sum := ^binary.BigEndian.Uint16(s.checksum)
	headerSum := ^binary.BigEndian.Uint16(header)
	for i := 0; i < 4; i += 2 {
		was, is := binary.BigEndian.Uint16(old[i:]), binary.BigEndian.Uint16(address[i:])
		headerSum, sum = mend(headerSum, was, is), mend(sum, was, is)
	}
	sum = mend(sum, s.port(portAt), port)
	copy(old, address[:])
	binary.BigEndian.PutUint16(s.data[portAt:], port)
	binary.BigEndian.PutUint16(header, ^headerSum)
	if s.protocol == protocolUDP {
		if binary.BigEndian.Uint16(s.checksum) == 0 {
			return // the sender computed none
		}
		if sum == 0xffff {
			sum = 0 // a checksum that comes out as 0 is sent as its other form
		}
	}
	binary.BigEndian.PutUint16(s.checksum, ^sum)
}

// mend exchanges one word of a one's complement sum. Source: RFC 1624, eqn. 3.
func mend(sum, was, is uint16) uint16 {
	t := uint32(sum) + uint32(^was) + uint32(is)
	t = t&0xffff + t>>16
	return uint16(t&0xffff + t>>16)
}

// natOK says what is wrong with the public address of a translation.
func natOK(public netip.Addr) string {
	switch {
	case !public.Is4():
		return "is no IPv4 address"
	case netip.PrefixFrom(address4(0), bits4).Contains(public):
		return "is one of the network of the hosts"
	case !public.IsGlobalUnicast():
		return "is no unicast address that could be public"
	}
	return ""
}
