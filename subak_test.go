package subak_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"subak"
	"subak/enforce/limit"
)

// A probe of memberlist's own may outlive its Shutdown by the probe's timeout;
// nothing can join it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

const key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// trio is the configuration of three nodes that share 3000 units per second; each
// alone has 1000.
func trio(seed string) subak.Config {
	c := single()
	c.Single = false
	c.Gossip.Profile, c.Gossip.Keys, c.Gossip.Seeds = "local", []string{key}, []string{seed}
	c.Gossip.Term, c.Gossip.Tick = time.Second, 50*time.Millisecond
	c.Nodes = []subak.Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	c.Budgets[0].Limit = "3000/s"
	return c
}

func open(t *testing.T, src subak.Source, name string) *subak.Node {
	t.Helper()
	n, err := subak.Open(t.Context(), src, subak.Options{Node: name, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return n
}

func classOf(t *testing.T, n *subak.Node, name string) *limit.Class {
	t.Helper()
	c, err := n.Class("origin", name)
	if err != nil {
		t.Fatal(err)
	}
	return c
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

func TestThreeEmbeddedNodesShareOneBudgetByGossip(t *testing.T) {
	t.Parallel()
	a := open(t, trio("127.0.0.1:1"), "a")
	b := open(t, trio(a.GossipAddr()), "b")
	c := open(t, trio(a.GossipAddr()), "c")
	begun := time.Now()
	nodes := []*subak.Node{a, b, c}
	for _, n := range nodes {
		if err := n.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// Only b is busy: callers that wait are its demand. It must get far more than
	// its own third, and all nodes together never more than the budget.
	busy := classOf(t, b, "confirmed")
	ctx, stop := context.WithCancel(t.Context())
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for busy.WaitN(ctx, 20) == nil {
				admitted.Add(20)
			}
		})
	}
	eventually(t, "the busy node has more than twice its own share", func() bool { return busy.Quota().Rate > 2000*1_000_000 })
	idle := classOf(t, a, "uncleared")
	eventually(t, "an idle node still admits", idle.Allow)
	stop()
	callers.Wait()
	took := time.Since(begun).Seconds()
	if most := 3000*took + 3000; float64(admitted.Load()) > most {
		t.Errorf("%d admitted in %.1f s, at most %.0f may be", admitted.Load(), took, most)
	}
	if n, err := testutil.GatherAndCount(b.Metrics(), "budget_node_ready"); err != nil || n != 1 {
		t.Errorf("%d series of budget_node_ready, %v", n, err)
	}
}

const file = `
cluster: {name: file, single: true, state: new}
gossip: {listen: "127.0.0.1:0", tick: 20ms, term: 100ms}
admin: {listen: "127.0.0.1:0"}
nodes: [{name: ams}]
budgets:
  - name: origin
    limit: 1000/s
    classes: [{name: confirmed, reserve: 60%}, {name: uncleared, reserve: 40%}]
`

func TestHandlesFollowAReloadedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "subak.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file)
	n := open(t, subak.File(path), "ams")
	high, low := classOf(t, n, "confirmed"), classOf(t, n, "uncleared")
	eventually(t, "it admits", high.Allow)

	write(strings.Replace(strings.Replace(file, "1000/s", "2000/s", 1), "name: uncleared", "name: batch", 1))
	n.Reload()
	eventually(t, "the handle has the new limit", func() bool { return high.Quota().Rate == 1200*1_000_000 })
	eventually(t, "and admits", high.Allow)
	eventually(t, "a class that is gone says so", func() bool { return errors.Is(low.Err(), limit.ErrUnknown) })
	if low.Allow() {
		t.Error("a class that is gone admits")
	}
	if _, err := n.Class("origin", "uncleared"); !errors.Is(err, limit.ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	batch := classOf(t, n, "batch")
	eventually(t, "the new class admits", batch.Allow)

	write(file + "]") // changes nothing
	n.Reload()
	write(strings.Replace(file, "1000/s", "1500/s", 1))
	n.Reload()
	eventually(t, "the class that comes back admits by its old handle", low.Allow)
}

func TestAClosedNodeRefusesAndMayBeClosedAgain(t *testing.T) {
	t.Parallel()
	n := open(t, single(), "ams")
	class := classOf(t, n, "confirmed")
	eventually(t, "it admits", class.Allow)
	waiting := make(chan error, 1)
	for class.Allow() {
	}
	go func() { waiting <- class.WaitN(context.Background(), 600) }()
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.Done():
	default:
		t.Error("Close returned before the node had ended")
	}
	if err := <-waiting; err != nil && !errors.Is(err, limit.ErrClosed) {
		t.Errorf("who waited got %v", err)
	}
	if class.Allow() || !errors.Is(class.Err(), limit.ErrClosed) {
		t.Errorf("a closed node admits, or says %v", class.Err())
	}
	if err := n.WaitReady(t.Context()); err == nil {
		t.Error("a closed node became ready")
	}
	if err := n.Close(t.Context()); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestATenantIsBoundedInsideItsClass(t *testing.T) {
	t.Parallel()
	cfg := single()
	cfg.CoarseClock = true
	cfg.Budgets[0].Classes[0].Tenant = "0.1/s"
	class := classOf(t, open(t, cfg, "ams"), "confirmed")
	eventually(t, "the class admits", class.Allow)
	greedy := class.For("greedy")
	admitted := 0
	eventually(t, "its tenant is refused while the class admits", func() bool {
		if greedy.Allow() {
			admitted++
			return false
		}
		return class.Allow()
	})
	if admitted > 3 {
		t.Errorf("%d admitted at 0.1/s", admitted)
	}
	r := class.For("other").Reserve(1)
	if !r.OK() {
		t.Error("another tenant is refused")
	}
	r.Cancel()
	if !class.For("other").Reserve(1).OK() {
		t.Error("a tenant's token did not come back")
	}
}

func TestACloseThatMayNotTakeTimeReturnsInTime(t *testing.T) {
	t.Parallel()
	n := open(t, single(), "ams")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFaultsNameTheirField(t *testing.T) {
	t.Parallel()
	with := func(change func(*subak.Config)) subak.Config {
		c := single()
		change(&c)
		return c
	}
	taken := open(t, single(), "ams")
	for field, tc := range map[string]struct {
		src  subak.Source
		node string
	}{
		"node.name":                     {single(), ""},
		"is not in nodes":               {single(), "typo"},
		"cluster.name":                  {with(func(c *subak.Config) { c.Cluster = "" }), "ams"},
		"budgets[0].classes[1].reserve": {with(func(c *subak.Config) { c.Budgets[0].Classes[1].Reserve = "400" }), "ams"},
		"classes[0].tenants.each":       {with(func(c *subak.Config) { c.Budgets[0].Classes[0].Tenant = "few" }), "ams"},
		"gossip.term":                   {with(func(c *subak.Config) { c.Gossip.Term = time.Nanosecond }), "ams"},
		"gossip.listen":                 {with(func(c *subak.Config) { c.Gossip.Listen = taken.GossipAddr() }), "ams"},
		"subak.yaml":                    {subak.File("/nowhere/subak.yaml"), "ams"},
		"YAML:1":                        {subak.YAML("nodes: ]"), "ams"},
		"nodes[0].names":                {subak.YAML(strings.Replace(file, "{name: ams}", "{names: ams}", 1)), "ams"},
	} {
		n, err := subak.Open(t.Context(), tc.src, subak.Options{Node: tc.node})
		if err == nil {
			_ = n.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v, want an error that names %s", err, field)
		}
		if fmt.Sprintf("%T", tc.src) == "subak.Config" && err != nil && strings.Contains(err.Error(), "Config:") {
			t.Errorf("%v names a line that nobody wrote", err)
		}
	}
}
