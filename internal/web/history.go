package web

import (
	"maps"
	"slices"
	"sync"

	"subak/internal/api"
)

const (
	historyPoints  = 600 // five minutes at the default interval of 500 ms, ten of those that nobody looked at
	historyBudgets = 512 // budgets kept; 512 x 600 x 32 B is 10 MB at most
)

// history keeps the last points of every budget. The zero value is not usable;
// see newHistory. Safe for concurrent use.
type history struct {
	mu    sync.Mutex
	rings map[string]*ring // by budget; guarded by mu
}

// point is one sample of one budget.
type point struct {
	millis               int64
	limit, share, demand float64
}

// ring holds the newest historyPoints points. It grows to that size and then
// overwrites the oldest, which is at index next.
type ring struct {
	unit   string
	points []point
	next   int
}

func newHistory() *history { return &history{rings: map[string]*ring{}} }

// record adds one point of every budget and forgets budgets that sums no longer
// has. It returns how many budgets found no room.
func (h *history) record(millis int64, sums []api.Sum) (dropped int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := make(map[string]bool, len(sums))
	for i := range sums {
		known[sums[i].Budget] = true
	}
	maps.DeleteFunc(h.rings, func(name string, _ *ring) bool { return !known[name] })
	for _, b := range sums {
		r := h.rings[b.Budget]
		if r == nil {
			if len(h.rings) >= historyBudgets {
				dropped++
				continue
			}
			r = &ring{}
			h.rings[b.Budget] = r
		}
		r.unit = b.Unit
		r.add(point{millis, b.Limit, b.Share, b.Demand})
	}
	return dropped
}

func (r *ring) add(p point) {
	if len(r.points) < historyPoints {
		r.points = append(r.points, p)
		return
	}
	r.points[r.next] = p
	r.next = (r.next + 1) % historyPoints
}

// of returns the kept points of one budget, oldest first; ok is false when the
// budget is not known.
func (h *history) of(budget string) (_ api.History, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.rings[budget]
	if !ok {
		return api.History{}, false
	}
	n := len(r.points)
	out := api.History{
		Budget: budget, Unit: r.unit, Millis: make([]int64, 0, n),
		Limit: make([]float64, 0, n), Share: make([]float64, 0, n), Demand: make([]float64, 0, n),
	}
	for i := range n {
		p := r.points[(r.next+i)%n]
		out.Millis = append(out.Millis, p.millis)
		out.Limit = append(out.Limit, p.limit)
		out.Share = append(out.Share, p.share)
		out.Demand = append(out.Demand, p.demand)
	}
	return out, true
}

// names returns the budgets that have a history, sorted.
func (h *history) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.rings))
}
