package core

import (
	"fmt"
	"maps"
	"slices"

	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// Apply makes the epoch of a change, if it is allowed here now, takes it up,
// saves it and tells the others. The plan is returned with a refusal too, as far
// as it could be made. A change is made only by a member, and follows what that
// node has put in force (E4).
//
// Two changes at once, at nodes that do not know of each other's, are two
// epochs; the greater one wins everywhere, and [Core.SupersededBy] tells the
// loser. The same change at several nodes is one epoch.
func (c *Core) Apply(now int64, wallMillis uint64, ch Change) (Plan, error) {
	top := c.lineage.top
	p := Plan{Parent: top.Epoch.ID, Canary: ch.Canary}
	if ch.Expect != nil && *ch.Expect != p.Parent {
		return p, fmt.Errorf("%w: expected %v, the newest epoch is %v", ErrConflict, *ch.Expect, p.Parent)
	}
	dead, err := c.declaredDead(now, ch.Forget)
	if err != nil {
		return p, err
	}
	doc := c.doc
	if ch.Document != nil {
		doc = ch.Document
	}
	doc = doc.Without(func(name string) bool { return dead[name] != 0 })
	if doc.Cluster != c.doc.Cluster {
		return p, fmt.Errorf("%w: %q, not %q", ErrForeign, doc.Cluster, c.doc.Cluster)
	}
	content, err := epoch.ContentOf(doc)
	if err != nil {
		return p, err
	}
	p.Differences = epoch.Diff(c.doc, doc)
	present := content == c.lineage.cur.Content || content == top.Content
	if present && len(dead) == 0 && (c.onTrial() == nil || !ch.Replace) {
		if content != top.Content { // a trial aside
			p.Parent = c.epoch.ID
		}
		p.Epoch = p.Parent
		return p, ErrNothingToChange
	}
	if ch.Document != nil && !ch.Revert && !present && (top.Was(content) || c.lineage.cur.Was(content)) {
		return p, ErrOlder
	}
	r, err := c.derive(now, epoch.Edit{Document: doc, Forced: dead, Canary: ch.Canary}, ch.Replace || len(dead) > 0)
	if err != nil {
		return p, err
	}
	c.complete(&p, r)
	if ch.DryRun {
		return p, nil
	}
	return p, c.put(now, wallMillis, r)
}

// declaredDead checks the nodes to be forgotten and returns the highest life of
// each that the statement covers.
func (c *Core) declaredDead(now int64, names map[string]uint64) (map[string]uint64, error) {
	dead := make(map[string]uint64, len(names))
	for name, inc := range names {
		id, known := c.dir.Lookup(name)
		if !known || !c.concerns(id) {
			return nil, fmt.Errorf("%w: %q", ErrUnknownNode, name)
		}
		high := c.led.HighestOf(id)
		age := c.led.Age(now, id)
		switch {
		case id == c.self:
			return nil, fmt.Errorf("%w: %s is this node", ErrAlive, name)
		case age >= 0 && age <= c.cfg.Live.Nanoseconds():
			return nil, fmt.Errorf("%w: %s was heard %s ago", ErrAlive, name, shortly(age))
		case inc != 0 && inc < high:
			return nil, fmt.Errorf("%w: %s was seen in a later life (%d) than the one declared dead (%d)", ErrAlive, name, high, inc)
		}
		// A node of which no life is known is declared dead up to life 1: should
		// it live, its first row overrules the statement.
		dead[name] = max(inc, high, 1)
	}
	return dead, nil
}

// concerns reports whether id is a member, or one that a change may wait for.
func (c *Core) concerns(id ledger.NodeID) bool {
	top := c.lineage.top.Epoch
	if top.Position(id) >= 0 || c.led.Active() == top.ID {
		return top.Position(id) >= 0
	}
	return slices.Contains(top.ParentRoster, id) || slices.Contains(c.led.Concerned(), id)
}

// derive makes the record of an edit: a child of the epoch that this node put in
// force last (E4), above every epoch known. If another change is under way, that
// takes its place, which the operator must have asked for.
//
// Who was declared dead with the change under way stays dead, unless the new
// content lists a new life of it.
func (c *Core) derive(now int64, e epoch.Edit, mayReplace bool) (*epoch.Record, error) {
	cur, top, active := c.lineage.cur, c.lineage.top, c.led.Active()
	switch {
	case c.pos < 0:
		return nil, ErrNotMember
	case !c.led.Usable():
		return nil, ErrNotReady
	case top.Epoch.ID != active && !mayReplace:
		return nil, &UnderWayError{top.Epoch.ID, c.waiting(now)}
	}
	e.Above, e.Forced = top.Epoch.ID.Version, c.stillDead(&e)
	if len(e.Forced) > 0 && !c.led.MayForce() {
		return nil, fmt.Errorf("%w for certain enough to declare nodes dead; another one may be", ErrNotReady)
	}
	parent := c.lineage.known[active]
	var r *epoch.Record
	var err error
	switch {
	case parent != nil:
		r, err = parent.Child(e, c.dir)
	case cur.Epoch.Parent == active && !cur.IsRoot(): // after a restart
		r, err = cur.Sibling(e, c.dir)
	default:
		return nil, fmt.Errorf("%w: the change to epoch %v does not follow what is in force here", ErrNotReady, top.Epoch.ID)
	}
	if err == nil {
		err = r.Epoch.Validate(c.dir)
	}
	return r, err
}

// stillDead adds to the dead of an edit those of the changes under way that it
// takes the place of.
func (c *Core) stillDead(e *epoch.Edit) map[string]uint64 {
	dead := map[string]uint64{}
	for _, r := range []*epoch.Record{c.lineage.top, c.lineage.cur} {
		if r.Epoch.ID != c.led.Active() && r.Epoch.Parent == c.led.Active() {
			maps.Copy(dead, r.Forced())
		}
	}
	for _, n := range e.Document.Nodes {
		delete(dead, n.Name)
	}
	maps.Copy(dead, e.Forced)
	return dead
}

// complete fills in a plan from the record that it makes.
func (c *Core) complete(p *Plan, r *epoch.Record) {
	p.Epoch = r.Epoch.ID
	if c.led.Active() != p.Parent {
		p.Replaces = p.Parent
	}
	p.Bases = epoch.Bases(c.lineage.cur, r)
	names := r.ParentRoster()
	for _, n := range r.Doc.Nodes {
		names = append(names, n.Name)
	}
	if p.Replaces != (ledger.EpochID{}) {
		for _, id := range c.led.Concerned() {
			names = append(names, c.dir.Name(id))
		}
	}
	slices.Sort(names)
	dead := r.Forced()
	for _, name := range slices.Compact(names) {
		if dead[name] != 0 {
			p.Forgotten = append(p.Forgotten, name)
		} else {
			p.MustAck = append(p.MustAck, name)
		}
	}
}

// put takes up a record made here, saves and tells it. When it returns without
// an error the change survives a crash of this node; one on trial elsewhere does
// so from when its canary has it.
func (c *Core) put(now int64, wallMillis uint64, r *epoch.Record) error {
	if !c.save() { // before anything is changed
		return ErrNotSaved
	}
	before := c.edited
	c.edited = r.Epoch.ID
	if err := c.consider(now, r); err != nil {
		c.edited = before
		return err
	}
	if !c.awaits(r) && (r != c.lineage.cur || !c.save()) {
		return ErrNotSaved
	}
	c.spread(r)
	c.wakeDue = c.pass(now, wallMillis, true)
	return nil
}

// Promote ends a canary's trial well: the epoch on trial is replaced by one of
// the same content for everybody. Any member may do it that has put in force
// what the trial follows; should two do it at once, they make the same epoch.
func (c *Core) Promote(now int64, wallMillis uint64) (ledger.EpochID, error) {
	r := c.onTrial()
	if r == nil {
		return ledger.EpochID{}, ErrNoCanary
	}
	p, err := c.endTrial(now, wallMillis, r.Doc)
	return p.Epoch, err
}

// Abandon undoes a canary's trial: the epoch on trial is replaced by one with the
// content that it followed. Any member may do it that has put that in force.
func (c *Core) Abandon(now int64, wallMillis uint64) (Plan, error) {
	r := c.onTrial()
	if r == nil {
		return Plan{}, ErrNoCanary
	}
	parent := c.lineage.known[r.Epoch.Parent]
	if parent == nil {
		return Plan{}, fmt.Errorf("%w: the content before the trial is not known here", ErrNotReady)
	}
	return c.endTrial(now, wallMillis, parent.Doc)
}

func (c *Core) endTrial(now int64, wallMillis uint64, doc *epoch.Document) (Plan, error) {
	p := Plan{Parent: c.lineage.top.Epoch.ID, Differences: epoch.Diff(c.doc, doc)}
	r, err := c.derive(now, epoch.Edit{Document: doc.Clone()}, true)
	if err != nil {
		return p, err
	}
	c.complete(&p, r)
	return p, c.put(now, wallMillis, r)
}

// Forget declares nodes dead, each in every life known of it here: see
// [Change].Forget.
func (c *Core) Forget(now int64, wallMillis uint64, names ...string) (Plan, error) {
	ch := Change{Forget: map[string]uint64{}}
	for _, name := range names {
		ch.Forget[name] = 0
	}
	return c.Apply(now, wallMillis, ch)
}

// Document returns the content of the adopted epoch. It must not be changed.
func (c *Core) Document() *epoch.Document { return c.doc }
