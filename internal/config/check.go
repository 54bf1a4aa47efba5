package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"subak/internal/strict"
)

// Bounds on the constants, from the design of the protocol.
const (
	maxNodes  = 10_000
	minTick   = 20 * time.Millisecond
	maxTick   = 5 * time.Second
	maxTerm   = 60 * time.Second
	minGuard  = 20 * time.Millisecond // twice the 10 ms grain of kernel clocks
	maxWeight = 1_000_000_000
	keyBytes  = 32 // AES-256
	nameBytes = 63
)

// checker judges a decoded configuration as a whole.
type checker struct {
	*strict.Report
	c    *Config
	self bool // node.name is required
}

func check(r *strict.Report, c *Config, self bool) {
	k := &checker{r, c, self}
	k.cluster()
	k.nodes()
	k.node()
	k.gossip()
	k.protocol()
	k.admin()
	k.budgets()
	k.listeners()
	k.envoys()
	k.ports()
	if r.OK() {
		k.specs()
	}
	if r.OK() {
		k.warn()
	}
}

// specs lets the allocator and the gate judge as well: whatever they refuse must
// be refused here, with a line.
func (k *checker) specs() {
	refuse := func(path string, err error) {
		if err != nil {
			k.Fault(path, err.Error(), "change what it names")
		}
	}
	for i, spec := range k.c.Specs() {
		refuse(fmt.Sprintf("budgets[%d]", i), spec.Validate())
	}
	for i := range k.c.Listeners {
		g, err := k.c.Listeners[i].Gate()
		refuse(fmt.Sprintf("listeners[%d]", i), errors.Join(err, g.Validate()))
	}
	for i := range k.c.Envoy {
		e, err := k.c.Envoy[i].Service()
		refuse(fmt.Sprintf("envoy[%d]", i), errors.Join(err, e.Validate()))
	}
}

// name checks the spelling of a name and reports whether it may be used.
func (k *checker) name(path, name string) bool {
	what := ""
	switch {
	case name == "":
		k.Fault(path, "is missing", "write a name of letters, digits, dots, dashes and underscores")
		return false
	case len(name) > nameBytes:
		what = fmt.Sprintf("is longer than %d bytes", nameBytes)
	case strings.ContainsAny(name[:1], "._-") || !plain(name):
		what = fmt.Sprintf("%q has characters that names do not take", name)
	}
	if what != "" {
		k.Fault(path, what, "use letters, digits, dots, dashes and underscores, a letter or digit first")
	}
	return what == ""
}

// plain reports whether all bytes of a name are allowed ones.
func plain(name string) bool {
	for _, b := range []byte(name) {
		letter := b|0x20 >= 'a' && b|0x20 <= 'z'
		if !letter && (b < '0' || b > '9') && b != '.' && b != '_' && b != '-' {
			return false
		}
	}
	return true
}

// unique reports each name that a list has twice.
func (k *checker) unique(list string, n int, name func(i int) string) {
	first := map[string]int{}
	for i := range n {
		at, who := fmt.Sprintf("%s[%d].name", list, i), name(i)
		if j, again := first[who]; again {
			k.Fault(at, fmt.Sprintf("%q is the name of %s[%d] too (line %d)", who, list, j, k.Place(fmt.Sprintf("%s[%d].name", list, j)).Line), "give each its own name")
		} else if k.name(at, who) {
			first[who] = i
		}
	}
}

func (k *checker) cluster() {
	k.name("cluster.name", k.c.Cluster.Name)
	if k.Bad("nodes") || len(k.c.Nodes) == 0 {
		return
	}
	switch single := k.c.Cluster.Single; {
	case len(k.c.Nodes) == 1 && !single:
		k.Fault("nodes", "lists one node only", "list the others, or say cluster.single: true to let one node spend the whole budget")
	case len(k.c.Nodes) > 1 && single:
		k.Fault("cluster.single", fmt.Sprintf("is true, but nodes lists %d nodes", len(k.c.Nodes)), "remove it, or all nodes but one")
	}
}

func (k *checker) nodes() {
	nodes := k.c.Nodes
	switch {
	case len(nodes) == 0:
		k.Fault("nodes", "lists no node", "list every node of the cluster as {name: ..., weight: ...}")
	case len(nodes) > maxNodes:
		k.Fault("nodes", fmt.Sprintf("lists more than %d nodes", maxNodes), "list fewer")
		return
	}
	k.unique("nodes", len(nodes), func(i int) string { return nodes[i].Name })
	for i := range nodes {
		if w := nodes[i].Weight; w <= 0 || w > maxWeight {
			k.Fault(fmt.Sprintf("nodes[%d].weight", i), fmt.Sprintf("%d is not between 1 and 1,000,000,000", w), "write a whole number from 1; remove a node that shall have nothing")
		}
	}
}

// nodeNames lists the roster's names.
func (c *Config) nodeNames() []string {
	names := make([]string, len(c.Nodes))
	for i := range c.Nodes {
		names[i] = c.Nodes[i].Name
	}
	return names
}

func (k *checker) node() {
	name := k.c.Node.Name
	switch {
	case name == "" && k.self:
		k.Fault("node.name", "is missing", "say which of nodes this process is: --node NAME, SUBAK_NODE=NAME or node.name in the file")
	case name != "" && len(k.c.Nodes) > 0:
		k.known("node.name", "node", name, k.c.nodeNames())
	}
}

// known checks a reference to something that has a name.
func (k *checker) known(path, what, name string, names []string) bool {
	for _, n := range names {
		if n == name && n != "" {
			return true
		}
	}
	if name == "" {
		k.Fault(path, "is missing", strict.Suggestion("", names))
	} else {
		k.Fault(path, fmt.Sprintf("there is no %s %q", what, name), strict.Suggestion(name, names))
	}
	return false
}

func (k *checker) gossip() {
	g := &k.c.Gossip
	if g.Advertise != "" {
		k.hostPort("gossip.advertise", g.Advertise)
	}
	for i, s := range g.Seeds {
		k.hostPort(fmt.Sprintf("gossip.seeds[%d]", i), s)
	}
	if len(g.Seeds) == 0 && len(k.c.Nodes) > 1 {
		k.Fault("gossip.seeds", "are missing: a node without seeds cannot come back after a cut", "list host:port of two or three nodes")
	}
	if len(g.Keys) > 0 && g.KeyFile != "" {
		k.Fault("gossip.key_file", "is given beside keys", "keep one of the two")
	}
	for i, key := range g.Keys {
		if _, err := decodeKey(key); err != nil {
			k.Fault(fmt.Sprintf("gossip.keys[%d]", i), err.Error(), "write the output of subak keygen")
		}
	}
	if g.Tick < minTick || g.Tick > maxTick {
		k.Fault("gossip.tick", fmt.Sprintf("%v is not between %v and %v", g.Tick, minTick, maxTick), "write 200ms")
	}
	if k.Bad("gossip.tick") {
		return
	}
	if g.Term < 4*g.Tick {
		k.Fault("gossip.term", fmt.Sprintf("%v is less than 4 ticks of %v: a few lost packets would end every loan", g.Term, g.Tick), fmt.Sprintf("write at least %v; 3s is usual", 4*g.Tick))
	} else if g.Term > maxTerm {
		k.Fault("gossip.term", fmt.Sprintf("%v is more than %v", g.Term, maxTerm), "write 3s")
	}
}

// hostPort checks host:port, name or IP.
func (k *checker) hostPort(path, s string) {
	host, port, err := net.SplitHostPort(s)
	n, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil && !strings.Contains(s, ":") && s != "":
		k.Fault(path, fmt.Sprintf("%q has no port", s), fmt.Sprintf("write %s:7946", s))
	case err != nil || host == "" || bad != nil || n == 0:
		k.Fault(path, fmt.Sprintf("%q is no host:port", s), "write a name or IP and a port, such as ams.example:7946 or [2001:db8::1]:7946")
	}
}

// decodeKey reads one gossip key. The error does not repeat the key.
func decodeKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("is no base64 text")
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("has %d bytes where AES-256 needs %d", len(key), keyBytes)
	}
	return key, nil
}

func (k *checker) protocol() {
	p, g := &k.c.Protocol, &k.c.Gossip
	if p.Drift < 0 || p.Drift > Whole/10 {
		k.Fault("protocol.drift", fmt.Sprintf("%v is not between 0%% and 10%%", p.Drift), "write 0.1%")
	}
	least := leastEps(p.Drift)
	switch {
	case k.Bad("protocol.drift"):
	case p.Eps < least:
		k.Fault("protocol.eps", fmt.Sprintf("%v is too small for clocks that drift by %v: both ends of a loan could hold it at once", p.Eps, p.Drift), fmt.Sprintf("write at least %v", least))
	case p.Eps > Whole/2:
		k.Fault("protocol.eps", fmt.Sprintf("%v is above 50%%", p.Eps), "write 1%")
	}
	termOK := !k.Bad("gossip.term") && !k.Bad("gossip.tick")
	switch {
	case p.Guard < minGuard:
		k.Fault("protocol.guard", fmt.Sprintf("%v does not cover the 10ms grain of clocks and a late timer", p.Guard), fmt.Sprintf("write at least %v; 25ms is usual", minGuard))
	case termOK && p.Guard > g.Term/4:
		k.Fault("protocol.guard", fmt.Sprintf("%v is more than a quarter of the term %v", p.Guard, g.Term), "write 25ms")
	}
	if termOK && p.Live != 0 && p.Live < 3*g.Tick {
		k.Fault("protocol.live", fmt.Sprintf("%v is less than 3 ticks of %v", p.Live, g.Tick), fmt.Sprintf("remove it (it is then the term, %v) or write at least %v", g.Term, 3*g.Tick))
	}
}

// leastEps is the smallest eps with 1+eps >= (1+drift)/(1-drift), rounded up
// (lesson O4).
func leastEps(drift Percent) Percent {
	rest := int64(Whole - drift)
	return Percent((2*int64(drift)*int64(Whole) + rest - 1) / rest)
}

func (k *checker) admin() {
	a := &k.c.Admin
	if !a.Listen.Loopback() && a.TokenFile == "" && !a.Insecure {
		k.Fault("admin.listen", fmt.Sprintf("%s is open to the network without a token", a.Listen), "set admin.token_file, or listen on 127.0.0.1:7947 or unix:/run/subak.sock")
	}
}

// ports finds two doors on one address.
func (k *checker) ports() {
	first := map[string]string{}
	claim := func(path, address string) {
		if address == "" || strings.HasSuffix(address, ":0") {
			return
		}
		if other, taken := first[address]; taken {
			k.Fault(path, fmt.Sprintf("%s is the address of %s too", address, other), "give each its own port")
			return
		}
		first[address] = path
	}
	claim("gossip.listen", k.c.Gossip.Listen.String())
	claim("admin.listen", k.c.Admin.Listen.Address)
	for i := range k.c.Listeners {
		if a := k.c.Listeners[i].Listen; a.IsValid() {
			claim(fmt.Sprintf("listeners[%d].listen", i), a.String())
		}
	}
	for i := range k.c.Envoy {
		claim(fmt.Sprintf("envoy[%d].listen", i), k.c.Envoy[i].Listen.Address)
	}
}
