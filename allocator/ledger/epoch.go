package ledger

import "subak/allocator"

// EpochID orders config epochs: by version, then by hash. Two epochs are the
// same only if both agree.
type EpochID struct {
	Version uint64
	Hash    uint64
}

// Less reports whether a comes before b.
func (a EpochID) Less(b EpochID) bool {
	return a.Version < b.Version || a.Version == b.Version && a.Hash < b.Hash
}

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
	Roster       []Member
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
