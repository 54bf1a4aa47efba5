package core

import (
	"testing"
	"time"

	"subak/allocator"
	"subak/enforce"
	"subak/internal/epoch"
)

// A part of a class's share must never be less than that part of its base: the
// share follows the demand, and the demand of few tenants is their part.
func TestTenantsThatGetAPartOfAClassGetItOfItsBaseToo(t *testing.T) {
	w := newWorld(t, 17, func() *epoch.Document {
		doc := fiveNodes()
		b := &doc.Budgets[0]
		b.Tenants = []epoch.Tenants{
			{Class: b.Spec.Classes[0].Name, Rate: 5 * allocator.Unit, Keys: 10},
			{Class: b.Spec.Classes[1].Name, SharePPM: 100_000, Keys: 10},
		}
		return doc
	})
	w.start()
	for _, h := range w.hosts[1:] {
		h.load[0], h.load[1] = 20_000, 20_000
	}
	w.run(5 * time.Second)
	h := w.hosts[0]
	b := h.core.budgets[0]
	base := b.alloc.Base(1, h.core.pos)
	if got, want := b.shape.Tenants[1].Base, base; got != want || want == 0 {
		t.Errorf("base of a part: %v, want %v", got, want)
	}
	if got := b.shape.Tenants[0].Base; got != 0 {
		t.Errorf("base of a rate: %v, want 0", got)
	}
	// One tenant alone, while all others want everything.
	admitted := 0
	w.during = nil
	for range 2000 {
		w.run(5 * time.Millisecond)
		for range 10 {
			if b.Limiter.DecideRequest(w.now, enforce.Request{Class: 1, Cost: 1, Tenant: 7}).OK {
				admitted++
			}
		}
	}
	if want := int(base / allocator.Unit); admitted < want*9/10 || admitted > want*12/10 { // a tenth of it for 10 s
		t.Errorf("%d admitted in 10 s, want a tenth of the base of %d/s", admitted, want)
	}
}
