package node

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"subak/allocator"
	"subak/enforce"
)

// plane is a budget's side of the data plane that loop and watchdog share.
type plane struct {
	mu sync.Mutex
	// limiter's schedule is set with mu held only.
	limiter *enforce.Limiter
	// static is the share that no peer is needed for, and the instant from
	// which it is safe: when every loan out has run out.
	static      []allocator.Rate
	staticTotal allocator.Rate
	staticFrom  int64
	byWatchdog  bool // the static share is in force
}

// set puts a schedule in force for the loop.
func (p *plane) set(now int64, steps []enforce.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limiter.SetSchedule(now, steps)
	p.byWatchdog = false
}

// fallBack notes the share for the case that the loop stalls.
func (p *plane) fallBack(total allocator.Rate, classes []allocator.Rate, from int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.staticTotal, p.staticFrom = total, from
	p.static = append(p.static[:0], classes...)
}

// overridden reports whether the watchdog changed the schedule behind the loop.
func (p *plane) overridden() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byWatchdog
}

// watchdog puts the static share in force when the loop stands still.
//
// Without it a stalled node already falls to its own base less what it lent,
// by the schedule alone. The watchdog gives back what was lent, once the last
// loan must have ended. It is safe against a loop that wakes up at any moment:
// the loop installs its own schedule before any row of it can leave, and a row
// built before the stall names leases that have ended.
type watchdog struct {
	planes   []*plane
	stallMax time.Duration
	last     atomic.Int64 // lease clock at the loop's last turn
	stalls   atomic.Uint64
	stalled  atomic.Bool
}

// beat notes a turn of the loop. It returns for how long the loop had stood
// still if that was a stall; one that check slept through too, as when the whole
// process is paused, is counted here.
func (w *watchdog) beat(now int64) (stall time.Duration) {
	last := w.last.Swap(now)
	seen := w.stalled.Swap(false)
	if last == 0 || now-last < w.stallMax.Nanoseconds() {
		return 0
	}
	if !seen {
		w.stalls.Add(1)
	}
	return time.Duration(now - last)
}

// silent returns for how long the loop has stood still.
func (w *watchdog) silent(now int64) time.Duration { return time.Duration(now - w.last.Load()) }

// check looks once and acts if the loop stands still. It returns true when it
// found a new stall.
func (w *watchdog) check(now int64) (stall bool) {
	if w.silent(now) < w.stallMax {
		return false
	}
	stall = !w.stalled.Swap(true)
	if stall {
		w.stalls.Add(1)
	}
	for _, p := range w.planes {
		p.mu.Lock()
		if !p.byWatchdog && now >= p.staticFrom && w.silent(now) >= w.stallMax {
			p.limiter.SetSchedule(now, []enforce.Step{{Until: math.MaxInt64, Total: p.staticTotal, Classes: p.static}})
			p.byWatchdog = true
		}
		p.mu.Unlock()
	}
	return stall
}
