package epoch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"subak/allocator"
	"subak/allocator/ledger"
)

const (
	// HistoryMax is how many ancestors' contents a record remembers.
	HistoryMax = 64
	// NodesMax bounds a roster, and NamesMax what the epochs that peers send may
	// add to a process's directory.
	NodesMax = 4096
	NamesMax = 4 * NodesMax
)

// Record is one config epoch with all that its body says. It is immutable.
type Record struct {
	Epoch *ledger.Epoch
	Doc   *Document
	// Content is the hash of the document alone: equal for equal contents,
	// whatever the epoch.
	Content uint64
	// History are the contents of the epoch's ancestors, the parent's first, at
	// most HistoryMax.
	History []uint64
	// Canary is the node that tries the epoch first; empty for everybody at once.
	Canary string

	said *content
}

// Was reports whether an ancestor of the epoch had this content.
func (r *Record) Was(content uint64) bool { return slices.Contains(r.History, content) }

// ContentOf returns the hash of a document's content; it sorts d canonically.
func ContentOf(d *Document) (uint64, error) {
	d.Canonical()
	plain, err := json.Marshal(d)
	if err != nil {
		return 0, fmt.Errorf("epoch: encode: %w", err)
	}
	return hashOf(plain), nil
}

// Root makes the first epoch of a cluster from a document: version 1, no
// parent, its own hash as fingerprint of the lineage. It sorts d canonically.
func Root(d *Document, dir *ledger.Directory) (*ledger.Epoch, error) {
	r, err := assemble(&content{Version: 1}, d, dir)
	if err != nil {
		return nil, err
	}
	return r.Epoch, nil
}

// Edit is a change to a record.
type Edit struct {
	// Document is the new content. It is sorted canonically and kept.
	Document *Document
	// Forced maps nodes that the operator declared dead to the highest
	// incarnation the statement covers (rule E6).
	Forced map[string]uint64
	// Canary tries the change first.
	Canary string
	// Above is a version that the change must be above, to take the place of
	// another one that is under way; 0 for none.
	Above uint64
}

// Child makes an epoch that follows r. The same edit of the same record makes
// the same epoch anywhere. Source: conservation.md E4.
func (r *Record) Child(e Edit, dir *ledger.Directory) (*Record, error) {
	c := &content{Version: max(r.Epoch.ID.Version, e.Above) + 1, Parent: name(r.Epoch.ID), Root: r.Epoch.Root, Canary: e.Canary}
	for _, n := range r.Doc.Nodes {
		c.ParentRoster = append(c.ParentRoster, n.Name)
	}
	c.History = append([]uint64{r.Content}, r.History[:min(len(r.History), HistoryMax-1)]...)
	c.force(e.Forced)
	return assemble(c, e.Document, dir)
}

// Sibling makes the child of r's parent that Child would make with r's version
// as Above, for who does not know the parent any more. A root has none.
func (r *Record) Sibling(e Edit, dir *ledger.Directory) (*Record, error) {
	if r.IsRoot() {
		return nil, errors.New("epoch: the first epoch cannot be replaced")
	}
	c := &content{
		Version: max(r.Epoch.ID.Version, e.Above) + 1, Parent: r.said.Parent, Root: r.Epoch.Root, Canary: e.Canary,
		ParentRoster: r.said.ParentRoster, History: r.History,
	}
	c.force(e.Forced)
	return assemble(c, e.Document, dir)
}

// IsRoot reports whether the record is the first of its lineage.
func (r *Record) IsRoot() bool { return r.Epoch.Parent == (ledger.EpochID{}) }

// Forced returns who was declared dead with the epoch.
func (r *Record) Forced() map[string]uint64 {
	m := make(map[string]uint64, len(r.said.Forced))
	for _, f := range r.said.Forced {
		m[f.Node] = f.Incarnation
	}
	return m
}

// ParentRoster returns the names of the parent's members; of r's own for a root.
func (r *Record) ParentRoster() []string {
	if !r.IsRoot() {
		return slices.Clone(r.said.ParentRoster)
	}
	names := make([]string, len(r.Doc.Nodes))
	for i := range names {
		names[i] = r.Doc.Nodes[i].Name
	}
	return names
}

func (c *content) force(dead map[string]uint64) {
	for node, inc := range dead {
		c.Forced = append(c.Forced, forced{node, inc})
	}
	slices.SortFunc(c.Forced, func(a, b forced) int { return cmp.Compare(a.Node, b.Node) })
}

// assemble completes a record of this process with its document, hash and body.
func assemble(c *content, d *Document, dir *ledger.Directory) (*Record, error) {
	d.Canonical()
	c.Format, c.Document = format, *d
	body, hash, err := c.pack()
	if err != nil {
		return nil, err
	}
	return build(c, ledger.EpochID{Version: c.Version, Hash: hash}, body, dir)
}

// Decode rebuilds an epoch from its body, which may come from anybody. It
// refuses a body that does not hash to id, so that one id cannot have two
// meanings, and a body of a later version as [ErrNewer].
func Decode(id ledger.EpochID, body []byte, dir *ledger.Directory) (*Record, error) {
	c, err := unpack(id, body)
	if err != nil {
		return nil, err
	}
	if err := c.bound(dir); err != nil {
		return nil, err
	}
	return build(c, id, body, dir)
}

// Load rebuilds the epoch that a node had adopted, from its durable state.
func Load(s *ledger.Stored, dir *ledger.Directory) (*Record, error) {
	r, err := Decode(s.Epoch, s.Body, dir)
	if err != nil {
		return nil, fmt.Errorf("stored epoch %v: %w", s.Epoch, err)
	}
	return r, nil
}

// bound refuses a body that would make the directory grow without end.
func (c *content) bound(dir *ledger.Directory) error {
	if len(c.Document.Nodes) > NodesMax || len(c.ParentRoster) > NodesMax || len(c.Forced) > NodesMax {
		return fmt.Errorf("epoch: more than %d nodes", NodesMax)
	}
	fresh := 0
	for name := range c.names() {
		if _, known := dir.Lookup(name); !known {
			fresh++
		}
	}
	if fresh > 0 && dir.Len()+fresh > NamesMax {
		return fmt.Errorf("epoch: more than %d names of nodes since the start of this process", NamesMax)
	}
	return nil
}

// names are all that build gives a number.
func (c *content) names() map[string]bool {
	set := map[string]bool{}
	for _, n := range c.Document.Nodes {
		set[n.Name] = true
	}
	for _, n := range c.ParentRoster {
		set[n] = true
	}
	for _, f := range c.Forced {
		set[f.Node] = true
	}
	return set
}

// validate reports every fault of a record apart from its document's.
func (c *content) validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("epoch: "+format, args...))
		}
	}
	root := c.Parent == name{}
	fault(c.Version == 0 || c.Version > ledger.MaxSeq, "version %d", c.Version)
	fault(root != (c.Root == 0), "a record has a root's fingerprint exactly if it has a parent")
	fault(root && (c.Version != 1 || len(c.ParentRoster)+len(c.Forced)+len(c.History) > 0 || c.Canary != ""), "a first epoch that claims ancestors")
	fault(!root && (c.Version <= c.Parent.Version || len(c.ParentRoster) == 0 || len(c.History) == 0), "an epoch that does not follow its parent")
	fault(len(c.History) > HistoryMax, "a history of %d contents", len(c.History))
	for i, n := range c.ParentRoster {
		fault(n == "" || len(n) > 64 || i > 0 && c.ParentRoster[i-1] >= n, "parent's node %d (%q)", i, n)
	}
	for i, f := range c.Forced {
		fault(f.Node == "" || len(f.Node) > 64 || i > 0 && c.Forced[i-1].Node >= f.Node, "node declared dead %d (%q)", i, f.Node)
		fault(f.Incarnation == 0 || f.Incarnation > ledger.MaxIncarnation, "incarnation %d declared dead of %q", f.Incarnation, f.Node)
		fault(c.Document.node(f.Node) >= 0, "node %q is declared dead and listed", f.Node)
	}
	fault(c.Canary != "" && (c.Document.node(c.Canary) < 0 || !slices.Contains(c.ParentRoster, c.Canary)),
		"the canary %q is not a member before and after", c.Canary)
	return errors.Join(errs...)
}

// node returns the position of a named node, or -1.
func (d *Document) node(name string) int {
	return slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == name })
}

// build derives the ledger's epoch from a record.
func build(c *content, id ledger.EpochID, body []byte, dir *ledger.Directory) (*Record, error) {
	d := &c.Document
	if err := errors.Join(d.Validate(), c.validate()); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("epoch: encode: %w", err)
	}
	e := &ledger.Epoch{ID: id, Parent: ledger.EpochID(c.Parent), Root: c.Root, Body: body}
	if e.Root == 0 {
		e.Root = id.Hash
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
	c.number(e, dir)
	return &Record{Epoch: e, Doc: d, Content: hashOf(plain), History: c.History, Canary: c.Canary, said: c}, nil
}

// number gives the record's names their numbers, after nothing else can fail.
func (c *content) number(e *ledger.Epoch, dir *ledger.Directory) {
	for _, n := range c.Document.Nodes {
		e.Roster = append(e.Roster, ledger.Member{ID: dir.Intern(n.Name), Weight: n.Weight})
	}
	for _, n := range c.ParentRoster {
		e.ParentRoster = append(e.ParentRoster, dir.Intern(n))
	}
	if c.Parent == (name{}) {
		for _, m := range e.Roster {
			e.ParentRoster = append(e.ParentRoster, m.ID)
		}
	}
	for _, f := range c.Forced {
		if e.Forced == nil {
			e.Forced = map[ledger.NodeID]uint64{}
		}
		e.Forced[dir.Intern(f.Node)] = f.Incarnation
	}
}
