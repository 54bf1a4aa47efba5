// Package clock reads the lease clock: nanoseconds that run on while the process
// is paused and while the machine is suspended (conservation.md A2, trap 10).
//
// # Reading it in full
//
// Go's monotonic clock stops in suspend on Linux. Boot adds the difference to
// CLOCK_BOOTTIME. The system call for that takes about 300 ns, so it is made
// only every refreshEvery, and at once when the wall clock has moved against the
// monotonic one: a suspend moves it by what it took, and both come with one
// reading of about 50 ns. So the first reading after a suspend of over stepMin
// counts all of it: no decision rests on a lease that ran out in sleep. That the
// wall clock moved is only the bell. By how much, and whether it was set by hand,
// changes nothing (lessons O4, O10).
//
// # Reading it fast
//
// Where the kernel itself keeps time by the CPU's counter (amd64's TSC, arm64's
// CNTVCT), a full reading is made only every anchorSpan of that counter, and Boot
// goes on from it by counting: about 20 ns. The counter is the bell then. It runs
// on through a suspend, or begins anew: either way it is not within anchorSpan of
// where it was, and the next reading is a full one. A counter that stood still in
// a suspend and went on as if nothing had been would be found out anchorSpan
// later; amd64's loses its power with the core, and arm64's must be always on by
// its architecture.
//
// Every full reading checks the counter. Once it is off by more than its rate
// allows, as after a migration to other hardware, readings are full ones until it
// has been measured anew. Coarse does not even count: it repeats the last full
// reading.
//
// # What readings promise
//
// They never go backwards: one that happens after another is not smaller, on
// whatever goroutine. One that goes on from a full reading is off from it by at
// most BootError. They have no meaning on another machine or after a reboot.
// Elsewhere than on Linux the reading is Go's monotonic clock alone.
package clock

import (
	"sync/atomic"
	"time"
)

// refreshEvery is how old the measured offset may be, in nanoseconds.
const refreshEvery = int64(10 * time.Millisecond)

// stepMin is by how much, in nanoseconds, the wall clock must have moved against
// the monotonic one to be looked after. A lease's guard covers less.
const stepMin = int64(time.Millisecond)

// A measurement that took as long as preempted is made again, measureTries times
// at most. The system call takes under a microsecond.
const (
	preempted    = 100 * time.Microsecond
	measureTries = 5
)

// jumpMin is the least growth of the offset that counts as a jump rather than
// as a better measurement, in nanoseconds.
const jumpMin = int64(time.Millisecond)

// Boot is a lease clock. Safe for concurrent use.
type Boot struct {
	anchor atomic.Pointer[anchor] // never nil
	count  func() uint64          // a counter to use instead of the CPU's own

	base   time.Time
	offset atomic.Int64 // CLOCK_BOOTTIME minus time since base
	next   atomic.Int64 // time since base of the next measurement
	jumps  atomic.Uint64
	jumped atomic.Int64
	lead   atomic.Int64 // wall clock minus time since base, not newer than offset
	read   func() (int64, bool)
	wall   func(time.Time) int64
}

// NewBoot returns a clock that reads as CLOCK_BOOTTIME does, where there is one.
func NewBoot() *Boot {
	b := newBoot(readBoot, time.Time.UnixNano)
	if haveTicks && kernelCounts() {
		b.anchor.Store(&anchor{counts: true})
	}
	return b
}

func newBoot(read func() (int64, bool), wall func(time.Time) int64) *Boot {
	b := &Boot{base: time.Now(), read: read, wall: wall}
	b.anchor.Store(&anchor{})
	b.lead.Store(wall(b.base))
	if boot, ok := read(); ok {
		b.offset.Store(boot - int64(time.Since(b.base)))
		b.measure() // what is found better now is no time that passed
		b.jumps.Store(0)
		b.jumped.Store(0)
	}
	b.next.Store(int64(time.Since(b.base)) + refreshEvery)
	return b
}

// Now returns the lease clock's reading in nanoseconds.
func (b *Boot) Now() int64 {
	a := b.anchor.Load()
	if d := b.counted(readTicksInOrder()) - a.ticks; d < a.span {
		return a.at(d)
	}
	return b.renew()
}

// Relaxed is Now without waiting for the loads that come before it, which takes
// half the time: the CPU may look at the counter that much early, less than
// a microsecond. So of two readings of which one surely happened after the other,
// on different cores, the later can be smaller by that much. A limiter pays old
// readings as of then, and does not mind; Guard covers it (conservation.md A2).
func (b *Boot) Relaxed() int64 {
	a := b.anchor.Load()
	if d := b.counted(readTicks()) - a.ticks; d < a.span {
		return a.at(d)
	}
	return b.renew()
}

// full is a reading that rests on no counter of ours.
func (b *Boot) full() int64 {
	t := time.Now()
	m := int64(t.Sub(b.base))
	lead := b.wall(t) - m
	if step := lead - b.lead.Load(); step >= stepMin || step <= -stepMin {
		b.measure()
		// Only now: whoever reads meanwhile must measure too. A caller that was
		// overtaken stores an old lead, and the next one measures again.
		b.lead.Store(lead)
	} else if due := b.next.Load(); m >= due && b.next.CompareAndSwap(due, m+refreshEvery) {
		b.measure() // once per interval, however many callers are due
	}
	return m + b.offset.Load()
}

// measure raises the offset to what it is now. The monotonic reading is taken
// after the other, so the difference is never above the true offset and raising
// to it never overshoots. A caller that is preempted in between measures too
// little, and measures again.
func (b *Boot) measure() {
	for range measureTries {
		before := time.Since(b.base)
		boot, ok := b.read()
		if !ok {
			return
		}
		after := time.Since(b.base)
		b.raise(boot - int64(after))
		if after-before < preempted {
			return
		}
	}
}

func (b *Boot) raise(to int64) {
	for {
		old := b.offset.Load()
		if to <= old {
			return
		}
		if b.offset.CompareAndSwap(old, to) {
			if to-old >= jumpMin {
				b.jumped.Add(to - old)
				b.jumps.Add(1)
			}
			return
		}
	}
}

// Jumps returns how many times suspended time was found, and how much in all.
func (b *Boot) Jumps() (n uint64, total time.Duration) {
	return b.jumps.Load(), time.Duration(b.jumped.Load())
}
