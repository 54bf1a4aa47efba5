package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"subak/enforce/gate"
	"subak/internal/config"
)

// door is one listener for requests. Its gate is replaced as a whole when rules
// or limiters change; requests under way finish with the gate they met.
type door struct {
	cfg      config.Listener // guarded by doors.mu
	gate     atomic.Pointer[gate.Gate]
	server   *gate.Server
	listener net.Listener
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.gate.Load().ServeHTTP(w, r) }

// doors are all listeners of a node.
type doors struct {
	mu     sync.Mutex
	list   []*door
	start  func(func(context.Context) error) // runs a part of the node; nil before it runs
	closed bool                              // the node leaves

	retiring sync.WaitGroup // doors that are gone from list and drained
}

// begin serves all doors, and from then on every new one, by start.
func (ds *doors) begin(start func(func(context.Context) error)) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.start = start
	for _, d := range ds.list {
		start(d.run)
	}
}

// end keeps the doors as they are from now on and returns them.
func (ds *doors) end() []*door {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.closed = true
	return ds.list
}

// openDoors binds every listener of the configuration.
func (n *Node) openDoors() error {
	if err := n.setDoors(n.cfg.Listeners); err != nil {
		return err
	}
	return errors.Join(
		n.reg.Register(gate.NewCollector(n.gates)),
		n.reg.Register(gate.NewLimitCollector(func() gate.Budgets { return n.force.Load().budgets })),
	)
}

// gates are the present gates.
func (n *Node) gates() (gates []*gate.Gate) {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	for _, d := range n.doors.list {
		gates = append(gates, d.gate.Load())
	}
	return gates
}

// setDoors makes the doors those of the given listeners: all of them, or none if
// one cannot be opened. A listener of the same address keeps its socket and its
// connections; one that is gone accepts nothing more and is drained.
func (n *Node) setDoors(listeners []config.Listener) error {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	if n.doors.closed {
		return errLeaving
	}
	list, gone := n.doors.keep(listeners)
	gates := make([]*gate.Gate, len(listeners))
	var opened []*door
	for i := range listeners {
		var err error
		if gates[i], err = n.newGate(&listeners[i], list[i]); err == nil && list[i] == nil {
			if list[i], err = n.openDoor(&listeners[i], i, gates[i]); err == nil {
				opened = append(opened, list[i])
			}
		}
		if err != nil {
			for _, d := range opened {
				err = errors.Join(err, d.close())
			}
			return err
		}
	}
	for i, d := range list {
		d.cfg = listeners[i]
		if old := d.gate.Swap(gates[i]); old != gates[i] {
			old.Close()
		}
	}
	n.doors.list = list
	for _, d := range opened {
		n.log.Info("door opens", "listener", d.cfg.Name, "address", d.listener.Addr().String())
		if n.doors.start != nil {
			n.doors.start(d.run)
		}
	}
	for _, d := range gone { // there are none before the node runs
		n.log.Info("door closes", "listener", d.cfg.Name, "address", d.listener.Addr().String())
		d.shut()
		n.doors.retiring.Add(1)
		n.doors.start(func(ctx context.Context) error { n.retire(ctx, d); return nil })
	}
	return nil
}

// keep returns the open door of every listener, nil where there is none, and the
// doors that no listener has any more.
func (ds *doors) keep(listeners []config.Listener) (kept, gone []*door) {
	gone = slices.Clone(ds.list)
	for i := range listeners {
		at := slices.IndexFunc(gone, func(d *door) bool { return d.cfg.Listen == listeners[i].Listen })
		if at < 0 {
			kept = append(kept, nil)
			continue
		}
		kept = append(kept, gone[at])
		gone = slices.Delete(gone, at, at+1)
	}
	return kept, gone
}

var errLeaving = errors.New("this node is leaving")

// retire drains a door that is not wanted any more.
func (n *Node) retire(ctx context.Context, d *door) {
	defer n.doors.retiring.Done()
	ctx, cancel := context.WithTimeout(ctx, n.drainMax)
	defer cancel()
	if d.drain(ctx) {
		n.log.Warn("door closed: requests still under way were cut off", "listener", d.cfg.Name)
	}
	_ = d.close() // drained: nothing is left to fail
}

// renewGates points every door to the limiters in force.
func (n *Node) renewGates() {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	for _, d := range n.doors.list {
		g, err := n.newGate(&d.cfg, d)
		if err != nil { // it was made before, and missing targets are no faults
			n.log.Error("listener keeps the rules and limits of before", "listener", d.cfg.Name, "err", err)
			continue
		}
		d.gate.Swap(g).Close()
	}
}

// newGate makes the gate of a listener; of a door that is open, it goes on with
// what was counted there.
func (n *Node) newGate(l *config.Listener, open *door) (*gate.Gate, error) {
	gc, err := l.Gate()
	if err != nil {
		return nil, err
	}
	limits := n.force.Load().budgets
	var g *gate.Gate
	if open != nil {
		g, err = open.gate.Load().Renew(gc, limits)
	} else {
		g, err = gate.New(gc, gate.Deps{
			Limits: limits, Now: n.clock.Now, Rand: rand.Uint64, Log: n.log,
			Missing: func(t gate.Target) {
				n.log.Warn("a rule's budget or class is not in force: its requests go the way of on_unknown", "listener", l.Name, "budget", t.Budget, "class", t.Class)
			},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("node: listener %q: %w", l.Name, err)
	}
	return g, nil
}

func (n *Node) openDoor(l *config.Listener, at int, g *gate.Gate) (*door, error) {
	socket, err := net.Listen("tcp", l.Listen.String())
	if err != nil {
		return nil, listenFault(fmt.Sprintf("listeners[%d].listen", at), fmt.Errorf("listener %q: %w", l.Name, err))
	}
	d := &door{cfg: *l, listener: socket}
	d.gate.Store(g)
	if d.server, err = gate.NewServer(gate.Config{}, d, n.log); err != nil {
		return nil, errors.Join(fmt.Errorf("listener %q: %w", l.Name, err), socket.Close())
	}
	return d, nil
}

func (n *Node) gateBudgets() gate.Budgets {
	var budgets gate.Budgets
	for _, b := range n.core.Budgets() {
		var classes []string
		for _, c := range b.Doc.Spec.Classes {
			classes = append(classes, c.Name)
		}
		budgets = append(budgets, gate.Budget{Name: b.Name, Classes: classes, Limiter: b.Limiter})
	}
	return budgets
}

// run accepts until ctx ends; drain should have come first. A door that was
// retired ends without an error.
func (d *door) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = d.server.Close() })
	defer stop()
	err := d.server.Serve(d.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("node: listener at %s: %w", d.listener.Addr(), err)
}

// shut refuses new connections from its return on; drain waits for the others.
func (d *door) shut() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = d.server.Shutdown(over) // closes the socket whatever it waits for
	_ = d.listener.Close()      // a door whose server has not begun yet
}

// drain stops accepting and waits for requests under way until ctx ends. It
// reports whether some were cut off.
func (d *door) drain(ctx context.Context) (cut bool) {
	if err := d.server.Shutdown(ctx); err != nil {
		_ = d.server.Close()
		return true
	}
	return false
}

func (d *door) close() error {
	d.gate.Load().Close()
	if err := d.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
