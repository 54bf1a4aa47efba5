// Package node composes one Subak node: it wires gossip, codec, ledger,
// allocator, limiters, the doors for requests and the admin interface.
//
// # Model
//
// One goroutine, the loop, owns everything that decides shares (package internal/core).
// Gossip callbacks and admin requests reach it through bounded channels.
// Requests never do: they are decided by the limiters alone, whose schedules
// the loop replaces, and go on being decided if the loop, the peers or the
// network are gone. A watchdog puts the static share in force if the loop
// stands still.
//
// # Start and end
//
// A node begins with what its data directory remembers; without, it needs
// either the operator's word that this is the first start of the cluster or a
// peer that vouches for it. On the end of its context it hands back what it
// borrowed, announces that it leaves, drains its doors and stops, each stage
// within a bound.
//
// # Concurrency
//
// Run blocks until everything it started has stopped. All other methods of Node
// are safe for concurrent use.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"subak/allocator/ledger"
	"subak/gossip"
	"subak/gossip/wire"
	"subak/internal/api"
	"subak/internal/clock"
	"subak/internal/config"
	"subak/internal/core"
	"subak/internal/epoch"
	"subak/internal/state"
	"subak/internal/web"
)

// gapMin is the least time between two rows of a node (conservation.md,
// "Target and settlement").
const gapMin = 40 * time.Millisecond

// Options are what a node is given beside its configuration.
type Options struct {
	Log     *slog.Logger
	Version string
	// DrainMax bounds how long requests under way may hold up the end; 0 means
	// DefaultDrain.
	DrainMax time.Duration
	// Load, if set, reads the configuration again whenever Reload is sent a value
	// (SIGHUP): what it says about listeners is put in force here, what it says
	// about nodes and budgets in the whole cluster.
	Load   func() (*config.Config, error)
	Reload <-chan os.Signal
	// Started, if set, is called once all listeners accept.
	Started func(*Node)
}

// Node is one running node.
type Node struct {
	cfg      *config.Config
	log      *slog.Logger
	version  string
	drainMax time.Duration
	clock    *clock.Boot
	reg      *prometheus.Registry
	doc      *epoch.Document
	state    *state.Dir
	core     *core.Core // owned by the loop, which may replace it
	force    atomic.Pointer[inForce]
	gossip   *gossip.Gossip
	doors    doors
	web      *web.Server
	drops    *dropCounter
	started  time.Time

	trial    trial                    // owned by the loop
	known    map[ledger.EpochID]int64 // when epochs were first seen; owned by the loop
	watchdog watchdog
	calls    chan func()
	watched  atomic.Bool // somebody asked for a snapshot lately
	last     atomic.Pointer[api.Status]
	leaving  atomic.Bool
	said     *bool       // the readiness logged last; owned by the loop
	unsaved  time.Time   // when it was logged last that saving fails; zero while it works; owned by the loop
	muted    atomic.Bool // nothing is published any more
}

// Run runs one node until ctx ends and everything has stopped. It returns an
// error if the node could not start or a part of it failed.
func Run(ctx context.Context, cfg *config.Config, opts Options) error {
	n, err := open(cfg, opts)
	if err != nil {
		return err
	}
	return n.run(ctx, opts)
}

// open takes every resource; on an error it has given all of them back.
func open(cfg *config.Config, opts Options) (*Node, error) {
	secrets, err := cfg.Secrets()
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: opts.Log, version: opts.Version, clock: clock.NewBoot(), reg: prometheus.NewRegistry(),
		calls: make(chan func()), known: map[ledger.EpochID]int64{}, started: time.Now(), drainMax: cmp.Or(opts.DrainMax, DefaultDrain),
	}
	n.drops = newDropCounter(n.reg)
	if err := n.openParts(secrets); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *Node) openParts(secrets config.Secrets) error {
	if err := n.openCore(); err != nil {
		return err
	}
	if err := n.openGossip(secrets.Keys); err != nil {
		return err
	}
	if err := n.openDoors(); err != nil {
		return err
	}
	n.snapshot(n.clock.Now()) // until the loop runs, it is what status says
	admin, err := web.New(web.Config{
		Listen: n.cfg.Admin.Listen.String(), Token: secrets.Token, Insecure: n.cfg.Admin.Insecure,
		Gatherer: n.reg, Registerer: n.reg, Log: n.log,
	}, n)
	if err != nil {
		return listenFault("admin.listen", err)
	}
	n.web = admin
	return n.register()
}

// openCore reads the durable state and builds the deciding part.
func (n *Node) openCore() error {
	doc := document(n.cfg)
	n.doc = doc
	dir := ledger.NewDirectory()
	e, err := epoch.Root(doc, dir)
	if err != nil {
		return err
	}
	stored, err := n.openState(e)
	if err != nil {
		return err
	}
	tick := n.cfg.Gossip.Tick
	var floor uint64
	if stored != nil {
		floor = stored.Incarnation
	}
	inc, err := newIncarnation(floor)
	if err != nil {
		return err
	}
	now := n.clock.Now()
	n.core, err = core.New(core.Config{
		Self: n.cfg.Node.Name, Inc: inc, Tick: tick, GapMin: min(gapMin, tick), Term: n.cfg.Gossip.Term,
		Live: cmp.Or(n.cfg.Protocol.Live, n.cfg.Gossip.Term), EpsPPM: int64(n.cfg.Protocol.Eps), Guard: n.cfg.Protocol.Guard,
		Bootstrap: n.cfg.Cluster.State == config.New || n.cfg.Cluster.Single, Durable: n.state != nil, Stored: stored,
		NewLife: newIncarnation, LargestCost: largestCosts(n.cfg), CountDrop: n.drops.count,
	}, sender{n}, dir, e, doc, now)
	if err != nil {
		return err
	}
	n.watchdog.stallMax = max(time.Second, 5*tick)
	n.watchdog.beat(now)
	n.putInForce()
	return nil
}

// openState locks the data directory and reads what it remembers. A damaged
// file means a start without memory; a file of other budgets is refused.
func (n *Node) openState(e *ledger.Epoch) (*ledger.Stored, error) {
	if n.cfg.Cluster.DataDir == "" {
		n.log.Warn("no cluster.data_dir: a restart of this node will not remember its base")
		return nil, nil
	}
	dir, err := state.Open(n.cfg.Cluster.DataDir, n.cfg.Cluster.Name, n.cfg.Node.Name)
	if err != nil {
		return nil, stateFault(err)
	}
	n.state = dir
	var stored ledger.Stored
	found, err := dir.Load(&stored)
	switch {
	case errors.Is(err, state.ErrTorn):
		n.log.Error("starting without memory; the base comes back when a peer vouches for this node", "err", err)
		return nil, nil
	case err != nil:
		return nil, stateFault(err)
	case !found:
		return nil, nil
	}
	if stored.Epoch != e.ID {
		return nil, fmt.Errorf("the configuration's nodes or budgets differ from those in force (epoch %s, stored in %s): "+
			"give every node the same file; to begin anew with this one, stop all nodes, empty their data directories and start with --bootstrap",
			stored.Epoch, n.cfg.Cluster.DataDir)
	}
	return &stored, nil
}

func (n *Node) openGossip(keys [][]byte) error {
	c := n.cfg.Gossip
	profile, err := gossip.ParseProfile(string(c.Profile))
	if err != nil {
		return err
	}
	n.gossip, err = gossip.New(gossip.Config{
		Cluster: n.cfg.Cluster.Name, Name: n.cfg.Node.Name, Listen: c.Listen.String(), Advertise: c.Advertise,
		Seeds: c.Seeds, Keys: keys, Profile: profile, Fingerprint: n.core.Epoch().Root, Key: rowKey,
	}, n.log, n.reg)
	return listenFault("gossip.listen", err)
}

// rowKey tells gossip which rows replace each other.
func rowKey(packet []byte) (key string, order [2]uint64, ok bool) {
	h, err := wire.Peek(packet)
	if err != nil || h.Kind != wire.KindRow {
		return "", order, false
	}
	return fmt.Sprintf("%016x/%d", h.Epoch.Hash, h.Ref), [2]uint64{h.Inc, h.Seq}, true
}

// newIncarnation returns an incarnation above floor that no process of this name
// had or will have (assumption A3).
func newIncarnation(floor uint64) (uint64, error) {
	return ledger.IncarnationAbove(floor, uint64(time.Now().UnixMilli()), rand.Uint32())
}

func largestCosts(cfg *config.Config) map[string]int64 {
	costs := map[string]int64{}
	for _, l := range cfg.Listeners {
		for _, r := range l.Rules {
			costs[r.Budget] = max(costs[r.Budget], r.Cost)
		}
	}
	return costs
}

// run starts everything, waits for the end and stops everything.
func (n *Node) run(ctx context.Context, opts Options) error {
	n.log.Info("node starts", "node", n.cfg.Node.Name, "cluster", n.cfg.Cluster.Name, "version", n.version,
		"gossip", n.gossip.Addr(), "admin", n.web.Addr(), "epoch", n.core.Epoch().ID.String())
	// The parts outlive ctx: what is drained after it still needs them.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	fail := make(chan error)
	var parts sync.WaitGroup
	part := func(f func(context.Context) error) {
		parts.Go(func() {
			if err := f(life); err != nil {
				select {
				case fail <- err:
				case <-life.Done():
				}
			}
		})
	}
	part(func(c context.Context) error { n.loop(c); return nil })
	part(n.watch)
	part(n.gossip.Run)
	part(n.web.Run)
	n.doors.begin(part)
	part(func(c context.Context) error { n.reload(c, opts); return nil })
	if opts.Started != nil {
		opts.Started(n)
	}
	var err error
	select {
	case <-ctx.Done():
		n.leave()
	case err = <-fail:
		n.log.Error("a part of the node failed; stopping", "err", err)
	}
	end()
	parts.Wait()
	n.log.Info("node stopped")
	return errors.Join(err, n.close())
}

// watch looks after the loop and says once a minute when it has no peers.
func (n *Node) watch(ctx context.Context) error {
	t := time.NewTicker(250 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if n.watchdog.check(n.clock.Now(), n.force.Load().planes) {
				n.log.Error("the decision loop stands still; static share once loans have run out")
			}
		}
	}
}

// close gives back what open took. It may be called at any stage.
func (n *Node) close() error {
	var errs []error
	for _, d := range n.doors.end() {
		errs = append(errs, d.close())
	}
	if n.web != nil {
		errs = append(errs, n.web.Close())
	}
	if n.gossip != nil {
		errs = append(errs, n.gossip.Close())
	}
	if n.state != nil {
		errs = append(errs, n.state.Close())
	}
	return errors.Join(errs...)
}
