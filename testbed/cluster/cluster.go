// Package cluster runs the nodes of one Subak cluster as real processes: it
// writes their configuration, starts them, does to them what happens to machines
// (kill -9, TERM, pauses, starvation, restarts, joins, leaves, changed
// configuration, hostile bytes), and samples what they say of themselves.
//
// Model: nodes are numbered as in [Config.Nodes], by position. Those that are not
// Absent are the roster of the first epoch; later the roster and the budget are
// what [Cluster.Apply] put in force. A node's admin interface is by default a unix
// socket below [Config.Dir], so a node that the network cuts off still answers. A
// process that ended though nobody here ended it is a crash; see
// [Cluster.Crashed].
//
// Units: rates in whole requests/s, parts in millionths (ppm), times as
// time.Duration; sampled times count from an instant that the caller gives.
//
// All methods may be called from several goroutines at once, though two that
// start or end the same node wait for each other. Nothing that is sampled waits
// for a node: one that is paused costs a sampler nothing. [Cluster.Close] leaves
// no process and no goroutine; the files stay.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"subak/internal/api"
	"subak/internal/child"
)

// Host is where a node runs, such as a host of an emulated network.
type Host interface {
	// Start starts a process there.
	Start(cmd *exec.Cmd) error
	// Do runs f on a thread there: sockets that it makes belong there.
	Do(f func() error) error
	// DialContext opens a connection from there.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Node is one node of a cluster.
type Node struct {
	Name   string
	Weight int64
	// Gossip is the IP:port where it listens for its peers; they reach it at
	// Advertise, by default the same.
	Gossip    string
	Advertise string
	// Proxy is the IP:port where it takes requests.
	Proxy string
	// Admin is host:port or unix:/path. Default a socket below the directory.
	Admin string
	// Host is where it runs. Nil is this machine as it is.
	Host Host
	// Binary is its executable. Default that of the Config.
	Binary string
	// Absent nodes are not of the roster at first: they join by an [Edit].
	Absent bool
}

// Class is one class of the budget. Its requests are those whose path begins with
// its name.
type Class struct {
	Name    string
	Reserve int64 // ppm of the limit
}

// Config says what to run. Zero values stand for the defaults named.
type Config struct {
	// Name of the cluster (default "testbed").
	Name string
	// Binary is the subak executable. Required, unless every node names its own.
	Binary string
	// Args are added to "run --config FILE" of every node.
	Args []string
	// Dir gets all files: NAME.yaml, NAME.log, NAME.sock and the data directory
	// NAME of every node. Required; it must exist, and be short enough for the
	// path of a unix socket.
	Dir   string
	Nodes []Node
	// Origin is the host:port where admitted requests go.
	Origin string

	Limit     int64         // requests/s over all nodes
	Burst     time.Duration // default 1 s
	Insurance int64         // ppm
	Classes   []Class       // by priority, two at least
	// Extra is a number of further budgets that nobody asks for, of the same
	// classes.
	Extra int

	Tick    time.Duration // default 200 ms
	Term    time.Duration // default 3 s
	Profile string        // of gossip: wan (default), lan or local
	// Keys encrypt gossip: base64 of 32 bytes, the first one encrypts. Default one
	// random key.
	Keys []string

	// Children starts the processes; it stays open. Default an own one.
	Children *child.Supervisor
	// Grace is how long a node has to stop before it is killed (default 15 s).
	Grace time.Duration
	// Counters are the Prometheus series to keep the values of, such as
	// budget_node_dropped_total, which sums over all labels, or
	// budget_node_dropped_total{reason="oversize"}.
	Counters []string
}

// Cluster is a number of nodes. Make it by [New].
type Cluster struct {
	cfg      Config
	children *child.Supervisor
	nodes    []*node

	mu   sync.Mutex // guards what follows
	keys []string
	now  content
	pace Pace
}

// content is what all nodes agree on, but for the classes' names.
type content struct {
	roster  []int // by position
	limit   int64
	reserve []int64 // ppm, by class
}

// node is one node over all its lives.
type node struct {
	Node
	file, data, log string
	client          *api.Client
	metrics         *http.Client

	control sync.Mutex // held while it is being started or ended

	mu      sync.Mutex // guards what follows
	binary  string
	process *child.Process // nil before the first start and when ended by us
	started bool           // at any time
	lives   []life
	pauses  []span
	points  []Point
	usage   []usagePoint
	meters  []meterPoint
	// counters are those of the Config, by their selector.
	counters map[string]counter
	page     []byte // the last metrics
}

// New prepares the files' places and the clients; nothing runs yet.
func New(cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, children: cfg.Children, keys: cfg.Keys}
	c.now.limit = cfg.Limit
	for _, k := range cfg.Classes {
		c.now.reserve = append(c.now.reserve, k.Reserve)
	}
	for i, n := range cfg.Nodes {
		client, err := api.NewClient(api.ClientConfig{Address: n.Admin, Timeout: askTimeout})
		if err != nil {
			return nil, fmt.Errorf("cluster: node %s: %w", n.Name, err)
		}
		at := func(suffix string) string { return filepath.Join(cfg.Dir, n.Name+suffix) }
		c.nodes = append(c.nodes, &node{
			Node: n, binary: n.Binary, client: client, metrics: scraper(n.Admin), counters: map[string]counter{},
			file: at(".yaml"), data: at(""), log: at(".log"),
		})
		if !n.Absent {
			c.now.roster = append(c.now.roster, i)
		}
	}
	if c.children == nil {
		c.children = child.New()
	}
	return c, nil
}

// How long things may take.
const (
	askTimeout = 2 * time.Second // one answer of a node
	pollEvery  = 50 * time.Millisecond
)

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "testbed"
	}
	if c.Burst == 0 {
		c.Burst = time.Second
	}
	if c.Tick == 0 {
		c.Tick = 200 * time.Millisecond
	}
	if c.Term == 0 {
		c.Term = 3 * time.Second
	}
	if c.Profile == "" {
		c.Profile = "wan"
	}
	if c.Grace == 0 {
		c.Grace = 15 * time.Second
	}
	if len(c.Keys) == 0 {
		c.Keys = []string{NewKey()}
	}
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Admin == "" {
			n.Admin = "unix:" + filepath.Join(c.Dir, n.Name+".sock")
		}
		if n.Binary == "" {
			n.Binary = c.Binary
		}
		if n.Weight == 0 {
			n.Weight = 1
		}
	}
	return c
}

// socketMax is the longest path of a unix socket, in bytes.
const socketMax = 107

// validate reports all faults but those that a node finds in its configuration.
func (c *Config) validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("cluster: "+format, args...)) }
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		add("directory %q does not exist", c.Dir)
	}
	if len(c.Nodes) == 0 || len(c.Classes) < 2 || c.Limit <= 0 || c.Origin == "" {
		add("nodes, two classes, a limit and an origin are required")
	}
	names := map[string]bool{}
	for _, n := range c.Nodes {
		if n.Name == "" || n.Gossip == "" || n.Proxy == "" || n.Binary == "" || names[n.Name] {
			add("node %q needs a name of its own, a binary, and addresses for gossip and requests", n.Name)
		}
		names[n.Name] = true
		if path, ok := strings.CutPrefix(n.Admin, "unix:"); ok && len(path) > socketMax {
			add("socket %s is longer than the %d bytes that the kernel allows: use a shorter directory", path, socketMax)
		}
	}
	return errors.Join(errs...)
}

// NewKey makes a key for gossip.
func NewKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

// Close kills every node, and ends the supervisor unless it was given. Nobody is
// left to whom a node would say that it leaves, which takes seconds.
func (c *Cluster) Close() {
	for i := range c.nodes {
		c.Kill(i)
	}
	if c.cfg.Children == nil {
		c.children.Close(c.cfg.Grace)
	}
	for _, n := range c.nodes {
		n.client.Close()
		n.metrics.CloseIdleConnections()
	}
}

// Client talks to the admin interface of node i.
func (c *Cluster) Client(i int) *api.Client { return c.nodes[i].client }

// Keys are the keys of gossip as of now; the first one encrypts.
func (c *Cluster) Keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.keys)
}

// SetKeys makes keys those of every node from its next start on; the first one
// encrypts. To replace the key of a cluster that runs takes three rounds of
// restarts: the new one is added last everywhere, then moved first, then the old one
// is dropped.
func (c *Cluster) SetKeys(keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = slices.Clone(keys)
}

// Node is node i as configured, with the defaults filled in.
func (c *Cluster) Node(i int) Node { return c.nodes[i].Node }

// Name is the cluster's.
func (c *Cluster) Name() string { return c.cfg.Name }
