package clock

import "time"

// CoarseError is by how much a reading of Coarse may be behind one of Boot.
const CoarseError = time.Duration(anchorSpan) + BootError

// Coarse is Boot for whoever can do with readings that are late: it repeats the
// last full reading for as long as the CPU's counter says that it is younger than
// half a millisecond, which takes half the time of a reading of Boot. No
// goroutine keeps it going, so nothing can be paused that it needs. Where there
// is no counter to rely on, its readings are those of Boot.
//
// A limiter that is told the time late credits late and steps down late: for
// CoarseError a loan that is over may be spent on. Guard must cover that
// (conservation.md A2), as its default does twenty times. In any window the bound
// allows for CoarseError more: rate x CoarseError.
type Coarse struct{ boot *Boot }

// NewCoarse returns a coarse reading of a clock. Its readings may be mixed with
// the clock's own.
func NewCoarse(b *Boot) *Coarse { return &Coarse{b} }

// Now returns the reading in nanoseconds. It never goes backwards.
func (c *Coarse) Now() int64 {
	a := c.boot.anchor.Load()
	// Out of order with what is around it this may see the counter some
	// nanoseconds early. The reading itself is in order.
	if c.boot.counted(readTicks())-a.ticks < a.span {
		return a.boot
	}
	now := c.boot.renew()
	if a := c.boot.anchor.Load(); a.span > 0 {
		return a.boot // now may be a little later than what is repeated
	}
	return now
}
