package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"

	"subak/enforce/gate"
)

// door is one listener for requests.
type door struct {
	name     string
	gate     *gate.Gate
	server   *http.Server
	listener net.Listener
}

// openDoors binds every listener of the configuration.
func (n *Node) openDoors() error {
	budgets := n.gateBudgets()
	gates := make([]*gate.Gate, 0, len(n.cfg.Listeners))
	for i := range n.cfg.Listeners {
		l := &n.cfg.Listeners[i]
		gc, err := l.Gate()
		if err != nil {
			return err
		}
		g, err := gate.New(gc, gate.Deps{Limits: budgets, Now: n.clock.Now, Rand: rand.Uint64, Log: n.log})
		if err != nil {
			return fmt.Errorf("node: listener %q: %w", l.Name, err)
		}
		socket, err := net.Listen("tcp", l.Listen.String())
		if err != nil {
			g.Close()
			return listenFault(fmt.Sprintf("listeners[%d].listen", i), fmt.Errorf("listener %q: %w", l.Name, err))
		}
		gates = append(gates, g)
		n.doors = append(n.doors, &door{l.Name, g, gate.NewServer(l.Listen.String(), g, n.log), socket})
		n.log.Info("door opens", "listener", l.Name, "address", socket.Addr().String())
	}
	return errors.Join(
		n.reg.Register(gate.NewCollector(func() []*gate.Gate { return gates })),
		n.reg.Register(gate.NewLimitCollector(func() gate.Budgets { return budgets })),
	)
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

// serve accepts until ctx ends; drain should have come first.
func (d *door) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = d.server.Close() })
	defer stop()
	err := d.server.Serve(d.listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-ctx.Done() // a drain is under way: it owns the end
		return nil
	}
	return fmt.Errorf("node: listener %q: %w", d.name, err)
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
	d.gate.Close()
	if err := d.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
