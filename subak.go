// Package subak embeds a Subak node in a Go program.
//
// A node shares budgets with the other nodes of its cluster by gossip, and decides
// from memory what may be done here: no network call, no lock, about the price of
// reading the clock. The program asks it by handles:
//
//	node, err := subak.Open(ctx, subak.File("subak.yaml"), subak.Options{Node: "ams", Log: slog.Default()})
//	...
//	defer node.Close(ctx)
//	class, err := node.Class("origin", "confirmed")
//	...
//	if !class.Allow() { ... }
//
// A handle ([limit.Class]) has Allow, Wait, Reserve and For (one tenant). Package
// [subak/enforce/limit/httplimit] makes net/http middleware of it, and
// [subak/enforce/limit/grpclimit] interceptors for gRPC.
//
// # Whose rules hold
//
// The node is a full member of its cluster, beside nodes that run the binary:
// budgets and members may be changed anywhere, by subak apply. Handles follow such
// changes while the program runs, with their tokens. A class that a change removes
// refuses, and its handle's Err says so.
//
// # Life
//
// [Open] returns when the node listens. It is ready, and its classes admit, when it
// knows what is in force and may use its share: about a term (3 s unless
// configured) after its start. Until then Allow says no and Wait waits. [Node.Close] leaves the cluster in order, and from
// then on every handle refuses: another process may take the node's place.
// A program that stops without it costs its peers nothing but the loans' term.
//
// # What it costs
//
// Importing this package links the whole node, gossip, gRPC, Prometheus and the
// dashboard with it: about 25 MB more of a binary on amd64, 15 MB where the program
// has gRPC and Prometheus already. Packages enforce, enforce/limit and httplimit
// alone need the standard library only and add about 0.4 MB: import no more than
// these where handles are passed in.
//
// Everything is safe for concurrent use.
package subak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"subak/enforce/limit"
	"subak/internal/config"
	"subak/internal/node"
)

// Options are what a node is given beside its configuration.
type Options struct {
	// Node says which of the configuration's nodes this is, in the place of
	// node.name, so that all nodes may share one file.
	Node string
	// Log gets what operators should know; nil discards it.
	Log *slog.Logger
	// Drain bounds how long Close waits for requests at the node's own listeners.
	// 0 means 10 s.
	Drain time.Duration
	// Version of the program, shown in status and metrics.
	Version string
}

// Node is a running node.
type Node struct {
	node   *node.Node
	leave  context.CancelFunc
	done   chan struct{} // closed when everything has stopped
	err    error         // set before done is closed
	reload chan os.Signal
}

// Open starts a node and returns when it listens, or with every fault of its
// configuration, by field. ctx bounds the start alone: the node lives until Close.
func Open(ctx context.Context, src Source, o Options) (*Node, error) {
	load := func() (*config.Config, error) {
		cfg, err := src.load()
		if err != nil {
			return nil, fmt.Errorf("subak: %w", err)
		}
		return cfg, identify(cfg, o.Node)
	}
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, w := range cfg.Warnings() {
		o.Log.Warn(w)
	}
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	n := &Node{leave: leave, done: make(chan struct{}), reload: make(chan os.Signal, 1)}
	up := make(chan *node.Node, 1)
	opts := node.Options{
		Log: o.Log, Version: o.Version, DrainMax: o.Drain, NoAdmin: !src.admin(), Load: load, Reload: n.reload,
		Started: func(inner *node.Node) { up <- inner },
	}
	go func() {
		defer close(n.done)
		n.err = node.Run(life, cfg, opts)
	}()
	select {
	case n.node = <-up:
		return n, nil
	case <-n.done:
		leave()
		return nil, fmt.Errorf("subak: %w", n.err)
	}
}

// identify says which node of the configuration this is.
func identify(cfg *config.Config, name string) error {
	if name != "" {
		cfg.Node.Name = name
	}
	if cfg.Node.Name == "" {
		return errors.New("subak: node.name: is missing; mend: set Options.Node to one of the names in nodes")
	}
	for _, n := range cfg.Nodes {
		if n.Name == cfg.Node.Name {
			return nil
		}
	}
	return fmt.Errorf("subak: node.name: %q is not in nodes; mend: list it there, or set Options.Node to a name that is", cfg.Node.Name)
}

// Class returns the handle of a class, to be kept. The error is
// [limit.ErrUnknown] where the budgets in force do not have it.
func (n *Node) Class(budget, class string) (*limit.Class, error) {
	return n.node.Class(budget, class)
}

// Ready reports whether the node has its share in force, and why or why not. It
// agrees with /readyz.
func (n *Node) Ready() (ok bool, reason string) {
	select {
	case <-n.done:
		return false, "the node has ended"
	default:
		return n.node.Ready()
	}
}

// WaitReady returns when the node is ready. If ctx ends before, or the node does,
// the error says what it was waiting for.
func (n *Node) WaitReady(ctx context.Context) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		ok, reason := n.Ready()
		if ok {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("subak: not ready: %s: %w", reason, ctx.Err())
		case <-n.done:
			return fmt.Errorf("subak: the node has ended: %w", errors.Join(n.err, limit.ErrClosed))
		}
	}
}

// Reload reads the configuration's source again, as SIGHUP does for the binary:
// what it says of listeners is put in force here, what it says of nodes and budgets
// in the whole cluster. What came of it is logged; a faulty one changes nothing.
func (n *Node) Reload() {
	select {
	case n.reload <- syscall.SIGHUP:
	default: // one is under way that has not read yet
	}
}

// GossipAddr returns the address that gossip listens on, for other nodes' seeds
// where the port was chosen by the system.
func (n *Node) GossipAddr() string { return n.node.GossipAddr() }

// Metrics returns the node's metrics, for a handler of the program's own.
func (n *Node) Metrics() prometheus.Gatherer { return n.node.Metrics() }

// Done is closed when the node has ended: after Close, or because a part of it
// failed. Handles refuse from then on.
func (n *Node) Done() <-chan struct{} { return n.done }

// Close leaves the cluster: it hands back what was borrowed, says goodbye, drains
// the node's own listeners and stops. It returns when all is over, with the reason
// if a part had failed, or with ctx's error; then what is left goes on to its own
// bounds. It may be called more than once. Stop the program's own work first: its
// last handles refuse when Close is over.
func (n *Node) Close(ctx context.Context) error {
	n.leave()
	select {
	case <-n.done:
		return n.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
