package config

import (
	"cmp"
	"slices"

	"subak/allocator"
)

// Roster returns the nodes in canonical order, by name: the order of locations
// in [Config.Specs] and in config epochs.
func (c *Config) Roster() []Node {
	return slices.SortedFunc(slices.Values(c.Nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
}

// Specs returns what the allocator needs for each budget, in the order of
// Budgets, with locations in the order of [Config.Roster].
func (c *Config) Specs() []allocator.Spec {
	roster := c.Roster()
	specs := make([]allocator.Spec, len(c.Budgets))
	for i := range c.Budgets {
		specs[i] = c.Budgets[i].spec(roster)
	}
	return specs
}

func (b *Budget) spec(roster []Node) allocator.Spec {
	s := allocator.Spec{
		Budget: b.Limit.Rate, Weights: make([]int64, len(roster)),
		Mode: b.Mode.rule(), Headroom: b.Headroom.rule(), InsurancePPM: int64(b.Insurance),
	}
	for i := range roster {
		s.Weights[i] = roster[i].Weight
	}
	reservations, _ := b.reservations() // checked when loaded
	for k := range b.Classes {
		c := &b.Classes[k]
		s.Classes = append(s.Classes, allocator.ClassSpec{
			Name: c.Name, Reservation: reservations[k],
			Lend: int64(c.Lend), Borrow: int64(c.Borrow), Protect: int64(c.Protect),
			Preempts: c.Preempts, Rule: c.Level1.rule(),
		})
	}
	b.bound(&s, roster)
	return s
}

// bound fills in the floors and caps of the cells.
func (b *Budget) bound(s *allocator.Spec, roster []Node) {
	if len(b.Cells) == 0 {
		return
	}
	s.Floors, s.Caps = make([][]allocator.Rate, len(b.Classes)), make([][]allocator.Rate, len(b.Classes))
	classes := map[string]int{}
	for k := range b.Classes {
		classes[b.Classes[k].Name] = k
		s.Floors[k] = make([]allocator.Rate, len(roster))
		s.Caps[k] = slices.Repeat([]allocator.Rate{-1}, len(roster))
	}
	nodes := map[string]int{}
	for i := range roster {
		nodes[roster[i].Name] = i
	}
	for _, cell := range b.Cells {
		k, i := classes[cell.Class], nodes[cell.Node]
		if cell.Floor != nil {
			s.Floors[k][i] = cell.Floor.Rate
		}
		if cell.Cap != nil {
			s.Caps[k][i] = cell.Cap.Rate
		}
	}
}

func (m Mode) rule() allocator.Mode {
	if m == Paper {
		return allocator.Paper
	}
	return allocator.PoolFirst
}

func (h Headroom) rule() allocator.Headroom {
	switch h {
	case OwnerKeeps:
		return allocator.HeadroomOwnerKeeps
	case ByDemand:
		return allocator.HeadroomByDemand
	}
	return allocator.HeadroomByBase
}

func (r Rule) rule() allocator.Rule {
	if r == MaxMin {
		return allocator.MaxMin
	}
	return allocator.Proportional
}
