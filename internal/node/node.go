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
// A node begins with what its data directory remembers, whatever its file says by
// now. Without memory it needs the operator's word that this is the first start
// of the cluster; else it is provisional, enforces 0 and asks its peers what is
// in force, and then waits until enough of them vouch for it. On the end of its context it hands back what it
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
	"hash/maphash"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"subak/allocator/ledger"
	"subak/enforce/keyed"
	"subak/enforce/limit"
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
	// NoAdmin leaves the admin interface out, whatever the configuration says.
	NoAdmin bool
	// Baseline makes the node one of those that the product is compared with; see
	// core.Config. "" is the product.
	Baseline string
	// Started, if set, is called once all listeners accept.
	Started func(*Node)
}

// Node is one running node.
type Node struct {
	cfg      *config.Config
	log      *slog.Logger
	version  string
	baseline string
	drainMax time.Duration
	clock    *clock.Boot
	reg      *prometheus.Registry
	doc      *epoch.Document  // of the file; owned by the loop
	costs    map[string]int64 // largest of the file's rules, by budget; owned by the loop
	state    *state.Dir
	core     *core.Core // owned by the loop, which may replace it
	joiner   *joiner    // while the epoch in force is not known, else nil; owned by the loop
	force    atomic.Pointer[inForce]
	gossip   *gossip.Gossip
	doors    doors
	now      func() int64        // the reading that decisions use
	handles  *limit.Set          // for a program that embeds the node
	tenant   func(string) uint64 // names tenants for all doors
	web      *web.Server
	drops    *dropCounter
	started  time.Time

	report   ledger.Status // scratch of the loop
	compared compared      // owned by the loop
	trial    trial         // owned by the loop
	noted    noted         // owned by the loop
	// reloading: the doors are about to get other rules; owned by the loop
	reloading bool
	known     map[ledger.EpochID]int64 // when epochs were first seen; owned by the loop
	watchdog  watchdog
	calls     chan func()
	wanted    atomic.Bool // somebody asked for a snapshot and got an old one
	last      atomic.Pointer[api.Status]
	leaving   atomic.Bool
	said      *bool              // the readiness logged last; owned by the loop
	alarmed   map[alarmKey]int64 // what stands, and when it was logged last, lease clock; owned by the loop
	// hadMemory: a durable state was found that cannot be used.
	hadMemory bool
	unsaved   time.Time   // when it was logged last that saving fails; zero while it works; owned by the loop
	muted     atomic.Bool // nothing is published any more
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
		cfg: cfg, log: opts.Log, version: opts.Version, baseline: opts.Baseline, clock: clock.NewBoot(), reg: prometheus.NewRegistry(),
		calls: make(chan func()), known: map[ledger.EpochID]int64{}, started: time.Now(), drainMax: cmp.Or(opts.DrainMax, DefaultDrain),
	}
	n.now = n.clock.Relaxed // who decides pays by readings of any order
	if cfg.Node.CoarseClock {
		n.now = clock.NewCoarse(n.clock).Now
	}
	seed := maphash.MakeSeed()
	n.tenant = func(name string) uint64 { return keyed.Hash(seed, name) }
	n.drops = newDropCounter(n.reg)
	if err := n.openParts(secrets, opts.NoAdmin); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *Node) openParts(secrets config.Secrets, noAdmin bool) error {
	if err := n.openCore(); err != nil {
		return err
	}
	n.handles = limit.NewSet(limit.Config{Limits: n.force.Load().budgets, Now: n.now, Tenant: n.tenant})
	if err := n.openGossip(secrets.Keys); err != nil {
		return err
	}
	if err := n.openDoors(); err != nil {
		return err
	}
	n.snapshot(n.clock.Now()) // until the loop runs, it is what status says
	if noAdmin {
		return n.register()
	}
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

// openGossip opens the network. A node that does not know the epoch in force does
// not know its lineage either.
func (n *Node) openGossip(keys [][]byte) error {
	c := n.cfg.Gossip
	profile, err := gossip.ParseProfile(string(c.Profile))
	if err != nil {
		return err
	}
	lineage := n.core.Epoch().Root
	if n.joiner != nil {
		lineage = 0
	}
	n.gossip, err = gossip.New(gossip.Config{
		Cluster: n.cfg.Cluster.Name, Name: n.cfg.Node.Name, Listen: c.Listen.String(), Advertise: c.Advertise,
		Seeds: c.Seeds, Keys: keys, Profile: profile, Fingerprint: lineage, Key: rowKey,
	}, n.log, n.reg)
	return listenFault("gossip.listen", err)
}

// rowKey tells gossip which rows replace each other.
func rowKey(packet []byte) (key string, order [2]uint64, ok bool) {
	h, err := wire.Peek(packet)
	if err != nil || !h.Kind.ForAll() {
		return "", order, false
	}
	b := strconv.AppendUint(make([]byte, 0, 32), h.Epoch.Hash, 16)
	b = strconv.AppendUint(append(b, '/'), uint64(h.Ref), 10)
	return string(b), [2]uint64{h.Inc, h.Seq}, true
}

// run starts everything, waits for the end and stops everything.
func (n *Node) run(ctx context.Context, opts Options) error {
	if n.baseline != "" {
		n.log.Warn("THIS NODE IS A BASELINE FOR COMPARISONS, NOT SUBAK: do not let it near anything that must be protected", "baseline", n.baseline)
	}
	n.log.Info("node starts", "node", n.cfg.Node.Name, "cluster", n.cfg.Cluster.Name, "version", n.version,
		"gossip", n.gossip.Addr(), "admin", n.adminAddr(), "epoch", n.epochName())
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
	if n.web != nil {
		part(n.web.Run)
	}
	n.beginDoors(part)
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

func (n *Node) adminAddr() string {
	if n.web == nil {
		return "none"
	}
	return n.web.Addr()
}

// Class returns the handle of a class for a program that embeds the node. It
// refuses everything once the node has ended.
func (n *Node) Class(budget, class string) (*limit.Class, error) {
	return n.handles.Class(budget, class)
}

// GossipAddr returns the address that gossip listens on.
func (n *Node) GossipAddr() string { return n.gossip.Addr() }

// Metrics gathers what /metrics of the admin interface shows.
func (n *Node) Metrics() prometheus.Gatherer { return n.reg }

// epochName names the epoch in force for logs.
func (n *Node) epochName() string {
	if n.joiner != nil {
		return "not known yet"
	}
	return n.core.Epoch().ID.String()
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
	if n.handles != nil {
		n.handles.Close()
	}
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
