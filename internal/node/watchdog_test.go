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
