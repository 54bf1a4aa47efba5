package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A test packet: key length, key, incarnation, sequence, padding.
func row(key string, inc, seq uint64) []byte {
	b := append([]byte{byte(len(key))}, key...)
	b = binary.BigEndian.AppendUint64(b, inc)
	b = binary.BigEndian.AppendUint64(b, seq)
	return append(b, make([]byte, 120)...)
}

func rowKey(p []byte) (string, [2]uint64, bool) {
	if len(p) < 1 || len(p) < 1+int(p[0])+16 {
		return "", [2]uint64{}, false
	}
	n := 1 + int(p[0])
	return string(p[1:n]), [2]uint64{binary.BigEndian.Uint64(p[n:]), binary.BigEndian.Uint64(p[n+8:])}, true
}

// logText collects log lines.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) count(sub string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, sub) {
			n++
		}
	}
	return n
}

// node is a Gossip in a bubble with a reader of its inbox.
type node struct {
	*Gossip
	logs   *logText
	cancel context.CancelFunc
	done   chan error

	mu   sync.Mutex
	got  map[string][2]uint64 // newest order per key
	via  map[string]map[Via]int
	sync []string // state blobs
}

func (n *node) read(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-n.Inbox():
			n.mu.Lock()
			if key, order, ok := rowKey(m.Packet); m.Via != Sync && ok {
				n.got[key] = order
				if n.via[key] == nil {
					n.via[key] = make(map[Via]int)
				}
				n.via[key][m.Via]++
			} else {
				n.sync = append(n.sync, string(m.Packet))
			}
			n.mu.Unlock()
		}
	}
}

func (n *node) newest(key string) [2]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.got[key]
}

func (n *node) count(key string, via Via) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.via[key][via]
}

func (n *node) states() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.sync, ",")
}

func (n *node) member(name string) (Member, bool) {
	for _, m := range n.Members() {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// cluster is a set of nodes on one fake network.
type cluster struct {
	t     testing.TB
	net   *fakeNet
	nodes []*node
}

func addrOf(i int) string { return fmt.Sprintf("10.0.%d.%d:7946", i/200, 1+i%200) }
func nameOf(i int) string { return fmt.Sprintf("n%02d", i) }

func newCluster(t testing.TB, seed uint64) *cluster {
	t.Logf("seed %d", seed)
	return &cluster{t: t, net: newFakeNet(seed)}
}

// config is node i's: the first three are everybody's seeds.
func (c *cluster) config(i int) Config {
	return Config{
		Cluster: "test", Name: nameOf(i), Profile: LAN, Fingerprint: 42, Key: rowKey, Seed: uint64(i + 1),
		Seeds: []string{addrOf(0), addrOf(1), addrOf(2)},
	}
}

func (c *cluster) start(i int, edit func(*Config)) *node {
	c.t.Helper()
	cfg := c.config(i)
	cfg.Transport = c.net.attach(addrOf(i))
	if edit != nil {
		edit(&cfg)
	}
	n := &node{logs: &logText{}, done: make(chan error, 1), got: map[string][2]uint64{}, via: map[string]map[Via]int{}}
	var err error
	n.Gossip, err = New(cfg, slog.New(slog.NewTextHandler(n.logs, nil)), prometheus.NewRegistry())
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() { n.done <- n.Run(ctx) }()
	go n.read(ctx)
	for len(c.nodes) <= i {
		c.nodes = append(c.nodes, nil)
	}
	c.nodes[i] = n
	return n
}

func (c *cluster) startAll(count int) {
	for i := range count {
		c.start(i, nil)
	}
}

// kill stops a node without a leave.
func (c *cluster) kill(i int) {
	n := c.nodes[i]
	n.cancel()
	if err := <-n.done; err != nil {
		c.t.Errorf("node %d: %v", i, err)
	}
	c.nodes[i] = nil
}

// stop ends all nodes and lets memberlist's last timers run out.
func (c *cluster) stop() {
	for i, n := range c.nodes {
		if n != nil {
			c.kill(i)
		}
	}
	time.Sleep(5 * time.Minute)
}

// within waits until ok holds, at most limit, and returns how long it took.
func (c *cluster) within(limit time.Duration, what string, ok func() bool) time.Duration {
	c.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > limit {
			c.t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(start)
}

// see says whether every running node has exactly want live peers.
func (c *cluster) see(want int) func() bool {
	return func() bool {
		for _, n := range c.nodes {
			if n != nil && n.Joined().Live != want {
				return false
			}
		}
		return true
	}
}

// tick publishes a row of every running node each 200 ms, rounds times.
func (c *cluster) tick(rounds int, first uint64) {
	for r := range rounds {
		for i, n := range c.nodes {
			if n != nil {
				n.Publish(row(nameOf(i), 1, first+uint64(r)), true)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func counter(c prometheus.Collector) float64 { return testutil.ToFloat64(c) }

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
