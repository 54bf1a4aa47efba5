package core

import (
	"testing"
	"time"
)

func TestAStalledOwnerGetsItsBaseBackWhenItsLoansHaveRunOut(t *testing.T) {
	w := newWorld(t, 8, fiveNodes)
	w.start()
	lender := w.hosts[1]
	w.hosts[0].load[0] = 20_000
	w.run(5 * time.Second)
	if lender.share() > lender.base()/10 {
		t.Fatalf("it enforces %d of its base %d: nothing is lent, so nothing is tested", lender.share(), lender.base())
	}
	plane := lender.core.budgets[0].Plane
	w.during = func() { plane.TakeOver(w.now, func() bool { return lender.stalled }) }
	lender.stalled = true
	w.run(2500 * time.Millisecond)
	if lender.share() > lender.base()/10 {
		t.Errorf("it enforces %d before its loans can have run out", lender.share())
	}
	w.run(2 * time.Second)
	if lender.share() != lender.base() {
		t.Errorf("stalled, it enforces %d, want its base %d", lender.share(), lender.base())
	}
	// It wakes and lends again at once; the sum is checked at every event.
	lender.stalled = false
	w.until(3*time.Second, "the busy node has its loans back", func() bool { return w.hosts[0].percent() > 99 })
	if plane.overridden() {
		t.Error("the owner is back, and the static share is still in force")
	}
}
