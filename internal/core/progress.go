package core

import (
	"time"

	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// Progress says how far the newest change is.
type Progress struct {
	// Epoch is the adopted one; Active the last whose bases are in force here.
	Epoch, Active ledger.EpochID
	// Canary of the change under way, and the epoch it tries; empty and zero for
	// none.
	Canary  string
	Trial   ledger.EpochID
	InForce bool // here: Active is Epoch, and this node serves it
	// Everywhere: every member is known to have it in force.
	Everywhere bool
	Nodes      []NodeProgress // by name
}

// NodeProgress is one node's part in a change. Nodes that leave are listed until
// the change is in force here.
type NodeProgress struct {
	Node    string
	Member  bool // of the adopted epoch
	Self    bool
	Adopted bool // it works under the epoch, or, before a canary's end, on trial
	Acked   bool
	InForce bool          // its bases are those of the epoch
	Heard   time.Duration // since its newest row; -1 for never
	Forced  bool          // declared dead: nobody waits for it
	Why     string        // not in force, in words; empty otherwise
}

// Superseded tells an operator who waits for epoch id that another one won:
// winner is in force or under way here and cannot be followed by id any more.
// differs says how the winner's content differs from what the operator wanted,
// as far as that is remembered.
type Superseded struct {
	Winner  ledger.EpochID
	Differs []epoch.Difference
}

// Progress returns how far the newest change is.
func (c *Core) Progress(now int64) Progress { return Progress{} }

// SupersededBy reports whether the epoch id, made at any node, lost against
// another one.
func (c *Core) SupersededBy(id ledger.EpochID) (Superseded, bool) { return Superseded{}, false }
