package envoy_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// raw is a client's codec that sends ready bytes and reads none, so that the load
// costs as little as it can, and the same for every server.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(data mem.BufferSlice, _ any) error { return nil }

func entry(key, value string) *ratelimitcommon.RateLimitDescriptor_Entry {
	return &ratelimitcommon.RateLimitDescriptor_Entry{Key: key, Value: value}
}

func describe(entries ...*ratelimitcommon.RateLimitDescriptor_Entry) *ratelimitcommon.RateLimitDescriptor {
	return &ratelimitcommon.RateLimitDescriptor{Entries: entries}
}

// child is a server process.
type child struct {
	cmd   *exec.Cmd
	conns []*grpc.ClientConn
}

func startChild(b *testing.B, kind string, conns int) *child {
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), "ENVOY_TEST_SERVER="+kind)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	for range conns {
		conn, err := grpc.NewClient(strings.TrimSpace(addr), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		c.conns = append(c.conns, conn)
	}
	return c
}

// cpu is the time that all threads of the process have run.
func (c *child) cpu(b *testing.B) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.cmd.Process.Pid))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that just ended
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// load makes calls for a while, some at a time on every connection, and returns
// calls per second and the server's CPU time per call.
func (c *child) load(b *testing.B, msg []byte, span time.Duration, each int) (rate float64, cpu time.Duration) {
	ctx, cancel := context.WithCancel(b.Context())
	var calls atomic.Int64
	var wg sync.WaitGroup
	before, start := c.cpu(b), time.Now()
	for _, conn := range c.conns {
		for range each {
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := conn.Invoke(ctx, ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, &msg, nil); err == nil {
						calls.Add(1)
					}
				}
			})
		}
	}
	time.Sleep(span)
	n, took, used := calls.Load(), time.Since(start), c.cpu(b)-before
	cancel()
	wg.Wait()
	return float64(n) / took.Seconds(), used / time.Duration(max(n, 1))
}

// BenchmarkBesideABareServer loads an always-OK grpc-go server and the door in
// turns and reports the medians of their ratios.
func BenchmarkBesideABareServer(b *testing.B) {
	msg, err := proto.Marshal(&ratelimitv3.RateLimitRequest{Domain: "edge", Descriptors: []*ratelimitcommon.RateLimitDescriptor{
		describe(entry("path", "/api/v1/items/42"), entry("remote_address", "192.0.2.7")),
	}})
	if err != nil {
		b.Fatal(err)
	}
	const conns, each, span = 2, 16, 700 * time.Millisecond
	floor, door := startChild(b, "bare", conns), startChild(b, "door", conns)
	floor.load(b, msg, 300*time.Millisecond, each)
	door.load(b, msg, 300*time.Millisecond, each)
	var rates, cpus, floors, doors []float64
	for b.Loop() {
		for range 5 {
			r0, c0 := floor.load(b, msg, span, each)
			r1, c1 := door.load(b, msg, span, each)
			rates, cpus = append(rates, r1/r0), append(cpus, float64(c1)/float64(c0))
			floors, doors = append(floors, float64(c0)/1e3), append(doors, float64(c1)/1e3)
		}
	}
	b.ReportMetric(median(rates), "rate-ratio")
	b.ReportMetric(median(cpus), "cpu-ratio")
	b.ReportMetric(median(floors), "bare-us/op")
	b.ReportMetric(median(doors), "door-us/op")
	b.ReportMetric(0, "ns/op")
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}
