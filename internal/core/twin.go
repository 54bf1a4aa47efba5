package core

import (
	"time"

	"subak/allocator/ledger"
)

// Twins are two live processes of one name. They are kept apart by the lock on
// the data directory and by the gossip port; where both fail, each learns of the
// other from what the peers have heard. Whoever is the lower of the two stops at
// once and begins a new life above the other, with no base until the others vouch
// for it. That alone would go on for ever, each above the other in turn. So the
// process that meets the other a second time, as far above itself as an answer is,
// yields: it enforces nothing until an operator ends one of the two. The sightings
// alternate, beginning with the process that started first; so it is that one that
// yields, and never both.

// twinWindow is how long a sighting counts, in ns.
const twinWindow = int64(10 * time.Minute)

// Twin is what is known of another process of this name.
type Twin struct {
	Seen    int    // sightings in all
	Last    int64  // the newest, lease clock; 0 for never
	Above   uint64 // the highest incarnation of the name seen then
	Yielded bool   // this process gave way: it enforces nothing until it is restarted
}

// Recent reports whether the other was seen lately.
func (t Twin) Recent(now int64) bool { return t.Seen > 0 && now-t.Last < twinWindow }

// Twin returns what is known of another process of this name.
func (c *Core) Twin() Twin { return c.twin }

// MemoryOld reports whether the memory that this process started from was found
// to be an old copy, not longer ago than a sighting of a twin counts.
func (c *Core) MemoryOld(now int64) bool {
	return c.memoryOld != 0 && now-c.memoryOld < twinWindow
}

// aboveFormer is how far above the life that was seen the next one begins: an hour
// in incarnations. A node without memory whose clock was set back may have left
// several lives that are higher than its own, and to meet them one after the other
// must not look like a second process that begins anew each time: one such step
// passes most of them, and what is less than a step above this life is no answer to it.
const aboveFormer = uint64(time.Hour/time.Millisecond) << ledger.IncarnationRandomBits

// beginAgain starts a new life, since the own name was seen in a life that this
// one does not know: that of a twin, or that of a former process whose memory was
// replaced by an old copy.
func (c *Core) beginAgain(now int64) {
	if c.twin.Yielded {
		return
	}
	if c.led.MemoryOld() && c.memoryOld == 0 {
		c.memoryOld = now
		c.cfg.CountDrop("memory-outdated")
	} else {
		c.cfg.CountDrop("own-name-higher")
		c.twin.Yielded = c.twin.Recent(now) && c.led.HighestOwn()-c.led.Incarnation() >= aboveFormer
		c.twin.Seen, c.twin.Last, c.twin.Above = c.twin.Seen+1, now, c.led.HighestOwn()
	}
	if !c.twin.Yielded {
		inc, err := c.cfg.NewLife(min(c.led.HighestOwn()+aboveFormer, max(c.led.HighestOwn(), ledger.MaxIncarnation-aboveFormer)))
		if err == nil {
			err = c.led.Restart(now, inc)
		}
		if err != nil {
			c.cfg.CountDrop("no-new-life")
		}
	}
	c.install(now) // superseded or in quarantine: either way the own part is 0
}
