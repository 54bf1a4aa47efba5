package node

import (
	"testing"
	"time"
)

func TestAPauseOfTheWholeProcessIsAStallToo(t *testing.T) {
	const second = int64(time.Second)
	dog := &watchdog{stallMax: time.Second}
	if got := dog.beat(100 * second); got != 0 {
		t.Errorf("the first turn ends a stall of %v", got)
	}
	if got := dog.beat(101*second - 1); got != 0 || dog.stalls.Load() != 0 {
		t.Errorf("a turn in time ends a stall of %v", got)
	}
	if got := dog.beat(108 * second); got < 6*time.Second || dog.stalls.Load() != 1 {
		t.Errorf("a pause ends a stall of %v, %d counted", got, dog.stalls.Load())
	}
	if !dog.check(110*second, nil) || dog.beat(111*second) != 3*time.Second || dog.stalls.Load() != 2 {
		t.Errorf("%d stalls counted, want 2: what the watchdog saw counts once", dog.stalls.Load())
	}
}
