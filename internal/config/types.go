package config

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"subak/internal/strict"
)

// Config is the whole configuration of one node. Everything but [Self] is the
// same on every node of a cluster: nodes with other budgets, classes or weights
// are refused by their peers.
type Config struct {
	Cluster  Cluster  `yaml:"cluster"`
	Node     Self     `yaml:"node"`
	Gossip   Gossip   `yaml:"gossip"`
	Protocol Protocol `yaml:"protocol"`
	Admin    Admin    `yaml:"admin"`
	Log      Log      `yaml:"log"`

	// Nodes is the roster: every node of the cluster, this one included, in any
	// order. Required; two nodes at least unless cluster.single is set. Cost of
	// more: each node sends its row to every other one each tick, which is
	// cheap to about 100 nodes and bearable to about 300.
	Nodes []Node `yaml:"nodes"`
	// Budgets are the capacities to share. Required. Cost of more: bytes in
	// every row; some forty budgets of two classes fit one packet.
	Budgets []Budget `yaml:"budgets"`
	// Listeners are the doors for requests. Default none: the node takes part
	// in the cluster but decides nothing, and lends all it has.
	Listeners []Listener `yaml:"listeners"`
	// Envoy are the doors for Envoy proxies, over gRPC. Default none.
	Envoy []Envoy `yaml:"envoy"`

	warnings []string
}

// Warnings says what is allowed but worth knowing: settings that weaken a
// promise or that will surprise somebody at three in the morning.
func (c *Config) Warnings() []string { return c.warnings }

// Cluster identifies the set of nodes that share the budgets.
type Cluster struct {
	// Name labels every gossip packet; nodes of another name are refused, so
	// that two clusters never melt into one after an address is reused.
	// Letters, digits, dots, dashes and underscores. Required.
	Name string `yaml:"name"`
	// State says whether this is the first start of the whole cluster ("new")
	// or not ("existing"). With "new" a node without stored state takes its
	// base without witnesses; use it once, for all nodes, as etcd's
	// initial-cluster-state (flag --bootstrap). Its base counts after one term
	// all the same, in case loans of a life that it forgot still run; what it
	// must not hide is a restart with other budgets or nodes than the others
	// have. Default existing.
	State State `yaml:"state" default:"existing"`
	// Single says in so many words that the cluster has one node only, which
	// then may spend the whole budget without ever meeting a peer. Default
	// false: a node that has never met its peers keeps to its own base.
	Single bool `yaml:"single" default:"false"`
	// DataDir is the directory of the durable state, a few hundred bytes that
	// let a restarted node use its own base again without waiting for
	// witnesses. Default empty: no durable state; a restarted node then lives
	// on loans until a peer vouches for it, and if all nodes restart at once
	// they need --bootstrap.
	DataDir string `yaml:"data_dir"`
}

// State is cluster.state.
type State string

// The two states.
const (
	Existing State = "existing"
	New      State = "new"
)

func (State) Choices() []string { return []string{string(New), string(Existing)} }

// Self says which node this process is.
type Self struct {
	// Name is the entry of nodes that this process is. Usually set by the
	// environment (SUBAK_NODE) or --node, so that all nodes share one file.
	// Required to run. No two live processes may use one name.
	Name string `yaml:"name" flag:"node"`
	// CoarseClock lets decisions use a reading of the clock that is up to a
	// millisecond old, which is several times cheaper. Default false. True lets
	// a bucket give up to its rate times that age more in a window.
	CoarseClock bool `yaml:"coarse_clock" default:"false"`
}

// Gossip is how nodes talk to each other.
type Gossip struct {
	// Listen is the IP address and port for gossip, UDP and TCP. Port 0 takes a
	// free one. Default 0.0.0.0:7946.
	Listen netip.AddrPort `yaml:"listen" default:"0.0.0.0:7946"`
	// Advertise is the host:port, name or IP, that peers reach this node at
	// when it differs from listen (NAT, containers). Default empty: the listen
	// address, or the machine's private address when listen is 0.0.0.0.
	Advertise string `yaml:"advertise"`
	// Seeds are host:port addresses of some other nodes, three or so, tried
	// again for ever and resolved anew each time. Required unless
	// cluster.single; naming the node itself does no harm.
	Seeds []string `yaml:"seeds"`
	// Keys are base64 texts of 32 bytes (subak keygen) for AES-256. The first
	// one encrypts, all of them decrypt: to change keys add the new one last
	// everywhere, then move it first everywhere, then remove the old one.
	// Default none: gossip is readable and forgeable by whoever reaches the
	// port.
	Keys []string `yaml:"keys" secret:"true"`
	// KeyFile is a file with one key on each line, instead of keys. Default
	// empty.
	KeyFile string `yaml:"key_file"`
	// Profile tunes failure detection to the network: wan, lan or local.
	// Default wan. A faster profile notices dead nodes sooner and takes slow
	// ones for dead more often.
	Profile Profile `yaml:"profile" default:"wan"`
	// Tick is the time between two rows of a node; changes over 1% go at once.
	// Range 20ms to 5s. Default 200ms. Raising it saves packets and delays
	// small changes.
	Tick time.Duration `yaml:"tick" default:"200ms"`
	// Term is how long a loan lasts without news from its lender. At least 4
	// ticks, at most 60s. Default 3s. Raising it rides out longer losses (2s
	// stands 20% loss, 3s 40%) and makes capacity lent to a dead node come back
	// later.
	Term time.Duration `yaml:"term" default:"3s"`
}

// Profile is gossip.profile.
type Profile string

// The three profiles.
const (
	WAN   Profile = "wan"
	LAN   Profile = "lan"
	Local Profile = "local"
)

func (Profile) Choices() []string { return []string{string(WAN), string(LAN), string(Local)} }

// Protocol holds the constants of the loan protocol. All nodes should agree on
// them; the defaults do for any machine with a working clock.
type Protocol struct {
	// Drift is the largest rate error declared for any node's clock. Default
	// 0.1%, twice what NTP slews by at most. Range 0% to 10%.
	Drift Percent `yaml:"drift" default:"0.1%"`
	// Eps is by how much longer than the term a lender waits. It must be at
	// least 2*drift/(1-drift), or the two ends of a loan could overlap. Default
	// 1%. Raising it delays the return of loans to dead nodes.
	Eps Percent `yaml:"eps" default:"1%"`
	// Guard is how much earlier than its end a borrower stops using a loan. It
	// covers the 10ms grain of kernel clocks and one late timer. Range 20ms to
	// a quarter of the term. Default 25ms. Raising it wastes that part of each
	// loan that is not renewed.
	Guard time.Duration `yaml:"guard" default:"25ms"`
	// Live is how old a node's newest row may be before the others stop
	// counting on its demand. At least 3 ticks. Default 0, which means the
	// term. Raising it keeps capacity aimed at silent nodes.
	Live time.Duration `yaml:"live" default:"0s"`
}

// Admin is the interface for operators: status, metrics, dashboard.
type Admin struct {
	// Listen is IP:PORT or unix:/path/of/socket; port 0 takes a free one. Any
	// address but loopback and unix needs a token. Default 127.0.0.1:7947.
	Listen Endpoint `yaml:"listen" default:"127.0.0.1:7947"`
	// TokenFile holds the bearer token that every request must carry. Default
	// empty: no token, for loopback and unix sockets only.
	TokenFile string `yaml:"token_file"`
	// Insecure allows an address open to the network without a token: anybody
	// who reaches it may freeze the node. Default false.
	Insecure bool `yaml:"insecure" default:"false"`
	// ReadyWhenIsolated keeps a node ready after it lost its peers: it then
	// serves on its own base, the safe share. Default true. False takes it out
	// of a load balancer, and all nodes at once when the network splits badly.
	ReadyWhenIsolated bool `yaml:"ready_when_isolated" default:"true"`
}

// Endpoint is an address to listen on or to call.
type Endpoint struct {
	Network string // "tcp" or "unix"
	Address string // IP:PORT, or the path of the socket
}

// String is the form of the file: IP:PORT or unix:PATH.
func (e Endpoint) String() string {
	if e.Network == "unix" {
		return "unix:" + e.Address
	}
	return e.Address
}

// Loopback reports whether only this machine can reach the endpoint.
func (e Endpoint) Loopback() bool {
	if e.Network == "unix" {
		return true
	}
	a, err := netip.ParseAddrPort(e.Address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// Dial is where this machine reaches a process that listens on the endpoint: an
// unspecified address becomes the loopback one.
func (e Endpoint) Dial() Endpoint {
	a, err := netip.ParseAddrPort(e.Address)
	if e.Network == "unix" || err != nil || !a.Addr().IsUnspecified() {
		return e
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if a.Addr().Is6() && !a.Addr().Is4In6() {
		loopback = netip.IPv6Loopback()
	}
	return Endpoint{e.Network, netip.AddrPortFrom(loopback, a.Port()).String()}
}

// MarshalText is String.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads IP:PORT or unix:PATH.
func (e *Endpoint) UnmarshalText(text []byte) error {
	s := string(text)
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if !strings.HasPrefix(path, "/") || len(path) > 100 {
			return strict.Wrong(fmt.Sprintf("%q is no absolute path of at most 100 bytes", path), "write unix:/run/subak.sock")
		}
		*e = Endpoint{"unix", path}
		return nil
	}
	a, err := strict.ParseAddrPort(s)
	if err != nil {
		return err
	}
	*e = Endpoint{"tcp", a.String()}
	return nil
}

// Log says what is written to standard error.
type Log struct {
	// Level is the least severe level that is written: debug, info, warn or
	// error. Default info.
	Level Level `yaml:"level" default:"info"`
	// Format is text or json. Default text.
	Format Format `yaml:"format" default:"text"`
}

// Level is log.level.
type Level string

func (Level) Choices() []string { return []string{"debug", "info", "warn", "error"} }

// Format is log.format.
type Format string

func (Format) Choices() []string { return []string{"text", "json"} }

// Node is one entry of the roster.
type Node struct {
	// Name of the node: letters, digits, dots, dashes and underscores, at most
	// 63. Required, unique.
	Name string `yaml:"name"`
	// Weight is the node's part of every budget when nobody borrows: base =
	// limit * weight / sum of weights. A whole number from 1 to 1,000,000,000.
	// Default 1. Set it to the node's usual part of the traffic; what is
	// reachable moves by loans, what a dead node strands is its base.
	Weight int64 `yaml:"weight" default:"1"`
}
