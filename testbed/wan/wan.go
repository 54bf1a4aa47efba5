//go:build linux

// Package wan is an emulated wide-area network on one machine: every host is a
// network namespace of its own whose only way out is a TUN device, and one
// switch in user space carries IP packets between the TUNs by a table of rules,
// one for each ordered pair of hosts. Programs in the hosts are real, with real
// TCP and UDP sockets over IPv4 and IPv6; only the wire is emulated.
//
// The switch delays, drops, doubles, holds back, paces and cuts packets. What
// happens to the k-th packet of a pair is a function of the seed, the pair, k
// and the rule in force, so the same seed and the same packets give the same
// counts. When it happens is real time: the switch is as exact as the machine.
//
// Isolate must have put the process into namespaces of its own first, as the
// first thing in main or TestMain. They die with it, so nothing is left behind,
// also after kill -9. The switch is one more process of the same program, with
// real-time priority where that is allowed, so that neither a busy machine nor a
// busy caller makes packets late. New starts it, Close ends it.
//
// What becomes of packets (fate.go, queue.go, core.go, nat.go) is told of packets
// and of the time and does no I/O; wire.go feeds it from the devices.
//
// Units: times are time.Duration, rates bytes/s, lengths bytes of the IP packet,
// chances parts per million. Hosts are named by their position in Config.Hosts.
// All exported methods are safe for concurrent use.
package wan

import (
	"net/netip"
	"time"
)

// Rule is what one direction of one pair of hosts does to packets. The zero
// value is a perfect wire. Negative values count as 0 and chances above
// 1,000,000 as certain.
type Rule struct {
	// Delay is how long a packet travels. Jitter changes it by up to +-Jitter,
	// uniformly; packets stay in order all the same.
	Delay, Jitter time.Duration
	// Loss, Duplicate and Reorder are chances in ppm: dropped; delivered twice;
	// held back by half of Delay (at least 1 ms) so that later ones overtake it.
	Loss, Duplicate, Reorder int64
	// Rate is how many bytes/s the link carries; 0 is no limit. Queue is how many
	// bytes may wait for it before packets are dropped at the tail; 0 is no limit
	// but that of Config.InFlight.
	Rate, Queue int64
	// Block cuts this direction, packets in flight included.
	Block bool
}

// Config says what network to build.
type Config struct {
	// Hosts are the names, 1 to 250 of them, each unique and of a-z, 0-9 and "-".
	Hosts []string
	// MTU of every link in bytes; 0 is 1400. At least 1280, as IPv6 asks.
	MTU int
	// Seed of every chance.
	Seed uint64
	// InFlight is how many packets the switch holds at most; more are dropped and
	// counted as Overflow. 0 is 65536 (at most about 130 MB).
	InFlight int
	// NAT puts hosts behind address translation.
	NAT []NAT
}

// NAT hides a host behind a public IPv4 address: what it sends over TCP and UDP
// leaves with the public address, and its own IPv4 address cannot be reached. A
// mapped port leaves as its public port, any other as a port from 40000 on, kept
// for as long as it is among the 4096 used last. Whoever sends to a public port
// in use reaches the host. Nothing else passes, ICMP and fragments included;
// IPv6 is as without NAT.
type NAT struct {
	Host int // position in Config.Hosts
	// Public is an IPv4 address outside 10.77.0.0/16, best one for documentation
	// such as 203.0.113.1.
	Public netip.Addr
	Ports  []Port
}

// Port maps a public port to a port of the host, for TCP and UDP both.
type Port struct {
	Public, Inside uint16
}

// Host is one host of a network: its name and its addresses.
type Host struct {
	Name   string
	V4, V6 netip.Addr
	Public netip.Addr // of its NAT; not valid if it has none
	inside inside
}

// Stats counts packets since New. Once the switch is at rest, Received +
// Duplicated = Delivered + Lost + Blocked + QueueDrop + Overflow + Unroutable +
// Malformed + Untranslated + Refused + InFlight.
type Stats struct {
	Received   int64 // read from the hosts
	Delivered  int64 // written to a host, duplicates included
	Lost       int64 // by Rule.Loss
	Blocked    int64 // by Rule.Block, on entry or in flight
	QueueDrop  int64 // by Rule.Queue
	Overflow   int64 // by Config.InFlight
	Unroutable int64 // to an address that no host has
	Malformed  int64 // not an IP packet, or with a source that is not the host's
	// Untranslated packets did not pass a NAT: to a port without a mapping, to the
	// hidden address, fragments, and what is neither TCP nor UDP.
	Untranslated int64
	Refused      int64 // by the kernel of the receiving host
	Duplicated   int64 // second copies
	Reordered    int64 // held back
	Late         int64 // delivered more than 1 ms after its time
	LateMax      time.Duration
	InFlight     int64 // right now
	HostDrop     int64 // dropped by a host's kernel before the switch could read them
}
