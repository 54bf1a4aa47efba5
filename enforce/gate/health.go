package gate

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// A backend that is out stays out for outMin, twice as long after each
	// further failure, up to outMax; any good answer ends it.
	outMin = time.Second
	outMax = 8 * time.Second

	// softMax is how many answers in a row that say "not me, not now" (502, 503,
	// 504), or none at all after it was connected, put a backend out.
	softMax = 5

	// outageEvery keeps a backend that comes and goes to few lines of log.
	outageEvery = int64(10 * time.Second)
)

// health is what is known of a backend from its answers: nothing is sent to find
// out. All times are readings of the lease clock. A good answer costs a healthy
// backend's health two loads.
type health struct {
	until   atomic.Int64 // out before it; 0 when in
	probing atomic.Bool  // a request was let through since, and has not come back
	inRow   atomic.Int64 // times it was put out without a good answer in between
	soft    atomic.Int64 // soft failures in a row
	said    atomic.Int64 // when an outage was last logged; 0 never
	down    atomic.Bool  // the outage that was logged goes on
}

// admits reports whether a request may go to the backend at now. When its time
// out is over, one request at a time tries it until it answers, at most one per
// outMin: not every client at once finds out that it is still dead.
func (h *health) admits(now int64) bool {
	until := h.until.Load()
	if until == 0 {
		return true
	}
	if until > now || !h.until.CompareAndSwap(until, now+int64(outMin)) {
		return false
	}
	h.probing.Store(true)
	return true
}

// good notes an answer, and reports whether it ends an outage that was logged.
func (h *health) good() (back bool) {
	if h.soft.Load() != 0 {
		h.soft.Store(0)
	}
	if h.until.Load() == 0 {
		return false
	}
	h.until.Store(0)
	h.probing.Store(false)
	h.inRow.Store(0)
	return h.down.CompareAndSwap(true, false)
}

// out puts the backend out, and reports whether that is worth a line of log. Of
// the requests that were under way when it went out, the first has said it all.
func (h *health) out(now int64) (news bool) {
	if h.until.Load() > now && !h.probing.Swap(false) {
		return false
	}
	wait := outMin << min(h.inRow.Add(1)-1, 3)
	h.until.Store(now + int64(min(wait, outMax)))
	last := h.said.Load()
	if h.down.Load() || last != 0 && now-last < outageEvery || !h.said.CompareAndSwap(last, now) {
		return false
	}
	h.down.Store(true)
	return true
}

// answered notes a backend's status.
func (p *pool) answered(b *backend, status int) {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		p.soft(b, "it answers that it cannot serve", nil)
	default:
		if b.health.good() {
			p.log.Info("backend answers again", "listener", p.gate.cfg.Name, "backend", b.name)
		}
	}
}

// unreachable notes a connection that could not be made.
func (p *pool) unreachable(b *backend, err error) {
	if b.health.out(p.gate.deps.Now()) {
		p.log.Warn("backend cannot be reached", "listener", p.gate.cfg.Name, "backend", b.name, "err", err)
	}
}

// soft notes a failure that may be the request's fault. Only several in a row put
// a backend out, or one that was on probation, and never more than half of them:
// where all say 503, each of them is as good as any.
func (p *pool) soft(b *backend, why string, err error) {
	if b.health.soft.Add(1) < softMax && b.health.until.Load() == 0 {
		return
	}
	out := 1
	for _, other := range p.backends {
		if other != b && other.health.until.Load() != 0 {
			out++
		}
	}
	if 2*out > len(p.backends) {
		return
	}
	b.health.soft.Store(0)
	if b.health.out(p.gate.deps.Now()) {
		p.log.Warn("backend is avoided for a while: "+why, "listener", p.gate.cfg.Name, "backend", b.name, "err", err)
	}
}
