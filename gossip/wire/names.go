package wire

import (
	"cmp"
	"slices"

	"subak/allocator/ledger"
)

// names is the list that refs of one epoch's rows index: the roster in the
// epoch's order, then the parent roster's other names, sorted.
type names struct {
	epoch *ledger.Epoch
	ids   []ledger.NodeID // by ref
	refs  []int32         // by NodeID; -1 for a name outside
}

// ref returns the ref of id, or -1.
func (n *names) ref(id ledger.NodeID) int {
	if id < 0 || int(id) >= len(n.refs) {
		return -1
	}
	return int(n.refs[id])
}

func newNames(dir *ledger.Directory, ep *ledger.Epoch) *names {
	n := &names{epoch: ep, refs: make([]int32, dir.Len())}
	for i := range n.refs {
		n.refs[i] = -1
	}
	for i := range ep.Roster {
		n.add(ep.Roster[i].ID)
	}
	parents := slices.Clone(ep.ParentRoster)
	slices.SortFunc(parents, func(a, b ledger.NodeID) int { return cmp.Compare(dir.Name(a), dir.Name(b)) })
	for _, id := range parents {
		n.add(id)
	}
	return n
}

func (n *names) add(id ledger.NodeID) {
	if n.refs[id] < 0 {
		n.refs[id] = int32(len(n.ids))
		n.ids = append(n.ids, id)
	}
}

// nameCache keeps the lists of the epochs in use. Nodes use one epoch at most
// times and a few during a change, so eight, replaced in turn, are plenty.
type nameCache struct {
	dir  *ledger.Directory
	kept [8]*names
	next int
}

// of returns the list of ep. Epochs are told apart by pointer: an epoch is
// immutable and shared (ledger.Epoch).
func (c *nameCache) of(ep *ledger.Epoch) (*names, error) {
	for _, n := range c.kept {
		if n != nil && n.epoch == ep {
			return n, nil
		}
	}
	if len(ep.Roster) == 0 || len(ep.Roster) > MaxNodes || len(ep.ParentRoster) > MaxNodes {
		return nil, malformed(ReasonLength, "roster")
	}
	for _, m := range ep.Roster {
		if m.ID < 0 || int(m.ID) >= c.dir.Len() {
			return nil, malformed(ReasonRange, "roster")
		}
	}
	for _, id := range ep.ParentRoster {
		if id < 0 || int(id) >= c.dir.Len() {
			return nil, malformed(ReasonRange, "roster")
		}
	}
	n := newNames(c.dir, ep)
	c.kept[c.next] = n
	c.next = (c.next + 1) % len(c.kept)
	return n, nil
}
