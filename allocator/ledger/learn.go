package ledger

import (
	"fmt"

	"subak/allocator"
)

// Learn remembers epoch e so that rows under it can be read, without adopting
// it, whether it is above the adopted one or below: an epoch on trial at
// another node, or one that lost. Nothing that is enforced, published or counted
// on changes by it. Its faults are those of Epoch.Validate and ErrForeignRoot.
func (l *Ledger) Learn(e *Epoch) error {
	if e == l.cur || e.ID == l.cur.ID {
		return nil
	}
	if err := e.Validate(l.cfg.Directory); err != nil {
		return fmt.Errorf("learn epoch %v: %w", e.ID, err)
	}
	if e.Root != l.cur.Root {
		return fmt.Errorf("learn epoch %v: %w", e.ID, ErrForeignRoot)
	}
	l.grow()
	l.learn(e)
	return nil
}

// Knows reports whether rows under epoch id can be read.
func (l *Ledger) Knows(id EpochID) bool { return l.layoutOf(id) != nil }

// Concerned returns the nodes whose acknowledgement the adopted epoch waits
// for, this node included: the closure of the wait set (E3). Once the epoch is
// active that is its roster.
func (l *Ledger) Concerned() []NodeID {
	var ids []NodeID
	for k, in := range l.closure() {
		if in {
			ids = append(ids, NodeID(k))
		}
	}
	return ids
}

// Concurs reports whether the acknowledgement of k counts at now: by its newest
// row, or because the operator's statement that it is dead has taken effect. For
// this node, whether it has acknowledged.
func (l *Ledger) Concurs(now int64, k NodeID) bool {
	l.grow()
	if k == l.cfg.Self {
		return l.acked
	}
	return l.concurs(now, k)
}

// LivesClosed reports that no node has word of a life of a concerned node that
// is newer than the life whose acknowledgement counts (trap 20).
func (l *Ledger) LivesClosed() bool { return l.incarnationsClosed(l.closure()) }

// ForceWait returns how long after now the statement that k is dead takes
// effect for the adopted epoch; 0 if it has, or if there is none.
func (l *Ledger) ForceWait(now int64, k NodeID) int64 {
	if _, forced := l.cur.Forced[k]; !forced {
		return 0
	}
	l.grow()
	return max(0, l.forceEnd()-now)
}

// HighestOf returns the highest incarnation of k that this node knows of, 0 for
// none.
func (l *Ledger) HighestOf(k NodeID) uint64 {
	if k == l.cfg.Self {
		return l.ownHigh
	}
	if int(k) >= len(l.peers) {
		return 0
	}
	high := l.peers[k].floor
	for i := range l.peers {
		if r := l.peers[i].row; r != nil {
			high = max(high, r.heardOf(k).Inc)
		}
	}
	return high
}

// Age returns how long ago at now the newest row of k was merged, -1 if none was
// in this life.
func (l *Ledger) Age(now int64, k NodeID) int64 {
	if int(k) >= len(l.peers) || l.peers[k].row == nil {
		return -1
	}
	return now - l.peers[k].at
}

// HeldFrom returns how much is borrowed from k over all budgets, expired or not.
func (l *Ledger) HeldFrom(k NodeID) (total allocator.Rate) {
	for _, b := range l.books {
		if k >= 0 && int(k) < len(b.in) {
			total = addSat(total, b.in[k].amount)
		}
	}
	return total
}

// Usable reports whether this node is proved and out of quarantine, so that it
// knows what is in force and may use its base.
func (l *Ledger) Usable() bool { return l.usable() }

// MayForce reports whether a child of the active epoch made here may declare
// nodes dead although a change is under way, that is, although this node adopted
// other epochs since it activated that one.
//
// A dead node takes with it what it knew of epochs made by it alone. So none may
// have come in force that only dead nodes know. This node vouches for that if
// all it adopted since are children of the active epoch, and both the active one
// and they list it: whatever has come in force below those children needed this
// node's acknowledgement, which it did not give; and whoever holds a base by one
// of them is in this node's wait set, which its acknowledgement of the new child
// carries to everybody.
func (l *Ledger) MayForce() bool { return l.usable() && !l.strayed }
