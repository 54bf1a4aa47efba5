package timed

import (
	"fmt"
	"math"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
	"subak/chaos/bound"
)

// stock is what is known of one budget over all nodes, true values only.
type stock struct {
	name  string
	limit allocator.Rate // of the greatest epoch in force
	// shares by node, as of the node's last event: no share rises between two, so
	// sum is at least what is enforced now.
	shares []allocator.Rate
	sum    allocator.Rate
	peak   int64 // ppm of limit
	bound  *bound.Checker

	sums     past    // of what was enforced
	admitted []int64 // by class, units
	offered  []int64
}

func newStock(s *Setup, b int) *stock {
	d := s.document()
	spec := &d.Budgets[b].Spec
	st := &stock{
		name: d.Budgets[b].Name, limit: spec.Budget, shares: make([]allocator.Rate, s.Nodes),
		admitted: make([]int64, s.Classes), offered: make([]int64, s.Classes),
	}
	if s.Whole {
		return st // figures do not judge single requests
	}
	var err error
	st.bound, err = bound.New(bound.Config{
		// A fast clock fills its buckets faster by that much.
		Limit: spec.Budget + spec.Budget/1_000_000*allocator.Rate(s.RhoPPM+1), Burst: s.Burst,
		Slots: int64(s.Nodes*s.Classes + s.OldMost), Cost: s.CostMost, Grain: time.Millisecond,
	})
	if err != nil {
		panic(err)
	}
	return st
}

// lapse notes what time alone took from the shares of h since its last event.
func (w *world) lapse(h *host) {
	if !h.up {
		return
	}
	for _, s := range w.stocks {
		if now := h.share(s.name); now != s.shares[h.id] {
			if now > s.shares[h.id] {
				w.object("shares", "%s: the share of %s rose by time alone, from %d to %d", h.name, s.name, s.shares[h.id], now)
			}
			w.seen[lapsed]++
			if h.paused > 0 || h.stalled > 0 || h.held != nil {
				w.seen[lapsedWhilePaused]++
			}
			w.note(h, "a lease of %s ran out: %d, was %d", s.name, now, s.shares[h.id])
			s.sum += now - s.shares[h.id]
			s.shares[h.id] = now
		}
	}
}

// touch is check for an event that rarely changes a share: news, before the turn
// that acts on them. An epoch that is taken up does.
func (w *world) touch(h *host) {
	for _, s := range w.stocks {
		if h.share(s.name) != s.shares[h.id] {
			w.check(h)
			return
		}
	}
}

// check judges the state after an event at h.
func (w *world) check(h *host) {
	w.followEpoch(h)
	for i, s := range w.stocks {
		now := h.share(s.name)
		if now != s.shares[h.id] {
			w.hash.Add(uint64(now)<<8 | uint64(h.id))
			w.note(h, "enforces %d of %s, was %d", now, s.name, s.shares[h.id])
			s.sum += now - s.shares[h.id]
			s.shares[h.id] = now
		}
		w.conserve(s)
		if h.up {
			w.agree(h, i)
			w.exact(h, i)
			w.notStarved(h, i)
		}
	}
	if h.up {
		w.cover(h)
		w.follow(h)
	}
}

// conserve is the promise: over all live processes the enforced rates add up to
// at most the budget.
func (w *world) conserve(s *stock) {
	if s.sum <= s.limit && ppmOf(s.sum, s.limit) <= s.peak {
		return
	}
	s.sum = 0
	for i, h := range w.hosts {
		s.shares[i] = h.share(s.name)
		s.sum += s.shares[i]
	}
	s.peak = max(s.peak, ppmOf(s.sum, s.limit))
	if s.sum > s.limit {
		w.object("budget", "%s: enforced %d over the limit of %d by %d: %v", s.name, s.sum, s.limit, s.sum-s.limit, s.shares)
	}
}

func ppmOf(part, whole allocator.Rate) int64 {
	if whole == 0 {
		return 0
	}
	return int64(float64(part) / float64(whole) * 1e6)
}

// cover is I2: no process uses more of a loan than its lender counts as lent,
// while the lender runs and is past its quarantine.
func (w *world) cover(h *host) {
	now := h.reading()
	own := h.led.Standing()
	for _, o := range w.hosts {
		if o == h || !o.up {
			continue
		}
		w.coverPair(o, h, o.led.Standing(), o.reading(), now)
		w.coverPair(h, o, own, now, o.reading())
	}
}

func (w *world) coverPair(lender, borrower *host, s ledger.Standing, lenderNow, borrowerNow int64) {
	if s.Quarantine || s.Superseded {
		return
	}
	from, ok := borrower.idOf(lender)
	to, known := lender.idOf(borrower)
	if !ok || !known {
		return
	}
	for b, x := range borrower.core.Budgets() {
		in := borrower.led.Borrowed(borrowerNow, b, from)
		if in == 0 {
			continue
		}
		at := b
		if own := lender.core.Budgets(); at >= len(own) || own[at].Name != x.Name {
			continue // the two work under different epochs
		}
		if out := lender.led.Lent(lenderNow, at, to); in > out {
			w.object("cover", "%s uses %d of what %s lent of %s, who counts %d", borrower.name, in, lender.name, x.Name, out)
		}
	}
}

// agree is that equal views give equal targets.
func (w *world) agree(h *host, i int) {
	b := h.budget(w.stocks[i].name)
	if b == nil {
		return
	}
	e := h.core.Epoch().ID
	view, target := chaos.Hash(e.Hash+uint64(i)), chaos.Hash(1)
	for _, c := range b.View.Ceilings {
		view.Add(uint64(c))
	}
	for _, d := range b.View.Demand {
		view.Add(uint64(d))
	}
	for _, t := range b.Target {
		target.Add(uint64(t))
	}
	if len(w.views) > 1<<14 {
		clear(w.views)
	}
	if before, ok := w.views[uint64(view)]; ok && before != uint64(target) {
		w.object("agreement", "%s has other targets of %s than somebody with the same view", h.name, b.Name)
	}
	w.views[uint64(view)] = uint64(target)
}

// lowest follows the least value over a sliding window, by halves.
type lowest struct {
	since     int64
	cur, prev allocator.Rate
	full      bool // prev is of a whole window
}

// unwatch forgets what a host's targets were: its loop did not run in time, or it has
// another base.
func (h *host) unwatch() {
	for b := range h.floor {
		h.floor[b] = lowest{since: h.w.now, cur: math.MaxInt64}
	}
}

// notStarved is what a lender keeps: once its own target, as far as its base
// goes, has been at least x for as long as a loan may last, it enforces x.
func (w *world) notStarved(h *host, i int) {
	l := &h.floor[i]
	b := h.budget(w.stocks[i].name)
	s := h.led.Standing()
	if b == nil || !h.runs() || h.slow > 0 || s.Quarantine || !s.Proved || s.Frozen || s.Superseded || h.core.Epoch().ID != h.active || h.core.Position() < 0 {
		*l = lowest{since: w.now, cur: math.MaxInt64}
		return
	}
	pos := h.core.Position()
	x := min(b.Total[pos], b.View.Ceilings[pos])
	if w.now-l.since >= w.setup.leaseWait()+int64(w.setup.Tick) {
		l.prev, l.cur, l.since, l.full = l.cur, x, w.now, true
	}
	l.cur = min(l.cur, x)
	if keeps := min(l.prev, l.cur); l.full && w.stocks[i].shares[h.id] < keeps {
		w.object("starved", "%s enforces %d of %s, though for a term its target within its base was at least %d", h.name, w.stocks[i].shares[h.id], b.Name, keeps)
	}
}

// follow counts what changed of a life's standing.
func (w *world) follow(h *host) {
	s := h.led.Standing()
	was := h.standing
	h.standing = s
	if was.Quarantine && !s.Quarantine && h.reading() < was.QuarantineEnd {
		w.seen[shortened]++
	}
	if was.Quarantine && !s.Quarantine && !s.Proved {
		w.seen[unproved]++
	}
	if was != s {
		w.note(h, "proved %v, quarantine %v, recovering %v, acked %v, superseded %v", s.Proved, s.Quarantine, s.Recovering, s.Acked, s.Superseded)
	}
}

// object is a checker's objection; the first one counts.
func (w *world) object(checker, format string, args ...any) {
	if w.violation == nil {
		w.violation = &chaos.Violation{Checker: checker, At: time.Duration(w.now), Step: w.events, Detail: fmt.Sprintf(format, args...)}
	}
}

// judgeBounds is the window bound on what was admitted.
func (w *world) judgeBounds() {
	for _, s := range w.stocks {
		if s.bound == nil {
			continue
		}
		if r := s.bound.Report(); !r.OK() {
			w.object("window bound", "%s: %s", s.name, r)
		}
	}
}
