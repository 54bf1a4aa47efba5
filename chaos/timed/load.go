package timed

import "subak/chaos/bound"

// chunks is how many requests stand for what comes at one moment, if they can.
const chunks = 8

// arrive lets n units of one class come to h now.
func (w *world) arrive(h *host, b, class int, n int64) {
	if !h.up || n == 0 {
		return
	}
	if w.setup.Whole {
		w.decide(h, h.reading(), b, class, n)
		return
	}
	now := h.reading()
	for cost := min(max(1, n/chunks), w.setup.CostMost); n > 0; n -= cost {
		w.decide(h, now, b, class, min(cost, n))
	}
}

// decide lets h's data plane judge one request by a reading of its clock.
func (w *world) decide(h *host, reading int64, b, class int, cost int64) bool {
	s := w.stocks[b]
	x := h.budget(s.name)
	if x == nil || class >= x.Classes() {
		return false
	}
	s.offered[class] += cost
	if !x.Limiter.Decide(reading, class, cost).OK {
		return false
	}
	s.admitted[class] += cost
	if s.bound != nil {
		if err := s.bound.Add(bound.Admission{At: w.now, Cost: cost}); err != nil {
			panic(err)
		}
	}
	return true
}
