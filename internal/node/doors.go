package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"subak/enforce/envoy"
	"subak/enforce/envoy/quota"
	"subak/enforce/gate"
	"subak/internal/config"
)

// door is one listener for HTTP requests. Its gate is replaced as a whole when
// rules or limiters change; requests under way finish with the gate they met.
type door struct {
	*socket
	cfg  config.Listener // guarded by doors.mu
	gate atomic.Pointer[gate.Gate]
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.gate.Load().ServeHTTP(w, r) }

// doors are all listeners of a node.
type doors struct {
	mu     sync.Mutex
	list   []*door
	envoys []*envoyDoor
	start  func(func(context.Context) error) // runs a part of the node; nil before it runs
	closed bool                              // the node leaves
	// holders counts the quota services by the name of their door; bounded by the
	// names that the configuration ever had.
	holders map[string]int

	retiring sync.WaitGroup // servers that are gone from the lists and drained
}

// beginDoors serves all doors, and from then on every new one, by start.
func (n *Node) beginDoors(start func(func(context.Context) error)) {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	n.doors.start = start
	for _, d := range n.doors.list {
		start(d.term.run)
	}
	for _, d := range n.doors.envoys {
		n.beginEnvoy(d)
	}
}

// end keeps the doors as they are from now on and returns what drains each.
func (ds *doors) end() []drained {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.closed = true
	return ds.all()
}

// drained is a door on its way out.
type drained struct {
	name  string
	drain func(context.Context) (cut bool)
	close func() error
}

// all are the present doors; ds.mu is held.
func (ds *doors) all() (all []drained) {
	for _, d := range ds.list {
		all = append(all, drained{d.cfg.Name, d.term.drain, func() error { d.gate.Load().Close(); return d.close() }})
	}
	for _, d := range ds.envoys {
		all = append(all, drained{d.cfg.Name, d.drainer(), d.close})
	}
	return all
}

// openDoors binds every door of the configuration.
func (n *Node) openDoors() error {
	if err := n.setDoors(n.cfg); err != nil {
		return err
	}
	return errors.Join(
		n.reg.Register(gate.NewCollector(n.gates)),
		n.reg.Register(gate.NewServerCollector(n.gateServers)),
		n.reg.Register(gate.NewLimitCollector(func() gate.Budgets { return n.force.Load().budgets })),
		n.reg.Register(envoy.NewCollector(n.rateServices)),
		n.reg.Register(quota.NewCollector(n.quotaServices)),
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

// gateServers are the present servers of the listeners.
func (n *Node) gateServers() (servers []*gate.Server) {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	for _, d := range n.doors.list {
		servers = append(servers, d.term.server.(*gate.Server))
	}
	return servers
}

// setDoors makes the doors those of a configuration: all of them, or none if one
// cannot be opened. A door of the same address keeps its socket, and where it only
// gets other rules its connections; one that is gone accepts nothing more and is
// drained.
func (n *Node) setDoors(cfg *config.Config) error {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	if n.doors.closed {
		return errLeaving
	}
	e := &edit{n: n}
	list, err := e.listeners(cfg.Listeners)
	var envoys []*envoyDoor
	if err == nil {
		envoys, err = e.envoys(cfg.Envoy)
	}
	if err != nil {
		return errors.Join(err, e.undo())
	}
	e.do()
	n.doors.list, n.doors.envoys = list, envoys
	return nil
}

// edit gathers what a change of the doors does, so that it is done as a whole or
// not at all. doors.mu is held all the while.
type edit struct {
	n      *Node
	opened []*socket
	steps  []func() // none can fail
}

func (e *edit) then(step func()) { e.steps = append(e.steps, step) }

func (e *edit) do() {
	for _, step := range e.steps {
		step()
	}
}

// undo closes what was opened.
func (e *edit) undo() (err error) {
	for _, s := range e.opened {
		err = errors.Join(err, s.close())
	}
	return err
}

// opens takes note of a new door; start begins to serve it.
func (e *edit) opens(s *socket, start func()) {
	e.opened = append(e.opened, s)
	e.then(func() {
		e.n.log.Info("door opens", "listener", s.name, "address", s.listener.Addr().String())
		if e.n.doors.start != nil {
			start()
		}
	})
}

// closes takes note of a door that is gone.
func (e *edit) closes(s *socket, d drained) {
	e.then(func() {
		e.n.log.Info("door closes", "listener", s.name, "address", s.listener.Addr().String())
		s.shut()
		e.n.retire(d)
	})
}

// listeners plans the doors for HTTP.
func (e *edit) listeners(listeners []config.Listener) ([]*door, error) {
	n := e.n
	list, gone := keep(n.doors.list, listeners, func(d *door, l *config.Listener) bool { return d.address == l.Listen.String() })
	for i := range listeners {
		l := &listeners[i]
		g, err := n.newGate(l, list[i])
		if err != nil {
			return nil, err
		}
		if list[i] == nil {
			d, err := n.openDoor(l, i, g)
			if err != nil {
				return nil, err
			}
			list[i] = d
			e.opens(d.socket, func() { n.doors.start(d.term.run) })
			continue
		}
		if err := e.serveAnew(list[i], l, i); err != nil {
			return nil, err
		}
		e.then(func() {
			d := list[i]
			d.cfg, d.name = *l, l.Name
			d.gate.Swap(g).Close()
		})
	}
	for _, d := range gone { // there are none before the node runs
		e.closes(d.socket, drained{d.cfg.Name, d.term.drain, func() error { d.gate.Load().Close(); return d.close() }})
	}
	return list, nil
}

// serveAnew plans another server at an open door if what a server is made of
// changes: TLS, limits, and whether it answers checks alone.
func (e *edit) serveAnew(d *door, l *config.Listener, at int) error {
	if d.cfg.TLS == l.TLS && reflect.DeepEqual(d.cfg.Limits, l.Limits) && checksOnly(&d.cfg) == checksOnly(l) {
		return nil
	}
	s, err := e.n.newServer(l, at, d)
	if err != nil {
		return err
	}
	e.then(func() { e.n.succeed(d.socket, s) })
	return nil
}

// checksOnly reports whether a listener has nothing to do but answer checks.
func checksOnly(l *config.Listener) bool { return l.Check.Enabled && len(l.Backends) == 0 }

// succeed puts another server at a socket and drains the one before.
func (n *Node) succeed(s *socket, next server) {
	n.log.Info("door is served anew: its TLS, limits or use changed", "listener", s.name, "address", s.listener.Addr().String())
	n.retire(drained{s.name, s.succeed(next, n.doors.start), func() error { return nil }})
}

// keep returns the open door of every configured one, the zero value where there
// is none, and the doors that are configured no more.
func keep[D, C any](open []*D, configured []C, same func(*D, *C) bool) (kept, gone []*D) {
	gone = slices.Clone(open)
	for i := range configured {
		at := slices.IndexFunc(gone, func(d *D) bool { return same(d, &configured[i]) })
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

// retire drains what is not wanted any more, as a part of the node; doors.mu is
// held.
func (n *Node) retire(d drained) {
	n.doors.retiring.Add(1)
	n.doors.start(func(ctx context.Context) error {
		defer n.doors.retiring.Done()
		ctx, cancel := context.WithTimeout(ctx, n.drainMax)
		defer cancel()
		if d.drain(ctx) {
			n.log.Warn("door closed: requests still under way were cut off", "listener", d.name)
		}
		_ = d.close() // drained: nothing is left to fail
		return nil
	})
}

// renewGates points every door to the limiters in force.
func (n *Node) renewGates() {
	n.handles.Renew(n.force.Load().budgets)
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
	n.renewEnvoys()
}

// reloadTLS looks at the certificates of all doors at once, as on SIGHUP; without
// it they are looked at now and then.
func (n *Node) reloadTLS() {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	note := func(name string, err error) {
		if err != nil {
			n.log.Error("reload: the TLS files are not usable; those of before stay in force", "listener", name, "err", err)
		}
	}
	for _, d := range n.doors.list {
		note(d.cfg.Name, d.term.server.(*gate.Server).ReloadTLS())
	}
	for _, d := range n.doors.envoys {
		note(d.cfg.Name, d.front.reloadTLS())
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
			Limits: limits, Now: n.now, Hash: n.tenant, Rand: rand.Uint64, Log: n.log,
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
	d := &door{cfg: *l}
	d.gate.Store(g)
	s, err := n.newServer(l, at, d)
	if err != nil {
		return nil, err
	}
	socketAt, err := net.Listen("tcp", l.Listen.String())
	if err != nil {
		return nil, listenFault(fmt.Sprintf("listeners[%d].listen", at), fmt.Errorf("listener %q: %w", l.Name, err))
	}
	d.socket = &socket{name: l.Name, address: l.Listen.String(), listener: socketAt, term: newTerm(socketAt, s)}
	return d, nil
}

// newServer makes the server of a listener, and reads its TLS files.
func (n *Node) newServer(l *config.Listener, at int, h http.Handler) (*gate.Server, error) {
	gc, err := l.Gate()
	if err != nil {
		return nil, err
	}
	s, err := gate.NewServer(gc, h, n.log)
	if err != nil {
		return nil, tlsFault(fmt.Sprintf("listeners[%d].tls", at), fmt.Errorf("listener %q: %w", l.Name, err))
	}
	return s, nil
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
