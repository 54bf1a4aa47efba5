package ledger

import (
	"errors"
	"fmt"

	"subak/allocator"
)

// EpochID orders config epochs: by version, then by hash. Two epochs are the
// same only if both agree (trap 24).
type EpochID struct {
	Version uint64
	Hash    uint64
}

// Less reports whether a comes before b.
func (a EpochID) Less(b EpochID) bool {
	return a.Version < b.Version || a.Version == b.Version && a.Hash < b.Hash
}

// String shows the epoch as version and hash.
func (a EpochID) String() string { return fmt.Sprintf("%d-%016x", a.Version, a.Hash) }

// Member is one node of an epoch's roster.
type Member struct {
	ID     NodeID
	Weight int64 // > 0; 0 for a node that is leaving
}

// Epoch says what every node's base is. An Epoch is immutable and shared.
type Epoch struct {
	ID     EpochID
	Parent EpochID // zero for a root
	// Root is the fingerprint of the lineage: the hash of the first epoch of
	// the cluster. Rows and epochs of another root are foreign and refused.
	Root uint64
	// Roster in canonical order (by name). Rosters and bases share the order.
	Roster []Member
	// ParentRoster are the members of Parent; empty for a root, whose roster
	// stands for it.
	ParentRoster []NodeID
	// Forced maps a node that the operator declared dead to the highest
	// incarnation the declaration covers (rule E6).
	Forced map[NodeID]uint64
	// Budgets in canonical order (by name).
	Budgets []BudgetBase
	// Body is the canonical encoding from which all of the above was derived.
	Body []byte
}

// BudgetBase is one budget's part of an epoch.
type BudgetBase struct {
	Name    string
	Classes int              // K, 2 to 64
	Base    []allocator.Rate // by roster position: the node's total over classes
}

// Position returns the roster position of id, or -1.
func (e *Epoch) Position(id NodeID) int {
	for i := range e.Roster {
		if e.Roster[i].ID == id {
			return i
		}
	}
	return -1
}

// Validate returns all faults that would make e unsafe to read or to adopt,
// joined: ids outside d, members or budgets named twice, bases that do not match
// the roster or exceed MaxRate, and half or more of the parent roster forced
// (rule E6).
func (e *Epoch) Validate(d *Directory) error {
	var errs []error
	known := func(id NodeID) bool { return id >= 0 && int(id) < d.Len() }
	var seen nodeSet
	for _, m := range e.Roster {
		switch {
		case !known(m.ID):
			errs = append(errs, fmt.Errorf("member %d is not in the directory", m.ID))
		case seen.has(m.ID):
			errs = append(errs, fmt.Errorf("member %s is listed twice", d.Name(m.ID)))
		case m.Weight < 0:
			errs = append(errs, fmt.Errorf("member %s has weight %d", d.Name(m.ID), m.Weight))
		default:
			seen.add(m.ID)
		}
	}
	forced := 0
	for _, id := range e.ParentRoster {
		if !known(id) {
			errs = append(errs, fmt.Errorf("parent member %d is not in the directory", id))
		}
		if _, ok := e.Forced[id]; ok {
			forced++
		}
	}
	if forced > 0 && 2*forced >= len(e.ParentRoster) {
		errs = append(errs, fmt.Errorf("%d of %d members are forced out; fewer than half can be", forced, len(e.ParentRoster)))
	}
	if len(e.Roster) == 0 {
		errs = append(errs, errors.New("the roster is empty"))
	}
	for i := range e.Budgets {
		errs = append(errs, e.validateBudget(i))
	}
	return errors.Join(errs...)
}

func (e *Epoch) validateBudget(i int) error {
	b := &e.Budgets[i]
	for j := range e.Budgets[:i] {
		if e.Budgets[j].Name == b.Name {
			return fmt.Errorf("budget %s is listed twice", b.Name)
		}
	}
	if b.Classes < 1 || b.Classes > 64 {
		return fmt.Errorf("budget %s has %d classes", b.Name, b.Classes)
	}
	if len(b.Base) != len(e.Roster) {
		return fmt.Errorf("budget %s has %d bases for %d members", b.Name, len(b.Base), len(e.Roster))
	}
	left := MaxRate
	for p, r := range b.Base {
		if r < 0 || r > left {
			return fmt.Errorf("budget %s: base %d of member %d is negative or too large", b.Name, r, p)
		}
		left -= r
	}
	return nil
}

// parentMembers are the members of the parent; of e itself if it is a root.
func (e *Epoch) parentMembers() []NodeID {
	if len(e.ParentRoster) > 0 || e.Parent != (EpochID{}) {
		return e.ParentRoster
	}
	ids := make([]NodeID, len(e.Roster))
	for i, m := range e.Roster {
		ids[i] = m.ID
	}
	return ids
}
