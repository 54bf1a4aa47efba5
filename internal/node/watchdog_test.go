package node

import (
	"testing"
	"time"
)

func TestAStalledLoopGetsItsWholeBaseBackOnceItsLoansRanOut(t *testing.T) {
	w := newWorld(t, 20, fiveNodes)
	w.start()
	w.hosts[1].load[0] = 20_000
	w.run(3 * time.Second)
	lender := w.hosts[0]
	if lender.share() > lender.base()/10 {
		t.Fatalf("the lender still enforces %d of its base %d: nothing was lent", lender.share(), lender.base())
	}
	dog := &watchdog{stallMax: time.Second, planes: []*plane{lender.core.budgets[0].plane}}
	dog.beat(w.now)
	lender.stalled = true
	w.during = func() { dog.check(w.now) }
	w.run(2500 * time.Millisecond)
	if lender.share() > lender.base()/10 {
		t.Errorf("it enforces %d before its loans can have run out", lender.share())
	}
	w.run(2 * time.Second)
	if lender.share() != lender.base() {
		t.Errorf("stalled, it enforces %d, want its base %d", lender.share(), lender.base())
	}
	if got := dog.stalls.Load(); got != 1 {
		t.Errorf("%d stalls counted, want 1", got)
	}
	// It wakes up: the loop takes over again before anything of it can be used.
	lender.stalled = false
	w.during = func() { dog.beat(w.now); dog.check(w.now) }
	w.until(2*time.Second, "awake, it lends again", func() bool { return lender.share() < lender.base()/10 })
}

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
	if !dog.check(110*second) || dog.beat(111*second) != 3*time.Second || dog.stalls.Load() != 2 {
		t.Errorf("%d stalls counted, want 2: what the watchdog saw counts once", dog.stalls.Load())
	}
}
