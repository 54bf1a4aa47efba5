// Package clock reads the lease clock: nanoseconds that run on while the process
// is paused and while the machine is suspended (conservation.md A2, trap 10).
//
// Go's monotonic clock stops in suspend on Linux. Boot adds the difference to
// CLOCK_BOOTTIME, measured again at most every refresh interval, so that a
// reading is a plain monotonic one (about 25 ns) plus two atomic loads, and the
// system call of about 300 ns is rare. After a resume the reading is late by the
// time suspended for at most refreshEvery, which the lease's guard covers.
//
// Readings never go backwards: one that happens after another is not smaller.
// They have no meaning on another machine or after a reboot. Elsewhere than on
// Linux the reading is Go's monotonic clock alone.
package clock

import (
	"sync/atomic"
	"time"
)

// refreshEvery is how old the measured offset may be, in nanoseconds.
const refreshEvery = int64(10 * time.Millisecond)

// jumpMin is the least growth of the offset that counts as a jump rather than
// as a better measurement, in nanoseconds.
const jumpMin = int64(time.Millisecond)

// Boot is a lease clock. Safe for concurrent use.
type Boot struct {
	base   time.Time
	offset atomic.Int64 // CLOCK_BOOTTIME minus time since base
	next   atomic.Int64 // time since base of the next measurement
	jumps  atomic.Uint64
	jumped atomic.Int64
	read   func() (int64, bool)
}

// NewBoot returns a clock that reads as CLOCK_BOOTTIME does, where there is one.
func NewBoot() *Boot { return newBoot(readBoot) }

func newBoot(read func() (int64, bool)) *Boot {
	b := &Boot{base: time.Now(), read: read}
	if boot, ok := b.read(); ok {
		b.offset.Store(boot - int64(time.Since(b.base)))
	}
	b.next.Store(int64(time.Since(b.base)) + refreshEvery)
	return b
}

// Now returns the lease clock's reading in nanoseconds.
func (b *Boot) Now() int64 {
	m := int64(time.Since(b.base))
	if m >= b.next.Load() {
		b.refresh(m)
	}
	return m + b.offset.Load()
}

// refresh measures the offset, once per interval however many callers are due.
func (b *Boot) refresh(m int64) {
	due := b.next.Load()
	if m < due || !b.next.CompareAndSwap(due, m+refreshEvery) {
		return
	}
	boot, ok := b.read()
	if !ok {
		return
	}
	// The monotonic reading is taken after the other, so the difference is
	// never above the true offset: raising to it never overshoots, and a
	// caller preempted in between just measures too little.
	b.raise(boot - int64(time.Since(b.base)))
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
