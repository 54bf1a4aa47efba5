package config

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"subak/allocator"
)

// manyNodes is up to where sending to every peer is comfortable.
const manyNodes = 100

// warn notes what is allowed but will surprise somebody.
func (k *checker) warn() {
	c := k.c
	say := func(format string, args ...any) { c.warnings = append(c.warnings, fmt.Sprintf(format, args...)) }
	if c.Node.Name == "" {
		say("node.name is not set: give it by --node or SUBAK_NODE when running")
	}
	if len(c.Gossip.Keys) == 0 && c.Gossip.KeyFile == "" && !c.Gossip.Listen.Addr().Unmap().IsLoopback() {
		say("gossip on %v is not encrypted: whoever reaches the port can read and forge it; add gossip.keys (subak keygen)", c.Gossip.Listen)
	}
	if slices.ContainsFunc(c.Gossip.Keys, func(key string) bool { return strings.Contains(example, key) }) {
		say("gossip.keys has the key of the example, which everybody knows: make one with subak keygen")
	}
	if c.Cluster.DataDir == "" && len(c.Nodes) > 1 {
		say("cluster.data_dir is not set: a restarted node has no base until a peer vouches for it, and if all restart at once they need --bootstrap")
	}
	if c.Cluster.State == New && !strings.HasPrefix(k.Place("cluster.state").File, "flag ") {
		say("cluster.state is new: remove it after the first start of the cluster, or use --bootstrap once instead")
	}
	if a := c.Admin; !a.Listen.Loopback() && a.TokenFile == "" {
		say("admin.listen %v is open without a token (admin.insecure): anybody who reaches it can freeze this node", a.Listen)
	}
	if len(c.Nodes) > manyNodes {
		say("%d nodes: each sends its row to all others each tick; above about 300 this is too much", len(c.Nodes))
	}
	if len(c.Listeners)+len(c.Envoy) == 0 {
		say("there are no listeners and no doors for Envoy: this node decides nothing and lends all it has")
	}
	for i := range c.Budgets {
		c.warnBudget(&c.Budgets[i], say)
	}
	for _, b := range c.Summary().Budgets {
		if b.Unused > 0 {
			say("budget %s: its caps leave %g%s unused whatever the demand", b.Name, b.Unused, b.Unit)
		}
	}
	c.warnings = append(c.warnings, c.missingFiles()...)
	for i := range c.Listeners {
		c.warnListener(&c.Listeners[i], say)
	}
	for i := range c.Envoy {
		c.warnEnvoy(&c.Envoy[i], say)
	}
	c.warnTenants(say)
}

func (c *Config) warnEnvoy(e *Envoy, say func(string, ...any)) {
	if e.OnUnknown == Allow {
		say("envoy door %s lets descriptors that no rule matches pass without limit (on_unknown: allow)", e.Name)
	}
	if e.Shadow {
		say("envoy door %s is in shadow mode: nothing is refused there", e.Name)
	}
	if !e.Listen.Loopback() && e.TLS.ClientCAFile == "" {
		say("envoy door %s: whoever reaches %v can spend its budgets: add tls.client_ca_file, or listen on loopback or unix:", e.Name, e.Listen)
	}
}

// warnTenants finds tenants that no door tells apart, which are bounded by nothing.
func (c *Config) warnTenants(say func(string, ...any)) {
	told := map[Target]bool{}
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.Tenant != nil {
			told[l.Default] = true
		}
		for _, r := range l.Rules {
			if t := cmp.Or(r.Tenant, l.Tenant); t != nil {
				told[Target{r.Budget, r.Class}] = true
			}
		}
	}
	for i := range c.Envoy {
		for _, d := range c.Envoy[i].Domains {
			for _, r := range d.Rules {
				if r.Tenant != "" {
					told[Target{cmp.Or(r.Budget, d.Budget), cmp.Or(r.Class, d.Class)}] = true
				}
			}
		}
	}
	for _, b := range c.Budgets {
		for _, class := range b.Classes {
			if class.Tenants != nil && !told[Target{b.Name, class.Name}] {
				say("budget %s, class %s bounds its tenants, but no door of this node says whose a request is: add tenant to a listener, to a rule or to a rule of an Envoy door", b.Name, class.Name)
			}
		}
	}
}

func (c *Config) warnListener(l *Listener, say func(string, ...any)) {
	if l.OnUnknown == Allow {
		say("listener %s lets requests that match no rule pass without limit (on_unknown: allow)", l.Name)
	}
	open := len(l.TrustedPeers) == 0 && !l.Listen.Addr().Unmap().IsLoopback()
	for i, r := range l.Rules {
		if _, host := r.Match.Header["Host"]; open && len(r.Match.Header) > 0 && !(host && len(r.Match.Header) == 1) {
			say("listener %s, rule %d believes headers of any client: add trusted_peers, unless clients may choose class %s", l.Name, i, r.Class)
		}
		for _, b := range c.Budgets {
			if b.Name == r.Budget && r.Cost > 1 && r.Cost > over(b.Limit.Rate, b.Burst) {
				say("listener %s, rule %d: cost %d is more than limit * burst of budget %s; every bucket must hold one such request, so that much more may pass at once", l.Name, i, r.Cost, b.Name)
			}
		}
	}
	for _, t := range l.tenantSources() {
		if t.Header != "" && open {
			say("listener %s lets any client choose whose its requests are by the header %s: add trusted_peers, unless each value is checked elsewhere", l.Name, t.Header)
			break
		}
	}
	if l.Check.Enabled && l.TrustedHops == 0 && slices.ContainsFunc(l.Rules, func(r ClassRule) bool { return describes(r.Match) }) {
		say("listener %s: with trusted_hops 0 rules see the check request itself, not the method, path, host and address that a proxy asks about: set trusted_hops", l.Name)
	}
	if l.TrustedHops > 0 && open {
		say("listener %s believes forwarding headers of any peer: whoever reaches %v directly can forge its address; add trusted_peers", l.Name, l.Listen)
	}
}

// tenantSources lists what the listener and its rules tell tenants by.
func (l *Listener) tenantSources() (all []*TenantSource) {
	if l.Tenant != nil {
		all = append(all, l.Tenant)
	}
	for i := range l.Rules {
		if t := l.Rules[i].Tenant; t != nil {
			all = append(all, t)
		}
	}
	return all
}

// describes says whether a match is about what a proxy in front describes to
// the check path in forwarding headers.
func describes(m Match) bool {
	return len(m.Method)+len(m.Network) > 0 || m.Path != "" || m.Host != ""
}

func (c *Config) warnBudget(b *Budget, say func(string, ...any)) {
	if b.Shadow {
		say("budget %s is in shadow mode: nothing is refused and the origin is not protected", b.Name)
	}
	mean := Amount{b.Limit.Rate / allocator.Rate(len(c.Nodes)), b.Limit.Unit}
	if len(c.Nodes) > 1 && b.Limit.Unit == Requests && over(mean.Rate, c.Gossip.Tick) < 1 {
		say("budget %s: %v over %d nodes is %v each, under one request per tick of %v; busy nodes work on loans, and each bucket may hold one request more than its share", b.Name, b.Limit, len(c.Nodes), mean, c.Gossip.Tick)
	}
}

// over is the count of whole units that rate gives in d.
func over(rate allocator.Rate, d time.Duration) int64 {
	n := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(int64(d)))
	return n.Div(n, big.NewInt(int64(allocator.Unit)*int64(time.Second))).Int64()
}
