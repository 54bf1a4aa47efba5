package core

import (
	"time"

	"subak/allocator"
	"subak/enforce"
)

// recentSpan is the least time that a recent rate is taken over; it is over at
// most twice that.
const recentSpan = int64(time.Second)

// recent tells how fast counters have grown lately. It keeps two readings: what
// grew since the older one is the rate, and the newer one takes its place once
// it is old enough itself. The figures are for people; nothing decides by them.
type recent struct{ older, newer reading }

type reading struct {
	at      int64 // lease clock
	refused []int64
}

func newRecent(classes int, now int64) recent {
	r := func() reading { return reading{now, make([]int64, classes)} }
	return recent{r(), r()}
}

// note takes a reading if the last one is old enough.
func (r *recent) note(now int64, counts []enforce.Counts) {
	if now-r.newer.at < recentSpan {
		return
	}
	r.older, r.newer = r.newer, r.older
	r.newer.at = now
	for k := range counts {
		r.newer.refused[k] = counts[k].Refused
	}
}

// refused returns what class k refused per second.
func (r *recent) refused(now int64, k int, counts []enforce.Counts) allocator.Rate {
	grown := counts[k].Refused - r.older.refused[k]
	seconds := float64(max(now-r.older.at, recentSpan)) / float64(time.Second)
	return allocator.Rate(float64(grown) / seconds * float64(allocator.Unit))
}
