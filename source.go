package subak

import (
	"errors"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"subak/internal/config"
)

// Source is where a node's configuration comes from: [File], [YAML] or [Config].
type Source interface {
	load() (*config.Config, error)
	// admin reports whether the node has an admin interface.
	admin() bool
}

// File is the path of a configuration file as of the binary; subak config example
// prints one with every field explained. Environment and flags do not count. The
// node opens what the file says, the admin interface and listeners included.
type File string

func (f File) load() (*config.Config, error) { return config.LoadShared([]string{string(f)}, nil, nil) }
func (f File) admin() bool                   { return true }

// YAML is the text of such a file.
type YAML string

func (y YAML) load() (*config.Config, error) { return config.Parse("YAML", []byte(y)) }
func (y YAML) admin() bool                   { return true }

// Config is what a node without doors of its own needs. Fields are as in a file,
// texts included ("20000/s", "60%"), and so are their defaults and bounds; what is
// not here has its default, and a program that needs more gives a [File] or
// [YAML]. All nodes of a cluster need the same Cluster, Nodes and Budgets.
type Config struct {
	// Cluster labels gossip; nodes of another name are refused. Required.
	Cluster string
	// Single says that there is one node only, which may spend the whole budget.
	Single bool
	// Bootstrap says that this is the first start of the whole cluster: nobody
	// needs to vouch for this node's share. Give it once, to all nodes.
	Bootstrap bool
	// DataDir keeps a few hundred bytes by which a restarted node has its share
	// at once. "" means that its peers must vouch for it.
	DataDir string
	Gossip  Gossip
	// Admin is the address of the admin interface, IP:PORT or unix:/PATH. ""
	// means none.
	Admin string
	// CoarseClock lets decisions use a reading of the clock that is up to
	// a millisecond old, at a fraction of the price.
	CoarseClock bool
	Nodes       []Member
	Budgets     []Budget
}

// Gossip is how nodes talk to each other.
type Gossip struct {
	Listen    string   // IP:PORT, UDP and TCP. "" means 0.0.0.0:7946
	Advertise string   // host:port at which peers reach this node, if another
	Seeds     []string // host:port of some other nodes. Required unless Single
	Keys      []string // base64 of 32 bytes each; the first encrypts. None: in clear text
	Profile   string   // wan, lan or local. "" means wan
	// Term is how long a loan lasts without news from its lender, and how long
	// a node waits after a first start. 0 means 3 s.
	Term time.Duration
	// Tick is the time between two reports of a node. 0 means 200 ms.
	Tick time.Duration
}

// Member is one node of the cluster.
type Member struct {
	Name   string
	Weight int64 // of its base; 0 means 1
}

// Budget is a capacity that the cluster shares.
type Budget struct {
	Name    string
	Limit   string        // over all nodes, such as 20000/s
	Burst   time.Duration // 0 means 1 s
	Classes []BudgetClass // in order of priority, the highest first
}

// BudgetClass is a class of a budget.
type BudgetClass struct {
	Name    string
	Reserve string // such as 60% or 12000/s. The classes' add up to the limit
	// Tenant is what each tenant gets of the class: 10% of its share at a node, or
	// 50/s at each node. "" means that tenants are not bounded.
	Tenant string
}

func (c Config) admin() bool { return c.Admin != "" }

// load writes the configuration as a file, so that one code judges both.
func (c Config) load() (*config.Config, error) {
	text, err := yaml.Marshal(c.file())
	if err != nil {
		return nil, err
	}
	cfg, err := config.Parse("Config", text)
	if faults, ok := errors.AsType[config.Faults](err); ok {
		return nil, unplaced(faults)
	}
	return cfg, err
}

// unplaced are faults without the lines of a file that nobody wrote.
func unplaced(faults config.Faults) error {
	var words []string
	for _, f := range faults {
		words = append(words, strings.TrimPrefix(f.Error(), f.Place+": "))
	}
	return errors.New(strings.Join(words, "\n"))
}

// file is the configuration as a file has it, without what has its default.
func (c Config) file() map[string]any {
	state := config.Existing
	if c.Bootstrap {
		state = config.New
	}
	cluster := map[string]any{"name": c.Cluster, "single": c.Single, "state": string(state)}
	gossip := map[string]any{}
	set(cluster, "data_dir", c.DataDir)
	set(gossip, "listen", c.Gossip.Listen)
	set(gossip, "advertise", c.Gossip.Advertise)
	set(gossip, "profile", c.Gossip.Profile)
	set(gossip, "term", duration(c.Gossip.Term))
	set(gossip, "tick", duration(c.Gossip.Tick))
	if len(c.Gossip.Seeds) > 0 {
		gossip["seeds"] = c.Gossip.Seeds
	}
	if len(c.Gossip.Keys) > 0 {
		gossip["keys"] = c.Gossip.Keys
	}
	nodes, budgets := []map[string]any{}, []map[string]any{}
	for _, m := range c.Nodes {
		n := map[string]any{"name": m.Name}
		if m.Weight != 0 {
			n["weight"] = m.Weight
		}
		nodes = append(nodes, n)
	}
	for _, b := range c.Budgets {
		budgets = append(budgets, b.file())
	}
	node := map[string]any{"coarse_clock": c.CoarseClock}
	file := map[string]any{"cluster": cluster, "node": node, "gossip": gossip, "nodes": nodes, "budgets": budgets}
	if c.Admin != "" {
		file["admin"] = map[string]any{"listen": c.Admin}
	}
	return file
}

func (b Budget) file() map[string]any {
	classes := []map[string]any{}
	for _, k := range b.Classes {
		class := map[string]any{"name": k.Name, "reserve": k.Reserve}
		if k.Tenant != "" {
			class["tenants"] = map[string]any{"each": k.Tenant}
		}
		classes = append(classes, class)
	}
	f := map[string]any{"name": b.Name, "limit": b.Limit, "classes": classes}
	set(f, "burst", duration(b.Burst))
	return f
}

// set writes a field that is not empty.
func set(m map[string]any, field, value string) {
	if value != "" {
		m[field] = value
	}
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
