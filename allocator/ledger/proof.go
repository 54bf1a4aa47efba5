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
// activated it, nobody could: everybody concerned was past the sibling.
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
	for _, c := range s.Ceilings {
		if b := l.bookNamed(c.Budget); b != nil && s.Active == s.Epoch {
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
	candidates := l.witnessCandidates()
	have := 0
	for k := range candidates {
		if candidates[k] && l.witnesses(NodeID(k)) {
			have++
		}
	}
	if have < l.witnessesNeeded(candidates) {
		return
	}
	for k := range candidates {
		if !candidates[k] || !l.witnesses(NodeID(k)) {
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

// witnessCandidates are the nodes that have to acknowledge whatever might
// replace the current epoch, so that their word binds: the members of both the
// epoch and its parent (trap 22). Once this node has activated the epoch,
// everybody concerned carries its roster along and membership in it is enough.
// If the epoch has one or two members and none but this node is of the parent,
// no child of the epoch can do without this node (nobody of two can be forced
// out), and the parent's members decide about siblings. If this node is all of
// the parent, no sibling can do without it either, and what it remembers of
// siblings is on its disk; membership in the epoch is enough.
func (l *Ledger) witnessCandidates() nodeSet {
	var both, roster nodeSet
	for _, m := range l.cur.Roster {
		if m.ID == l.cfg.Self {
			continue
		}
		roster.add(m.ID)
		if l.parent.has(m.ID) {
			both.add(m.ID)
		}
	}
	switch {
	case l.act == l.cur.ID:
		return roster
	case len(both) == 0 && len(l.cur.Roster) <= 2 && l.selfPos >= 0:
		p := append(nodeSet(nil), l.parent...)
		if p.has(l.cfg.Self) {
			p[l.cfg.Self] = false
		}
		return p
	case len(both) == 0 && !l.recovering && l.parent.has(l.cfg.Self) && l.parent.count() == 1:
		return roster
	}
	return both
}

// witnessesNeeded is the quorum, never more than there are candidates, over the
// roster and, before activation, over its parent's.
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
// could have gone on without it. Without memory it is never proved: it might
// have had company (A6); it starts by bootstrap, or stays without a base.
func (l *Ledger) witnessesNeeded(candidates nodeSet) int {
	n := candidates.count()
	if n == 0 {
		small := len(l.cur.Roster) <= 2 && l.selfPos >= 0 || l.aloneConcerned()
		if !l.recovering && small {
			return 0
		}
		return 1
	}
	need := l.quorum(len(l.cur.Roster))
	if l.act != l.cur.ID {
		need = max(need, l.quorum(l.parent.count()))
	}
	return min(need, n)
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
