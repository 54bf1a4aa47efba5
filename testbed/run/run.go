//go:build linux

// Package run plays one scenario: real nodes as processes on an emulated network,
// a load, an origin that counts, faults at their times; and leaves what happened
// as an [evidence.Run].
//
// # Model
//
// Every node is a host of the network, and the origin is one more. A node's
// clients are in its own host, so what they send crosses no wide-area link; what
// a node admits goes to the origin over a link without delay that no fault
// touches. So arrivals at the origin differ little in transit and are a strict
// witness. Time 0 is the start of the load. Each fault has a goroutine of its own
// that begins it, waits and ends it; faults of links are put together by
// [fabric], so that several may hold at once.
//
// Clients of a node without a process send nothing from just before it is killed
// until its door takes connections again ([load.Generator.Away]): a balancer in
// front would have sent them elsewhere.
//
// The process must be isolated ([wan.Isolate]). All files are below one temporary
// directory, which is gone when Run returns, as are all processes and sockets.
//
// Run may be called once at a time per process. Units: rates requests/s, times
// since the start of the load unless they are instants.
package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"subak/testbed/cluster"
	"subak/testbed/evidence"
	"subak/testbed/load"
	"subak/testbed/origin"
	"subak/testbed/scenario"
	"subak/testbed/topology"
	"subak/testbed/wan"
)

// Binaries are the executables of the nodes.
type Binaries struct {
	// Subak is the product, Baseline its build that has the flag --baseline.
	Subak, Baseline string
	// Older are those of other commits, by commit as the scenario writes it.
	Older map[string]string
	// Version is what Subak says it is.
	Version string
}

// Options say how to run a scenario.
type Options struct {
	Variant  evidence.Variant // default subak
	Binaries Binaries
	// Seed, unless 0, replaces the scenario's.
	Seed uint64
	// Say gets what is worth a line; Progress is told about once a second how far
	// the run is. Both may be nil.
	Say      func(format string, args ...any)
	Progress func(Progress)
	// Logs is a directory that gets the logs, the configuration and the last
	// metrics of every node when Keep says so, or when the run fails. Keep is asked
	// at the end, while the nodes still run. Empty keeps nothing.
	Logs string
	Keep func(*evidence.Run) bool
}

// Progress is how far a run is.
type Progress struct {
	Phase  string
	At     time.Duration // since the start of the load
	Length time.Duration
	Shares float64 // sum of what the nodes that answer enforce
	Origin float64 // arrivals/s over the last second
	Limit  int64
	Down   []string // nodes without a process
}

// How long things may take.
const (
	readyWait = 90 * time.Second
	// settleWait lets the estimates of demand and the shares come to rest before
	// the load begins.
	settleWait = 500 * time.Millisecond
	// Requests are late when sent so much after their time.
	lateAfter = 50 * time.Millisecond
)

// session is one run.
type session struct {
	opt   Options
	story scenario.Scenario // resolved
	whole *scenario.Scenario
	top   topology.Topology
	nodes int
	seed  uint64

	dir     string
	net     *wan.Net
	fabric  *fabric
	origin  *origin.Origin
	server  *http.Server
	cluster *cluster.Cluster
	gen     *load.Generator
	record  *recorder
	strain  *strain
	served  sync.WaitGroup // the origin's server
}

// Run plays s as told. An error means that there is no whole run: something did
// not start, a node crashed, or ctx ended; what was recorded by then is returned
// all the same.
func Run(ctx context.Context, s *scenario.Scenario, opt Options) (evidence.Run, error) {
	r, err := newSession(s, opt)
	if err != nil {
		return evidence.Run{}, err
	}
	defer r.close()
	if err := r.up(ctx); err != nil {
		return r.outline(), r.keepLogs(nil, err)
	}
	out, err := r.play(ctx)
	return out, r.keepLogs(&out, err)
}

func newSession(s *scenario.Scenario, opt Options) (*session, error) {
	if opt.Variant == "" {
		opt.Variant = evidence.Subak
	}
	if opt.Say == nil {
		opt.Say = func(string, ...any) {}
	}
	if opt.Progress == nil {
		opt.Progress = func(Progress) {}
	}
	r := &session{opt: opt, whole: s, story: s.For(opt.Variant), seed: uint64(s.Seed), record: newRecorder()}
	if opt.Seed != 0 {
		r.seed = opt.Seed
	}
	var err error
	if r.top, err = r.story.Net(); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	r.nodes = len(r.top.Places)
	if r.dir, err = os.MkdirTemp("", "sb-"); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return r, nil
}

// up builds the network, the origin and the nodes, and waits until these are one
// cluster.
func (r *session) up(ctx context.Context) error {
	if err := r.build(); err != nil {
		return err
	}
	if err := r.serveOrigin(); err != nil {
		return err
	}
	if err := r.newCluster(); err != nil {
		return err
	}
	present := r.indices(r.story.Present(r.top))
	for _, i := range present {
		if err := r.cluster.Start(i); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
	r.opt.Say("%d nodes start", len(present))
	patient, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	if err := r.cluster.AwaitReady(patient, present, nil); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return r.newLoad()
}

// play offers the load and does what is to happen.
func (r *session) play(ctx context.Context) (evidence.Run, error) {
	if err := sleep(ctx, settleWait); err != nil {
		return r.outline(), err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	all.Go(func() { r.cluster.Watch(inner, r.pace()) })
	r.strain = newStrain()
	all.Go(func() { r.strain.watch(inner) })
	if err := sleep(ctx, settleWait); err != nil { // a few samples before the load
		cancel(err)
		all.Wait()
		return r.outline(), err
	}
	if err := r.origin.Reset(r.originConfig()); err != nil {
		cancel(err)
		all.Wait()
		return r.outline(), fmt.Errorf("run: %w", err)
	}
	loaded := make(chan struct{})
	all.Go(func() {
		defer close(loaded)
		_ = r.gen.Run(inner) // its only error is that of the context
		// The generator ends with its last request, which may be long before.
		_ = sleep(inner, time.Until(r.gen.Start().Add(r.length())))
	})
	<-r.gen.Started()
	r.record.begin(r.gen.Start())
	var acts sync.WaitGroup
	for i := range r.story.Faults {
		acts.Go(func() { r.act(inner, &r.story.Faults[i]) })
	}
	acts.Go(func() { r.timeSteps(inner) })
	err := r.direct(inner, loaded)
	if err != nil {
		cancel(err)
	}
	acts.Wait() // faults that last to the end have ended with the load
	out := r.collect()
	cancel(nil)
	all.Wait()
	return out, err
}

// close ends everything and removes every file.
func (r *session) close() {
	if r.cluster != nil {
		r.cluster.Close()
	}
	if r.server != nil {
		_ = r.server.Close() // it has been told to stop: nothing to add
		r.served.Wait()
	}
	if r.net != nil {
		if err := r.net.Close(); err != nil {
			r.opt.Say("network: %v", err)
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.opt.Say("%v", err)
	}
}

// keepLogs keeps the logs where that is wanted, and adds their path to err.
func (r *session) keepLogs(out *evidence.Run, err error) error {
	wanted := err != nil && !errors.Is(err, context.Canceled) || out != nil && r.opt.Keep != nil && r.opt.Keep(out)
	if !wanted || r.opt.Logs == "" || r.cluster == nil {
		return err
	}
	dir := filepath.Join(r.opt.Logs, r.whole.Name+"-"+string(r.opt.Variant))
	if kept := r.cluster.Keep(dir); kept != nil {
		return errors.Join(err, kept)
	}
	if out != nil {
		out.Logs = dir
	}
	if err != nil {
		return fmt.Errorf("%w\nlogs: %s", err, dir)
	}
	return nil
}

// indices are the positions of nodes.
func (r *session) indices(names []string) []int {
	all := make([]int, len(names))
	for k, n := range names {
		all[k] = r.top.Index(n)
	}
	return all
}

// length is how long the load lasts.
func (r *session) length() (sum time.Duration) {
	for _, p := range r.story.Phases {
		sum += p.Length
	}
	return sum
}

func (r *session) name(i int) string { return r.top.Places[i].Name }

// sleep waits, or fails with the cause of the context's end.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
