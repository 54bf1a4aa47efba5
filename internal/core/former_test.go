package core

import (
	"testing"
	"time"

	"subak/allocator/ledger"
)

// A node without memory whose clock was set back meets one former life after the
// other, each higher than its own (timed adversary, seed 1110); one of them had met
// another and had gone above it as this one does (seeds 1224, 1695).
func TestSeveralFormerLivesAreNoSecondProcess(t *testing.T) {
	const step = aboveFormer >> ledger.IncarnationRandomBits * uint64(time.Millisecond)
	for _, c := range []struct {
		name  string
		above []time.Duration // the first life, by former lives
		anew  int
	}{
		{"below the next life", []time.Duration{time.Minute, 20 * time.Minute}, 1},
		{"a little above the next life", []time.Duration{time.Minute, time.Minute + time.Duration(step) + 5*time.Minute}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 40, fiveNodes)
			h := w.hosts[0]
			h.noDisk = true
			w.start()
			first := h.core.led.HighestOwn()
			for _, above := range c.above {
				former := *w.hosts[1].core.led.PeerRow(h.core.self) // as that life's own row
				former.Inc = first + uint64(above/time.Millisecond)<<ledger.IncarnationRandomBits
				former.Seq++
				if got := h.core.led.Merge(w.now, &former); got == ledger.OwnNameHigher {
					h.core.beginAgain(w.now)
				}
			}
			if h.core.Twin().Yielded {
				t.Error("gave way to lives that are over")
			}
			if got := h.drops["own-name-higher"]; got != c.anew {
				t.Errorf("began anew %d times, want %d", got, c.anew)
			}
		})
	}
}
