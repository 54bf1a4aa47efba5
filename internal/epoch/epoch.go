// Package epoch turns what the operator wrote (nodes with weights, budgets with
// classes) into a config epoch of the ledger and back.
//
// The canonical encoding of a [Document] is the body that travels; its hash
// names the epoch, so two nodes that work under the same id hold the same bases
// to the micro-unit. Everything else in a [ledger.Epoch] is derived from it.
// All functions are pure.
package epoch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
)

// BodyMax bounds the encoding of a document in bytes.
const BodyMax = 256 << 10

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
}

// Canonical sorts budgets by name and nodes by name, moving weights, floors and
// caps of each budget along with their nodes.
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

// Validate reports every fault of a document that no local configuration check
// has seen, such as one that arrived from a peer.
func (d *Document) Validate() error {
	var errs []error
	if len(d.Nodes) == 0 || len(d.Budgets) == 0 {
		errs = append(errs, errors.New("epoch: a document needs nodes and budgets"))
	}
	for i, n := range d.Nodes {
		if n.Name == "" || len(n.Name) > 64 || n.Weight <= 0 {
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
	case b.Name == "" || len(b.Name) > 64:
		return fmt.Errorf("epoch: budget %d: name of 1 to 64 bytes wanted", i)
	case i > 0 && d.Budgets[i-1].Name >= b.Name:
		return fmt.Errorf("epoch: budget %q is a duplicate or out of order", b.Name)
	case len(b.Spec.Weights) != len(d.Nodes):
		return fmt.Errorf("epoch: budget %q has %d weights for %d nodes", b.Name, len(b.Spec.Weights), len(d.Nodes))
	case b.Burst <= 0 || b.Burst > time.Hour:
		return fmt.Errorf("epoch: budget %q: burst %s is outside (0, 1h]", b.Name, b.Burst)
	}
	if err := b.Spec.Validate(); err != nil {
		return fmt.Errorf("epoch: budget %q: %w", b.Name, err)
	}
	return nil
}

// Root makes the first epoch of a cluster from a document: version 1, no
// parent, its own hash as fingerprint of the lineage. It sorts d canonically.
func Root(d *Document, dir *ledger.Directory) (*ledger.Epoch, error) {
	d.Canonical()
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("epoch: encode: %w", err)
	}
	if len(body) > BodyMax {
		return nil, fmt.Errorf("epoch: %d bytes of budgets and nodes, at most %d fit", len(body), BodyMax)
	}
	id := ledger.EpochID{Version: 1, Hash: hash(1, ledger.EpochID{}, body)}
	return build(d, id, ledger.EpochID{}, id.Hash, body, nil, dir)
}

// Decode rebuilds an epoch from its body. It refuses a body that does not hash
// to id, so a peer cannot give one id two meanings. ParentRoster is the
// parent's, nil for a root.
func Decode(id, parent ledger.EpochID, root uint64, body []byte, parentRoster []ledger.NodeID, dir *ledger.Directory) (*ledger.Epoch, *Document, error) {
	if len(body) > BodyMax {
		return nil, nil, fmt.Errorf("epoch: body of %d bytes, at most %d allowed", len(body), BodyMax)
	}
	if got := hash(id.Version, parent, body); got != id.Hash {
		return nil, nil, fmt.Errorf("epoch: body hashes to %016x, not %016x", got, id.Hash)
	}
	var d Document
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return nil, nil, fmt.Errorf("epoch: decode: %w", err)
	}
	e, err := build(&d, id, parent, root, body, parentRoster, dir)
	return e, &d, err
}

func build(d *Document, id, parent ledger.EpochID, root uint64, body []byte, parentRoster []ledger.NodeID, dir *ledger.Directory) (*ledger.Epoch, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	e := &ledger.Epoch{ID: id, Parent: parent, Root: root, Body: body, ParentRoster: parentRoster}
	for _, n := range d.Nodes {
		e.Roster = append(e.Roster, ledger.Member{ID: dir.Intern(n.Name), Weight: n.Weight})
	}
	if parent == (ledger.EpochID{}) {
		for _, m := range e.Roster {
			e.ParentRoster = append(e.ParentRoster, m.ID)
		}
	}
	for i := range d.Budgets {
		b := &d.Budgets[i]
		a, err := allocator.New(b.Spec)
		if err != nil {
			return nil, fmt.Errorf("epoch: budget %q: %w", b.Name, err)
		}
		base := make([]allocator.Rate, len(d.Nodes))
		for n := range base {
			base[n] = a.NodeBase(n)
		}
		e.Budgets = append(e.Budgets, ledger.BudgetBase{Name: b.Name, Classes: len(b.Spec.Classes), Base: base})
	}
	return e, nil
}

// hash names an epoch: the first eight bytes of SHA-256 over version, parent
// and body. It is never 0, which means "no epoch".
func hash(version uint64, parent ledger.EpochID, body []byte) uint64 {
	var head [24]byte
	binary.BigEndian.PutUint64(head[0:], version)
	binary.BigEndian.PutUint64(head[8:], parent.Version)
	binary.BigEndian.PutUint64(head[16:], parent.Hash)
	h := sha256.New()
	h.Write(head[:])
	h.Write(body)
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}
