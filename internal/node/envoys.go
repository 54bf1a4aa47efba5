package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"subak/enforce/envoy"
	"subak/enforce/envoy/quota"
	"subak/enforce/tlsfiles"
	"subak/internal/config"
)

// envoyDoor is one gRPC door for Envoys. Its rules and limiters are replaced in
// place; the front and its connections stay, unless TLS or the choice of services
// changes.
type envoyDoor struct {
	*socket
	cfg   config.Envoy // guarded by doors.mu, as are the others
	front *envoyFront
	quota *quotaPart // nil without the quota service
}

// envoyFront is the server of such a door and what only it uses.
type envoyFront struct {
	server server
	rates  *envoy.Door     // nil without the rate limit service
	files  *tlsfiles.Files // nil without TLS
	life   context.Context
	end    context.CancelFunc
}

// quotaPart is a quota service with its end. It outlives fronts, since Envoys
// spend what it assigned whatever becomes of their connections.
type quotaPart struct {
	*quota.Service
	life context.Context
	end  context.CancelFunc
}

// run assigns until the node or the service ends.
func (q *quotaPart) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.life, cancel)()
	return q.Run(ctx)
}

// drain assigns nothing more and ends the service when nobody can be spending what
// was assigned, or with ctx.
func (q *quotaPart) drain(ctx context.Context) (cut bool) {
	defer q.end()
	return q.Drain(ctx) != nil
}

// grpcServer is an envoy.Server as a server.
type grpcServer struct{ *envoy.Server }

func (s grpcServer) Close() error { s.Server.Close(); return nil }

// newFront makes a server with TLS. Of rates and q either may be nil.
func (n *Node) newFront(c *config.Envoy, at int, rates *envoy.Service, q *quotaPart) (*envoyFront, error) {
	f := &envoyFront{}
	sc := envoy.ServerConfig{Ready: n.Ready, Log: n.log}
	if tc := c.TLS.Files(); tc != nil {
		var err error
		if f.files, err = tlsfiles.Open(*tc, "h2"); err != nil {
			return nil, tlsFault(fmt.Sprintf("envoy[%d].tls", at), fmt.Errorf("envoy door %q: %w", c.Name, err))
		}
		sc.TLS = f.files.TLS()
	}
	var parts []envoy.Part
	if rates != nil {
		f.rates = envoy.NewDoor(rates)
		parts = append(parts, f.rates)
	}
	if q != nil {
		parts = append(parts, q)
	}
	if len(parts) == 0 {
		return nil, fault(fmt.Sprintf("envoy[%d]", at), errors.New("neither rls nor quota is served"), "enable one of them, or remove the door")
	}
	f.server = grpcServer{envoy.NewServer(sc, parts...)}
	f.life, f.end = context.WithCancel(context.Background())
	return f, nil
}

// run watches the TLS files until the node or the front ends.
func (f *envoyFront) run(ctx context.Context, n *Node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.life, cancel)()
	if f.files != nil {
		f.files.Watch(ctx, n.log)
	}
	return nil
}

// drainer returns what drains the front, given what drains its server.
func (f *envoyFront) drainer(drain func(context.Context) bool) func(context.Context) bool {
	return func(ctx context.Context) bool {
		defer f.end()
		return drain(ctx)
	}
}

// drainer returns what drains the door as it is now: first what it has assigned,
// so that Envoys still hear of it.
func (d *envoyDoor) drainer() func(context.Context) bool {
	q, front := d.quota, d.front.drainer(d.term.drain)
	return func(ctx context.Context) (cut bool) {
		if q != nil {
			cut = q.drain(ctx)
		}
		return front(ctx) || cut
	}
}

func (f *envoyFront) reloadTLS() error {
	if f.files == nil {
		return nil
	}
	_, err := f.files.Reload()
	return err
}

// beginEnvoy serves a door.
func (n *Node) beginEnvoy(d *envoyDoor) {
	n.doors.start(d.term.run)
	n.beginFront(d.front)
	if d.quota != nil {
		n.doors.start(d.quota.run)
	}
}

func (n *Node) beginFront(f *envoyFront) {
	n.doors.start(func(ctx context.Context) error { return f.run(ctx, n) })
}

// rateServices are the present rate limit services.
func (n *Node) rateServices() (services []*envoy.Service) {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	for _, d := range n.doors.envoys {
		if d.front.rates != nil {
			services = append(services, d.front.rates.Service())
		}
	}
	return services
}

// quotaServices are the present quota services.
func (n *Node) quotaServices() (services []*quota.Service) {
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	for _, d := range n.doors.envoys {
		if d.quota != nil {
			services = append(services, d.quota.Service)
		}
	}
	return services
}

// envoys plans the doors for Envoys.
func (e *edit) envoys(configured []config.Envoy) ([]*envoyDoor, error) {
	list, gone := keep(e.n.doors.envoys, configured, func(d *envoyDoor, c *config.Envoy) bool { return d.address == c.Listen.String() })
	for i := range configured {
		c := &configured[i]
		var err error
		if list[i] == nil {
			list[i], err = e.openEnvoy(c, i)
		} else {
			err = e.keepEnvoy(list[i], c, i)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, d := range gone {
		e.closes(d.socket, drained{d.cfg.Name, d.drainer(), d.close})
	}
	return list, nil
}

// openEnvoy plans a new door.
func (e *edit) openEnvoy(c *config.Envoy, at int) (*envoyDoor, error) {
	rates, q, err := e.n.newServices(c, nil)
	if err != nil {
		return nil, err
	}
	f, err := e.n.newFront(c, at, rates, q)
	if err != nil {
		return nil, err
	}
	l, err := envoy.Listen(context.Background(), c.Listen.String())
	if err != nil {
		return nil, listenFault(fmt.Sprintf("envoy[%d].listen", at), fmt.Errorf("envoy door %q: %w", c.Name, err))
	}
	d := &envoyDoor{cfg: *c, front: f, quota: q, socket: &socket{name: c.Name, address: c.Listen.String(), listener: l, term: newTerm(l, f.server)}}
	e.opens(d.socket, func() { e.n.beginEnvoy(d) })
	return d, nil
}

// keepEnvoy plans what changes at an open door.
func (e *edit) keepEnvoy(d *envoyDoor, c *config.Envoy, at int) error {
	n := e.n
	rates, q, err := n.newServices(c, d)
	if err != nil {
		return err
	}
	var next *envoyFront
	if d.cfg.TLS != c.TLS || (d.front.rates == nil) != (rates == nil) || d.quota != q {
		if next, err = n.newFront(c, at, rates, q); err != nil {
			return err
		}
	}
	e.then(func() {
		d.name, d.cfg = c.Name, *c
		if next != nil {
			n.serveEnvoyAnew(d, next, q)
		}
		n.renewEnvoy(d, rates)
	})
	return nil
}

// serveEnvoyAnew puts another front at a door, and another quota service if q is
// not the present one.
func (n *Node) serveEnvoyAnew(d *envoyDoor, next *envoyFront, q *quotaPart) {
	n.log.Info("door is served anew: its TLS or services changed", "listener", d.name, "address", d.listener.Addr().String())
	front, before := d.front, d.quota
	leave := front.drainer(d.succeed(next.server, n.doors.start))
	d.front, d.quota = next, q
	n.beginFront(next)
	if before != q && q != nil {
		n.doors.start(q.run)
	}
	n.retire(drained{d.name, func(ctx context.Context) (cut bool) {
		if before != q && before != nil {
			cut = before.drain(ctx)
		}
		return leave(ctx) || cut
	}, func() error { return nil }})
}

// renewEnvoy puts other rules or limiters in force; rates is nil where the door has
// no rate limit service.
func (n *Node) renewEnvoy(d *envoyDoor, rates *envoy.Service) {
	if rates != nil {
		d.front.rates.Swap(rates)
	}
	if d.quota == nil {
		return
	}
	qc, err := quotaConfig(&d.cfg)
	if err == nil {
		err = d.quota.Renew(qc, n.force.Load().budgets)
	}
	if err != nil { // it was checked before
		n.log.Error("quota service keeps the rules and limits of before", "listener", d.cfg.Name, "err", err)
	}
}

// renewEnvoys points every door for Envoys to the limiters in force; doors.mu is
// held.
func (n *Node) renewEnvoys() {
	for _, d := range n.doors.envoys {
		var rates *envoy.Service
		if d.front.rates != nil {
			var err error
			if rates, err = n.newRates(&d.cfg, d); err != nil { // it was made before
				n.log.Error("rate limit service keeps the rules and limits of before", "listener", d.cfg.Name, "err", err)
				continue
			}
		}
		n.renewEnvoy(d, rates)
	}
}

// newServices makes the services of a door. The rate limit service of one that is
// open goes on with what was counted there; its quota service is the same one, to
// be renewed. doors.mu is held.
func (n *Node) newServices(c *config.Envoy, open *envoyDoor) (rates *envoy.Service, q *quotaPart, err error) {
	if c.RLS {
		if rates, err = n.newRates(c, open); err != nil {
			return nil, nil, err
		}
	}
	if !c.Quota.Enabled {
		return rates, nil, nil
	}
	qc, err := quotaConfig(c)
	if err == nil {
		err = qc.Validate()
	}
	if hold, term := qc.Hold(), n.cfg.Gossip.Term; err == nil && hold > term {
		err = fmt.Errorf("quota.ttl: an assignment may be spent for %v, longer than gossip.term, %v; mend: a shorter ttl or a longer term", hold, term)
	}
	var s *quota.Service
	switch {
	case err != nil:
	case open != nil && open.quota != nil:
		return rates, open.quota, nil
	default:
		qc.Name = n.doors.holder(c.Name)
		s, err = quota.New(qc, quota.Deps{Limits: n.force.Load().budgets, Now: n.clock.Now, Log: n.log})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("node: envoy door %q: %w", c.Name, err)
	}
	life, end := context.WithCancel(context.Background())
	return rates, &quotaPart{s, life, end}, nil
}

// holder returns a name under which nobody has carved yet, since what was carved
// before may still be running out: NAME, NAME~2 and so on.
func (ds *doors) holder(name string) string {
	if ds.holders == nil {
		ds.holders = map[string]int{}
	}
	ds.holders[name]++
	if n := ds.holders[name]; n > 1 {
		return fmt.Sprintf("%s~%d", name, n)
	}
	return name
}

func (n *Node) newRates(c *config.Envoy, open *envoyDoor) (*envoy.Service, error) {
	ec, err := c.Service()
	if err != nil {
		return nil, err
	}
	limits := n.force.Load().budgets
	var s *envoy.Service
	if open != nil && open.front.rates != nil {
		s, err = open.front.rates.Service().Renew(ec, limits)
	} else {
		s, err = envoy.New(ec, envoy.Deps{
			Limits: limits, Now: n.now, Rand: rand.Uint64, Hash: n.tenant, Log: n.log,
			Missing: func(t envoy.Target) { n.missing(c.Name, t) },
		})
	}
	if err != nil {
		return nil, fmt.Errorf("node: envoy door %q: %w", c.Name, err)
	}
	return s, nil
}

func (n *Node) missing(door string, t envoy.Target) {
	n.log.Warn("a rule's budget or class is not in force: its descriptors go the way of on_unknown", "listener", door, "budget", t.Budget, "class", t.Class)
}

// quotaConfig is what the quota service of a door is made of.
func quotaConfig(c *config.Envoy) (quota.Config, error) {
	ec, err := c.Service()
	if err != nil {
		return quota.Config{}, err
	}
	m, err := envoy.NewMatcher(ec)
	if err != nil {
		return quota.Config{}, err
	}
	return quota.Config{Name: c.Name, Matcher: m, OnUnknown: ec.OnUnknown, Shadow: c.Shadow, TTL: c.Quota.TTL}, nil
}
