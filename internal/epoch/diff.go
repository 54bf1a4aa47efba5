package epoch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"subak/allocator"
)

// Difference is one thing that differs between two documents.
type Difference struct {
	// Subject is what differs: "budget origin", "node ams".
	Subject string `json:"subject"`
	// What changes, as a word: "added", "removed", "limit", "burst", "weight",
	// "class high: reservation", "cap of low at ams" ...
	What string `json:"what"`
	// Before and After, with units, for people; empty where there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// String is the difference in one line.
func (d Difference) String() string {
	switch {
	case d.Before == "" && d.After == "":
		return d.Subject + ": " + d.What
	case d.Before == "":
		return d.Subject + ": " + d.What + " " + d.After
	case d.After == "":
		return d.Subject + ": " + d.What + " (was " + d.Before + ")"
	}
	return d.Subject + ": " + d.What + " " + d.Before + " -> " + d.After
}

// BaseChange is one node's base of one budget before and after; 0 for none.
type BaseChange struct {
	Budget        string
	Node          string
	Unit          string
	Before, After allocator.Rate
}

// Diff returns what differs from old to fresh, both in canonical order: nodes
// first, then budgets, by name.
func Diff(old, fresh *Document) []Difference {
	var out []Difference
	if old.Cluster != fresh.Cluster {
		out = append(out, Difference{"cluster", "name", old.Cluster, fresh.Cluster})
	}
	union(old.Nodes, fresh.Nodes, func(n Node) string { return n.Name }, func(a, b *Node) {
		switch {
		case a == nil:
			out = append(out, Difference{"node " + b.Name, "added", "", "weight " + strconv.FormatInt(b.Weight, 10)})
		case b == nil:
			out = append(out, Difference{"node " + a.Name, "removed", "weight " + strconv.FormatInt(a.Weight, 10), ""})
		case a.Weight != b.Weight:
			out = append(out, Difference{"node " + a.Name, "weight", strconv.FormatInt(a.Weight, 10), strconv.FormatInt(b.Weight, 10)})
		}
	})
	union(old.Budgets, fresh.Budgets, func(b Budget) string { return b.Name }, func(a, b *Budget) {
		switch {
		case a == nil:
			out = append(out, Difference{"budget " + b.Name, "added", "", rate(b.Spec.Budget, b.Unit)})
		case b == nil:
			out = append(out, Difference{"budget " + a.Name, "removed", rate(a.Spec.Budget, a.Unit), ""})
		default:
			c := comparison{subject: "budget " + a.Name, unit: b.Unit, out: out}
			c.budget(a, b)
			c.cells(old, fresh, &a.Spec, &b.Spec)
			out = c.out
		}
	})
	return out
}

// Bases returns the bases that differ between two epochs, by budget and node.
func Bases(old, fresh *Record) []BaseChange {
	var out []BaseChange
	base := func(r *Record, budget string) map[string]allocator.Rate {
		m := map[string]allocator.Rate{}
		for _, b := range r.Epoch.Budgets {
			if b.Name == budget {
				for i, v := range b.Base {
					m[r.Doc.Nodes[i].Name] = v
				}
			}
		}
		return m
	}
	union(old.Doc.Budgets, fresh.Doc.Budgets, func(b Budget) string { return b.Name }, func(x, y *Budget) {
		b := x
		if b == nil {
			b = y
		}
		before, after := base(old, b.Name), base(fresh, b.Name)
		union(old.Doc.Nodes, fresh.Doc.Nodes, func(n Node) string { return n.Name }, func(p, q *Node) {
			n := p
			if n == nil {
				n = q
			}
			if before[n.Name] != after[n.Name] {
				out = append(out, BaseChange{b.Name, n.Name, b.Unit, before[n.Name], after[n.Name]})
			}
		})
	})
	return out
}

// union visits two lists sorted by key together: both where keys agree, else
// one and nil.
func union[T any](a, b []T, key func(T) string, visit func(x, y *T)) {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && key(a[i]) < key(b[j]):
			visit(&a[i], nil)
			i++
		case i == len(a) || key(b[j]) < key(a[i]):
			visit(nil, &b[j])
			j++
		default:
			visit(&a[i], &b[j])
			i++
			j++
		}
	}
}

// comparison collects what differs in one budget.
type comparison struct {
	subject, unit string
	out           []Difference
}

func (c *comparison) note(what, before, after string) {
	if before != after {
		c.out = append(c.out, Difference{c.subject, what, before, after})
	}
}

func (c *comparison) budget(a, b *Budget) {
	c.note("limit", rate(a.Spec.Budget, a.Unit), rate(b.Spec.Budget, b.Unit))
	c.note("burst", a.Burst.String(), b.Burst.String())
	c.note("revocable", yes(a.Revocable), yes(b.Revocable))
	c.note("shadow", yes(a.Shadow), yes(b.Shadow))
	c.note("mode", modeName(a.Spec.Mode), modeName(b.Spec.Mode))
	c.note("headroom", headroomName(a.Spec.Headroom), headroomName(b.Spec.Headroom))
	c.note("insurance", share(a.Spec.InsurancePPM), share(b.Spec.InsurancePPM))
	order := func(s *allocator.Spec) string {
		names := make([]string, len(s.Classes))
		for k := range names {
			names[k] = s.Classes[k].Name
		}
		return strings.Join(names, " > ")
	}
	c.note("classes", order(&a.Spec), order(&b.Spec))
	for _, y := range b.Spec.Classes {
		if x := classNamed(&a.Spec, y.Name); x != nil {
			c.class(x, &y, a.Unit)
			c.note("class "+y.Name+": tenants", a.TenantsOf(y.Name).words(a.Unit), b.TenantsOf(y.Name).words(b.Unit))
		} else {
			c.out = append(c.out, Difference{c.subject, "class " + y.Name + " added, reservation", "", rate(y.Reservation, b.Unit)})
		}
	}
	for _, x := range a.Spec.Classes {
		if classNamed(&b.Spec, x.Name) == nil {
			c.out = append(c.out, Difference{c.subject, "class " + x.Name + " removed", rate(x.Reservation, a.Unit), ""})
		}
	}
}

func (c *comparison) class(a, b *allocator.ClassSpec, unit string) {
	at := "class " + a.Name + ": "
	c.note(at+"reservation", rate(a.Reservation, unit), rate(b.Reservation, c.unit))
	c.note(at+"lend", share(a.Lend), share(b.Lend))
	c.note(at+"borrow", share(a.Borrow), share(b.Borrow))
	c.note(at+"protect", share(a.Protect), share(b.Protect))
	c.note(at+"preempts", yes(a.Preempts), yes(b.Preempts))
	c.note(at+"level 1", ruleName(a.Rule), ruleName(b.Rule))
}

// words is a bound on tenants for people.
func (t *Tenants) words(unit string) string {
	if t == nil {
		return "none"
	}
	each := share(t.SharePPM)
	if t.Rate > 0 {
		each = rate(t.Rate, unit)
	}
	each += " each"
	if t.Burst > 0 {
		each += ", burst " + t.Burst.String()
	}
	return fmt.Sprintf("%s, %d keys", each, t.Keys)
}

// cells compares floors and caps of the cells that both sides have.
func (c *comparison) cells(old, fresh *Document, a, b *allocator.Spec) {
	for k, class := range b.Classes {
		was := slices.IndexFunc(a.Classes, func(x allocator.ClassSpec) bool { return x.Name == class.Name })
		for i, n := range fresh.Nodes {
			at := " of " + class.Name + " at " + n.Name
			j := old.node(n.Name)
			c.note("floor"+at, bound(a.Floors, was, j, 0, c.unit), bound(b.Floors, k, i, 0, c.unit))
			c.note("cap"+at, bound(a.Caps, was, j, -1, c.unit), bound(b.Caps, k, i, -1, c.unit))
		}
	}
}

// bound is one entry of floors or caps in words; none is what it means to have
// none.
func bound(rows [][]allocator.Rate, k, i int, none allocator.Rate, unit string) string {
	if k < 0 || i < 0 || k >= len(rows) || i >= len(rows[k]) || rows[k][i] == none {
		return "none"
	}
	return rate(rows[k][i], unit)
}

func classNamed(s *allocator.Spec, name string) *allocator.ClassSpec {
	for k := range s.Classes {
		if s.Classes[k].Name == name {
			return &s.Classes[k]
		}
	}
	return nil
}

// rate writes micro-units per second exactly, without a trailing fraction of 0.
func rate(r allocator.Rate, unit string) string {
	whole, part := r/allocator.Unit, r%allocator.Unit
	s := strconv.FormatInt(int64(whole), 10)
	if part != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%06d", part), "0")
	}
	return s + unit
}

func share(ppm int64) string {
	if ppm == allocator.Unlimited {
		return "unlimited"
	}
	return rate(allocator.Rate(ppm)*100, "%")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func modeName(m allocator.Mode) string {
	if m == allocator.Paper {
		return "paper"
	}
	return "pool-first"
}

func ruleName(r allocator.Rule) string {
	if r == allocator.MaxMin {
		return "maxmin"
	}
	return "proportional"
}

func headroomName(h allocator.Headroom) string {
	switch h {
	case allocator.HeadroomOwnerKeeps:
		return "owner-keeps"
	case allocator.HeadroomByDemand:
		return "by-demand"
	case allocator.HeadroomByBase:
	}
	return "by-base"
}
