//go:build linux

package wan

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

const (
	hostsMax        = 250
	mtuDefault      = 1400
	mtuMin          = 1280 // RFC 8200, section 5
	mtuMax          = 9000
	inFlightDefault = 65536
	inFlightMax     = 1 << 20
	nameMax         = 32
	portsMax        = 1000 // mapped ports of a NAT; dynamic ones remain free
)

// Net is a running network.
type Net struct {
	hosts  []*Host
	proc   *switchProcess
	mu     sync.Mutex // guards rules and last
	rules  []Rule     // as last sent to the switch
	last   Stats      // as last heard from it
	closed sync.Once
	err    error // of Close
}

// Validate says everything that is wrong with a configuration.
func (c *Config) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("wan: "+format, args...)) }
	if len(c.Hosts) < 1 || len(c.Hosts) > hostsMax {
		add("%d hosts: 1 to %d are possible", len(c.Hosts), hostsMax)
	}
	seen := map[string]bool{}
	for _, name := range c.Hosts {
		if !nameOK(name) {
			add("host name %q: use 1 to %d of a-z, 0-9 and -", name, nameMax)
		}
		if seen[name] {
			add("host name %q is used twice", name)
		}
		seen[name] = true
	}
	if c.MTU != 0 && (c.MTU < mtuMin || c.MTU > mtuMax) {
		add("MTU %d: %d to %d are possible", c.MTU, mtuMin, mtuMax)
	}
	if c.InFlight < 0 || c.InFlight > inFlightMax {
		add("%d packets in flight: up to %d are possible", c.InFlight, inFlightMax)
	}
	return errors.Join(append(errs, c.validateNAT()...)...)
}

func (c *Config) validateNAT() (errs []error) {
	type place struct {
		host   int
		inside bool
		port   uint16
	}
	hosts, publics, ports := map[int]bool{}, map[netip.Addr]bool{}, map[place]bool{}
	for i, nat := range c.NAT {
		add := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("wan: NAT %d: %s", i, fmt.Sprintf(format, args...)))
		}
		if nat.Host < 0 || nat.Host >= len(c.Hosts) {
			add("host %d: there are %d", nat.Host, len(c.Hosts))
		}
		if hosts[nat.Host] {
			add("host %d has one already", nat.Host)
		}
		if wrong := natOK(nat.Public); wrong != "" {
			add("public address %s %s", nat.Public, wrong)
		}
		if publics[nat.Public] {
			add("public address %s is used twice", nat.Public)
		}
		hosts[nat.Host], publics[nat.Public] = true, true
		if len(nat.Ports) > portsMax {
			add("%d ports: up to %d are possible", len(nat.Ports), portsMax)
		}
		for _, p := range nat.Ports {
			public, inside := place{nat.Host, false, p.Public}, place{nat.Host, true, p.Inside}
			if p.Public == 0 || p.Inside == 0 || ports[public] || ports[inside] {
				add("port %d to %d: ports are 1 to 65535 and each is mapped once", p.Public, p.Inside)
			}
			ports[public], ports[inside] = true, true
		}
	}
	return errs
}

func nameOK(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= nameMax
}

// New builds the network and starts the switch; all rules are zero. It makes
// network namespaces, so it needs Isolate (or to be root), and fails with what
// Check says otherwise.
func New(cfg Config) (*Net, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.MTU = cmp.Or(cfg.MTU, mtuDefault)
	cfg.InFlight = cmp.Or(cfg.InFlight, inFlightDefault)
	n := &Net{rules: make([]Rule, len(cfg.Hosts)*len(cfg.Hosts))}
	var routes []netip.Addr
	for _, nat := range cfg.NAT {
		routes = append(routes, nat.Public)
	}
	for i, name := range cfg.Hosts {
		h, err := newHost(i, name, cfg.MTU, routes)
		if err != nil {
			return nil, errors.Join(err, n.closeHosts())
		}
		n.hosts = append(n.hosts, h)
	}
	for _, nat := range cfg.NAT {
		n.hosts[nat.Host].Public = nat.Public
	}
	var err error
	n.proc, err = startSwitch(cfg, n.hosts)
	if err != nil {
		return nil, errors.Join(err, n.closeHosts())
	}
	return n, nil
}

// Hosts are the hosts by their position in Config.Hosts.
func (n *Net) Hosts() []*Host { return n.hosts }

// Set edits a copy of the rules, one call of edit for each ordered pair of two
// hosts, and puts the whole copy in force at once, before it returns. A link that
// becomes blocked loses what it carries. Close tells if the switch has failed.
func (n *Net) Set(edit func(src, dst int, r *Rule)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for src := range n.hosts {
		for dst := range n.hosts {
			if src != dst {
				edit(src, dst, &n.rules[src*len(n.hosts)+dst])
			}
		}
	}
	_ = n.proc.call("Set", n.rules, new(int)) // fails only when it has ended
}

// Stats counts what happened since New; after Close, until the last call before.
func (n *Net) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	var s Stats
	if n.proc.call("Stats", 0, &s) != nil {
		return n.last
	}
	for _, h := range n.hosts {
		s.HostDrop += h.dropped()
	}
	n.last = s
	return s
}

// Close ends the switch and gives everything back. Processes of the hosts go on
// without a network; those started with a Pdeathsig get it.
func (n *Net) Close() error {
	n.closed.Do(func() { n.err = errors.Join(n.proc.close(), n.closeHosts()) })
	return n.err
}

func (n *Net) closeHosts() error {
	var errs []error
	for _, h := range n.hosts {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// dropped is how many packets the kernel of a host dropped because the switch
// did not read them in time.
func (h *Host) dropped() int64 {
	h.inside.mu.RLock()
	defer h.inside.mu.RUnlock()
	if !h.inside.space.IsOpen() {
		return 0
	}
	link, err := h.inside.netlink.LinkByName(device)
	if err != nil || link.Attrs().Statistics == nil {
		return 0
	}
	return int64(link.Attrs().Statistics.TxDropped)
}
