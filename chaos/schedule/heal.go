package schedule

import (
	"fmt"
	"strings"

	"subak/allocator"
	"subak/allocator/ledger"
)

const (
	// Within so many rounds after the end of all faults everybody is active on
	// one epoch: as long as the longest quarantine or force wait, 4 s and its
	// allowance, and some rounds for the news.
	healRounds = 60
	// And within so many more the only demand has the whole budget: as long as
	// any loan lasts.
	serveRounds = 60
)

// heal ends all faults, starts who does not run, lets everybody talk and checks
// what must come of it. It makes no random choice.
func (w *world) heal() {
	w.seen[sawHealed]++
	w.calm = true
	for i := range w.nodes {
		if w.procs[i] == nil {
			w.start(ledger.NodeID(i), w.greatest, w.seed&^1, false, false)
		}
	}
	for i := range w.nodes {
		p := w.procs[i]
		if p == nil {
			return
		}
		p.paused = false
		w.empty(uint8(i))
		p.l.Freeze(false)
	}
	sure := w.mustHeal()
	if !w.talkUntil(healRounds, w.settled) {
		if sure {
			w.fail("heal", "not proved and active on one epoch after %d rounds: %s", healRounds, w.whoLags())
		}
		return
	}
	newest := w.newest()
	who := w.procs[newest.Roster[len(newest.Roster)-1].ID]
	for i := range w.nodes {
		w.procs[i].demand = [maxBudgets]allocator.Rate{}
	}
	who.demand = w.limits
	if w.talkUntil(serveRounds, func() bool { return w.served(who) }) {
		w.seen[sawHealChecked]++
	} else if sure {
		w.fail("heal", "n%d, with the only demand, does not enforce the budgets %d after %d rounds, or digests differ: %s", who.name, w.limits[:w.budgets], serveRounds, w.whoLags())
	}
}

// mustHeal reports whether recovery is promised: not where half or more of a
// roster lost their memory at once.
func (w *world) mustHeal() bool {
	for i := range w.nodes {
		p := w.procs[i]
		if !w.manyRemember(p.l.Epoch()) {
			return false
		}
		if act := w.epochOf(p.l.Active()); act != nil && !w.manyRemember(act) {
			return false
		}
	}
	return true
}

// manyRemember reports whether members of both e and its parent that remember
// are more than half of each.
func (w *world) manyRemember(e *ledger.Epoch) bool {
	n := 0
	for _, m := range e.Roster {
		if (len(e.ParentRoster) == 0 || isParent(e, m.ID)) && !w.procs[m.ID].l.Standing().Recovering {
			n++
		}
	}
	return 2*n > len(e.Roster) && 2*n > len(e.ParentRoster)
}

// talkUntil lets everybody talk to everybody, 100 ms a round, until done.
func (w *world) talkUntil(rounds int, done func() bool) bool {
	for range rounds {
		if w.failed != nil {
			return true
		}
		first := len(w.pool)
		for i := range w.nodes {
			w.nextID++
			w.publish(Action{ID: w.nextID}, w.procs[i])
		}
		w.pass(20_000_000)
		for k := first; k < len(w.pool); k++ {
			for i := range w.nodes {
				w.deliver(&w.pool[k], Action{Arg: OwnBody}, w.procs[i])
			}
		}
		for i := range w.nodes {
			w.control(w.procs[i])
			w.install(w.procs[i])
		}
		w.pass(80_000_000)
		w.pool = w.pool[:first]
		if done() {
			return true
		}
	}
	return false
}

func (w *world) newest() *ledger.Epoch {
	newest := w.greatest
	for i := range w.nodes {
		if e := w.procs[i].l.Epoch(); newest.ID.Less(e.ID) {
			newest = e
		}
	}
	return newest
}

// settled reports that all members of the newest epoch are active on it.
func (w *world) settled() bool {
	newest := w.newest()
	for _, m := range newest.Roster {
		if !w.procs[m.ID].l.MayEdit() || w.procs[m.ID].l.Epoch() != newest {
			return false
		}
	}
	return true
}

// served reports that who enforces every budget in full and all members agree.
func (w *world) served(who *process) bool {
	for u := range w.budgets {
		// Targets round down; what is left over stays with its owners.
		if w.sum[u] != w.limits[u] || who.planes[u].rate*100 < w.limits[u]*99 {
			return false
		}
	}
	first := uint32(0)
	for i, m := range w.greatest.Roster {
		d := w.procs[m.ID].digest
		if i == 0 {
			first = d
		}
		if d != first {
			return false
		}
	}
	return true
}

// whoLags describes where every process stands.
func (w *world) whoLags() string {
	var b strings.Builder
	for i := range w.nodes {
		if p := w.procs[i]; p != nil {
			s := p.l.Standing()
			fmt.Fprintf(&b, "\n  n%d (%d): epoch %v, active %v, proved %v, recovering %v, quarantine %v, acked %v, digest %08x, enforces",
				i, p.l.Incarnation(), p.l.Epoch().ID, p.l.Active(), s.Proved, s.Recovering, s.Quarantine, s.Acked, p.digest)
			for u := range w.budgets {
				fmt.Fprintf(&b, " %d", p.planes[u].rate)
			}
		}
	}
	return b.String()
}
