package bound

import (
	"fmt"
	"math/bits"

	"subak/allocator"
)

// limits is the limit as a function of time, constant but for its changes.
type limits struct {
	cfg  *Config
	full wide // what the largest limit gives in burst and spread: level is measured from there
	next int  // first change at which no window has been begun yet
}

func (c *Config) validateChanges() error {
	if len(c.Changes) > 0 && c.Grain > 0 {
		return fmt.Errorf("%w: changes of the limit are judged exactly, without a grain", ErrConfig)
	}
	for i, ch := range c.Changes {
		if ch.Limit < 0 {
			return fmt.Errorf("%w: negative limit at %d", ErrConfig, ch.At)
		}
		if i > 0 && ch.At < c.Changes[i-1].At {
			return fmt.Errorf("%w: the change at %d comes after that at %d", ErrConfig, ch.At, c.Changes[i-1].At)
		}
	}
	return nil
}

func newLimits(c *Config) limits {
	largest := c.Limit
	for _, ch := range c.Changes {
		largest = max(largest, ch.Limit)
	}
	slack := satAdd(int64(c.Burst), satAdd(int64(c.Spread), int64(c.Grain)))
	return limits{cfg: c, full: product(largest, slack)}
}

// start is the limit by which the tokens at the instant t are judged: the
// smaller one at a change.
func (l *limits) start(t int64) allocator.Rate {
	before, after := l.cfg.Limit, l.cfg.Limit
	for _, c := range l.cfg.Changes {
		if c.At < t {
			before = c.Limit
		}
		if c.At <= t {
			after = c.Limit
		}
	}
	return min(before, after)
}

// integral is what the limit gives from one instant to a later one.
func (l *limits) integral(from, to int64) wide {
	var sum wide
	rate := l.cfg.Limit
	for _, c := range l.cfg.Changes {
		if c.At > from {
			sum = sum.plus(product(rate, min(c.At, to)-from))
			from = min(c.At, to)
		}
		rate = c.Limit
	}
	return sum.plus(product(rate, to-from))
}

// allowed is what may be admitted in the window [from, to] as arrivals show it,
// without the slots.
func (l *limits) allowed(from, to int64) wide {
	from -= int64(l.cfg.Spread)
	return l.integral(from, to).plus(product(l.start(from), int64(l.cfg.Burst)))
}

// most is allowed and the slots, in whole units.
func (l *limits) most(from, to int64) int64 {
	return l.allowed(from, to).plus(l.cfg.slots()).whole()
}

// gap is the least level at the instant t, that of a window which begins there.
func (l *limits) gap(t int64) wide {
	if len(l.cfg.Changes) == 0 {
		return wide{}
	}
	return l.full.minus(l.allowed(t, t))
}

// skipTo begins at the instant t.
func (l *limits) skipTo(t int64) {
	for l.next < len(l.cfg.Changes) && l.begins(l.next) <= t {
		l.next++
	}
}

// begins is where a window begins that sees change i at its start.
func (l *limits) begins(i int) int64 { return l.cfg.Changes[i].At + int64(l.cfg.Spread) }

// drain returns the level at now of one that was level at last. Of all windows
// that begin in between, the worst begin at now or where the limit changes.
func (l *limits) drain(level wide, last, now int64) wide {
	for ; l.next < len(l.cfg.Changes) && l.begins(l.next) <= now; l.next++ {
		at := l.begins(l.next)
		level = level.minus(l.integral(last, at)).atLeast(l.gap(at))
		last = at
	}
	return level.minus(l.integral(last, now)).atLeast(l.gap(now))
}

// product is rate times ns; 0 for a negative time.
func product(rate allocator.Rate, ns int64) wide {
	hi, lo := bits.Mul64(uint64(rate), uint64(max(ns, 0)))
	return wide{hi, lo}
}
