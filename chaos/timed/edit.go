package timed

import (
	"errors"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
	"subak/internal/core"
	"subak/internal/epoch"
)

// config is what the checkers know of one epoch.
type config struct {
	limits  map[string]allocator.Rate
	members map[string]bool
}

// know notes an epoch and its content.
func (w *world) know(e *ledger.Epoch, d *epoch.Document) {
	if w.configs[e.ID] != nil {
		return
	}
	c := &config{limits: map[string]allocator.Rate{}, members: map[string]bool{}}
	for _, b := range d.Budgets {
		c.limits[b.Name] = b.Spec.Budget
	}
	for _, n := range d.Nodes {
		c.members[n.Name] = true
	}
	w.configs[e.ID] = c
	w.guard.know(e)
	if w.log != nil {
		w.log.reader.know(e)
	}
}

// followEpoch notes what h adopted and activated. The limits in force are those
// of the greatest epoch that was ever activated.
func (w *world) followEpoch(h *host) {
	if !h.up {
		return
	}
	e := h.core.Epoch()
	if e.ID != h.epoch {
		w.know(e, h.core.Document())
		if h.epoch != (ledger.EpochID{}) {
			w.note(h, "adopts epoch %v", e.ID)
			if h.lends() {
				w.seen[adoptedLent]++
			}
		}
		h.epoch = e.ID
	}
	active := h.led.Active()
	if active == h.active {
		return
	}
	h.active = active
	h.unwatch() // what was lent of a larger base only runs out
	w.note(h, "activates epoch %v", active)
	if active.Version > 1 {
		w.seen[activated]++
	}
	if !w.greatest.Less(active) {
		return
	}
	c := w.configs[active]
	if c == nil {
		w.object("epochs", "%s activated epoch %v, which nobody adopted", h.name, active)
		return
	}
	w.greatest = active
	for _, s := range w.stocks {
		s.limit = c.limits[s.name]
	}
}

func (h *host) lends() bool {
	now := h.reading()
	for b := range h.core.Budgets() {
		for _, o := range h.w.hosts {
			if id, ok := h.idOf(o); ok && h.led.Lent(now, b, id) > 0 {
				return true
			}
		}
	}
	return false
}

// edit lets an operator change the config at h. seed says how.
func (w *world) edit(h *host, seed int64) {
	if !h.runs() || h.leaving {
		return
	}
	w.lapse(h)
	r := chaos.NewRand(uint64(seed))
	now, wall := h.reading(), h.wallMillis()
	p := h.core.Progress(now)
	var err error
	var made ledger.EpochID
	switch {
	case p.Canary != "" && r.Chance(40):
		_, err = h.core.Promote(now, wall)
		w.note(h, "promotes the trial of %s: %v", p.Canary, err)
	case p.Canary != "" && r.Chance(50):
		_, err = h.core.Abandon(now, wall)
		w.note(h, "abandons the trial of %s: %v", p.Canary, err)
	default:
		ch := w.change(h, &r)
		var plan core.Plan
		plan, err = h.core.Apply(now, wall, ch)
		made = plan.Epoch
		if err == nil {
			w.seen[forced] += int64(len(ch.Forget))
		}
		w.note(h, "edits: epoch %v, forgets %v, canary %q: %v", made, ch.Forget, ch.Canary, err)
	}
	switch {
	case h.dying:
		h.die()
		return
	case err == nil:
		w.seen[edited]++
	case !errors.Is(err, core.ErrNotSaved):
		w.seen[editRefused]++
	}
	h.turn(h.reading(), true)
}

// change is what an operator wants at h.
func (w *world) change(h *host, r *chaos.Rand) core.Change {
	ch := core.Change{Replace: r.Chance(30), Revert: true}
	if (w.setup.Mode == chaos.ForcedRemoval && r.Chance(60) || r.Chance(10)) && w.allRemember() {
		ch.Forget = w.gone(h, r)
	}
	if len(ch.Forget) > 0 && r.Chance(70) {
		return ch
	}
	d := h.core.Document().Clone()
	w.redraw(d, r)
	ch.Document = d
	if r.Chance(15) {
		ch.Canary = d.Nodes[r.IntN(len(d.Nodes))].Name
	}
	return ch
}

// allRemember reports whether no live process has lost its memory. Where one has,
// a change of the roster may leave it with too few witnesses, since before
// activation it needs as many as the old roster asks for out of those who are in
// both: it then waits for one more change, without harm to the budget.
func (w *world) allRemember() bool {
	for _, h := range w.hosts {
		if h.up && !h.remembers() {
			return false
		}
	}
	return true
}

// gone names members whose process does not run. It never will again: a name
// comes back as another life (A7).
func (w *world) gone(h *host, r *chaos.Rand) map[string]uint64 {
	dead := map[string]uint64{}
	for _, o := range w.hosts {
		if !o.up && o != h && r.Chance(70) {
			dead[o.name] = 0
		}
	}
	return dead
}

// redraw changes a config in one or two ways. Limits never rise above the first
// ones, so that one bound judges all admissions.
func (w *world) redraw(d *epoch.Document, r *chaos.Rand) {
	for range 1 + r.IntN(2) {
		b := r.IntN(len(d.Budgets))
		switch r.IntN(6) {
		case 0, 1:
			first := allocator.Rate(w.setup.Limits[w.indexOf(d.Budgets[b].Name)]) * allocator.Unit
			limit(&d.Budgets[b].Spec, chaos.Pick(r, first, first/2, first/4), r)
		case 2:
			limit(&d.Budgets[b].Spec, d.Budgets[b].Spec.Budget, r)
		case 3:
			i := r.IntN(len(d.Nodes))
			d.Nodes[i].Weight = 10 + r.Int64N(90)
			for b := range d.Budgets {
				d.Budgets[b].Spec.Weights[i] = d.Nodes[i].Weight
			}
		case 4:
			if w.allRemember() {
				w.reroll(d, r)
			}
		case 5:
			w.restock(d, r)
		}
	}
}

// limit sets a budget's limit and splits it anew over its classes.
func limit(s *allocator.Spec, to allocator.Rate, r *chaos.Rand) {
	left := to
	for k := range s.Classes {
		part := to / allocator.Rate(len(s.Classes)) * allocator.Rate(50+r.IntN(50)) / 100
		if k == len(s.Classes)-1 {
			part = left
		}
		s.Classes[k].Reservation = part
		left -= part
	}
	s.Budget = to
}

// reroll lets a node leave the roster, or join it.
func (w *world) reroll(d *epoch.Document, r *chaos.Rand) {
	name := nodeName(r.IntN(w.setup.Nodes))
	for _, n := range d.Nodes {
		if n.Name == name {
			if len(d.Nodes) > 3 {
				*d = *d.Without(func(n string) bool { return n == name })
			}
			return
		}
	}
	*d = *d.WithNodes(append(append([]epoch.Node(nil), d.Nodes...), epoch.Node{Name: name, Weight: 10 + r.Int64N(90)}))
}

// restock drops a budget, or takes up one that was dropped.
func (w *world) restock(d *epoch.Document, r *chaos.Rand) {
	first := w.setup.document()
	b := r.IntN(len(first.Budgets))
	for i := range d.Budgets {
		if d.Budgets[i].Name == first.Budgets[b].Name {
			if len(d.Budgets) > 1 {
				d.Budgets = append(d.Budgets[:i], d.Budgets[i+1:]...)
			}
			return
		}
	}
	all := first.WithNodes(d.Nodes)
	d.Budgets = append(d.Budgets, all.Budgets[b])
}

func (w *world) indexOf(budget string) int {
	for i, s := range w.stocks {
		if s.name == budget {
			return i
		}
	}
	return 0
}

// settled reports whether all live processes work under one epoch and its
// members have it in force. An epoch may be lost with the only one who knew it.
func (w *world) settled() bool {
	for _, h := range w.hosts {
		id := w.hosts[0].core.Epoch().ID
		if !h.up || h.core.Epoch().ID != id || h.core.Position() >= 0 && h.led.Active() != id {
			return false
		}
	}
	return true
}

// endTrials has an operator end the trials that are under way.
func (w *world) endTrials() {
	for _, h := range w.hosts {
		if h.runs() && h.core.Progress(h.reading()).Canary != "" {
			_, err := h.core.Promote(h.reading(), h.wallMillis())
			w.note(h, "promotes what is on trial: %v", err)
			if h.turn(h.reading(), true); err == nil {
				return
			}
		}
	}
}
