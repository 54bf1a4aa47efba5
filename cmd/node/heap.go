package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How large the heap may grow before it is collected, in percent of what is alive.
// A node has about a megabyte alive and makes a few kilobytes of garbage for each
// request, most of it net/http's. As Go is by default it collects at 4 MB, fifty times
// a second under load, which is a twelfth of all its CPU; with roomBytes for garbage it
// is about a hundredth. A node without load stays small: collections are rare there anyway;
// and so does one with much alive, such as many tenants.
const (
	calmPercent = 100
	busyPercent = 800 // the most
	roomBytes   = 32 << 20

	busyCycles  = 3    // collections in a second
	busyAsked   = 1000 // and requests, that make a node busy: a start is none
	calmSeconds = 10   // without any that make it calm again
)

// heap decides how much the heap may grow. It is told of each second.
type heap struct {
	percent int // in force
	quiet   int // seconds in a row without a collection
}

// next returns the percentage for the next second after one with so many units asked
// for and collections, the last of which left so many bytes alive. It is calmPercent times a
// power of two, so that it does not change with every collection.
func (h *heap) next(asked int64, cycles, alive uint64) int {
	if h.quiet++; cycles > 0 {
		h.quiet = 0
	}
	if h.quiet >= calmSeconds {
		h.percent = calmPercent
	}
	if (cycles < busyCycles || asked < busyAsked) && h.percent == calmPercent {
		return h.percent
	}
	h.percent = calmPercent
	for h.percent < busyPercent && alive*uint64(2*h.percent)/100 <= roomBytes {
		h.percent *= 2
	}
	return h.percent
}

// tendHeap minds the process's collector until ctx ends, unless its user does. asked
// is how much was asked for since the start.
func tendHeap(ctx context.Context, goGC string, asked func() int64) {
	if goGC != "" {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	h := heap{percent: calmPercent}
	now := samples()
	metrics.Read(now)
	for {
		last, before, percent := now[0].Value.Uint64(), asked(), h.percent
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(now)
		if h.next(asked()-before, now[0].Value.Uint64()-last, now[1].Value.Uint64()) != percent {
			debug.SetGCPercent(h.percent)
		}
	}
}

func samples() []metrics.Sample {
	return []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}}
}
