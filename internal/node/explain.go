package node

import (
	"fmt"
	"slices"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/internal/api"
	"subak/internal/core"
	"subak/internal/web"
)

// Explain implements web.Backend: why the cell of a class at a node ("" for this
// one) has its target, by this node's view.
func (n *Node) Explain(budgetName, class, node string) (api.Explanation, error) {
	return answered(n, func(now int64) (api.Explanation, error) { return n.explain(now, budgetName, class, node) })
}

func (n *Node) explain(now int64, budgetName, class, node string) (api.Explanation, error) {
	c := n.core
	at := slices.IndexFunc(c.Budgets(), func(b *core.Budget) bool { return b.Name == budgetName })
	if at < 0 {
		return api.Explanation{}, fmt.Errorf("%w: no budget %q; see `subak status` for their names", web.ErrNotFound, budgetName)
	}
	b := c.Budgets()[at]
	k := slices.IndexFunc(b.Doc.Spec.Classes, func(s allocator.ClassSpec) bool { return s.Name == class })
	if k < 0 {
		return api.Explanation{}, fmt.Errorf("%w: budget %q has no class %q", web.ErrNotFound, budgetName, class)
	}
	i := c.Position()
	if node != "" {
		if i = slices.IndexFunc(c.Epoch().Roster, func(m ledger.Member) bool { return c.NodeName(m.ID) == node }); i < 0 {
			return api.Explanation{}, fmt.Errorf("%w: no node %q in the roster; see `subak members`", web.ErrNotFound, node)
		}
	}
	if i < 0 {
		return api.Explanation{}, fmt.Errorf("%w: this node is not in the roster and has no part: name one that is", web.ErrNotFound)
	}
	x, err := c.Explain(now, b, k, i)
	if err != nil {
		return api.Explanation{}, err
	}
	e := api.Explanation{
		Budget: budgetName, Class: class, Node: c.NodeName(c.Epoch().Roster[i].ID),
		Demand: units(x.Demand), Base: units(x.Base), Kept: units(x.Kept), Level1: units(x.InClass), Borrowed: sumOf(x.Borrowed) + sumOf(x.Seized),
		Lent: units(x.GivenInClass) + sumOf(x.Lent), Headroom: units(x.Headroom + x.Insurance), Target: units(x.Target), Share: -1, Words: x.Words(func(r allocator.Rate) string { return api.RateWords(units(r), b.Doc.Unit) }),
	}
	if i == c.Position() {
		shares := make([]allocator.Rate, b.Classes())
		b.Limiter.Share(now, shares)
		e.Share = units(shares[k])
	}
	switch {
	case i == c.Position() && c.Frozen():
		e.Words = append(e.Words, "This node is frozen: it keeps to its own base and takes no part in the allocation.")
	case b.View.Live[i] && b.View.Ceilings[i] == 0:
		e.Words = append(e.Words, "This node brings nothing to the pool: it is frozen, or was restarted and has no base yet. What it enforces by itself does not show here.")
	}
	if !b.View.Live[i] {
		e.Words = append(e.Words, "This node has not been heard lately, so its base is left alone and its demand is unknown.")
	}
	return e, nil
}

func sumOf(flows []allocator.Flow) (sum float64) {
	for _, f := range flows {
		sum += units(f.Amount)
	}
	return sum
}
