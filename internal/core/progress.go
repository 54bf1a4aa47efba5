package core

import (
	"cmp"
	"slices"
	"time"

	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// Progress says how far the newest change is. Its nodes are judged by the epoch
// on trial, if there is one, else by the adopted one.
type Progress struct {
	// Epoch is the adopted one; Active the last whose bases are in force here.
	Epoch, Active ledger.EpochID
	// Canary of the change on trial, and its epoch; empty and zero for none.
	Canary  string
	Trial   ledger.EpochID
	InForce bool // here: Active is Epoch, and this node may use its base
	// Everywhere: every member is known to have it in force, and nothing is on
	// trial.
	Everywhere bool
	Nodes      []NodeProgress // by name
	// Refused says why the newest epoch that a peer told cannot be used here;
	// empty for none.
	Refused string
}

// NodeProgress is one node's part in a change. Nodes that leave are listed until
// the change is in force here.
type NodeProgress struct {
	Node    string
	Member  bool // of the epoch
	Self    bool
	Adopted bool          // it works under the epoch
	Acked   bool          // and has acknowledged it
	InForce bool          // and its bases are those of the epoch
	Heard   time.Duration // since its newest row; -1 for never
	Forced  bool          // declared dead: nobody waits for it
	Why     string        // not in force, in words; empty otherwise
}

// Progress returns how far the newest change is.
func (c *Core) Progress(now int64) Progress {
	r := c.lineage.cur
	p := Progress{Epoch: c.epoch.ID, Active: c.led.Active()}
	p.InForce = p.Active == p.Epoch && c.led.Usable()
	if trial := c.onTrial(); trial != nil {
		r = trial
		p.Trial, p.Canary = r.Epoch.ID, r.Canary
	}
	if c.refused.why != nil && c.epoch.ID.Less(c.refused.id) {
		p.Refused = c.refused.why.Error()
	}
	p.Everywhere = p.Trial == ledger.EpochID{}
	for _, id := range c.progressing(r) {
		n := c.nodeProgress(now, r, id)
		p.Nodes = append(p.Nodes, n)
		p.Everywhere = p.Everywhere && (n.InForce || n.Forced)
	}
	slices.SortFunc(p.Nodes, func(a, b NodeProgress) int { return cmp.Compare(a.Node, b.Node) })
	return p
}

// progressing are the nodes that have a part in r.
func (c *Core) progressing(r *epoch.Record) []ledger.NodeID {
	var ids []ledger.NodeID
	for _, m := range r.Epoch.Roster {
		ids = append(ids, m.ID)
	}
	if c.led.Active() != r.Epoch.ID {
		ids = append(ids, r.Epoch.ParentRoster...)
		if r == c.lineage.cur {
			ids = append(ids, c.led.Concerned()...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (c *Core) nodeProgress(now int64, r *epoch.Record, id ledger.NodeID) NodeProgress {
	n := NodeProgress{Node: c.dir.Name(id), Member: r.Epoch.Position(id) >= 0, Self: id == c.self}
	_, n.Forced = r.Epoch.Forced[id]
	if n.Self {
		n.Adopted = r == c.lineage.cur
		n.Acked = n.Adopted && c.led.Concurs(now, id)
		n.InForce = c.led.Active() == r.Epoch.ID && c.led.Usable()
	} else {
		n.Heard = time.Duration(c.led.Age(now, id))
		if row := c.led.PeerRow(id); row != nil {
			n.Adopted = row.Epoch == r.Epoch.ID
			n.Acked = n.Adopted && row.Acked
			n.InForce = n.Acked && hasBases(r.Epoch, row)
		}
	}
	if !n.InForce {
		n.Why = c.why(now, r, id, &n)
	}
	return n
}

// hasBases reports whether a row under e says that its publisher's ceilings are
// its bases. One that is not a member has none.
func hasBases(e *ledger.Epoch, row *ledger.Row) bool {
	at := e.Position(row.Node)
	if at < 0 {
		return true
	}
	for b := range e.Budgets {
		if row.Sections[b].Ceiling != e.Budgets[b].Base[at] {
			return false
		}
	}
	return true
}

// why says in words what a node that does not have r in force waits for.
func (c *Core) why(now int64, r *epoch.Record, id ledger.NodeID, n *NodeProgress) string {
	silent := ""
	if n.Heard > c.cfg.Live {
		silent = "; not heard for " + shortly(int64(n.Heard))
	}
	switch {
	case n.Forced && r == c.lineage.cur && c.led.ForceWait(now, id) > 0:
		return "declared dead; its loans run out in " + shortly(c.led.ForceWait(now, id))
	case n.Forced:
		return "declared dead"
	case n.Heard < 0:
		return "never heard"
	case !n.Adopted && r.Canary != "" && r.Canary != n.Node:
		return "waits for the end of the trial" + silent
	case !n.Adopted:
		return "has not taken it up" + silent
	case !n.Acked:
		return "recalls what it lent above its new base, or is starting" + silent
	case n.Self && !c.led.LivesClosed():
		return "waits for word of a restarted node"
	case n.Self && c.led.Active() == r.Epoch.ID:
		return "is starting"
	}
	return "waits for the others, or is frozen or starting" + silent
}

// waiting lists who keeps the change under way from coming in force.
func (c *Core) waiting(now int64) []string {
	r := c.lineage.top
	if r == c.onTrial() {
		return []string{"the end of the trial at " + r.Canary}
	}
	var names []string
	for _, n := range c.Progress(now).Nodes {
		if !n.Acked && !(n.Forced && c.led.ForceWait(now, c.dir.Intern(n.Node)) == 0) {
			names = append(names, n.Node+" ("+n.Why+")")
		}
	}
	return names
}

// shortly writes nanoseconds for people.
func shortly(ns int64) string { return time.Duration(ns).Round(100 * time.Millisecond).String() }

// Superseded tells an operator who waits for an epoch that another one won:
// Winner is in force, under way or on trial here and does not follow it. Differs
// says how the winner's content differs from what the operator wanted; it is
// empty if both want the same.
type Superseded struct {
	Winner  ledger.EpochID
	Differs []epoch.Difference
	// Undone: the winner has the content that the loser was to follow, as after
	// a trial that failed.
	Undone bool
}

// SupersededBy reports whether the epoch id, made at any node, lost against
// another one, as far as it is remembered here.
func (c *Core) SupersededBy(id ledger.EpochID) (Superseded, bool) {
	r, top := c.lineage.known[id], c.lineage.top
	if r == nil || !id.Less(top.Epoch.ID) || c.lineage.follows(top, id) {
		return Superseded{}, false
	}
	before := c.lineage.known[r.Epoch.Parent]
	undone := before != nil && before.Content == top.Content && r.Content != top.Content
	return Superseded{top.Epoch.ID, epoch.Diff(r.Doc, top.Doc), undone}, true
}

// Knows reports whether the epoch id is remembered here, in force or not.
func (c *Core) Knows(id ledger.EpochID) bool { return c.lineage.known[id] != nil }
