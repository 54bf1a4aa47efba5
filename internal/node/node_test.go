package node

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"subak/internal/api"
	"subak/internal/config"
	"subak/internal/state"
)

// A probe of memberlist's own may outlive its Shutdown by the probe's timeout;
// nothing can join it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// These tests run whole nodes on loopback: real gossip, real HTTP, real files.

const (
	testKey  = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	otherKey = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
)

// live is one node under test.
type live struct {
	t      *testing.T
	name   string
	node   *Node
	stop   context.CancelFunc
	done   chan error
	ended  bool
	logged *syncBuffer
	file   atomic.Pointer[string] // what a reload reads
	hangup chan os.Signal
	asks   *api.Client
}

// setup is what a test varies about a node.
type setup struct {
	name, cluster, key, dir, backend string
	gossip                           string // listen address; "" takes a free port
	seed                             string
	limit                            int
	existing                         bool
	roster                           []string // of the file; nil means a, b and c
	baseline                         string
	more                             string        // lines at the end of the file
	drain                            time.Duration // 0 means half a second
}

func (s setup) yaml() string {
	def := func(v, d string) string {
		if v == "" {
			return d
		}
		return v
	}
	if s.limit == 0 {
		s.limit = 3000
	}
	st := "new"
	if s.existing {
		st = "existing"
	}
	if s.roster == nil {
		s.roster = []string{"a", "b", "c"}
	}
	backends := ""
	if s.backend != "" {
		backends = fmt.Sprintf("backends: [{url: %q}],", s.backend)
	}
	return fmt.Sprintf(`
cluster: {name: %s, state: %s, data_dir: %q}
node: {name: %s}
gossip: {listen: %s, seeds: [%q], keys: [%q], profile: local, tick: 100ms, term: 1s}
admin: {listen: "127.0.0.1:0"}
nodes: [{name: %s, weight: 1}]
budgets:
  - name: origin
    limit: %d/s
    classes: [{name: high, reserve: 60%%}, {name: low, reserve: 40%%}]
listeners:
  - {name: edge, listen: "127.0.0.1:0", %s check: {enabled: true}, default: {budget: origin, class: low},
     rules: [{match: {path: "/high*"}, budget: origin, class: high}]}
%s`, def(s.cluster, "test"), st, s.dir, s.name, def(s.gossip, "127.0.0.1:0"), def(s.seed, "127.0.0.1:1"), def(s.key, testKey),
		strings.Join(s.roster, ", weight: 1}, {name: "), s.limit, backends, s.more)
}

// begin starts a node and waits until it listens.
func begin(t *testing.T, s setup) *live {
	t.Helper()
	return beginText(t, s, s.yaml())
}

// beginText starts it with another text for a file.
func beginText(t *testing.T, s setup, text string) *live {
	t.Helper()
	cfg, err := config.Parse(s.name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, name: s.name, done: make(chan error, 1), logged: &syncBuffer{}, hangup: make(chan os.Signal, 1)}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	up := make(chan *Node, 1)
	opts := Options{
		Log: slog.New(slog.NewTextHandler(l.logged, nil)), Version: "test", DrainMax: cmp.Or(s.drain, 500*time.Millisecond),
		Started: func(n *Node) { up <- n }, Baseline: s.baseline,
		Load:   func() (*config.Config, error) { return config.Parse(s.name+".yaml", []byte(*l.file.Load())) },
		Reload: l.hangup,
	}
	go func() { l.done <- Run(ctx, cfg, opts) }()
	select {
	case l.node = <-up:
	case err := <-l.done:
		stop()
		t.Fatalf("%s did not start: %v", s.name, err)
	}
	t.Cleanup(l.end)
	return l
}

// end stops the node in order and waits for it.
func (l *live) end() {
	l.stop()
	if l.ended {
		return
	}
	l.ended = true
	if err := <-l.done; err != nil {
		l.t.Errorf("%s: %v", l.name, err)
	}
	if l.t.Failed() {
		l.t.Logf("log of %s:\n%s", l.name, l.logged.String())
	}
}

func (l *live) url(path string) string {
	return "http://" + l.node.doors.list[0].listener.Addr().String() + path
}

func (l *live) status() api.Status { return l.node.Status() }

func (l *live) liveMembers() (n int) {
	for _, m := range l.status().Members {
		if m.Live {
			n++
		}
	}
	return n
}

// cluster starts nodes a, b and c that know each other.
func cluster(t *testing.T) (nodes []*live) {
	t.Helper()
	return clusterIn(t, map[string]string{"a": t.TempDir(), "b": t.TempDir(), "c": t.TempDir()})
}

// clusterIn starts them in the given data directories.
func clusterIn(t *testing.T, dirs map[string]string) (nodes []*live) {
	t.Helper()
	seed := ""
	for _, name := range []string{"a", "b", "c"} {
		l := begin(t, setup{name: name, seed: seed, dir: dirs[name]})
		if seed == "" {
			seed = l.node.gossip.Addr()
		}
		nodes = append(nodes, l)
	}
	for _, l := range nodes {
		eventually(t, l.name+" is ready and sees three live members", func() bool { return l.status().Ready && l.liveMembers() == 3 })
	}
	return nodes
}

// eventually polls a condition; the bound only keeps a broken build from hanging.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-limit.C:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// syncBuffer takes a node's log.
type syncBuffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestANodeServesItsColdStartShareUntilItMeetsPeers(t *testing.T) {
	t.Parallel()
	a := begin(t, setup{name: "a", dir: t.TempDir()})
	if ready, reason := a.node.Ready(); ready || !strings.Contains(reason, "quarantine") {
		t.Errorf("ready %v: %q, want the quarantine first", ready, reason)
	}
	eventually(t, "it is ready on the cold-start share", func() bool {
		ready, reason := a.node.Ready()
		return ready && strings.Contains(reason, "cold-start share")
	})
	s := a.status()
	if s.Join != api.NeverJoined || s.Budgets[0].Share != 1000 {
		t.Errorf("join %s with share %v, want never-joined with a third of 3000", s.Join, s.Budgets[0].Share)
	}
}

func TestTheOnlyBusyNodeGetsTheWholeBudgetOverRealGossip(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() { // straight at the limiter: the doors have tests of their own
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-stop:
				return
			case <-pace.C:
				for range 10 {
					nodes[1].node.core.Budgets()[0].Limiter.Decide(nodes[1].node.clock.Now(), 1, 1)
				}
			}
		}
	})
	eventually(t, "the busy node enforces 99.5 % of the budget", func() bool { return nodes[1].status().Budgets[0].Share >= 0.995*3000 })
	close(stop)
	load.Wait()
	for _, l := range nodes {
		b := l.status().Budgets[0]
		if b.SumShare > b.Limit {
			t.Errorf("%s counts %v enforced, over the limit of %v", l.name, b.SumShare, b.Limit)
		}
	}
}

func TestALeaveIsSeenWhileAStreamNeverEnds(t *testing.T) {
	release := make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer backend.Close()
	defer close(release)
	a := begin(t, setup{name: "a", dir: t.TempDir()})
	b := begin(t, setup{name: "b", dir: t.TempDir(), seed: a.node.gossip.Addr(), backend: backend.URL})
	eventually(t, "a and b are live", func() bool { return a.liveMembers() == 2 && b.liveMembers() == 2 })
	var resp *http.Response
	eventually(t, "the stream is admitted", func() bool { // a bucket begins empty
		var err error
		resp, err = http.Get(b.url("/high/stream"))
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
		}
		return resp.StatusCode == http.StatusOK
	})
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "first\n" {
		t.Fatalf("stream: %q, %v", line, err)
	}
	b.stop()
	eventually(t, "a knows that b left", func() bool {
		for _, m := range a.status().Members {
			if m.Name == "b" {
				return m.Gossip == "left"
			}
		}
		return false
	})
	b.end() // returns within the drain's bound, or the test hangs
	http.DefaultClient.CloseIdleConnections()
}

func TestStrangersAreRefusedInBothDirections(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	a := nodes[0]
	seed := a.node.gossip.Addr()
	shares := func() (s [3]float64) {
		for i, l := range nodes {
			s[i] = l.status().Budgets[0].Share
		}
		return s
	}
	before := shares()
	strangers := map[string]setup{
		"other budget": {name: "b", limit: 90_000},
		"other name":   {name: "b", cluster: "prod"},
		"other key":    {name: "b", key: otherKey},
	}
	for what, s := range strangers {
		t.Run(what, func(t *testing.T) {
			s.seed, s.dir = seed, t.TempDir()
			x := begin(t, s)
			refusals := func(l *live) float64 { return counterSum(t, l.node, "budget_gossip_") }
			start := refusals(a)
			eventually(t, "the cluster counted a refusal of the stranger", func() bool { return refusals(a) > start })
			if n := x.liveMembers(); n != 1 {
				t.Errorf("the stranger sees %d live members, want itself alone", n)
			}
			if got := shares(); got != before {
				t.Errorf("shares moved from %v to %v", before, got)
			}
		})
	}
}

// counterSum adds up the refusal and drop counters with the given prefix.
func counterSum(t *testing.T, n *Node, prefix string) (sum float64) {
	t.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), prefix) || !strings.Contains(f.GetName(), "refused") && !strings.Contains(f.GetName(), "dropped") {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

func TestASecondProcessOfTheSameNameIsKeptOut(t *testing.T) {
	dir := t.TempDir()
	begin(t, setup{name: "a", dir: dir})
	cfg, err := config.Parse("a", []byte(setup{name: "a", dir: dir}.yaml()))
	if err != nil {
		t.Fatal(err)
	}
	err = Run(context.Background(), cfg, Options{Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, state.ErrLocked) {
		t.Errorf("second start: %v, want ErrLocked", err)
	}
}

func TestARestartedNodeIsNotReadyBeforePeersVouchForIt(t *testing.T) {
	dir := t.TempDir()
	a := begin(t, setup{name: "a", dir: dir})
	eventually(t, "state is on disk", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "state.json"))
		return len(found) == 1
	})
	addr := a.node.gossip.Addr()
	a.end()
	again := begin(t, setup{name: "a", dir: dir, existing: true, gossip: addr})
	if ready, reason := again.node.Ready(); ready {
		t.Errorf("ready with %q before anybody vouched", reason)
	}
	if share := again.status().Budgets[0].Share; share != 0 {
		t.Errorf("share %v before anybody vouched, want 0", share)
	}
	begin(t, setup{name: "b", dir: t.TempDir(), seed: addr})
	eventually(t, "ready once another of the three vouches", func() bool { ready, _ := again.node.Ready(); return ready })
}

func TestAPartThatFailsStopsTheNodeWithItsReason(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	text := strings.Replace(setup{name: "a", dir: t.TempDir()}.yaml(), `edge, listen: "127.0.0.1:0"`, fmt.Sprintf("edge, listen: %q", taken.Addr()), 1)
	cfg, err := config.Parse("a", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	err = Run(context.Background(), cfg, Options{Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "edge") {
		t.Errorf("start on a taken address: %v, want an error that names the listener", err)
	}
}
