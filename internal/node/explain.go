package node

import (
	"fmt"
	"slices"

	"subak/allocator"
	"subak/internal/api"
	"subak/internal/web"
)

// Explain implements web.Backend: why the cell of a class at a node ("" for this
// one) has its target, by this node's view.
func (n *Node) Explain(budgetName, class, node string) (e api.Explanation, err error) {
	if !n.ask(func() { e, err = n.core.explain(n.clock.Now(), budgetName, class, node) }) {
		return e, ErrBusy
	}
	return e, err
}

func (c *core) explain(now int64, budgetName, class, node string) (api.Explanation, error) {
	at := slices.IndexFunc(c.budgets, func(b *budget) bool { return b.name == budgetName })
	if at < 0 {
		return api.Explanation{}, fmt.Errorf("%w: no budget %q; see `subak status` for their names", web.ErrNotFound, budgetName)
	}
	b := c.budgets[at]
	k := slices.IndexFunc(b.doc.Spec.Classes, func(s allocator.ClassSpec) bool { return s.Name == class })
	if k < 0 {
		return api.Explanation{}, fmt.Errorf("%w: budget %q has no class %q", web.ErrNotFound, budgetName, class)
	}
	i := c.pos
	if node != "" {
		id, ok := c.dir.Lookup(node)
		if i = c.epoch.Position(id); !ok || i < 0 {
			return api.Explanation{}, fmt.Errorf("%w: no node %q in the roster; see `subak members`", web.ErrNotFound, node)
		}
	}
	b.group.led.View(now, b.index, &b.view)
	if err := b.alloc.SetCeilings(b.view.Ceilings); err != nil {
		return api.Explanation{}, err
	}
	x, err := b.alloc.Explain(k, i, b.view.Demand)
	if err != nil {
		return api.Explanation{}, err
	}
	e := api.Explanation{
		Budget: budgetName, Class: class, Node: c.dir.Name(c.epoch.Roster[i].ID),
		Demand: units(x.Demand), Base: units(x.Base), Kept: units(x.Kept), Level1: units(x.InClass), Borrowed: sumOf(x.Borrowed) + sumOf(x.Seized),
		Lent: units(x.GivenInClass) + sumOf(x.Lent), Headroom: units(x.Headroom + x.Insurance), Target: units(x.Target), Share: -1, Words: x.Words(),
	}
	if i == c.pos {
		shares := make([]allocator.Rate, len(b.meters))
		b.limiter.Share(now, shares)
		e.Share = units(shares[k])
	}
	switch {
	case i == c.pos && c.frozen:
		e.Words = append(e.Words, "This node is frozen: it keeps to its own base and takes no part in the allocation.")
	case b.view.Live[i] && b.view.Ceilings[i] == 0:
		e.Words = append(e.Words, "This node brings nothing to the pool: it is frozen, or was restarted and has no base yet. What it enforces by itself does not show here.")
	}
	if !b.view.Live[i] {
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
