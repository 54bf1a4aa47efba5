package ledger

import (
	"errors"
	"fmt"
	"time"
)

// ErrIncarnation says that Restart was given an incarnation that is not above
// every one known of the own name.
var ErrIncarnation = errors.New("incarnation is not above the highest known")

// bootstrap starts the first life of a name in a new cluster, on the operator's
// word: no memory is missing and nothing is lent.
func (l *Ledger) bootstrap() {
	l.proved, l.acked = true, true
	l.activate()
}

// resume starts a life with the former one's memory. Ceilings count once the
// quarantine is over and the node is proved (L8).
//
// An epoch that the former life did not activate is as if it were adopted now: a
// life that is not proved carries no ceiling into an epoch (E1, trap 25). The
// witnesses cannot vouch for more. They may have acknowledged a lesser sibling
// that forces the former life out, and somebody may still activate that by their
// older rows, though they work under this epoch by now. Had the former life
// activated it, nobody could: everybody concerned was past the sibling. Of a
// parent of one or two nobody can be forced out.
func (l *Ledger) resume(s *Stored, now int64) {
	d := l.cfg.Directory
	clear(l.wait)
	for _, name := range s.Wait {
		l.wait.add(d.Intern(name))
	}
	for _, name := range s.LentTo {
		id := d.Intern(name)
		l.lent.add(id)
		l.formerLent = append(l.formerLent, id)
	}
	l.grow()
	for _, f := range s.Floors {
		id := d.Intern(f.Node)
		l.grow()
		l.peers[id].floor = f.Incarnation
	}
	carried := s.Active == s.Epoch || l.parent.has(l.cfg.Self) && l.parent.count() <= 2
	for _, c := range s.Ceilings {
		if b := l.bookNamed(c.Budget); b != nil && carried {
			b.ceiling = min(c.Ceiling, l.base(b))
		}
	}
	l.act, l.strayed = s.Active, s.Strayed
	l.recovering = s.Recovering
	l.quarTerm = s.Term
	l.beginQuarantine(now)
	if l.aloneConcerned() {
		l.confirm(Heard{Inc: s.Incarnation}) // there is nobody to ask
	}
}

// Restart begins a new life in the same process, without trust in anything that
// this one remembers but the epoch: for when the own name was seen above it. inc
// must be above HighestOwn. The new life is in quarantine, recovering, with no
// ceiling; its base comes back by activation (E3). What is on disk is replaced
// accordingly.
func (l *Ledger) Restart(now int64, inc uint64) error {
	if inc <= l.ownHigh || inc > MaxIncarnation {
		return fmt.Errorf("restart as %d over %d: %w", inc, l.ownHigh, ErrIncarnation)
	}
	l.inc, l.seq, l.ownHigh = inc, 0, inc
	l.cfg.Stored = nil
	l.superseded, l.acked, l.proved, l.recovering = false, false, false, true
	l.act, l.strayed = EpochID{}, true
	l.log, l.last = publishLog{}, nil
	for i := range l.peers { // T and R are lost, what lives are over is not
		l.peers[i] = peer{floor: l.peers[i].floor}
	}
	l.books = l.books[:l.listed]
	for _, b := range l.books {
		fresh := newBook(b.name, len(b.demand), len(l.peers))
		fresh.index, fresh.grain = b.index, b.grain
		copy(fresh.demand, b.demand)
		*b = *fresh
	}
	for _, y := range l.layouts {
		l.bind(y)
	}
	l.adoptedAt = now
	l.formerLent, l.shortcut = nil, false
	l.beginQuarantine(now)
	l.changed()
	return nil
}

// beginQuarantine starts the wait for loans of a former life (L8, trap 14).
func (l *Ledger) beginQuarantine(now int64) {
	l.quarantine = true
	l.startedAt = now
	l.quarTerm = max(l.quarTerm, l.cfg.Term)
}

// lengthenQuarantine allows for a former life that lent for a longer term: no
// borrower uses a loan for longer than its own term, which its rows carry.
func (l *Ledger) lengthenQuarantine(term time.Duration) {
	if l.quarantine {
		l.quarTerm = max(l.quarTerm, term)
	}
}

func (l *Ledger) quarantineEnd() int64 { return l.startedAt + l.leaseWait(l.quarTerm) }

// tryEndQuarantine ends it when the former life's loans have run out, or when
// every name that may hold one has dropped it by hearing this life (trap 27: the
// names on disk, not a roster).
func (l *Ledger) tryEndQuarantine(now int64) {
	if !l.quarantine || l.held || now < l.quarantineEnd() && !l.formerLoansDropped() {
		return
	}
	l.quarantine = false
	l.formerLent, l.shortcut = nil, false
	l.changed()
}

func (l *Ledger) formerLoansDropped() bool {
	if !l.shortcut {
		return false
	}
	for _, id := range l.formerLent {
		r := l.peers[id].row
		if r == nil || r.Inc < l.peers[id].floor {
			return false
		}
		if h := r.heardOf(l.cfg.Self); h.Inc != l.inc || h.Seq == 0 {
			return false
		}
	}
	return true
}

// tryProve proves this node's memory current once enough witnesses under the
// current epoch know this life: whoever activates a later epoch then needs a
// witness's acknowledgement, and with it learns of this life. The witnesses'
// knowledge of who is over is taken along. Source: conservation.md, "Proof after
// a restart"; traps 19, 21, 22, 25.
func (l *Ledger) tryProve() {
	if l.proved || l.held {
		return
	}
	witnesses := l.witnessesHere()
	if !l.enoughWitnesses(witnesses) {
		return
	}
	for k := range witnesses {
		if !witnesses[k] {
			continue
		}
		for x, h := range l.peers[k].full.Heard {
			if NodeID(x) != l.cfg.Self {
				l.raiseFloor(NodeID(x), h.Inc)
			}
		}
	}
	l.proved, l.recovering, l.memoryOld = true, false, false
	l.changed()
}

// witnessesHere are the members of the current epoch and of its parent that vouch.
func (l *Ledger) witnessesHere() (w nodeSet) {
	for k := range l.peers {
		id := NodeID(k)
		if id != l.cfg.Self && (l.position[id] >= 0 || l.parent.has(id)) && l.witnesses(id) {
			w.add(id)
		}
	}
	return w
}

// witnesses reports whether k's newest row vouches: under the current epoch, by
// a node with memory, which merged or was told of this life. A copy for one peer
// lacks what the witness knows of the other lives: the newest row that carries it
// must vouch as well.
func (l *Ledger) witnesses(k NodeID) bool {
	return l.vouches(l.peers[k].row) && l.vouches(l.peers[k].full)
}

func (l *Ledger) vouches(r *Row) bool {
	return r != nil && r.Epoch == l.cur.ID && !r.Recovering && r.heardOf(l.cfg.Self).Inc == l.inc
}

// enoughWitnesses asks for a quorum of each roster whose word binds (trap 22): the
// members of the epoch must acknowledge any child of it, those of its parent any
// sibling. Once the epoch is known to be active somewhere, everybody concerned was
// past its lesser siblings and carries its roster into greater ones, so that its
// members are enough. A witness shows that by a wait set without the parent's
// members that the epoch lacks.
func (l *Ledger) enoughWitnesses(witnesses nodeSet) bool {
	var roster nodeSet
	for _, m := range l.cur.Roster {
		roster.add(m.ID)
	}
	if !l.quorumOf(roster, witnesses) {
		return false
	}
	for k := range witnesses {
		if witnesses[k] && l.showsActive(l.peers[k].full) {
			return true
		}
	}
	return l.act == l.cur.ID || l.quorumOf(l.parent, witnesses)
}

// showsActive reports whether a row under the current epoch is of a node that has
// activated it.
func (l *Ledger) showsActive(r *Row) bool {
	var wait nodeSet
	for _, id := range r.Extra {
		wait.add(id)
	}
	for k := range l.parent {
		if l.parent[k] && len(r.Extra) > 0 && !wait.has(NodeID(k)) {
			return true
		}
	}
	return false
}

// quorumOf reports whether enough members of a roster are among the witnesses;
// all others are enough.
//
// A node that remembers needs so many that they and its former life together are
// half of the roster. With fewer, a later forced removal could name the former
// life and every witness (all statements true), and nobody left would know of
// this life; half of a roster cannot be forced out (E6). So two of three nodes,
// and three of five, bring each other back.
//
// A node without memory needs a strict majority. Where it had been a witness
// itself, at least one member of that majority is the node it vouched for or
// another of its witnesses, and tells of the life that was forgotten here.
//
// A node that remembers and is the only one ever asked needs no witness: nobody
// could have gone on without it. Nor could anybody of two under an epoch that is
// not active yet, as nobody of two can be forced out. Without memory it is never
// proved alone: it might have had company (A6); it starts by bootstrap, or stays
// without a base.
func (l *Ledger) quorumOf(roster, witnesses nodeSet) bool {
	total := roster.count()
	others := total
	if roster.has(l.cfg.Self) {
		others--
	}
	switch {
	case others == 0:
		return !l.recovering
	case !l.recovering && others < total && total <= 2 && l.act != l.cur.ID:
		return true
	}
	have := 0
	for k := range witnesses {
		if witnesses[k] && roster.has(NodeID(k)) {
			have++
		}
	}
	return have >= min(l.quorum(total), others)
}

func (l *Ledger) quorum(roster int) int {
	if l.recovering {
		return roster/2 + 1
	}
	return max(1, (roster-1)/2)
}

// aloneConcerned reports that nobody else takes part in the current epoch.
func (l *Ledger) aloneConcerned() bool {
	for k, in := range l.closure() {
		if in && NodeID(k) != l.cfg.Self {
			return false
		}
	}
	return true
}

// Control does what time and merged rows allow: proof, end of quarantine,
// acknowledgement, activation. Call it after merging and when [Ledger.NextEvent]
// comes. Only here may the own part of Steps rise, apart from loans that ended.
func (l *Ledger) Control(now int64) {
	if l.superseded {
		return
	}
	l.tryProve()
	l.tryEndQuarantine(now)
	l.tryAck(now)
	l.tryActivate(now)
}
