//go:build linux

package run

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"subak/internal/config"
	"subak/testbed/cluster"
	"subak/testbed/evidence"
	"subak/testbed/load"
	"subak/testbed/origin"
	"subak/testbed/scenario"
	"subak/testbed/wan"
)

// Ports of a node in its own host, and those of one behind address translation.
const (
	gossipPort  = 7946
	proxyPort   = 8080
	originPort  = 80
	publicPort  = 31946
	originName  = "origin"
	publicBlock = "10.78.0."
)

// build makes the network: a host for each node and one for the origin.
func (r *session) build() error {
	hosts := append(r.top.Names(), originName)
	cfg := wan.Config{Hosts: hosts, Seed: r.seed}
	for _, i := range r.indices(r.story.Cluster.NAT) {
		public, err := netip.ParseAddr(publicBlock + strconv.Itoa(i+1))
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
		cfg.NAT = append(cfg.NAT, wan.NAT{Host: i, Public: public, Ports: []wan.Port{{Public: publicPort + uint16(i), Inside: gossipPort}}})
	}
	var err error
	if r.net, err = wan.New(cfg); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	r.fabric = newFabric(r.top, r.story.Links)
	r.fabric.apply(r.net.Set)
	return nil
}

func (r *session) host(i int) *wan.Host { return r.net.Hosts()[i] }

// at is an address of a host.
func (r *session) at(i int, port uint16) string {
	ip := r.host(i).V4
	if r.story.Cluster.IPv6 {
		ip = r.host(i).V6
	}
	return netip.AddrPortFrom(ip, port).String()
}

// serveOrigin opens the origin in its host.
func (r *session) serveOrigin() error {
	var err error
	if r.origin, err = origin.New(r.originConfig()); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	listener, err := r.host(r.nodes).Listen("tcp", r.at(r.nodes, originPort))
	if err != nil {
		return fmt.Errorf("run: origin: %w", err)
	}
	r.server = &http.Server{Handler: r.origin, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute}
	r.served.Go(func() {
		if err := r.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			r.opt.Say("origin: %v", err)
		}
	})
	return nil
}

// logMax is how many arrivals the origin keeps: 2000/s for half an hour.
const logMax = 1 << 22

func (r *session) originConfig() origin.Config {
	return origin.Config{Classes: r.classNames(), LogMax: logMax}
}

func (r *session) classNames() (names []string) {
	for _, c := range r.story.Budget.Classes {
		names = append(names, c.Name)
	}
	return names
}

// newCluster prepares the nodes.
func (r *session) newCluster() error {
	s := &r.story
	cfg := cluster.Config{
		Binary: r.opt.Binaries.Subak, Dir: r.dir, Origin: r.at(r.nodes, originPort),
		Limit: int64(math.Round(s.Limit())), Burst: s.Budget.Burst, Insurance: ppm(s.Budget.Insurance), Extra: s.Budget.Extra,
		Tick: s.Cluster.Tick, Term: s.Cluster.Term, Profile: string(s.Cluster.Profile),
		Counters: counters(s.Claims),
	}
	if v := r.opt.Variant; v != evidence.Subak {
		cfg.Binary, cfg.Args = r.opt.Binaries.Baseline, []string{"--baseline", string(v)}
	}
	for _, c := range s.Budget.Classes {
		cfg.Classes = append(cfg.Classes, cluster.Class{Name: c.Name, Reserve: ppm(c.Reserve)})
	}
	for i, p := range r.top.Places {
		n := cluster.Node{
			Name: p.Name, Weight: p.Weight, Host: r.host(i), Gossip: r.at(i, gossipPort), Proxy: r.at(i, proxyPort),
			Absent: slices.Contains(s.Absent, p.Name),
		}
		if slices.Contains(s.Cluster.NAT, p.Name) {
			n.Advertise = net.JoinHostPort(publicBlock+strconv.Itoa(i+1), strconv.Itoa(publicPort+i))
		}
		if o := s.Cluster.Older; o != nil && slices.Contains(o.Nodes, p.Name) && r.opt.Variant == evidence.Subak {
			n.Binary = r.opt.Binaries.Older[o.Commit]
		}
		cfg.Nodes = append(cfg.Nodes, n)
	}
	var err error
	if r.cluster, err = cluster.New(cfg); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// ppm is a percentage in millionths.
func ppm(p config.Percent) int64 { return int64(p) * 1_000_000 / int64(config.Whole) }

// counters are those that claims are about.
func counters(claims []scenario.Claim) (all []string) {
	for _, c := range claims {
		if c.Counter != "" && !slices.Contains(all, c.Counter) {
			all = append(all, c.Counter)
		}
	}
	return all
}

// Connections of a stream: enough that few requests wait for one, few enough that
// many streams fit.
const (
	connsLeast = 4
	connsMost  = 64
	// holdTime is how long a request may take before a stream of connsFor is
	// short of connections.
	holdTime = 40 * time.Millisecond
)

func connsFor(rates []float64) int {
	peak := 0.0
	for _, v := range rates {
		peak = max(peak, v)
	}
	return min(max(connsLeast, int(math.Ceil(peak*holdTime.Seconds()))+connsLeast), connsMost)
}

// newLoad prepares the generator: a stream for each class at each node, in the
// order class*nodes + node, of so many clients that none comes back soon.
func (r *session) newLoad() error {
	rates, err := r.story.Rates()
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	cfg := load.Config{Seed: r.seed, Late: lateAfter, Bin: scenario.Bin}
	for _, p := range r.story.Phases {
		cfg.Phases = append(cfg.Phases, load.Phase{Name: p.Name, Length: p.Length})
	}
	for k, class := range r.classNames() {
		for i := range r.nodes {
			s := load.Stream{
				Name: r.name(i) + "/" + class, URL: r.url(i, class, "item"), Clients: 1 << 22,
				Rates: rates[k*r.nodes+i], Every: r.story.Every(), Dial: r.host(i).DialContext,
			}
			s.Conns = connsFor(s.Rates)
			if r.story.Trace != nil || r.even(class) { // a trace as the simulator plays it
				s.Arrivals = load.Uniform
			}
			cfg.Streams = append(cfg.Streams, s)
		}
	}
	if r.gen, err = load.New(cfg); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for _, i := range r.indices(r.story.Absent) {
		r.away(i, true)
	}
	return nil
}

// even reports whether a load of the class is to be spaced evenly; then all of it
// is.
func (r *session) even(class string) bool {
	is := func(l scenario.Load) bool { return l.Class == class && l.Even }
	if slices.ContainsFunc(r.story.Load, is) {
		return true
	}
	return slices.ContainsFunc(r.story.Phases, func(p scenario.Phase) bool { return slices.ContainsFunc(p.Load, is) })
}

func (r *session) url(i int, class, item string) string {
	return "http://" + r.at(i, proxyPort) + "/" + class + "/" + item
}

// away tells the clients of node i that it does not run, or that it does again.
func (r *session) away(i int, away bool) {
	for k := range r.story.Budget.Classes {
		r.gen.Away(k*r.nodes+i, away)
	}
}

// manyNodes is where sampling gets coarser, so that it does not load the machine.
const manyNodes = 8

func (r *session) pace() cluster.Pace {
	p := cluster.Pace{Status: 100 * time.Millisecond, Usage: time.Second, Metrics: 2 * time.Second}
	if r.nodes > manyNodes {
		p = cluster.Pace{Status: 250 * time.Millisecond, Usage: 2 * time.Second, Metrics: 5 * time.Second}
	}
	if w := r.story.Watch; w > 0 {
		p.Status, p.Metrics = w, max(min(w, 10*time.Second), p.Metrics)
	}
	return p
}
