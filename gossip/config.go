package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"
)

const (
	// MaxPacket is the longest packet that can be sent, in bytes. With frame,
	// label and encryption it fits an Ethernet MTU of 1500; see Overhead for
	// smaller ones.
	MaxPacket = 1200
	// MaxLong is the longest packet that can go by stream, in bytes (SendReliable).
	MaxLong = 64 << 10
	// MaxState is the longest state blob for push/pull, in bytes. memberlist
	// silently loses state over 20 MiB; this is far below.
	MaxState = 1 << 20
	// MaxName bounds the length of node and cluster names, in bytes, so that a
	// full packet with its frame still fits the relay queue's datagram.
	MaxName = 64

	defaultQueueLen = 1024
	maxQueueLen     = 1 << 16
	defaultRejoin   = 7500 * time.Millisecond
	minRejoin       = 100 * time.Millisecond
	maxRejoin       = time.Minute
	keyBytes        = 32
	maxKeys         = 16
	maxSeeds        = 256
	// datagramBytes is memberlist's UDPBufferSize: the largest datagram it
	// fills by itself.
	datagramBytes = 1400
)

// Profile selects memberlist's timing.
type Profile uint8

// The profiles. LAN suits one site, WAN several, Local processes on one host.
const (
	LAN Profile = iota
	WAN
	Local
)

// ParseProfile reads "lan", "wan" or "local".
func ParseProfile(s string) (Profile, error) {
	for _, p := range []Profile{LAN, WAN, Local} {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("gossip profile %q: want lan, wan or local", s)
}

func (p Profile) String() string {
	switch p {
	case LAN:
		return "lan"
	case WAN:
		return "wan"
	case Local:
		return "local"
	default:
		return fmt.Sprintf("profile(%d)", uint8(p))
	}
}

// KeyFunc gives the identity of a packet: key names the thing it is about
// (usually its publisher), order is (incarnation, sequence). A
// packet with a greater order replaces those before it. ok is false for packets
// that have no identity: they are delivered but never relayed or deduplicated.
// It sees foreign bytes, must not keep packet and must be safe for
// concurrent use.
type KeyFunc func(packet []byte) (key string, order [2]uint64, ok bool)

// Config says who this node is and whom it meets.
type Config struct {
	// Cluster is the memberlist label, 1 to MaxName bytes. Nodes of another
	// cluster are refused.
	Cluster string
	// Name of this node, unique in the cluster, 1 to MaxName bytes.
	Name string
	// Listen is the host:port to bind for UDP and TCP. An empty host means all
	// addresses; port 0 takes a free one.
	Listen string
	// Advertise is the host:port that peers use to reach this node (lesson O21):
	// a name or an address, v4 or v6; without a port, the bound one is used. A name
	// is resolved again while running, and the node announces a new address.
	// Empty: the bound address or, when bound to all, a private (else a
	// global) address of this host.
	Advertise string
	// Seeds are host:port of nodes to contact; names are resolved at each try.
	// This node's own address among them is harmless.
	Seeds []string
	// Keys is the AES-256 key ring, 32 bytes each. The first one encrypts,
	// all decrypt. Empty means unencrypted.
	Keys [][]byte
	// Profile selects memberlist's timing. The zero value is LAN.
	Profile Profile
	// RejoinInterval is the mean time between contacts to a random seed; each
	// wait is drawn from 2/3 to 4/3 of it. Zero means 7.5 s, so 5 to 10 s.
	// Shorter heals partitions sooner and costs one push/pull each time.
	RejoinInterval time.Duration
	// Fingerprint identifies the set of budgets (the root of the config's
	// lineage). Peers with another one are refused. Zero means that it is not
	// known yet: such a provisional node is a member to everybody, and
	// exchanges unicast packets only until SetFingerprint.
	Fingerprint uint64
	// QueueLen bounds the inbox, in messages. Zero means 1024. Longer hides
	// stalls of the reader for longer and costs up to 1.2 kB per message.
	QueueLen int
	// Key identifies packets; required.
	Key KeyFunc
	// Seed makes the choice of seeds and jitter repeatable. Zero: random.
	Seed uint64
	// Transport replaces the network, for tests. Nil: UDP and TCP on Listen. A
	// node on a foreign transport never moves to a new address by itself.
	Transport memberlist.Transport
}

// Validate reports every fault of the configuration at once.
func (c *Config) Validate() error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !validName(c.Cluster) {
		add("gossip cluster %q: want 1 to %d printable characters", c.Cluster, MaxName)
	}
	if !validName(c.Name) {
		add("gossip node name %q: want 1 to %d printable characters", c.Name, MaxName)
	}
	if _, _, err := splitHostPort(c.Listen, -1); c.Transport == nil && err != nil {
		add("gossip listen: %w", err)
	}
	if host, _, err := splitHostPort(c.Advertise, 0); c.Advertise != "" && (err != nil || host == "") {
		add("gossip advertise %q: want host:port or a host", c.Advertise)
	}
	if len(c.Seeds) > maxSeeds {
		add("gossip seeds: %d are too many, at most %d", len(c.Seeds), maxSeeds)
	}
	for i, s := range c.Seeds {
		if host, port, err := splitHostPort(s, -1); err != nil || host == "" || port == 0 {
			add("gossip seed %d %q: want host:port", i, s)
		}
	}
	faults = append(faults, c.validateKeys()...)
	if c.Profile > Local {
		add("gossip profile %d: unknown", c.Profile)
	}
	if c.RejoinInterval != 0 && (c.RejoinInterval < minRejoin || c.RejoinInterval > maxRejoin) {
		add("gossip rejoin interval %v: want %v to %v", c.RejoinInterval, minRejoin, maxRejoin)
	}
	if c.QueueLen < 0 || c.QueueLen > maxQueueLen {
		add("gossip queue length %d: want 0 to %d", c.QueueLen, maxQueueLen)
	}
	if c.Key == nil {
		add("gossip key function: missing")
	}
	return errors.Join(faults...)
}

func (c *Config) validateKeys() []error {
	var faults []error
	if len(c.Keys) > maxKeys {
		faults = append(faults, fmt.Errorf("gossip keys: %d are too many, at most %d", len(c.Keys), maxKeys))
	}
	for i, k := range c.Keys {
		if len(k) != keyBytes {
			faults = append(faults, fmt.Errorf("gossip key %d: %d bytes, want %d (AES-256)", i, len(k), keyBytes))
		}
		for j := range i {
			if bytes.Equal(k, c.Keys[j]) {
				faults = append(faults, fmt.Errorf("gossip key %d: same as key %d", i, j))
			}
		}
	}
	return faults
}

// withDefaults fills zero values.
func (c Config) withDefaults() Config {
	if c.QueueLen == 0 {
		c.QueueLen = defaultQueueLen
	}
	if c.RejoinInterval == 0 {
		c.RejoinInterval = defaultRejoin
	}
	return c
}

// memberlist builds memberlist's own configuration, without delegates.
func (c *Config) memberlist() (*memberlist.Config, error) {
	var m *memberlist.Config
	switch c.Profile {
	case WAN:
		m = memberlist.DefaultWANConfig()
		// A dead seed must not hold up the next try for half a minute.
		m.TCPTimeout = 10 * time.Second
	case Local:
		m = memberlist.DefaultLocalConfig()
	default:
		m = memberlist.DefaultLANConfig()
	}
	m.Name = c.Name
	m.Label = c.Cluster
	m.UDPBufferSize = datagramBytes
	m.EnableCompression = false // rows are small and already dense
	// A node that died and comes back elsewhere may take its name again.
	m.DeadNodeReclaimTime = 5 * time.Second
	if len(c.Keys) > 0 {
		ring, err := memberlist.NewKeyring(c.Keys, c.Keys[0])
		if err != nil {
			return nil, fmt.Errorf("gossip keys: %w", err)
		}
		m.Keyring = ring
	}
	return m, nil
}

// pingEvery is the time between direct pings to one peer.
func (p Profile) pingEvery() time.Duration {
	switch p {
	case WAN:
		return 10 * time.Second
	case Local:
		return 2 * time.Second
	default:
		return 5 * time.Second
	}
}

// validName accepts what may stand in logs and in a frame: short, valid UTF-8,
// printable, no spaces.
func validName(s string) bool {
	if s == "" || len(s) > MaxName || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) {
			return false
		}
	}
	return true
}
