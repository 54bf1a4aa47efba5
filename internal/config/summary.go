package config

import (
	"fmt"
	"strings"

	"subak/allocator"
)

// Summary is what a configuration amounts to, for people and JSON. Rates are
// units per second.
type Summary struct {
	Cluster   string            `json:"cluster"`
	Nodes     []NodeSummary     `json:"nodes"` // in canonical order
	Budgets   []BudgetSummary   `json:"budgets"`
	Listeners []ListenerSummary `json:"listeners"`
}

// NodeSummary is one node of the roster.
type NodeSummary struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
	Self   bool   `json:"self"`
}

// BudgetSummary is one budget with each node's base.
type BudgetSummary struct {
	Name         string         `json:"name"`
	Unit         string         `json:"unit"`
	Limit        float64        `json:"limit"`
	BurstSeconds float64        `json:"burst_seconds"`
	Mode         string         `json:"mode"`
	Classes      []ClassSummary `json:"classes"`
	Bases        []float64      `json:"bases"`  // in the order of Nodes
	Unused       float64        `json:"unused"` // what no cap can hold
}

// ClassSummary is one class.
type ClassSummary struct {
	Name        string  `json:"name"`
	Reservation float64 `json:"reservation"`
	Level1      string  `json:"level1"`
	Lend        string  `json:"lend"`
	Borrow      string  `json:"borrow"`
}

// ListenerSummary is one door.
type ListenerSummary struct {
	Name    string `json:"name"`
	Listen  string `json:"listen"`
	Serves  string `json:"serves"`
	Rules   int    `json:"rules"`
	Unknown string `json:"unknown"`
}

// Summary computes what a loaded configuration amounts to.
func (c *Config) Summary() *Summary {
	s := &Summary{Cluster: c.Cluster.Name, Nodes: []NodeSummary{}, Budgets: []BudgetSummary{}, Listeners: []ListenerSummary{}}
	for _, n := range c.Roster() {
		s.Nodes = append(s.Nodes, NodeSummary{n.Name, n.Weight, n.Name == c.Node.Name})
	}
	for i, spec := range c.Specs() {
		s.Budgets = append(s.Budgets, c.Budgets[i].summary(&spec))
	}
	for i := range c.Listeners {
		s.Listeners = append(s.Listeners, c.Listeners[i].summary())
	}
	for i := range c.Envoy {
		s.Listeners = append(s.Listeners, c.Envoy[i].summary())
	}
	return s
}

func (b *Budget) summary(spec *allocator.Spec) BudgetSummary {
	s := BudgetSummary{
		Name: b.Name, Unit: string(b.Limit.Unit), Limit: units(b.Limit.Rate),
		BurstSeconds: b.Burst.Seconds(), Mode: string(b.Mode),
	}
	a, err := allocator.New(*spec)
	if err != nil {
		panic(fmt.Sprintf("config: a checked budget is refused by the allocator: %v", err))
	}
	for i := range spec.Weights {
		s.Bases = append(s.Bases, units(a.NodeBase(i)))
	}
	for k := range b.Classes {
		c := &b.Classes[k]
		s.Unused += units(a.Park(k))
		s.Classes = append(s.Classes, ClassSummary{c.Name, units(spec.Classes[k].Reservation), string(c.Level1), c.Lend.String(), c.Borrow.String()})
	}
	return s
}

func units(r allocator.Rate) float64 { return float64(r) / float64(allocator.Unit) }

func (l *Listener) summary() ListenerSummary {
	s := ListenerSummary{Name: l.Name, Listen: l.Listen.String(), Rules: len(l.Rules)}
	switch n := len(l.Backends); {
	case n == 1:
		s.Serves = "proxy to " + l.Backends[0].URL
	case n > 1:
		s.Serves = fmt.Sprintf("proxy to %d backends", n)
	}
	if l.Check.Enabled {
		if s.Serves != "" {
			s.Serves += ", "
		}
		s.Serves += fmt.Sprintf("checks at %s refused with %d", l.Check.Path, l.Check.RefusalStatus)
	}
	if l.TLS.CertFile != "" {
		s.Serves = "TLS, " + s.Serves
	}
	s.Unknown = l.OnUnknown.words(l.Default)
	return s
}

// words says where requests go that no rule matches.
func (u OnUnknown) words(t Target) string {
	if u == ToDefault {
		return fmt.Sprintf("class %s of budget %s", t.Class, t.Budget)
	}
	return string(u)
}

func (e *Envoy) summary() ListenerSummary {
	s := ListenerSummary{Name: e.Name, Listen: e.Listen.String(), Unknown: e.OnUnknown.words(e.Default)}
	for _, d := range e.Domains {
		s.Rules += len(d.Rules)
	}
	var serves []string
	if e.TLS.CertFile != "" {
		serves = append(serves, "TLS")
	}
	if e.RLS {
		serves = append(serves, "Envoy's rate limit service")
	}
	if e.Quota.Enabled {
		serves = append(serves, "its quota service")
	}
	s.Serves = strings.Join(serves, ", ")
	return s
}
