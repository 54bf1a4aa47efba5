package gossip

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

// eventually polls real time, up to 15 s.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}

// waitForGoroutines waits until memberlist's last probe has timed out.
func waitForGoroutines(t *testing.T) {
	t.Helper()
	eventually(t, "all goroutines have ended", func() bool { return goleak.Find() == nil })
}

func runReal(t *testing.T, cfg Config, lookup lookupFunc) *node {
	t.Helper()
	n := &node{logs: &logText{}, done: make(chan error, 1), got: map[string][2]uint64{}, via: map[string]map[Via]int{}}
	var err error
	n.Gossip, err = newGossip(cfg, slog.New(slog.NewTextHandler(n.logs, nil)), prometheus.NewRegistry(), lookup)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() { n.done <- n.Run(ctx) }()
	go n.read(ctx)
	return n
}

func stopReal(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		n.cancel()
		if err := <-n.done; err != nil {
			t.Error(err)
		}
	}
	waitForGoroutines(t)
}

func TestRealSocketsWithEncryption(t *testing.T) {
	key := [][]byte{[]byte(strings.Repeat("k", 32))}
	var nodes []*node
	var seeds []string
	for i := range 3 {
		cfg := Config{
			Cluster: "loop", Name: nameOf(i), Listen: fmt.Sprintf("127.0.0.%d:0", 11+i), Keys: key, Profile: Local,
			Fingerprint: 42, Key: rowKey, Seeds: seeds, RejoinInterval: time.Second,
		}
		n := runReal(t, cfg, systemLookup)
		seeds = append(seeds, n.Addr())
		nodes = append(nodes, n)
	}
	eventually(t, "all see all", func() bool {
		return nodes[0].Joined().Live == 2 && nodes[1].Joined().Live == 2 && nodes[2].Joined().Live == 2
	})
	full := append(row("n00", 1, 1), make([]byte, MaxPacket-len(row("n00", 1, 1)))...)
	nodes[0].Publish(full, true)
	nodes[0].SendReliable("n01", row("reliable", 1, 1))
	eventually(t, "a full packet and a stream arrive", func() bool {
		return nodes[1].newest("n00") == [2]uint64{1, 1} && nodes[2].newest("n00") == [2]uint64{1, 1} &&
			nodes[1].newest("reliable") == [2]uint64{1, 1}
	})
	eventually(t, "round trips are measured", func() bool { _, ok := nodes[0].RTTMillis("n02"); return ok })
	for _, n := range nodes {
		if got := n.logs.count("NOT ENCRYPTED"); got != 0 {
			t.Error("warned about encryption although there are keys")
		}
	}
	stopReal(t, nodes...)
}

func TestUnencryptedPublicAddressIsWarnedAbout(t *testing.T) {
	n := runReal(t, Config{Cluster: "c", Name: "n", Listen: "0.0.0.0:0", Advertise: "127.0.0.1", Key: rowKey, Profile: Local}, systemLookup)
	if n.logs.count("NOT ENCRYPTED") != 1 {
		t.Error("no warning")
	}
	stopReal(t, n)
}

func TestListenErrorsAreClear(t *testing.T) {
	n := runReal(t, Config{Cluster: "c", Name: "n", Listen: "127.0.0.1:0", Key: rowKey, Profile: Local}, systemLookup)
	_, err := New(Config{Cluster: "c", Name: "m", Listen: n.Addr(), Key: rowKey}, discard(), nil)
	if err == nil || !strings.Contains(err.Error(), "gossip listen on "+n.Addr()) {
		t.Errorf("taken port: %v", err)
	}
	_, err = New(Config{Cluster: "c", Name: "m", Listen: "127.0.0.1:0", Advertise: "224.0.0.1:1", Key: rowKey}, discard(), nil)
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("useless advertise address: %v", err)
	}
	stopReal(t, n)
}

// Lesson O21: the advertised name gets another address while the node runs.
func TestNodeFollowsItsAdvertisedName(t *testing.T) {
	key := [][]byte{[]byte(strings.Repeat("k", 32))}
	base := Config{Cluster: "move", Keys: key, Profile: Local, Fingerprint: 42, Key: rowKey, RejoinInterval: time.Second}
	a := base
	a.Name, a.Listen = "a", "127.0.0.21:0"
	na := runReal(t, a, systemLookup)

	var now atomic.Pointer[netip.Addr]
	set := func(s string) { ip := netip.MustParseAddr(s); now.Store(&ip) }
	set("127.0.0.22")
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "mobile.example" {
			return nil, fmt.Errorf("no such host %q", host)
		}
		return []netip.Addr{*now.Load()}, nil
	}
	b := base
	b.Name, b.Listen, b.Advertise, b.Seeds = "b", "0.0.0.0:0", "mobile.example", []string{na.Addr()}
	nb := runReal(t, b, lookup)
	at := func(ip string) func() bool {
		return func() bool {
			m, _ := na.member("b")
			return m.State == Alive && strings.HasPrefix(m.Addr, ip+":") && na.Joined().Live == 1 && nb.Joined().Live == 1
		}
	}
	eventually(t, "b is seen at its first address", at("127.0.0.22"))
	set("127.0.0.23")
	if !nb.follow() {
		t.Fatal("the change was not noticed")
	}
	if nb.follow() {
		t.Error("moved again without a change")
	}
	eventually(t, "b is seen at its second address", at("127.0.0.23"))
	nb.Publish(row("b", 1, 1), true)
	eventually(t, "its rows arrive", func() bool { return na.newest("b") == [2]uint64{1, 1} })
	stopReal(t, na, nb)
}

func TestBytesOnTheWireAreCountedBothWays(t *testing.T) {
	cfg := Config{Cluster: "c", Name: "a", Listen: "127.0.0.31:0", Profile: Local, Fingerprint: 42, Key: rowKey}
	a := runReal(t, cfg, systemLookup)
	cfg.Name, cfg.Listen, cfg.Seeds = "b", "127.0.0.32:0", []string{a.Addr()}
	b := runReal(t, cfg, systemLookup)
	eventually(t, "they meet", func() bool { return a.Joined().Live == 1 && b.Joined().Live == 1 })
	bytes := func(n *node, direction, proto string) float64 {
		return counter(n.metrics.wireBytes.WithLabelValues(direction, proto))
	}
	b.Publish(row("b", 1, 1), false)
	eventually(t, "both count both ways", func() bool {
		for _, proto := range []string{"udp", "tcp"} {
			if bytes(a, "in", proto) == 0 || bytes(a, "out", proto) == 0 || bytes(b, "in", proto) == 0 || bytes(b, "out", proto) == 0 {
				return false
			}
		}
		return true
	})
	// While both run: a node that has stopped no longer counts what its peer
	// goes on sending it. What came in is read first, for it was sent before.
	eventually(t, "a counts what b sends", func() bool {
		in := bytes(a, "in", "udp")
		out := bytes(b, "out", "udp")
		if in > out {
			t.Fatalf("a got %v bytes of the %v that b sent", in, out)
		}
		return in >= out/2
	})
	stopReal(t, a, b)
}
