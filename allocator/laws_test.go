package allocator

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAllocateEqualsTheSlowReferenceInEveryMode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := everything(9, 5).draw(t)
		a := sc.build(t)
		got := run(t, a, sc.demand)
		want, parked := refAllocate(sc.spec, sc.ceilings, sc.demand)
		for c := range want {
			if got[c] != want[c] {
				t.Fatalf("cell %d: got %d, want %d\ngot  %v\nwant %v", c, got[c], want[c], got, want)
			}
		}
		if a.Parked() != parked {
			t.Fatalf("parked: got %d, want %d", a.Parked(), parked)
		}
	})
}
