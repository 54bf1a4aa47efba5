package timed

import (
	"slices"
	"time"

	"subak/chaos"
)

// loadMost bounds a demand, in milli-units/s, and burstMost a burst, in units, that
// a schedule asks for.
const (
	loadMost  = 1_000_000_000_000
	burstMost = 1_000_000
)

// ofNetwork reports whether a fault is of the wires, not of a node.
func (k FaultKind) ofNetwork() bool { return k <= Mute }

// victim is the node that a fault happens to, nil for none.
func (w *world) victim(f Fault) *host {
	if f.Who < 0 || int(f.Who) >= len(w.hosts) {
		return nil
	}
	return w.hosts[f.Who]
}

// begin starts fault i.
func (w *world) begin(i int) {
	f := w.schedule[i]
	w.noteFault("begins", f)
	w.state[i] = inForce
	h := w.victim(f)
	if h == nil && !f.Kind.ofNetwork() && f.Kind != Heal {
		w.state[i] = over
		return
	}
	lasts := true
	switch f.Kind {
	case Loss, Duplicates, Late, Jitter, Split, OneWay, Link, Flap, Deaf, Mute:
		defer w.rewire()
	case Slow:
		h.slow = max(h.slow, f.Arg)
	case Crash:
		lasts = w.crash(h, f)
	case DieInPublish:
		if lasts = h.up && w.mayDie(h, false) && f.With >= 0 && f.With < dieStages; lasts {
			h.stage, h.killer = int(f.With), i
			w.state[i] = armed
		}
	case Pause:
		if !h.up {
			lasts = false
		} else if f.Arg&(CutDelivery|CutTurn) != 0 && h.paused == 0 && h.stalled == 0 {
			h.armed = i
			w.state[i] = armed
		} else {
			h.pause(i)
		}
	case Stall:
		if lasts = h.up; lasts {
			w.stall(h, i)
		}
	case DiskFull:
		h.full = true
	case Freeze:
		if lasts = h.runs(); lasts {
			w.freeze(h, true)
		}
	case Leave:
		lasts = w.leave(h, i)
	case Poison:
		w.queue.add(event{at: w.now + 1, kind: poisons, to: -1, gen: uint32(i)})
	default:
		w.strike(h, f)
		lasts = false
	}
	if !lasts {
		w.state[i] = over
		return
	}
	w.active = append(w.active, i)
	if w.state[i] == inForce {
		w.queue.add(event{at: w.now + f.For, kind: ends, to: -1, gen: uint32(i)})
	}
}

// strike does what takes no time.
func (w *world) strike(h *host, f Fault) {
	switch f.Kind {
	case Drift:
		// The rate changes under a running timer: the next wake-up is early or
		// late by that.
		h.clock.SetRate(w.now, f.Arg)
	case Wall:
		h.wall += f.Arg
	case Demand:
		b, k := int(f.With)/8, int(f.With)%8
		if f.With >= 0 && f.Arg >= 0 && b < len(h.load) && k < len(h.load[b]) {
			h.feed()
			h.load[b][k] = min(f.Arg, loadMost)
		}
	case Burst:
		if h.up && h.paused == 0 {
			w.lapse(h)
			for b := range h.load {
				for k := range h.load[b] {
					w.arrive(h, b, k, min(f.Arg, burstMost))
				}
			}
		}
	case Edit:
		w.edit(h, f.Arg)
	case Heal:
		w.heal(f)
	}
}

// finish ends fault i, if it is not over.
func (w *world) finish(i int) {
	if w.state[i] != armed && w.state[i] != inForce {
		return
	}
	f := w.schedule[i]
	was := w.state[i]
	if f.Kind == Leave && was == armed && w.hosts[f.Who].up {
		w.endsOf(w.hosts[f.Who])
		w.hosts[f.Who].kill()
		w.state[i] = inForce
		w.queue.add(event{at: w.now + f.For, kind: ends, to: -1, gen: uint32(i)})
		return
	}
	w.state[i] = over
	w.active = slices.DeleteFunc(w.active, func(x int) bool { return x == i })
	w.noteFault("ends", f)
	if f.Kind.ofNetwork() {
		w.rewire()
		return
	}
	h := w.victim(f)
	switch f.Kind {
	case Slow:
		h.slow = 0
		h.unwatch()
	case Crash, Leave:
		w.restart(h)
	case DieInPublish:
		if was == armed {
			h.stage = -1
		} else {
			w.restart(h)
		}
	case Pause:
		if was == armed {
			h.armed = -1
		} else if h.paused > 0 {
			h.resume(&f)
		}
	case Stall:
		if h.stalled > 0 {
			h.resume(&f)
		}
	case DiskFull:
		h.full = false
	case Freeze:
		if h.runs() {
			w.freeze(h, false)
		}
	}
}

func (h *host) runs() bool { return h.up && h.paused == 0 && h.stalled == 0 }

func (w *world) freeze(h *host, on bool) {
	if on {
		w.seen[froze]++
	}
	w.lapse(h)
	h.core.Freeze(h.reading(), h.wallMillis(), on)
	if h.dying {
		h.die()
		return
	}
	h.turn(h.reading(), true)
}

func (w *world) stall(h *host, i int) {
	w.seen[stalled]++
	h.stalled++
	w.note(h, "its loop stands still")
	if after := w.schedule[i].Arg; after > 0 {
		w.queue.add(event{at: w.now + after, kind: watches, to: int16(h.id), gen: uint32(i)})
	}
}

// leave announces the leave; the process ends a second later.
func (w *world) leave(h *host, i int) bool {
	if !h.runs() || h.leaving || !w.mayDie(h, false) {
		return false
	}
	w.seen[left]++
	w.lapse(h)
	h.core.Leave(h.reading(), h.wallMillis())
	if h.dying {
		h.die()
		return false
	}
	h.turn(h.reading(), true)
	h.leaving = true
	w.state[i] = armed
	w.queue.add(event{at: w.now + int64(time.Second), kind: ends, to: -1, gen: uint32(i)})
	return true
}

// crash ends a process, with what the flags say, unless the assumptions forbid
// it.
func (w *world) crash(h *host, f Fault) bool {
	if !h.up || !w.mayDie(h, f.Arg&LoseDisk != 0) {
		return false
	}
	w.endsOf(h)
	h.kill()
	if f.Arg&LoseDisk != 0 {
		h.disk = nil
	}
	if f.Arg&Reboot != 0 {
		ppm := w.setup.drawRate(&h.rng)
		h.clock = chaos.NewClock(w.now, h.rng.Int64N(int64(time.Hour)))
		h.clock.SetRate(w.now, ppm)
	}
	if f.Arg&SetBack != 0 {
		h.wall -= hourMillis
	}
	return true
}

// endsOf ends the faults that the death of a process makes pointless.
func (w *world) endsOf(h *host) {
	w.active = slices.DeleteFunc(w.active, func(i int) bool {
		f := w.schedule[i]
		gone := int(f.Who) == h.id && (f.Kind == Pause || f.Kind == Stall || f.Kind == Freeze || f.Kind == DieInPublish && w.state[i] == armed)
		if gone {
			w.state[i] = over
		}
		return gone
	})
}

// mayDie applies assumption A6, and what liveness needs on top: of every roster
// that may be in force enough members remember, so that whoever forgot finds
// a strict majority of witnesses.
func (w *world) mayDie(h *host, losesDisk bool) bool {
	if !losesDisk && h.disk != nil && !h.disk.Recovering || !h.remembers() {
		return true
	}
	quorum := 0 // the greatest of any roster: before activation the parent's counts too
	for _, c := range w.configs {
		quorum = max(quorum, len(c.members)/2+1)
	}
	for _, c := range w.configs {
		members, others := len(c.members), 0
		for _, o := range w.hosts {
			if o != h && c.members[o.name] && o.remembers() {
				others++
			}
		}
		if others < min(quorum, members-1) {
			return false
		}
	}
	return true
}

// restart starts the name again, unless a fault keeps it down.
func (w *world) restart(h *host) {
	for _, i := range w.active {
		f := w.schedule[i]
		if int(f.Who) == h.id && w.state[i] == inForce && (f.Kind == Crash || f.Kind == Leave || f.Kind == DieInPublish) {
			return
		}
	}
	if !h.up {
		h.start(false)
	}
}
