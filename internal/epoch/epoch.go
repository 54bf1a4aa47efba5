// Package epoch turns what the operator wrote (nodes with weights, budgets with
// classes) into a config epoch of the ledger and back.
//
// # Model
//
// A [Document] is the content. A [Record] is one epoch: a document, its place in
// the lineage (version, parent, the parent's roster, the contents of ancestors),
// who was declared dead with it and who tries it first. The id of an epoch is
// its version and a hash over all of that. So a node rebuilds an epoch from its
// body alone, whether it comes from a peer or from the disk; two nodes that work
// under the same id hold the same bases to the micro-unit; and nodes that make
// the same change to the same epoch make the same epoch.
//
// # The body
//
// A body is one byte of format and the record in JSON, compressed with DEFLATE.
// The JSON is canonical: what is decoded must encode to the same bytes again. A
// field that this version does not know is refused as [ErrNewer], because a
// change that is half understood is a change to something else. The id is taken
// over the JSON, so that it does not hang on the compressor.
//
// All functions are pure. Bodies may come from anybody: they are bounded before
// they are unpacked, and never panic.
package epoch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"subak/allocator"
)

// Document is the content of a config epoch, in canonical order.
type Document struct {
	Cluster string   `json:"cluster"`
	Nodes   []Node   `json:"nodes"`
	Budgets []Budget `json:"budgets"`
}

// Node is one member of the roster.
type Node struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
}

// Budget is one budget with all that every node must agree on: the allocation,
// and the burst, which is part of the bound.
type Budget struct {
	Name      string         `json:"name"`
	Unit      string         `json:"unit"`
	Burst     time.Duration  `json:"burst_ns"`
	Revocable bool           `json:"revocable"`
	Shadow    bool           `json:"shadow"`
	Spec      allocator.Spec `json:"spec"`
	// Tenants bounds the tenants of some classes, in the classes' order.
	Tenants []Tenants `json:"tenants,omitempty"`
}

// Tenants bounds each tenant of one class, at each node by itself. Of SharePPM and
// Rate exactly one is set.
type Tenants struct {
	Class    string         `json:"class"`
	SharePPM int64          `json:"share_ppm,omitempty"` // parts per million of the class's share
	Rate     allocator.Rate `json:"rate,omitempty"`
	Burst    time.Duration  `json:"burst_ns,omitempty"` // 0 means the budget's
	Keys     int            `json:"keys"`
}

// Canonical sorts budgets by name and nodes by name, moving weights, floors and
// caps of each budget along with their nodes. Bounds that bound nothing are
// written in one way.
func (d *Document) Canonical() {
	order := make([]int, len(d.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(d.Nodes[a].Name, d.Nodes[b].Name) })
	d.Nodes = permute(d.Nodes, order)
	for b := range d.Budgets {
		s := &d.Budgets[b].Spec
		s.Weights = permute(s.Weights, order)
		for k := range s.Floors {
			s.Floors[k] = permute(s.Floors[k], order)
		}
		for k := range s.Caps {
			s.Caps[k] = permute(s.Caps[k], order)
		}
		s.Floors = plain(s.Floors, func(r allocator.Rate) bool { return r == 0 }, 0)
		s.Caps = plain(s.Caps, func(r allocator.Rate) bool { return r < 0 }, -1)
	}
	slices.SortFunc(d.Budgets, func(a, b Budget) int { return cmp.Compare(a.Name, b.Name) })
}

func permute[T any](in []T, order []int) []T {
	if len(in) != len(order) {
		return in
	}
	out := make([]T, len(in))
	for to, from := range order {
		out[to] = in[from]
	}
	return out
}

// plain writes bounds that are none as none, and rows and lists of such as nil.
func plain(bounds [][]allocator.Rate, isNone func(allocator.Rate) bool, none allocator.Rate) [][]allocator.Rate {
	some := false
	for k, row := range bounds {
		empty := true
		for i := range row {
			if isNone(row[i]) {
				row[i] = none
			} else {
				empty = false
			}
		}
		if empty {
			bounds[k] = nil
		}
		some = some || !empty
	}
	if !some {
		return nil
	}
	return bounds
}

// Clone returns a document that shares nothing with d.
func (d *Document) Clone() *Document {
	c := *d
	c.Nodes = slices.Clone(d.Nodes)
	c.Budgets = slices.Clone(d.Budgets)
	for i := range c.Budgets {
		s := &c.Budgets[i].Spec
		s.Classes = slices.Clone(s.Classes)
		s.Weights = slices.Clone(s.Weights)
		s.Floors = cloneRows(s.Floors)
		s.Caps = cloneRows(s.Caps)
		c.Budgets[i].Tenants = slices.Clone(c.Budgets[i].Tenants)
	}
	return &c
}

func cloneRows(rows [][]allocator.Rate) [][]allocator.Rate {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] = slices.Clone(rows[i])
	}
	return rows
}

// Without returns a copy of d without the named nodes. What they had goes to the
// others by weight.
func (d *Document) Without(gone func(name string) bool) *Document {
	c := d.Clone()
	for i := len(c.Nodes) - 1; i >= 0; i-- {
		if !gone(c.Nodes[i].Name) {
			continue
		}
		c.Nodes = slices.Delete(c.Nodes, i, i+1)
		for b := range c.Budgets {
			s := &c.Budgets[b].Spec
			s.Weights = drop(s.Weights, i)
			for k := range s.Floors {
				s.Floors[k] = drop(s.Floors[k], i)
			}
			for k := range s.Caps {
				s.Caps[k] = drop(s.Caps[k], i)
			}
		}
	}
	return c
}

func drop[T any](list []T, i int) []T {
	if i < len(list) {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// Validate reports every fault of a document that no local configuration check
// has seen, such as one that arrived from a peer.
func (d *Document) Validate() error {
	var errs []error
	if len(d.Nodes) == 0 || len(d.Budgets) == 0 {
		errs = append(errs, errors.New("epoch: a document needs nodes and budgets"))
	}
	if !utf8.ValidString(d.Cluster) {
		errs = append(errs, errors.New("epoch: the name of the cluster is not UTF-8"))
	}
	for i, n := range d.Nodes {
		if !goodName(n.Name) || n.Weight <= 0 {
			errs = append(errs, fmt.Errorf("epoch: node %d (%q): name of 1 to 64 bytes and weight above 0 wanted", i, n.Name))
		}
		if i > 0 && d.Nodes[i-1].Name >= n.Name {
			errs = append(errs, fmt.Errorf("epoch: node %q is a duplicate or out of order", n.Name))
		}
	}
	for i := range d.Budgets {
		errs = append(errs, d.validateBudget(i))
	}
	return errors.Join(errs...)
}

func (d *Document) validateBudget(i int) error {
	b := &d.Budgets[i]
	switch {
	case !goodName(b.Name):
		return fmt.Errorf("epoch: budget %d: name of 1 to 64 bytes wanted", i)
	case i > 0 && d.Budgets[i-1].Name >= b.Name:
		return fmt.Errorf("epoch: budget %q is a duplicate or out of order", b.Name)
	case len(b.Spec.Weights) != len(d.Nodes):
		return fmt.Errorf("epoch: budget %q has %d weights for %d nodes", b.Name, len(b.Spec.Weights), len(d.Nodes))
	case len(b.Unit) > 16 || !utf8.ValidString(b.Unit):
		return fmt.Errorf("epoch: budget %q: unit %q", b.Name, b.Unit)
	case b.Burst <= 0 || b.Burst > time.Hour:
		return fmt.Errorf("epoch: budget %q: burst %s is outside (0, 1h]", b.Name, b.Burst)
	}
	for k, c := range b.Spec.Classes {
		if !goodName(c.Name) || slices.ContainsFunc(b.Spec.Classes[:k], func(o allocator.ClassSpec) bool { return o.Name == c.Name }) {
			return fmt.Errorf("epoch: budget %q: class %d (%q): a name of its own of 1 to 64 bytes wanted", b.Name, k, c.Name)
		}
	}
	if err := errors.Join(b.Spec.Validate(), b.validateTenants()); err != nil {
		return fmt.Errorf("epoch: budget %q: %w", b.Name, err)
	}
	return nil
}

// keysMax is the most tenants that one class may tell apart.
const keysMax = 1 << 24

// validateTenants wants each bound once, in the order of the classes.
func (b *Budget) validateTenants() error {
	k := 0
	for _, t := range b.Tenants {
		for k < len(b.Spec.Classes) && b.Spec.Classes[k].Name != t.Class {
			k++
		}
		switch {
		case k == len(b.Spec.Classes):
			return fmt.Errorf("tenants of class %q: no such class, or out of order", t.Class)
		case t.SharePPM < 0 || t.SharePPM > allocator.Whole || t.Rate < 0 || (t.SharePPM == 0) == (t.Rate == 0):
			return fmt.Errorf("tenants of class %q: share %d and rate %d: one of them wanted", t.Class, t.SharePPM, t.Rate)
		case t.Burst < 0 || t.Burst > time.Hour || t.Keys < 1 || t.Keys > keysMax:
			return fmt.Errorf("tenants of class %q: burst %s and %d keys: 0 to 1h and 1 to %d wanted", t.Class, t.Burst, t.Keys, keysMax)
		}
		k++
	}
	return nil
}

// TenantsOf returns the bound on the tenants of a class; nil where there is none.
func (b *Budget) TenantsOf(class string) *Tenants {
	for i := range b.Tenants {
		if b.Tenants[i].Class == class {
			return &b.Tenants[i]
		}
	}
	return nil
}

// goodName reports whether a name can travel: what is not UTF-8 would not come
// back from JSON as it was.
func goodName(s string) bool { return s != "" && len(s) <= 64 && utf8.ValidString(s) }
