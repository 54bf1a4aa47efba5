package timed

import (
	"fmt"
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
		w.restart(h)
	}
	w.rewire()
	w.healedAt, w.unhealed, w.wrong, w.agreed = w.now, w.now, "", false
	w.quietEnd = w.now + f.For - 1 // before what comes next
	w.queue.add(event{at: w.now + probeEvery, kind: probes, to: -1})
}

// calm reports whether after the end of all faults nobody has more to do than to
// hear the others.
func (w *world) calm() bool {
	for _, h := range w.hosts {
		if !h.runs() || h.leaving {
			return false
		}
		if s := h.led.Standing(); s.Quarantine || !s.Proved || s.Superseded {
			return false
		}
	}
	return longest(w.delay) <= 283*time.Millisecond && w.net.late == 0
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
			if got < reserved*97/100-w.setup.CostMost*int64(2*len(w.hosts)) {
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
	a := w.stocks[i].alloc
	var base, demand, atHome allocator.Rate
	for n, h := range w.hosts {
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
		if b := h.budget(s.name); b != nil {
			classes := make([]allocator.Rate, b.Classes())
			share := b.Limiter.Share(h.reading(), classes)
			w.note(h, "%s: enforces %d %v, target %d of %v, load %v, demand %v", s.name, share, classes, b.Total[h.core.Position()], b.Target, h.load[i], b.Demand)
		}
	}
}

// fault says what is not yet as it should be; empty for nothing.
func (w *world) fault() string {
	for i, s := range w.stocks {
		var sum, wanted allocator.Rate
		for _, h := range w.hosts {
			b := h.budget(s.name)
			if b == nil {
				return h.name + " lacks " + s.name
			}
			if st := h.led.Standing(); st.Quarantine || !st.Proved {
				return h.name + " is not proved, or in quarantine"
			}
			share := h.share(s.name)
			sum += share
			target := b.Total[h.core.Position()]
			wanted += target
			if share < target*99/100-grain {
				return fmt.Sprintf("%s enforces %d of %s, its target is %d", h.name, share, s.name, target)
			}
			if share == 0 && h.demands(i) && target > 0 {
				return h.name + " enforces nothing of " + s.name
			}
		}
		if sum < s.limit*99/100-grain {
			return fmt.Sprintf("%s: %d of %d are enforced", s.name, sum, s.limit)
		}
	}
	return ""
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
			if b == nil {
				return false
			}
			if first == nil {
				first = b
			}
			for i := range b.Target {
				if b.Target[i] != first.Target[i] {
					return false
				}
			}
		}
	}
	return true
}
