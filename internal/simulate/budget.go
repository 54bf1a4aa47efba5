// Package simulate brings what users have, a budget's file and a trace of their own
// demand, to the evaluation, and changes it: what if the limit, a reservation or
// a weight were another, or a location lost.
package simulate

import (
	"fmt"
	"slices"
	"strings"

	"subak/allocator"
	"subak/internal/config"
	"subak/internal/evaluation"
	"subak/internal/strict"
)

// Budget is one budget of a file.
type Budget struct {
	cfg *config.Config
	at  int // in cfg.Budgets
}

// ReadBudget reads nodes and budgets, from a file of their own or from a node's
// whole configuration. name may be empty where the file has one budget. The error is
// a [config.Faults], or says which budgets there are.
func ReadBudget(file string, text []byte, name string) (*Budget, error) {
	cfg, err := config.ParseChange(file, text, nil)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(cfg.Budgets))
	for i := range cfg.Budgets {
		names[i] = cfg.Budgets[i].Name
	}
	at := slices.Index(names, name)
	switch {
	case len(names) == 0 || len(cfg.Nodes) == 0:
		return nil, fmt.Errorf("%s: it has no nodes or no budgets; mend: write both, as in the output of subak config example", file)
	case name == "" && len(names) == 1:
		at = 0
	case name == "":
		return nil, fmt.Errorf("%s: it has %d budgets; mend: name one by --budget-name: %s", file, len(names), strings.Join(names, ", "))
	case at < 0:
		return nil, fmt.Errorf("%s: no budget %q; mend: one of %s", file, name, strings.Join(names, ", "))
	}
	return &Budget{cfg, at}, nil
}

func (b *Budget) budget() *config.Budget { return &b.cfg.Budgets[b.at] }

// Spec is what the allocator needs.
func (b *Budget) Spec() *allocator.Spec { return &b.cfg.Specs()[b.at] }

// Limit is the budget's limit as written.
func (b *Budget) Limit() string { return b.budget().Limit.String() }

// Names are those of the nodes and classes, in the order of Spec.
func (b *Budget) Names() (names evaluation.Names) {
	for _, n := range b.cfg.Roster() {
		names.Nodes = append(names.Nodes, n.Name)
	}
	for _, c := range b.budget().Classes {
		names.Classes = append(names.Classes, c.Name)
	}
	return names
}

// Change is what a what-if changes. The zero value changes nothing.
type Change struct {
	Against *Budget           // another budget for the same nodes and classes; the rest changes it
	Limit   string            // 12000/s
	Reserve map[string]string // by class: 70%
	Weights map[string]string // by node: 80
	Without []string          // nodes that are lost
}

// Zero reports whether nothing is changed.
func (c *Change) Zero() bool {
	return c.Against == nil && c.Limit == "" && len(c.Reserve) == 0 && len(c.Weights) == 0 && len(c.Without) == 0
}

// Words says the change in a line.
func (c *Change) Words() string {
	var words []string
	if c.Against != nil {
		words = append(words, "the other budget")
	}
	if c.Limit != "" {
		words = append(words, "limit "+c.Limit)
	}
	for _, pairs := range []struct {
		what string
		of   map[string]string
	}{{"reserve ", c.Reserve}, {"weight ", c.Weights}} {
		var all []string
		for name, value := range pairs.of {
			all = append(all, pairs.what+name+"="+value)
		}
		slices.Sort(all)
		words = append(words, all...)
	}
	for _, name := range c.Without {
		words = append(words, "without "+name)
	}
	return strings.Join(words, ", ")
}

// With returns the budget as changed. The error names the flag and the mend.
func (b *Budget) With(c *Change) (*Budget, error) {
	if o := c.Against; o != nil {
		was, is := b.Names(), o.Names()
		if !slices.Equal(was.Nodes, is.Nodes) || !slices.Equal(was.Classes, is.Classes) {
			return nil, fmt.Errorf("--against: it has other nodes or classes (%s; %s) than the budget (%s; %s); mend: compare budgets of the same, and use --without for a lost node",
				strings.Join(is.Nodes, ", "), strings.Join(is.Classes, ", "), strings.Join(was.Nodes, ", "), strings.Join(was.Classes, ", "))
		}
		b = o
	}
	cfg := *b.cfg
	cfg.Nodes, cfg.Budgets = slices.Clone(cfg.Nodes), slices.Clone(cfg.Budgets)
	changed := &Budget{&cfg, b.at}
	own := changed.budget()
	own.Classes, own.Cells = slices.Clone(own.Classes), slices.Clone(own.Cells)
	if c.Limit != "" {
		if err := own.Limit.UnmarshalText([]byte(c.Limit)); err != nil {
			return nil, flagFault("set-limit", err)
		}
	}
	for name, value := range c.Reserve {
		k := slices.IndexFunc(own.Classes, func(x config.Class) bool { return x.Name == name })
		if k < 0 {
			return nil, noSuch("set-reserve", "class", name, b.Names().Classes)
		}
		if err := own.Classes[k].Reserve.UnmarshalText([]byte(value)); err != nil {
			return nil, flagFault("set-reserve "+name, err)
		}
	}
	if err := changed.changeNodes(c); err != nil {
		return nil, err
	}
	// Read again, it is judged as a file would be, which must name a cluster.
	if cfg.Cluster.Name == "" {
		cfg.Cluster.Name = "sim"
	}
	text, err := cfg.YAML()
	if err != nil {
		return nil, fmt.Errorf("the changed budget: %w", err)
	}
	if changed.cfg, err = config.ParseChange("the changed budget", text, nil); err != nil {
		return nil, err
	}
	return changed, nil
}

func (b *Budget) changeNodes(c *Change) error {
	names := b.Names().Nodes
	for name, value := range c.Weights {
		i := slices.IndexFunc(b.cfg.Nodes, func(n config.Node) bool { return n.Name == name })
		if i < 0 {
			return noSuch("set-weight", "node", name, names)
		}
		var weight int64
		if n, err := fmt.Sscan(value, &weight); n != 1 || err != nil || weight < 1 {
			return fmt.Errorf("--set-weight %s=%s: no weight; mend: write a whole number from 1", name, value)
		}
		b.cfg.Nodes[i].Weight = weight
	}
	for _, name := range c.Without {
		if !slices.Contains(names, name) {
			return noSuch("without", "node", name, names)
		}
		b.cfg.Nodes = slices.DeleteFunc(b.cfg.Nodes, func(n config.Node) bool { return n.Name == name })
		b.budget().Cells = slices.DeleteFunc(b.budget().Cells, func(x config.Cell) bool { return x.Node == name })
	}
	if len(b.cfg.Nodes) == 0 {
		return fmt.Errorf("--without leaves no node; mend: leave at least one of %s", strings.Join(names, ", "))
	}
	return nil
}

func flagFault(flag string, err error) error { return fmt.Errorf("--%s: %w", flag, err) }

func noSuch(flag, what, name string, known []string) error {
	return fmt.Errorf("--%s: no %s %q; mend: %s", flag, what, name, strict.Suggestion(name, known))
}

// Cases are the demand of a trace under the budget as it is and as changed, side by
// side.
func Cases(trace *evaluation.Recorded, b *Budget, c *Change) ([]evaluation.Case, error) {
	now := evaluation.Case{
		Name: "as-is", Title: "as it is", Spec: b.Spec(),
		Open: func(uint64) (evaluation.Trace, error) { return trace.Replay(), nil },
	}
	if c.Zero() {
		return []evaluation.Case{now}, nil
	}
	changed, err := b.With(c)
	if err != nil {
		return nil, err
	}
	var lost []int
	for i, name := range b.Names().Nodes {
		if slices.Contains(c.Without, name) {
			lost = append(lost, i)
		}
	}
	then := evaluation.Case{Name: "what-if", Title: c.Words(), Spec: changed.Spec(), Open: now.Open}
	if len(lost) > 0 {
		then.Open = func(uint64) (evaluation.Trace, error) {
			return evaluation.Without(trace.Replay(), lost, now.Spec.Weights), nil
		}
	}
	return []evaluation.Case{now, then}, nil
}
