package schedule

import "subak/allocator/ledger"

// do makes an action happen now and records it.
func (w *world) do(a Action) {
	w.nextID++
	a.ID = w.nextID
	w.act(a)
}

// act makes a happen. One whose object does not exist does nothing.
func (w *world) act(a Action) {
	if w.failed != nil {
		return
	}
	if w.record {
		w.done = append(w.done, a)
	}
	w.acted++
	w.hash.Add(uint64(a.Kind)<<56 | uint64(a.Node)<<48 | uint64(a.Then)<<40 | uint64(uint32(a.Ref)))
	w.hash.Add(uint64(a.Arg))
	w.tellAction(a)
	w.apply(a)
	w.hash.Add(uint64(w.sum[0])<<20 ^ uint64(w.claims[0]) ^ uint64(w.t))
}

func (w *world) apply(a Action) {
	if int(a.Node) >= w.nodes {
		return
	}
	p := w.procs[a.Node]
	switch a.Kind {
	case Pass:
		w.pass(max(0, a.Arg))
		return
	case Start:
		if p == nil {
			w.start(ledger.NodeID(a.Node), w.epochBy(a.Ref), uint64(a.Arg), false, false)
		}
		return
	case Amnesia:
		w.amnesia(ledger.NodeID(a.Node), uint64(a.Arg))
		return
	case Lose:
		w.lose(ledger.NodeID(a.Node))
		return
	case Fill:
		w.full |= 1 << a.Node
		return
	case Empty:
		w.empty(a.Node)
		return
	case Heal:
		w.heal()
		return
	}
	if p == nil {
		return
	}
	switch a.Kind {
	case Demand:
		p.demand[uint(a.Ref)%maxBudgets] = rateOf(a.Arg)
	case Skew:
		p.clock.SetRate(w.t, a.Arg)
		w.advance(p)
	case Pause:
		p.paused = true
		if w.broken == jumpsClock {
			p.clock.SetRate(w.t, -999_999)
		}
	case Resume:
		p.paused = false
		if w.broken == jumpsClock {
			p.clock.SetRate(w.t, 0)
		}
	case Crash:
		if w.mayForget(p.name, false) {
			w.kill(p)
		}
	case Hang:
		w.hang(p)
	case Watchdog:
		p.paused = true
		w.takeOver(p)
		w.check()
	case Edit:
		w.edit(a, p)
	default:
		if !p.paused {
			w.applyAwake(a, p)
		}
	}
}

// applyAwake does what a process does only while its control runs.
func (w *world) applyAwake(a Action, p *process) {
	switch a.Kind {
	case Publish:
		w.publish(a, p)
	case Deliver:
		if m := w.letterOf(a.Ref); m != nil {
			w.deliver(m, a, p)
		}
	case Wake:
		w.wake(p, a.Arg)
	case Control:
		w.control(p)
		w.install(p)
	case Freeze:
		w.freeze(p)
	case Thaw:
		p.l.Freeze(false)
	}
}

// letterOf finds the row published by action id, nil if none was.
func (w *world) letterOf(id int32) *letter {
	lo, hi := 0, len(w.pool)
	for lo < hi {
		if mid := (lo + hi) / 2; w.pool[mid].id < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(w.pool) && w.pool[lo].id == id {
		return &w.pool[lo]
	}
	return nil
}
