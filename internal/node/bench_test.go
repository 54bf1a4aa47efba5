package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"subak/allocator"
	"subak/internal/config"
)

// BenchmarkDemandStep is the time from a demand step at one of five whole nodes
// on loopback (real gossip, encrypted) to 99 % of its new target in the data
// plane, in milliseconds and in ticks.
func BenchmarkDemandStep(b *testing.B) {
	nodes := benchCluster(b)
	var level [5]atomic.Int64 // offered units per millisecond
	stop := make(chan struct{})
	defer close(stop)
	for i, n := range nodes {
		go offer(n, &level[i], stop)
	}
	var total, worst time.Duration
	steps := 0
	for b.Loop() {
		busy := steps % len(nodes)
		steps++
		level[busy].Store(20)
		start := time.Now()
		shares := make([]allocator.Rate, 2)
		for {
			share := nodes[busy].core.Budgets()[0].Limiter.Share(nodes[busy].clock.Now(), shares)
			if share >= 10_000*allocator.Unit*99/100 {
				break
			}
			if time.Since(start) > 20*time.Second {
				b.Fatalf("share stays at %d", share)
			}
			pause(time.Millisecond)
		}
		total += time.Since(start)
		worst = max(worst, time.Since(start))
		level[busy].Store(0)
		pause(time.Second) // until the loans are back
	}
	ms := float64(total.Microseconds()) / 1000 / float64(steps)
	b.ReportMetric(ms, "ms/step")
	b.ReportMetric(ms/200, "ticks/step")
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
	b.ReportMetric(0, "ns/op")
}

func pause(d time.Duration) { <-time.After(d) }

// offer decides requests at the given level until stop.
func offer(n *Node, level *atomic.Int64, stop <-chan struct{}) {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return
		case <-pace.C:
			for range level.Load() {
				n.core.Budgets()[0].Limiter.Decide(n.clock.Now(), 1, 1)
			}
		}
	}
}

func benchCluster(b *testing.B) (nodes []*Node) {
	b.Helper()
	names := []string{"a", "b", "c", "d", "e"}
	seed := ""
	for _, name := range names {
		roster := "nodes: ["
		for k, other := range names {
			roster += fmt.Sprintf("{name: %s, weight: %d},", other, 10+k)
		}
		addr := freeAddress(b)
		if seed == "" {
			seed = addr
		}
		cfg, err := config.Parse(name, fmt.Appendf(nil, `
cluster: {name: bench, state: new, data_dir: %q}
node: {name: %s}
gossip: {listen: %s, seeds: [%q], keys: [%q], profile: local}
admin: {listen: "127.0.0.1:0"}
%s]
budgets: [{name: origin, limit: 10000/s, classes: [{name: high, reserve: 60%%}, {name: low, reserve: 40%%}]}]
`, b.TempDir(), name, addr, seed, testKey, roster))
		if err != nil {
			b.Fatal(err)
		}
		up := make(chan *Node, 1)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, cfg, Options{Log: slog.New(slog.DiscardHandler), Started: func(n *Node) { up <- n }})
		}()
		select {
		case n := <-up:
			nodes = append(nodes, n)
		case err := <-done:
			cancel()
			b.Fatal(err)
		}
		b.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
	for _, n := range nodes {
		for {
			live := 0
			s := n.Status()
			for _, m := range s.Members {
				if m.Live {
					live++
				}
			}
			if s.Ready && live == len(names) {
				break
			}
			pause(10 * time.Millisecond)
		}
	}
	return nodes
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
