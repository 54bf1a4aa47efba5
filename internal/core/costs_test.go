package core

import (
	"testing"
	"time"

	"subak/enforce"
)

// A small share must be able to pay the dearest request that a rule names one
// day, whenever the rule came.
func TestADearerRuleIsServedOnceItsCostIsTold(t *testing.T) {
	w := newWorld(t, 1, fiveNodes)
	w.start()
	w.run(2 * time.Second)
	h := w.hosts[0]
	name, cost := h.core.budgets[0].Name, 4*int64(h.base())/1_000_000
	before := h.core.budgets[0].Limiter
	pays := func() bool { return h.core.budgets[0].Limiter.RetryAfter(w.now, 1, cost) != enforce.NoToken }
	if pays() {
		t.Fatal("the bucket holds the cost already: the test does not test")
	}
	installed := 0
	h.core.cfg.Installed = func([]*Budget) { installed++ }
	set := func(costs map[string]int64) {
		t.Helper()
		if err := h.core.SetLargestCosts(w.now, costs); err != nil {
			t.Fatal(err)
		}
	}
	if set(map[string]int64{name: 1, "other": 7}); h.core.budgets[0].Limiter != before || installed != 0 {
		t.Error("a cost of one, or for no budget here, changed a limiter")
	}
	if set(map[string]int64{name: cost}); h.core.budgets[0].Limiter == before || installed != 1 {
		t.Error("no other limiter is in force, or nobody was told")
	}
	if !pays() {
		t.Error("the dear request can never be paid")
	}
	share := h.share()
	w.run(2 * time.Second) // the sum is checked at every event
	if h.share() < share {
		t.Errorf("the share fell from %v to %v", share, h.share())
	}
	if err := h.core.SetLargestCosts(w.now, map[string]int64{name: 1 << 62}); err == nil || !pays() {
		t.Errorf("an impossible cost: %v, want it refused and nothing changed", err)
	}
}
