package demo

import (
	"bytes"
	"fmt"
	"strings"
)

// address is where one node listens.
type address struct {
	proxy, admin, gossip string // host:port
}

// configYAML is the file of node i. All nodes have the same but for their name
// and addresses; a node that joins later lists itself too. state is "new" at the first start of the cluster, afterwards
// "existing".
func (p *plan) configYAML(i int, at []address, origin, dataDir, key, state string) []byte {
	var b bytes.Buffer
	f := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	var seeds []string
	for _, a := range at {
		seeds = append(seeds, a.gossip)
	}
	f("cluster: {name: demo, state: %s, data_dir: %q}", state, dataDir)
	f("node: {name: %s}", p.nodes[i].name)
	f("gossip:")
	f("  listen: %s", at[i].gossip)
	f("  seeds: [%s]", quoted(seeds))
	f("  keys: [%q]", key)
	f("  profile: local")
	f("  tick: %s", p.tick)
	f("  term: %s", p.term)
	f("admin: {listen: %q}", at[i].admin)
	f("nodes:")
	for _, n := range p.nodes[:max(i+1, p.founders())] {
		f("  - {name: %s, weight: %d}", n.name, n.weight)
	}
	f("budgets:")
	f("  - name: origin")
	f("    limit: %d/s", p.limit)
	f("    burst: %s", p.burst)
	f("    insurance: %d%%", p.insurance)
	f("    classes:")
	for _, c := range p.classes {
		f("      - {name: %s, reserve: %d%%}", c.name, c.percent)
	}
	f("listeners:")
	f("  - name: edge")
	f("    listen: %s", at[i].proxy)
	f("    backends: [{url: %q}]", "http://"+origin)
	// The generator stands for a balancer in front that names the clients.
	f("    trusted_hops: 1")
	f("    default: {budget: origin, class: %s}", p.classes[len(p.classes)-1].name)
	f("    rules:")
	for _, c := range p.classes {
		f("      - {match: {path: \"/%s/*\"}, budget: origin, class: %s}", c.name, c.name)
	}
	return b.Bytes()
}

func quoted(all []string) string {
	q := make([]string, len(all))
	for i, s := range all {
		q[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(q, ", ")
}
