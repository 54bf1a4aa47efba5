package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// write writes the file of node i as of now.
func (c *Cluster) write(i int, state string) error {
	if err := os.WriteFile(c.nodes[i].file, c.File(i, state), 0o600); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// File is the configuration of node i as of now. All nodes have the same but for
// their name and addresses; one that is not in the roster lists itself too. State is
// "new" or "existing".
func (c *Cluster) File(i int, state string) []byte {
	c.mu.Lock()
	now, keys := c.now, c.keys
	c.mu.Unlock()
	var b bytes.Buffer
	f := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	n := c.nodes[i]
	f("cluster: {name: %s, state: %s, data_dir: %q}", c.cfg.Name, state, n.data)
	f("node: {name: %s}", n.Name)
	f("gossip:")
	f("  listen: %q", n.Gossip)
	if n.Advertise != "" {
		f("  advertise: %q", n.Advertise)
	}
	f("  seeds: [%s]", quoted(c.cfg.seeds()))
	f("  keys: [%s]", quoted(keys))
	f("  profile: %s", c.cfg.Profile)
	f("  tick: %s", c.cfg.Tick)
	f("  term: %s", c.cfg.Term)
	f("admin: {listen: %q}", n.Admin)
	roster := now.roster
	listed := false
	for _, k := range roster {
		listed = listed || k == i
	}
	if !listed {
		roster = append(roster[:len(roster):len(roster)], i)
	}
	b.WriteString(c.cfg.roster(roster))
	b.WriteString(c.cfg.budgets(now))
	b.WriteString(c.cfg.listener(n.Proxy))
	return b.Bytes()
}

// seeds are the addresses at which peers reach the nodes of the first roster. One
// that joins later is no seed: a seed that is not there holds up a start.
func (c *Config) seeds() (all []string) {
	for _, n := range c.Nodes {
		switch {
		case n.Absent:
		case n.Advertise != "":
			all = append(all, n.Advertise)
		default:
			all = append(all, n.Gossip)
		}
	}
	return all
}

func (c *Config) roster(nodes []int) string {
	var b strings.Builder
	b.WriteString("nodes:\n")
	for _, i := range nodes {
		fmt.Fprintf(&b, "  - {name: %s, weight: %d}\n", c.Nodes[i].Name, c.Nodes[i].Weight)
	}
	return b.String()
}

// BudgetName is the budget that all requests are of.
const BudgetName = "origin"

func (c *Config) budgets(now content) string {
	var b strings.Builder
	b.WriteString("budgets:\n")
	var classes []string
	for j, class := range c.Classes {
		classes = append(classes, fmt.Sprintf("{name: %s, reserve: %s}", class.Name, percent(now.reserve[j])))
	}
	for k := range 1 + c.Extra {
		name := BudgetName
		if k > 0 {
			name = fmt.Sprintf("idle-%03d", k)
		}
		fmt.Fprintf(&b, "  - name: %s\n    limit: %d/s\n    burst: %s\n    insurance: %s\n", name, now.limit, c.Burst, percent(c.Insurance))
		fmt.Fprintf(&b, "    classes: [%s]\n", strings.Join(classes, ", "))
	}
	return b.String()
}

func (c *Config) listener(proxy string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listeners:\n  - name: edge\n    listen: %q\n    backends: [{url: %q}]\n", proxy, "http://"+c.Origin)
	// The generator stands for a balancer in front that names the clients.
	fmt.Fprintf(&b, "    trusted_hops: 1\n    default: {budget: %s, class: %s}\n    rules:\n", BudgetName, c.Classes[len(c.Classes)-1].Name)
	for _, class := range c.Classes {
		fmt.Fprintf(&b, "      - {match: {path: \"/%s/*\"}, budget: %s, class: %s}\n", class.Name, BudgetName, class.Name)
	}
	return b.String()
}

// edit is a file for subak apply with the parts that an edit touches.
func (c *Config) edit(next content, e Edit) string {
	text := ""
	if len(e.Roster) > 0 {
		text += c.roster(next.roster)
	}
	if e.Limit > 0 || len(e.Reserve) > 0 {
		text += c.budgets(next)
	}
	return text
}

// percent is a part in ppm as the configuration has it.
func percent(ppm int64) string {
	return strconv.FormatFloat(float64(ppm)/1e4, 'f', -1, 64) + "%"
}

func quoted(all []string) string {
	q := make([]string, len(all))
	for i, s := range all {
		q[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(q, ", ")
}
