package timed

import (
	"fmt"
	"slices"
	"time"

	"subak/allocator"
	"subak/internal/core"
)

const (
	probeEvery = int64(20 * time.Millisecond)
	// calmLimit is the time after a heal by which all is as it should be if
	// everybody ran, knew what is in force and had told its demand; for round
	// trips up to 282 ms.
	calmLimit = int64(time.Second)
	// restartLimit comes on top of quarantine where somebody had to start anew.
	restartLimit = int64(2500 * time.Millisecond)
	// grain is what the counting of single requests makes shares wander by.
	grain  = 30 * allocator.Unit
	judged = int64(2 * time.Second) // the last part of a quiet time: reservations
)

// heal ends all faults and lets the checkers of quiet times look.
func (w *world) heal(f Fault) {
	w.healLimit = calmLimit
	if !w.calm() {
		w.healLimit = w.setup.leaseWait() + restartLimit
	}
	for len(w.active) > 0 {
		w.finish(w.active[0])
	}
	for _, h := range w.hosts {
		h.slow, h.full, h.stage, h.armed = 0, false, -1, -1
		if h.up && h.core.Twin().Yielded { // the operator's part
			h.kill()
		}
		w.restart(h)
		if h.core.Frozen() { // it could not be thawed while it was paused
			w.freeze(h, false)
		}
	}
	w.healedAt, w.unhealed, w.wrong, w.agreed = w.now, w.now, "", false
	for i, s := range w.stocks {
		s.sums.n = 0
		for _, h := range w.hosts {
			h.targets[i].n = 0
		}
	}
	w.quietEnd = w.now + f.For - 1 // before what comes next
	w.rewire()
	w.endTrials()
	w.queue.add(event{at: w.now + probeEvery, kind: probes, to: -1})
}

// calm reports whether after the end of all faults nobody has more to do than to
// hear the others.
func (w *world) calm() bool {
	for _, h := range w.hosts {
		if !h.runs() || h.leaving || w.now-h.born < w.setup.leaseWait() {
			return false // what was lent to a life that is over only runs out
		}
		if s := h.led.Standing(); s.Quarantine || !s.Proved || s.Superseded {
			return false
		}
	}
	return longest(w.delay) <= 283*time.Millisecond && w.net.late == 0 && w.settled()
}

// probe looks once in a quiet time.
func (w *world) probe() {
	if w.now > w.quietEnd {
		return
	}
	if wrong := w.fault(); wrong != "" {
		w.unhealed, w.wrong = w.now, wrong
	}
	if w.now >= w.quietEnd-judged && w.now-probeEvery < w.quietEnd-judged {
		for _, s := range w.stocks {
			clear(s.admitted)
			clear(s.offered)
		}
	}
	if w.now+probeEvery <= w.quietEnd {
		w.queue.add(event{at: w.now + probeEvery, kind: probes, to: -1})
		w.agreed = w.agreed || w.now > w.quietEnd-w.quietEnd/2 && w.sameTargets()
		return
	}
	w.judgeQuiet()
}

// judgeQuiet is the verdict at the end of a quiet time.
func (w *world) judgeQuiet() {
	w.seen[healed]++
	w.quietEnd = 0
	w.rewire()
	took := w.unhealed - w.healedAt
	if w.healWorst < took {
		w.healWorst = took
	}
	if took > w.healLimit {
		for i := range w.stocks {
			w.tell(i)
		}
		w.object("heal", "%s after all faults ended (%s is allowed): %s", time.Duration(took), time.Duration(w.healLimit), w.wrong)
	}
	for i, s := range w.stocks {
		for k, got := range s.admitted {
			reserved := w.reserved(i, k) * judged / int64(time.Second)
			// The slowest clock fills its buckets slower; what is in transit
			// and the counting of single requests take the rest.
			reserved -= reserved * w.setup.RhoPPM / 1_000_000
			if got < reserved*97/100-2*int64(grain/allocator.Unit)-w.setup.CostMost*int64(2*len(w.hosts)) {
				w.tell(i)
				w.object("reservation", "%s: class %d was admitted %d of %d in %s, %d are reserved", s.name, k, got, s.offered[k], time.Duration(judged), reserved)
			}
		}
	}
}

// reserved is what a class is to be admitted per second at its demand: as far as
// the base of each node goes for it, and in the paper's mode as far as the whole
// reservation goes, wherever it is wanted.
func (w *world) reserved(i, k int) (units int64) {
	var a *allocator.Allocator
	var base, demand, atHome allocator.Rate
	for _, h := range w.hosts {
		b, n := h.budget(w.stocks[i].name), h.core.Position()
		if b == nil || n < 0 {
			continue
		}
		if a == nil {
			var err error
			if a, err = allocator.New(b.Doc.Spec); err != nil {
				return 0
			}
		}
		d := allocator.Rate(h.load[i][k]) * 1000
		base += a.Base(k, n)
		demand += d
		atHome += min(d, a.Base(k, n))
	}
	if i%2 == 1 {
		atHome = min(base, demand)
	}
	return int64(atHome / allocator.Unit)
}

// tell writes down who enforces what of a budget, and why.
func (w *world) tell(i int) {
	if w.log == nil {
		return
	}
	s := w.stocks[i]
	for _, h := range w.hosts {
		w.note(h, "at epoch %v, active %v, position %d, %+v, twin %+v", h.core.Epoch().ID, h.led.Active(), h.core.Position(), h.led.Standing(), h.core.Twin())
		if b := h.budget(s.name); b != nil && h.core.Position() >= 0 {
			classes := make([]allocator.Rate, b.Classes())
			share := b.Limiter.Share(h.reading(), classes)
			w.note(h, "%s: enforces %d %v, target %d of %v, load %v, demand %v", s.name, share, classes, b.Total[h.core.Position()], b.Target, h.load[i], b.Demand)
		}
	}
}

// reaction is how long a new target may take to be served, in probes: a second.
const reaction = int(int64(time.Second) / probeEvery)

// past holds one value a probe, for the last second of a quiet time.
type past struct {
	ring [reaction]allocator.Rate
	n    int
}

func (p *past) add(x allocator.Rate) {
	p.ring[p.n%reaction] = x
	p.n++
}

func (p *past) least() allocator.Rate { return slices.Min(p.ring[:min(p.n, reaction)]) }
func (p *past) most() allocator.Rate  { return slices.Max(p.ring[:min(p.n, reaction)]) }

// fault says what is not yet as it should be; empty for nothing. A share may
// be as far behind its target as a reaction takes: demand that is metered in
// single requests, or was a lump just before, makes targets wander.
func (w *world) fault() (wrong string) {
	if !w.settled() {
		wrong = "no one epoch is in force everywhere"
	}
	for i, s := range w.stocks {
		var sum allocator.Rate
		for _, h := range w.hosts {
			b := h.budget(s.name)
			if b == nil || h.core.Position() < 0 {
				continue
			}
			share, target := h.share(s.name), &h.targets[i]
			sum += share
			target.add(b.Total[h.core.Position()])
			st := h.led.Standing()
			switch least := target.least(); {
			case wrong != "":
			case st.Quarantine || !st.Proved:
				wrong = h.name + " is not proved, or in quarantine"
			case share < least*99/100-grain:
				wrong = fmt.Sprintf("%s enforces %d of %s, its target has been %d or more for a second", h.name, share, s.name, least)
			case share == 0 && h.demands(i) && least > 0:
				wrong = h.name + " enforces nothing of " + s.name
			}
		}
		if s.sums.add(sum); wrong == "" && s.sums.most() < s.limit*99/100-grain {
			wrong = fmt.Sprintf("%s: not more than %d of %d have been enforced for a second", s.name, s.sums.most(), s.limit)
		}
	}
	return wrong
}

func (h *host) demands(b int) bool {
	for _, l := range h.load[b] {
		if l > 0 {
			return true
		}
	}
	return false
}

// sameTargets reports whether all nodes have the same targets now.
func (w *world) sameTargets() bool {
	for _, s := range w.stocks {
		var first *core.Budget
		for _, h := range w.hosts {
			b := h.budget(s.name)
			if b == nil || h.core.Position() < 0 {
				continue
			}
			if first == nil {
				first = b
			}
			for i := range b.Target {
				if len(b.Target) != len(first.Target) || b.Target[i] != first.Target[i] {
					return false
				}
			}
		}
	}
	return true
}
