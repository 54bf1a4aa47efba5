package node

import (
	"sync/atomic"
	"time"

	"subak/internal/core"
)

// watchdog puts the static share in force when the loop stands still.
//
// Without it a stalled node already falls to its own base less what it lent,
// by the schedule alone. The watchdog gives back what was lent, once the last
// loan must have ended. It is safe against a loop that wakes up at any moment
// (see [core.Plane.TakeOver]).
type watchdog struct {
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

// check looks once and acts on the planes in force if the loop stands still. It
// returns true when it found a new stall.
func (w *watchdog) check(now int64, planes []*core.Plane) (stall bool) {
	if w.silent(now) < w.stallMax {
		return false
	}
	stall = !w.stalled.Swap(true)
	if stall {
		w.stalls.Add(1)
	}
	for _, p := range planes {
		p.TakeOver(now, func() bool { return w.silent(now) >= w.stallMax })
	}
	return stall
}
