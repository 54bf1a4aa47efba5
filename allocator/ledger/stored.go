package ledger

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"subak/allocator"
)

// Stored is what a node remembers over a restart, by name. It must be on disk
// before the next row leaves. Source: conservation.md, "Proof after a restart".
type Stored struct {
	// Incarnation is the highest that this name ever used.
	Incarnation uint64 `json:"incarnation"`
	// Term of the loans that may still be out.
	Term time.Duration `json:"term_ns"`
	// Epoch is the adopted one and Body its canonical encoding.
	Epoch EpochID `json:"epoch"`
	Body  []byte  `json:"body"`
	// Active is the last activated epoch, zero if none.
	Active EpochID `json:"active"`
	// Strayed: epochs were adopted since that were not children of Active or did
	// not list this node, so that it may not declare others dead.
	Strayed bool `json:"strayed,omitempty"`
	// Recovering: the memory was lost once and is not proved since. It lasts
	// over restarts, else an unproved node would count as one that remembers.
	Recovering bool `json:"recovering"`
	// Ceilings by budget.
	Ceilings []StoredCeiling `json:"ceilings"`
	// Wait is the wait set W.
	Wait []string `json:"wait"`
	// Floors are the highest incarnations known of other nodes.
	Floors []StoredFloor `json:"floors"`
	// LentTo are the names that may hold loans. LentUnknown says that there may
	// be others: a life without memory has not sat out its quarantine yet.
	LentTo      []string `json:"lent_to"`
	LentUnknown bool     `json:"lent_unknown"`
}

// StoredCeiling is one budget's ceiling.
type StoredCeiling struct {
	Budget  string         `json:"budget"`
	Ceiling allocator.Rate `json:"ceiling"`
}

// StoredFloor is the highest known incarnation of a node.
type StoredFloor struct {
	Node        string `json:"node"`
	Incarnation uint64 `json:"incarnation"`
}

func (s *Stored) validate() error {
	var errs []error
	if s.Term < 0 || s.Term > MaxTerm {
		errs = append(errs, fmt.Errorf("stored term %v is outside 0 to %v", s.Term, MaxTerm))
	}
	for _, c := range s.Ceilings {
		if c.Ceiling < 0 || c.Ceiling > MaxRate {
			errs = append(errs, fmt.Errorf("stored ceiling %d of budget %s is negative or too large", c.Ceiling, c.Budget))
		}
	}
	for _, f := range s.Floors {
		if f.Incarnation > MaxIncarnation {
			errs = append(errs, fmt.Errorf("stored incarnation %d of node %s is too large", f.Incarnation, f.Node))
		}
	}
	return errors.Join(errs...)
}

// StoredVersion rises whenever Stored changed in a way that must be on disk
// before the next row leaves. It is 1 at the start of a life, before anything is
// on disk: the incarnation itself must be remembered.
func (l *Ledger) StoredVersion() uint64 { return l.version }

// Stored returns what must be remembered now. The lists are sorted by name.
func (l *Ledger) Stored() Stored {
	s := Stored{
		Incarnation: l.ownHigh, Term: l.cfg.Term, Epoch: l.cur.ID, Body: l.cur.Body,
		Active: l.act, Strayed: l.strayed, Recovering: l.recovering,
		Wait: l.names(l.wait), LentTo: l.names(l.lent),
	}
	if l.quarantine {
		s.Term = l.quarTerm // the former life's loans may still be out
		s.LentUnknown = !l.shortcut
	}
	for _, b := range l.books {
		s.Ceilings = append(s.Ceilings, StoredCeiling{b.name, b.ceiling})
	}
	sort.Slice(s.Ceilings, func(i, j int) bool { return s.Ceilings[i].Budget < s.Ceilings[j].Budget })
	for k := range l.peers {
		if f := l.peers[k].floor; f > 0 {
			s.Floors = append(s.Floors, StoredFloor{l.cfg.Directory.Name(NodeID(k)), f})
		}
	}
	sort.Slice(s.Floors, func(i, j int) bool { return s.Floors[i].Node < s.Floors[j].Node })
	return s
}

func (l *Ledger) names(set nodeSet) []string {
	var names []string
	for k, in := range set {
		if in {
			names = append(names, l.cfg.Directory.Name(NodeID(k)))
		}
	}
	sort.Strings(names)
	return names
}

// changed marks Stored as changed. Names that hold nothing any more are dropped
// on the way: a longer list on disk is safe, so that alone is not worth a write.
func (l *Ledger) changed() {
	l.version++
	if l.quarantine {
		return // the former life's names still count
	}
	for k, in := range l.lent {
		if in && !l.lentAny(NodeID(k)) {
			l.lent[k] = false
		}
	}
}

func (l *Ledger) lentAny(k NodeID) bool {
	for _, b := range l.books {
		if len(b.out[k]) > 0 {
			return true
		}
	}
	return false
}
