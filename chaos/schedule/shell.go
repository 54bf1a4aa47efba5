package schedule

import (
	"errors"

	"subak/allocator/ledger"
)

// publish is one cycle of a process and the row it sends.
func (w *world) publish(a Action, p *process) {
	w.cycle(p)
	if a.Arg&LowerFirst != 0 {
		w.install(p)
	}
	now := p.clock.At(w.t)
	if w.hasDisk[p.name] && p.l.Remember(now) {
		w.save(p)
	}
	r := p.l.Publish(now, 0)
	if r == nil {
		w.install(p)
		return
	}
	if a.Arg&DieUnwritten != 0 && w.mayForget(p.name, false) {
		w.seen[sawUnwritten]++
		w.kill(p)
		return
	}
	saved := w.persist(p)
	if w.broken != lowersLate || a.ID%2 == 0 {
		w.install(p)
	}
	if !saved {
		w.seen[sawUnsaved]++
		return
	}
	if a.Arg&DieUnsent != 0 && w.mayForget(p.name, false) {
		w.seen[sawUnsent]++
		w.kill(p)
		return
	}
	w.post(a.ID, r, p)
}

// post puts a row on its way.
func (w *world) post(id int32, r *ledger.Row, p *process) {
	w.seen[sawPublished]++
	w.tellRow(r)
	e := p.l.Epoch()
	for i := range r.Sections {
		if len(r.Sections[i].Loans) > 0 {
			w.seen[sawLent]++
			break
		}
	}
	for _, x := range r.Extra {
		if e.Position(x) < 0 && !isParent(e, x) {
			w.seen[sawExtra]++
			break
		}
	}
	if w.dropsReleases() {
		r = withoutCaps(r)
	}
	w.pool = append(w.pool, letter{id, w.travel(r, e), e})
}

func isParent(e *ledger.Epoch, x ledger.NodeID) bool {
	for _, id := range e.ParentRoster {
		if id == x {
			return true
		}
	}
	return false
}

// withoutCaps is r as an old version would send it, which knows no releases: the
// product has no switch for it. Rule L7 then only costs time.
func withoutCaps(r *ledger.Row) *ledger.Row {
	c := *r
	c.Sections = append([]ledger.Section(nil), r.Sections...)
	for i := range c.Sections {
		c.Sections[i].Caps = nil
	}
	return &c
}

// deliver lets a row arrive at p.
func (w *world) deliver(m *letter, a Action, p *process) {
	if a.Arg != NoBody {
		e := m.epoch
		if a.Arg != OwnBody {
			e = w.epochBy(int32(a.Arg))
		}
		if a.Then&learnOnly == 0 {
			w.adopt(p, e)
		} else if err := p.l.Learn(e); err != nil {
			w.fail("learn", "n%d: %v", p.name, err)
		}
	}
	w.merge(m, a, p)
	if a.Then&thenControl != 0 {
		w.control(p)
	}
	if a.Then&thenInstall != 0 {
		w.install(p)
	}
}

func (w *world) merge(m *letter, a Action, p *process) {
	r := m.row
	if a.Then&copyForOne != 0 && r.Node != p.name {
		r = copyFor(r, p.name)
	}
	got := p.l.Merge(p.clock.At(w.t), r)
	w.hash.Add(uint64(got))
	if w.telling {
		w.tell("n%d: %v; enforced in all %d", p.name, got, w.sum[:w.budgets])
	}
	switch got {
	case ledger.Applied:
		w.seen[sawApplied]++
		w.applied(r, p)
	case ledger.Stale:
		w.seen[sawStale]++
	case ledger.BelowFloor:
		w.seen[sawBelowFloor]++
	case ledger.UnknownEpoch:
		w.seen[sawUnknownEpoch]++
	case ledger.Unsaved:
		w.seen[sawUnknownLife]++
	case ledger.Malformed:
		w.seen[sawMalformed]++
		w.fail("well-formed", "n%d refuses row %d/%d of n%d, published by action %d", p.name, r.Inc, r.Seq, r.Node, m.id)
	case ledger.OwnNameHigher:
		w.seen[sawOwnHigher]++
		w.tell("n%d (%d) sees its name higher", p.name, p.l.Incarnation())
		if err := p.l.Restart(p.clock.At(w.t), w.incarnation(p.name, p.l.HighestOwn(), false)); err != nil {
			w.fail("restart", "n%d: %v", p.name, err)
		}
		w.install(p)
	}
}

// copyFor is a copy of r for one peer.
func copyFor(r *ledger.Row, id ledger.NodeID) *ledger.Row {
	c := *r
	c.Heard, c.Only = nil, &ledger.Entry{Of: id}
	if int(id) < len(r.Heard) {
		c.Only.Heard = r.Heard[id]
	}
	return &c
}

// applied looks at what the newest row of a peer did.
func (w *world) applied(r *ledger.Row, p *process) {
	other := w.procs[r.Node]
	w.cover(other, p)
	w.cover(p, other)
	s := p.l.Standing()
	if !s.Proved && int(p.name) < len(r.Heard) && r.Heard[p.name].Inc == p.l.Incarnation() {
		if r.Recovering {
			w.seen[sawRefusedRecovering]++
		} else if r.Epoch != p.l.Epoch().ID {
			w.seen[sawRefusedEpoch]++
		}
	}
	for i := range r.Sections {
		for _, c := range r.Sections[i].Caps {
			if c.Lender == p.name {
				w.seen[sawReleaseInFlight]++
			}
		}
	}
}

// adopt tells p of an epoch.
func (w *world) adopt(p *process, e *ledger.Epoch) {
	before := p.l.Epoch()
	if e == before || p.refuses(e) {
		return
	}
	now := p.clock.At(w.t)
	lent := false
	for b := range before.Budgets {
		if _, until := p.l.Fallback(b); until > now {
			lent = true
			if placeOf(e, before.Budgets[b].Name) < 0 && before.ID.Less(e.ID) {
				w.seen[sawBudgetDropped]++
			}
		}
	}
	err := p.l.Adopt(now, e)
	if err == nil {
		w.persist(p)
	}
	switch {
	case err == nil && lent:
		w.seen[sawEpochWithLoans]++
	case errors.Is(err, ledger.ErrNotGreater):
		p.noteRefusal(e)
		if e.ID.Version == before.ID.Version {
			w.seen[sawSibling]++
		}
	case err != nil && !errors.Is(err, ledger.ErrHeld):
		w.fail("adopt", "n%d: %v", p.name, err)
	}
}

func placeOf(e *ledger.Epoch, name string) int {
	for b := range e.Budgets {
		if e.Budgets[b].Name == name {
			return b
		}
	}
	return -1
}

// control lets p do what time and news allow.
func (w *world) control(p *process) {
	s, act, now := p.l.Standing(), p.l.Active(), p.clock.At(w.t)
	p.l.Control(now)
	n := p.l.Standing()
	if s.Quarantine && !n.Quarantine {
		if now < s.QuarantineEnd {
			w.seen[sawQuarantineCut]++
		} else {
			w.seen[sawQuarantineFull]++
		}
		w.coverAll(p)
	}
	if !s.Proved && n.Proved {
		w.tell("n%d (%d) is proved at %v", p.name, p.l.Incarnation(), p.l.Epoch().ID)
		if s.Recovering {
			w.seen[sawProvedAmnesia]++
		} else {
			w.seen[sawProvedMemory]++
		}
	}
	if !n.Acked && !n.Quarantine && !n.Superseded {
		w.seen[sawAckWithheld]++
	}
	if p.l.Active() != act {
		w.tell("n%d (%d) activates %v", p.name, p.l.Incarnation(), p.l.Active())
		w.seen[sawActivated]++
		if len(p.l.Epoch().Forced) > 0 {
			w.seen[sawForced]++
		}
		if act == (ledger.EpochID{}) {
			w.seen[sawJoined]++
		}
	}
}

// install lets the data plane follow the ledger. An epoch counts as activated
// once its activator's data plane follows it: before that nobody uses its bases.
func (w *world) install(p *process) {
	w.follow(p)
	if w.greatest.ID.Less(p.l.Active()) {
		w.persist(p)
		w.greatest = w.epochOf(p.l.Active())
		w.limit()
	}
	w.check()
}

// persist writes what must be on disk before the next row leaves, if it changed.
// It reports whether the row may leave.
func (w *world) persist(p *process) bool {
	return !w.hasDisk[p.name] || p.written == p.l.StoredVersion() || w.save(p)
}

// save writes the state. A disk that refuses puts the ledger on hold.
func (w *world) save(p *process) bool {
	ok := w.full>>p.name&1 == 0
	if ok {
		s := p.l.Stored()
		if w.broken != forgetsState || w.disks[p.name] == nil {
			w.disks[p.name] = &s
		}
		p.written = p.l.StoredVersion()
		p.l.Saved()
	}
	p.l.Hold(!ok)
	return ok
}

// empty makes room on a disk; the process finds out by trying.
func (w *world) empty(n uint8) {
	w.full &^= 1 << n
	if p := w.procs[n]; p != nil && w.hasDisk[n] && !p.paused {
		w.save(p)
	}
}

// wake lets p act at the very instant its ledger waits for.
func (w *world) wake(p *process, limit int64) {
	now := p.clock.At(w.t)
	next := p.l.NextEvent(now)
	if next-now > limit {
		return
	}
	w.pass(p.clock.When(w.t, next) - w.t)
	w.seen[sawWoke]++
	w.control(p)
	w.install(p)
	w.coverAll(p)
}

func (w *world) freeze(p *process) {
	now := p.clock.At(w.t)
	for b := range p.l.Budgets() {
		if _, until := p.l.Fallback(b); until > now {
			w.seen[sawFrozen]++
			break
		}
	}
	p.l.Freeze(true)
}
