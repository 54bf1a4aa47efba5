package main

import (
	"runtime/metrics"
	"testing"
)

func TestTheHeapMayGrowWhileThereAreManyCollections(t *testing.T) {
	h := heap{percent: calmPercent}
	const little = 1 << 20
	seconds := func(n int, cycles, alive uint64, want int) {
		t.Helper()
		for i := range n {
			if got := h.next(busyAsked, cycles, alive); got != want {
				t.Fatalf("second %d with %d collections and %d alive: %d percent, want %d", i, cycles, alive, got, want)
			}
		}
	}
	seconds(100, 0, little, calmPercent)
	seconds(100, busyCycles-1, little, calmPercent)
	seconds(1, busyCycles, little, busyPercent)
	seconds(calmSeconds-1, 0, little, busyPercent)
	seconds(100, 1, little, busyPercent) // rarer, because it may grow
	seconds(1, 1, 10<<20, 200)
	seconds(1, 1, 100<<20, calmPercent) // as much again is room enough
	seconds(1, busyCycles, little, busyPercent)
	seconds(calmSeconds-1, 0, little, busyPercent)
	seconds(1, 0, little, calmPercent)
	if got := h.next(busyAsked-1, 100, little); got != calmPercent {
		t.Errorf("%d percent for collections without requests, want %d", got, calmPercent)
	}
}

func TestTheRuntimeKnowsTheNamesThatAreRead(t *testing.T) {
	now := samples()
	metrics.Read(now)
	for _, s := range now {
		if s.Value.Kind() != metrics.KindUint64 {
			t.Errorf("%s: kind %v", s.Name, s.Value.Kind())
		}
	}
}
