package main

import (
	"runtime/metrics"
	"testing"
)

func TestTheHeapMayGrowWhileThereAreManyCollections(t *testing.T) {
	h := heap{percent: calmPercent}
	seconds := func(n int, cycles uint64, want int) {
		t.Helper()
		for i := range n {
			if got := h.next(cycles); got != want {
				t.Fatalf("second %d with %d collections: %d percent, want %d", i, cycles, got, want)
			}
		}
	}
	seconds(100, 0, calmPercent)
	seconds(100, busyCycles-1, calmPercent)
	seconds(1, busyCycles, busyPercent)
	seconds(calmSeconds-1, 0, busyPercent)
	seconds(100, 1, busyPercent) // rarer, because it may grow
	seconds(calmSeconds-1, 0, busyPercent)
	seconds(1, 0, calmPercent)
	seconds(1, 50, busyPercent)
}

func TestTheRuntimeCountsCollectionsUnderTheNameThatIsRead(t *testing.T) {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	if metrics.Read(s); s[0].Value.Kind() != metrics.KindUint64 {
		t.Fatalf("kind %v", s[0].Value.Kind())
	}
}
