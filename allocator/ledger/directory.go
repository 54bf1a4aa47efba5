package ledger

import "fmt"

// NodeID is the position of a name in one process's [Directory]. It never
// travels: the codec translates it to and from the order of a config epoch.
type NodeID int32

// Directory gives each node name a small number that stays the same for the
// life of the process. It only grows, and only by names of config epochs, which
// bound it. One goroutine owns it together with the ledgers that use it.
type Directory struct {
	names []string
	ids   map[string]NodeID
}

// NewDirectory returns an empty directory.
func NewDirectory() *Directory { return &Directory{ids: map[string]NodeID{}} }

// Intern returns the number of name, giving it the next free one if it is new.
func (d *Directory) Intern(name string) NodeID {
	if id, ok := d.ids[name]; ok {
		return id
	}
	id := NodeID(len(d.names))
	d.names = append(d.names, name)
	d.ids[name] = id
	return id
}

// Lookup returns the number of name, if it has one.
func (d *Directory) Lookup(name string) (NodeID, bool) {
	id, ok := d.ids[name]
	return id, ok
}

// Name returns the name of id, which must have come from this directory.
func (d *Directory) Name(id NodeID) string {
	if int(id) < 0 || int(id) >= len(d.names) {
		panic(fmt.Sprintf("ledger: node id %d outside a directory of %d names", id, len(d.names)))
	}
	return d.names[id]
}

// Len returns the number of names; every NodeID is below it.
func (d *Directory) Len() int { return len(d.names) }
