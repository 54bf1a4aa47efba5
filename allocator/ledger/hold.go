package ledger

import "errors"

// ErrHeld says that an epoch was not adopted because it could not be remembered.
// It can be read all the same.
var ErrHeld = errors.New("the memory cannot be saved")

// A disk that is full must not silence a node: a row may leave as long as it
// rests on nothing that is not on disk. So a caller that cannot save puts the
// ledger on hold, and it does nothing more that Stored would have to tell. All
// that is left out could have happened later, or never, by loss alone; so a hold
// costs liveness (a new life of a peer is not heard, a new name gets no loan, an
// epoch waits) and never safety.
//
// What made the first save fail may be in a row already: lending to a new name
// is therefore remembered ahead, by [Ledger.Remember]. The other causes (a new
// life of a peer, an epoch, the own proof) keep rows back until a save works.

// Hold says whether the memory cannot be saved at present. While it is on, Merge
// refuses rows of new lives with [Unsaved], Adopt returns [ErrHeld], loans go
// only to names that are on disk already, and Control neither proves this node
// nor ends its quarantine nor activates an epoch.
func (l *Ledger) Hold(on bool) { l.held = on }

// NewLife reports whether r is of a life of its publisher that Stored does not
// tell of: merging it would change Stored.
func (l *Ledger) NewLife(r *Row) bool {
	return r.Node != l.cfg.Self && int(r.Node) < len(l.peers) && r.Inc > l.peers[r.Node].floor
}

// Remember notes in Stored the names that the next row may lend to at now, before
// it lists them. It reports whether any of them is not on disk: save, say so with
// [Ledger.Saved] or [Ledger.Hold], then publish. A caller that does without sees
// StoredVersion move in Publish.
func (l *Ledger) Remember(now int64) (save bool) {
	if !l.usable() || l.frozen || l.selfPos < 0 {
		return false
	}
	for _, b := range l.books[:l.listed] {
		for _, w := range b.want {
			if w.Amount > 0 && l.mayBorrow(now, w.To) {
				l.lent.add(w.To)
				save = save || !l.onDisk.has(w.To)
			}
		}
	}
	return save
}

// Saved says that Stored, as it is now, is on disk.
func (l *Ledger) Saved() { l.onDisk = append(l.onDisk[:0:0], l.lent...) }

// unknownLent reports whether lending to k now would need a save that fails.
func (l *Ledger) unknownLent(k NodeID) bool { return l.held && !l.onDisk.has(k) }
