package core

import (
	"testing"
	"time"

	"subak/allocator"
)

// twinOf starts another process of h's name, with a copy of its data directory or
// with an empty one and the flag of a first start.
func (w *world) twinOf(h *host, copied bool) *host {
	twin := &host{w: w, name: h.name, load: []float64{0, 0}, owed: make([]float64, 2), drops: map[string]int{}}
	if copied {
		disk := *h.disk
		twin.disk = &disk
	}
	w.hosts = append(w.hosts, twin)
	twin.start(!copied)
	return twin
}

// ownPart is what h enforces of its own base.
func (h *host) ownPart() allocator.Rate {
	steps := h.core.led.Steps(h.clock(), 0, nil)
	return steps[len(steps)-1].Rate
}

func TestOfTwoProcessesOfOneNameOneYieldsAndTheOtherGetsTheBase(t *testing.T) {
	for _, c := range []struct {
		name   string
		copied bool
		loss   float64
	}{
		{"empty directory and the flag of a first start", false, 0},
		{"copied directory", true, 0},
		{"copied directory, 30 % loss", true, 0.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var both time.Duration
			var most float64
			for seed := range uint64(10) {
				w := newWorld(t, 80+seed, fiveNodes)
				w.delay, w.jitter = 20*time.Millisecond, 60*time.Millisecond
				w.start()
				w.hosts[0].load[1] = 9000
				w.run(5 * time.Second)
				w.loss, w.lenient = c.loss, true
				old := w.hosts[1]
				twin := w.twinOf(old, c.copied)
				last, overlap := w.now, int64(0)
				w.during = func() {
					if old.ownPart() > 0 && twin.ownPart() > 0 {
						overlap += w.now - last
					}
					last = w.now
				}
				w.peak = 0
				w.until(30*time.Second, "one of the two has yielded", func() bool { return old.core.Twin().Yielded || twin.core.Twin().Yielded })
				both, most = max(both, time.Duration(overlap)), max(most, float64(w.peak)/float64(w.limit))
				w.loss, w.lenient = 0, false
				stays, gone := twin, old
				if twin.core.Twin().Yielded {
					stays, gone = old, twin
				}
				w.until(15*time.Second, "the other one lends the base", func() bool { return w.hosts[0].percent() > 88 })
				w.run(5 * time.Second)
				if stays.core.Twin().Yielded || gone.share() != 0 || old.core.Twin().Seen+twin.core.Twin().Seen != 3 {
					t.Errorf("seed %d: the one that stays %+v, the other %+v, which enforces %d", 80+seed, stays.core.Twin(), gone.core.Twin(), gone.share())
				}
			}
			t.Logf("both enforced a base for at most %s; the sum was at most %.3f of the budget", both, most)
		})
	}
}

// What remains: while the network keeps the two apart, neither can know.
func TestTwinsThatTheNetworkKeepsApartExceedTheBudgetByNoMoreThanTheirBase(t *testing.T) {
	w := newWorld(t, 95, fiveNodes)
	w.start()
	w.hosts[0].load[1] = 20_000
	w.run(5 * time.Second)
	old := w.hosts[1]
	old.cut, w.lenient, w.peak = true, true, 0
	twin := w.twinOf(old, true)
	w.run(30 * time.Second)
	t.Logf("apart, the sum is at most %.3f of the budget; the base is %.3f", float64(w.peak)/float64(w.limit), float64(old.base())/float64(w.limit))
	if w.peak > w.limit+old.base() || w.peak <= w.limit {
		t.Errorf("peak %d, limit %d, base %d", w.peak, w.limit, old.base())
	}
	old.cut = false
	took := w.until(time.Second, "together again, one of the two has stopped", func() bool { return old.ownPart() == 0 || twin.ownPart() == 0 })
	t.Logf("after the cut healed: %s", took)
	w.run(10 * time.Second)
	w.lenient, w.peak = false, 0
	w.until(10*time.Second, "the base is lent again", func() bool { return w.hosts[0].percent() >= 99 })
}

func TestASightingOfLongAgoIsNoReasonToYield(t *testing.T) {
	twin := Twin{Seen: 1, Last: 5}
	if !twin.Recent(5+twinWindow-1) || twin.Recent(5+twinWindow) || (Twin{}).Recent(1) {
		t.Error("a sighting counts for ten minutes")
	}
}
