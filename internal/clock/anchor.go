package clock

import (
	"math/bits"
	"time"
)

// BootError is by how much a reading of Boot may be off from a full one made in
// the same moment: what a wrong rate makes of anchorSpan, and a preemption.
const BootError = 2 * time.Microsecond

const (
	// anchorSpan is how long, in nanoseconds, readings go on from a full one.
	anchorSpan = int64(500 * time.Microsecond)

	// sharp is how long, in nanoseconds, a full reading may have taken for the
	// counter's value beside it to be of use.
	sharp = int64(time.Microsecond)

	// A rate is measured over calibrateMin nanoseconds at first, and anew every
	// calibrateEvery.
	calibrateMin   = int64(10 * time.Millisecond)
	calibrateEvery = int64(time.Second)

	// Two measurements of the rate agree within 1/2^agreeBits. That is about what
	// NTP may slew.
	agreeBits = 10

	// Readings are counted a little slowly, by 1/2^slowBits, so that the next full
	// reading is seldom behind; where it is, by 1/2^slewBits until it is not.
	slowBits, slewBits = 13, 9

	// astray is how far, in nanoseconds and apart from what a rate in agreement
	// explains, a full reading may be from where the counter says it should be.
	astray = int64(10 * time.Microsecond)
)

// anchor is a full reading with the counter's value beside it, from which
// readings go on. It is immutable.
type anchor struct {
	ticks uint64 // the counter's value
	span  uint64 // for how many ticks readings go on; 0 = full readings only
	boot  int64  // the reading; no later one is below
	mult  uint64 // nanoseconds per tick while they do, 32 fraction bits

	counts   bool   // the counter may be used
	rate     uint64 // nanoseconds per tick as measured, 32 fraction bits; 0 = not yet
	from     uint64 // the counter's value where the measurement began
	fromBoot int64  // the reading; 0 = not begun
}

// at is the reading d ticks later.
func (a *anchor) at(d uint64) int64 {
	hi, lo := bits.Mul64(d, a.mult)
	return a.boot + int64(hi<<32|lo>>32)
}

// renew makes a full reading and goes on from it.
func (b *Boot) renew() int64 {
	for {
		old := b.anchor.Load()
		if !old.counts {
			return b.full()
		}
		before, t, after := b.beside(old.rate)
		n := old.follow(before, after, t)
		if b.anchor.CompareAndSwap(old, n) {
			// Where nobody counts yet, who does from now on begins above t.
			return max(n.boot, t)
		}
		if a := b.anchor.Load(); a.span > 0 {
			if d := b.ticksInOrder() - a.ticks; d < a.span {
				return a.at(d)
			}
		}
	}
}

// beside makes a full reading between two values of the counter, and again where
// it was preempted in between.
func (b *Boot) beside(rate uint64) (before uint64, t int64, after uint64) {
	for range measureTries {
		before = b.ticksInOrder()
		t = b.full()
		after = b.ticksInOrder()
		if took(before, after, rate) <= sharp {
			break
		}
	}
	return before, t, after
}

// follow returns the anchor after a, given a full reading t that was made between
// two values of the counter; a itself where nothing is to be changed.
//
// It sets the reading beside the later value, so that none runs ahead. What is
// lost by that is how long the reading took.
func (a *anchor) follow(before, after uint64, t int64) *anchor {
	if a.span == 0 {
		return a.calibrate(before, after, t)
	}
	n := *a
	floor := a.at(a.span) // no reading was above
	passed, late := after-a.ticks, took(before, after, a.rate)
	off := t - a.at(passed)
	if most := astray + (t-a.boot)>>agreeBits; passed > 1<<63 || off > most || -off > most+late {
		return &anchor{boot: floor, counts: true} // not the counter that was measured
	}
	n.ticks, n.boot, n.mult = after, max(t, floor), slower(a.rate, slowBits)
	if floor-t > late {
		n.mult = slower(a.rate, slewBits)
	}
	if late <= sharp && t-a.fromBoot >= calibrateEvery {
		if r, ok := rate(after-a.from, t-a.fromBoot); ok && agree(r, a.rate) {
			n.rate = r
		}
		n.from, n.fromBoot = after, t
	}
	return &n
}

// calibrate measures the rate twice before anybody counts.
func (a *anchor) calibrate(before, after uint64, t int64) *anchor {
	if a.fromBoot != 0 && t-a.fromBoot < calibrateMin {
		return a
	}
	n := &anchor{boot: a.boot, counts: true, from: after, fromBoot: t, rate: a.rate}
	if a.fromBoot == 0 {
		return n
	}
	r, ok := rate(after-a.from, t-a.fromBoot)
	n.rate = r
	if ok && took(before, after, r) > sharp {
		return a // the next one will do
	}
	if !ok || !agree(r, a.rate) {
		return n
	}
	n.ticks, n.mult = after, slower(r, slowBits)
	n.span, _ = bits.Div64(uint64(anchorSpan)>>32, uint64(anchorSpan)<<32, r)
	// Above whatever full readings others are making now.
	n.boot = max(a.boot, t+sharp+sharp/2)
	return n
}

// rate returns the nanoseconds per tick with 32 fraction bits, and false where no
// counter that is of use has it.
func rate(ticks uint64, ns int64) (uint64, bool) {
	if ticks == 0 || uint64(ns)>>32 >= ticks {
		return 0, false
	}
	r, _ := bits.Div64(uint64(ns)>>32, uint64(ns)<<32, ticks)
	return r, r > 1<<26 && r < 1<<42 // 1 MHz to 64 GHz
}

// agree reports whether two rates differ by no more than they may.
func agree(a, b uint64) bool {
	return a-b <= b>>agreeBits || b-a <= b>>agreeBits
}

func slower(rate uint64, bits int) uint64 { return rate - rate>>bits }

// took returns the nanoseconds from one value of the counter to another.
func took(before, after, rate uint64) int64 {
	hi, lo := bits.Mul64(after-before, rate)
	return int64(hi<<32 | lo>>32)
}

// counted returns what the counter reads, of which the CPU's own is told. The
// readings that must be fast call both themselves: the compiler inlines this and
// would not inline a function that calls the two.
func (b *Boot) counted(ticks uint64) uint64 {
	if b.count != nil {
		return b.count()
	}
	return ticks
}

// ticksInOrder reads the counter once all earlier loads are done.
func (b *Boot) ticksInOrder() uint64 { return b.counted(readTicksInOrder()) }
