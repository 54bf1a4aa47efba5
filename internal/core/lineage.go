package core

import (
	"errors"
	"maps"

	"subak/allocator/ledger"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

// recordsMax is how many epochs are remembered beside those in use: enough to
// read the rows of stragglers and to say what a lost edit wanted.
const recordsMax = 64

// lineage is what a core knows of the epochs of its cluster.
type lineage struct {
	cur   *epoch.Record // adopted
	top   *epoch.Record // the greatest known: cur, or one on trial at another node, or one that could not be saved yet
	known map[ledger.EpochID]*epoch.Record
	order []ledger.EpochID // of known, as they came
}

func newLineage(r *epoch.Record) *lineage {
	return &lineage{
		cur: r, top: r,
		known: map[ledger.EpochID]*epoch.Record{r.Epoch.ID: r}, order: []ledger.EpochID{r.Epoch.ID},
	}
}

// epoch returns the epoch of an id, nil if it is not known.
func (l *lineage) epoch(id ledger.EpochID) *ledger.Epoch {
	if r := l.known[id]; r != nil {
		return r.Epoch
	}
	return nil
}

// add remembers r. The oldest record that is neither in use nor keep makes room.
func (l *lineage) add(r *epoch.Record, keep ledger.EpochID) {
	id := r.Epoch.ID
	l.known[id] = r
	l.order = append(l.order, id)
	if l.top.Epoch.ID.Less(id) {
		l.top = r
	}
	for i := 0; len(l.order) > recordsMax && i < len(l.order); {
		if old := l.order[i]; old == l.cur.Epoch.ID || old == l.top.Epoch.ID || old == keep || old == id {
			i++
			continue
		}
		delete(l.known, l.order[i])
		l.order = append(l.order[:i], l.order[i+1:]...)
	}
}

// follows reports whether id is r or an ancestor of it, as far as the records
// reach.
func (l *lineage) follows(r *epoch.Record, id ledger.EpochID) bool {
	for r != nil && id.Version <= r.Epoch.ID.Version {
		if r.Epoch.ID == id || r.Epoch.Parent == id {
			return true
		}
		r = l.known[r.Epoch.Parent]
	}
	return false
}

// awaits reports whether this node must not take r up: another node tries it
// first. Whatever ends the trial is an epoch of its own, above r.
func (c *Core) awaits(r *epoch.Record) bool { return r.Canary != "" && r.Canary != c.cfg.Self }

// onTrial returns the epoch that a canary tries now, nil for none.
func (c *Core) onTrial() *epoch.Record {
	if top := c.lineage.top; top.Canary != "" && c.led.Active() != top.Epoch.ID {
		return top
	}
	return nil
}

// receiveEpoch judges an epoch that a peer sent.
func (c *Core) receiveEpoch(now int64, b *wire.EpochBody) {
	if c.lineage.known[b.ID] != nil {
		return
	}
	r, err := epoch.Decode(b.ID, b.Body, c.dir)
	if err == nil && (r.Epoch.Root != c.epoch.Root || b.Root != c.epoch.Root || r.Epoch.Parent != b.Parent || r.Doc.Cluster != c.doc.Cluster) {
		err = errForeignEpoch
	}
	if err == nil && r.Epoch.ID.Version-min(c.lineage.top.Epoch.ID.Version, r.Epoch.ID.Version) > versionsMax {
		err = errFarAhead
	}
	if err == nil {
		err = c.consider(now, r)
	}
	if err != nil {
		c.refuse(now, b.ID, err)
	}
}

var (
	errForeignEpoch = errors.New("it is of another cluster")
	errFarAhead     = errors.New("its version is too far ahead")
)

// versionsMax is how far an epoch may be ahead of the newest one known: more
// than a cluster makes in its life, and so little that no bug can use all
// versions up at once (lesson O18).
const versionsMax = 1 << 32

// refusal is an epoch that cannot be used: it is not asked for all the time.
type refusal struct {
	id    ledger.EpochID
	why   error
	until int64 // lease clock
}

// refuseFor is how long a refused epoch is not asked for again, in ns.
const refuseFor = int64(30e9)

// refuse counts and remembers that an epoch cannot be used.
func (c *Core) refuse(now int64, id ledger.EpochID, err error) {
	reason := "epoch-refused"
	if errors.Is(err, epoch.ErrNewer) {
		reason = "epoch-newer"
	}
	c.cfg.CountDrop(reason)
	c.refused = refusal{id, err, now + refuseFor}
}

// consider remembers a record, and takes it up if it is above the adopted one
// and not another node's to try. Whether the parent is known does not matter:
// who slept through epochs goes on with the newest.
func (c *Core) consider(now int64, r *epoch.Record) error {
	if c.lineage.known[r.Epoch.ID] != nil {
		return nil
	}
	budgets, err := c.draft(r, now)
	if err != nil {
		return err
	}
	if err := c.led.Learn(r.Epoch); err != nil {
		return err
	}
	c.lineage.add(r, c.led.Active())
	if c.lineage.top == r {
		clear(c.lag)
	}
	if c.epoch.ID.Less(r.Epoch.ID) && !c.awaits(r) {
		c.adopt(now, r, budgets)
	}
	return nil
}

// adopt takes up a learned record, whose budgets are drafted: bases are lowered
// at once, in the data plane too. It is put off while the disk is full
// (catchUp).
func (c *Core) adopt(now int64, r *epoch.Record, budgets []*Budget) {
	c.probe(now)
	if err := c.led.Adopt(now, r.Epoch); err != nil {
		c.cfg.CountDrop("epoch-put-off")
		return
	}
	c.save() // before it is acknowledged: what comes of that must not be forgotten
	c.lineage.cur = r
	c.epoch, c.doc, c.pos = r.Epoch, r.Doc, r.Epoch.Position(c.self)
	c.replace(now, budgets)
	if c.cfg.Installed != nil {
		c.cfg.Installed(budgets)
	}
	c.urgent = true
	if c.edited != r.Epoch.ID {
		c.forward(now, r)
	}
}

// catchUp takes up the newest epoch if it was put off.
func (c *Core) catchUp(now int64) {
	top := c.lineage.top
	if top == c.lineage.cur || c.awaits(top) {
		return
	}
	if budgets, err := c.draft(top, now); err == nil {
		c.adopt(now, top, budgets)
	}
}

// forgetLeavers drops the rows of those who left with the epoch that has just
// come in force here: nobody needs their word any more.
func (c *Core) forgetLeavers() {
	left := func(id ledger.NodeID) bool { return id != c.self && c.epoch.Position(id) < 0 }
	maps.DeleteFunc(c.traffic.packets, func(id ledger.NodeID, _ []byte) bool { return left(id) })
	maps.DeleteFunc(c.traffic.rebuilt, func(id ledger.NodeID, _ *ledger.Row) bool { return left(id) })
}
