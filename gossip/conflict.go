package gossip

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Conflict is a name claimed by two nodes.
type Conflict struct {
	Name  string
	Addr  string // who holds the name, in this node's view
	Other string // who claims it too
	Count int    // how often that was noticed
	Last  time.Time
}

const maxConflicts = 64

// conflictTable keeps the latest conflict per name. The zero value is ready.
type conflictTable struct {
	mu     sync.Mutex
	byName map[string]*Conflict
}

func (t *conflictTable) note(c Conflict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName == nil {
		t.byName = make(map[string]*Conflict)
	}
	old := t.byName[c.Name]
	if old == nil {
		if len(t.byName) >= maxConflicts {
			return // counted and logged all the same
		}
		old = &Conflict{}
		t.byName[c.Name] = old
	}
	c.Count = old.Count + 1
	*old = c
}

func (t *conflictTable) list() []Conflict {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Conflict, 0, len(t.byName))
	for _, c := range t.byName {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Conflict) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
