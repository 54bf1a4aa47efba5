package core

import (
	"math"
	"sync"

	"subak/allocator"
	"subak/enforce"
)

// Plane is a budget's side of the data plane that the owner of the core and a
// watchdog share.
type Plane struct {
	mu sync.Mutex
	// limiter's schedule is set with mu held only.
	limiter *enforce.Limiter
	// static is the share that no peer is needed for, and the instant from
	// which it is safe: when every loan out has run out.
	static      []allocator.Rate
	staticTotal allocator.Rate
	staticFrom  int64
	byWatchdog  bool // the static share is in force
	retired     bool // nothing is admitted any more
}

// set puts a schedule in force for the owner.
func (p *Plane) set(now int64, steps []enforce.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limiter.SetSchedule(now, steps)
	p.byWatchdog = false
}

// renew puts a successor of another configuration in the place of the limiter,
// with the given schedule in force.
func (p *Plane) renew(now int64, cfg enforce.LimiterConfig, from []int, steps []enforce.Step) *enforce.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limiter = p.limiter.Succeed(now, cfg, from, steps)
	p.byWatchdog = false
	return p.limiter
}

// retire ends the budget: its limiter admits nothing, for good.
func (p *Plane) retire(now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limiter.SetSchedule(now, nil)
	p.retired = true
}

// fallBack notes the share for the case that the owner stalls.
func (p *Plane) fallBack(total allocator.Rate, classes []allocator.Rate, from int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.staticTotal, p.staticFrom = total, from
	p.static = append(p.static[:0], classes...)
}

// overridden reports whether a watchdog changed the schedule behind the owner.
func (p *Plane) overridden() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byWatchdog
}

// TakeOver puts the static share in force, once it is safe, if the owner still
// stands still when it is asked under the lock. The owner takes it back by its
// next pass: it installs its own schedule before any row of it can leave, and a
// row built before the stall names leases that have ended.
func (p *Plane) TakeOver(now int64, still func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired || p.byWatchdog || now < p.staticFrom || !still() {
		return
	}
	p.limiter.SetSchedule(now, []enforce.Step{{Until: math.MaxInt64, Total: p.staticTotal, Classes: p.static}})
	p.byWatchdog = true
}
