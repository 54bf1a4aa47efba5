package schedule

import (
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
)

const liveWindow = 2 * time.Second

func rateOf(x int64) allocator.Rate { return allocator.Rate(max(0, x)) }

// incarnation returns one that the name never used (A3) and above the given one.
// Back, the wall clock was set back: it is below that of the last life. It is
// never one that an operator has declared dead, because that statement stays
// true (A7).
func (w *world) incarnation(name ledger.NodeID, above uint64, back bool) uint64 {
	const stride = 1 << 20 // more than lives in a run
	above = max(above, w.gone[name])
	w.incs++
	last := w.lastIn[name]
	if back && last >= 2*stride {
		// Between the last life's and the one before; incs makes it unique.
		if inc := last - stride + w.incs; inc > above {
			w.seen[sawRegress]++
			return inc
		}
	}
	w.incs = max(w.incs, above/stride+1)
	w.lastIn[name] = max(last, w.incs*stride)
	return w.incs * stride
}

// start begins a life of a name that does not run, with the config e of its
// config file or what is on its disk. detail seeds the rest; odd, the wall clock
// was set back.
func (w *world) start(name ledger.NodeID, e *ledger.Epoch, detail uint64, bootstrap, doubt bool) {
	rng := chaos.NewRand(detail)
	cfg := w.config(name, &rng, detail&1 == 1)
	cfg.Bootstrap, cfg.Doubt = bootstrap, doubt
	if cfg.Stored != nil {
		e = w.epochOf(cfg.Stored.Epoch)
	}
	p := w.fresh(name)
	p.clock = chaos.NewClock(w.t, int64(rng.IntN(1_000_000))*1_000_000)
	l, err := ledger.New(cfg, e, p.clock.At(w.t))
	if err != nil {
		w.fail("start", "n%d: %v", name, err)
		return
	}
	p.l = l
	rho := chaos.Rho(w.eps)
	p.clock.SetRate(w.t, chaos.Pick(&rng, 0, rho, -rho))
	for u := range w.budgets {
		p.demand[u] = chaos.Pick[allocator.Rate](&rng, 0, 0, 60_000, 9_000)
	}
	w.procs[name] = p
	if w.gone[name] > 0 {
		w.seen[sawForcedBack]++
	}
	w.tell("n%d starts as %d under %v, stored %v, bootstrap %v", name, cfg.Inc, e.ID, cfg.Stored != nil, bootstrap)
	if bootstrap {
		w.persist(p) // a first life that left no trace would have to be bootstrapped again
	}
	w.install(p)
}

// config is the ledger's, from disk and config file.
func (w *world) config(name ledger.NodeID, rng *chaos.Rand, back bool) ledger.Config {
	w.longest[name] = max(w.longest[name], w.terms[name])
	cfg := ledger.Config{Self: name, Live: liveWindow, EpsPPM: w.eps, Guard: time.Millisecond, Durable: w.hasDisk[name], Directory: w.dir}
	floor := uint64(0)
	if s := w.disks[name]; s != nil {
		floor = s.Incarnation
		if w.mode == chaos.MajorityProof {
			// The product asks memory for half of a roster only. Memory in doubt
			// is what it asks a strict majority for.
			c := *s
			c.Recovering = true
			s = &c
			w.disks[name] = s
		}
		cfg.Stored = s
		if rng.IntN(4) == 0 { // another term in the config file; without memory it may only grow
			w.terms[name] = chaos.Pick(rng, time.Second, 2*time.Second, 3*time.Second)
		}
	} else {
		w.terms[name] = w.longest[name] // loans of any life before may still run
		if rng.IntN(8) == 0 {
			w.terms[name] = min(4*time.Second, w.terms[name]+time.Second)
		}
	}
	w.longest[name] = max(w.longest[name], w.terms[name])
	cfg.Term = w.terms[name]
	cfg.Inc = w.incarnation(name, floor, back)
	return cfg
}

// kill ends a life.
func (w *world) kill(p *process) {
	w.tell("n%d (%d) dies", p.name, p.l.Incarnation())
	now := p.clock.At(w.t)
	for b := range p.l.Budgets() {
		if _, until := p.l.Fallback(b); until > now {
			w.seen[sawLentRestart]++
			break
		}
	}
	w.stop(p)
	w.procs[p.name] = nil
	w.spare = append(w.spare, p)
}

// fresh returns an empty process.
func (w *world) fresh(name ledger.NodeID) *process {
	if n := len(w.spare); n > 0 {
		p := w.spare[n-1]
		w.spare = w.spare[:n-1]
		planes := p.planes
		*p = process{name: name}
		for u := range planes {
			p.planes[u].steps = planes[u].steps[:0]
		}
		return p
	}
	return &process{name: name}
}

// amnesia is a start that wrongly claims to be the first, which the product
// answers with a quarantine (Config.Doubt). What is left to the truth of the
// claim is that no config epoch came in between.
func (w *world) amnesia(name ledger.NodeID, detail uint64) {
	if w.procs[name] != nil || w.disks[name] != nil || len(w.list) > 1 || w.members>>name&1 == 0 {
		return
	}
	w.seen[sawAmnesia]++
	w.start(name, w.list[0].epoch, detail, true, true)
}

// lose deletes a disk.
func (w *world) lose(name ledger.NodeID) {
	if w.procs[name] == nil && w.disks[name] != nil && w.mayForget(name, true) {
		w.tell("n%d loses its disk", name)
		w.seen[sawDiskLost]++
		w.disks[name] = nil
	}
}

// mayForget keeps assumption A6: every roster in force that name is of has
// another member that is proved or has its memory on disk. In force is what
// anybody has adopted, or activated last, in memory or on disk: of an epoch that
// only a few have left behind, the others may still confirm a node that forgot.
// The name's own disk counts unless that is what goes.
func (w *world) mayForget(name ledger.NodeID, disk bool) bool {
	if !w.remembered(w.greatest, name, disk) {
		return false
	}
	for i := range w.nodes {
		if p := w.procs[i]; p != nil {
			if !w.remembered(p.l.Epoch(), name, disk) || !w.remembered(w.epochOf(p.l.Active()), name, disk) {
				return false
			}
		} else if s := w.disks[i]; s != nil {
			if !w.remembered(w.epochOf(s.Epoch), name, disk) || !w.remembered(w.epochOf(s.Active), name, disk) {
				return false
			}
		}
	}
	return true
}

// remembered reports whether a member of e would remember e without name, or
// whether name does not matter to e.
func (w *world) remembered(e *ledger.Epoch, name ledger.NodeID, disk bool) bool {
	if e == nil || e != w.greatest && e.Position(name) < 0 {
		return true
	}
	for _, m := range e.Roster {
		if s := w.disks[m.ID]; s != nil && !s.Recovering && !(disk && m.ID == name) {
			return true
		}
		if q := w.procs[m.ID]; q != nil && m.ID != name {
			if s := q.l.Standing(); s.Proved && !s.Superseded {
				return true
			}
		}
	}
	return false
}
