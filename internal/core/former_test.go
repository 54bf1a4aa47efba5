package core

import (
	"testing"
	"time"

	"subak/allocator/ledger"
)

// A node without memory whose clock was set back meets one former life after the
// other, each higher than its own (timed adversary, seed 1110).
func TestSeveralFormerLivesAreNoSecondProcess(t *testing.T) {
	w := newWorld(t, 40, fiveNodes)
	h := w.hosts[0]
	h.noDisk = true
	w.start()
	seen := h.core.led.HighestOwn()
	for _, later := range []time.Duration{time.Minute, 20 * time.Minute} {
		former := *w.hosts[1].core.led.PeerRow(h.core.self) // as that life's own row
		former.Inc = seen + uint64(later/time.Millisecond)<<ledger.IncarnationRandomBits
		former.Seq++
		if got := h.core.led.Merge(w.now, &former); got == ledger.OwnNameHigher {
			h.core.beginAgain(w.now)
		}
	}
	if h.core.Twin().Yielded {
		t.Error("gave way to lives that are over")
	}
	if got := h.drops["own-name-higher"]; got != 1 {
		t.Errorf("began anew %d times, want once", got)
	}
}
