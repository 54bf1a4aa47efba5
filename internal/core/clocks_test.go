package core

import (
	"testing"
	"time"

	"subak/internal/drift"
)

// clock is the host's lease clock.
func (h *host) clock() int64 { return h.w.now + h.w.now/1e6*h.ppm }

// wallMillis is its wall clock, as the core is told it.
func (h *host) wallMillis() uint64 { return uint64(max(h.w.now/1e6+h.wall.Milliseconds(), 0)) + 1 }

// verdict of h on the clock of another.
func (h *host) verdict(on *host) drift.Verdict {
	id, _ := h.core.dir.Lookup(on.name)
	return h.core.Clock(h.clock(), id).Verdict
}

func TestLoansStopWithAPeerWhoseClockIsProvenWrong(t *testing.T) {
	for _, c := range []struct {
		name      string
		ppm       int64
		seen, own drift.Verdict
	}{{"2 % fast", 20_000, drift.Fast, drift.Slow}, {"2 % slow", -20_000, drift.Slow, drift.Fast}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 70, fiveNodes)
			w.delay = 141 * time.Millisecond
			bad := w.hosts[2]
			bad.ppm = c.ppm
			w.start()
			w.hosts[0].load[1] = 20_000
			took := w.until(90*time.Second, "every peer has the proof", func() bool {
				for _, h := range w.hosts {
					if h != bad && h.verdict(bad) != c.seen {
						return false
					}
				}
				return true
			})
			t.Logf("proven by all %s after the start of load", took)
			w.run(10 * time.Second)
			for _, h := range w.hosts {
				if h != bad && (h.lent(bad.name) != 0 || bad.lent(h.name) != 0 || bad.verdict(h) != c.own) {
					t.Errorf("%s lends %d and is lent %d, the odd one calls its clock %v", h.name, h.lent(bad.name), bad.lent(h.name), bad.verdict(h))
				}
			}
			if got := w.limit - bad.base(); w.hosts[0].share() < got*99/100 || bad.share() != bad.base() {
				t.Errorf("n0 has %d of the others' %d, the odd one %d", w.hosts[0].share(), got, bad.share())
			}
		})
	}
}

func TestClocksWithinEpsRaiseNoAlarm(t *testing.T) {
	w := newWorld(t, 71, fiveNodes)
	w.delay, w.jitter, w.loss = 5*time.Millisecond, 300*time.Millisecond, 0.2
	for i, h := range w.hosts { // the fastest and the slowest are 0.9 % apart
		h.ppm = int64(i)*2200 - 4400
	}
	w.start()
	w.hosts[0].load[1] = 20_000
	for range 6 {
		w.run(10 * time.Second)
		for _, h := range w.hosts {
			for _, peer := range w.hosts {
				if h.verdict(peer) != drift.Within {
					t.Fatalf("%s calls the clock of %s %v", h.name, peer.name, h.verdict(peer))
				}
			}
		}
	}
}

func TestStepsOfTheWallClockMoveNoShare(t *testing.T) {
	w := newWorld(t, 72, fiveNodes)
	w.start()
	w.hosts[0].load[1] = 20_000
	w.run(3 * time.Second)
	low := 100.0
	w.during = func() { low = min(low, w.hosts[0].percent()) }
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour, 30 * 365 * 24 * time.Hour, -30 * 365 * 24 * time.Hour, 0} {
		for i, h := range w.hosts {
			h.wall = step * time.Duration(i%2)
		}
		w.run(5 * time.Second)
	}
	if low < 99 {
		t.Errorf("the busy node fell to %.1f %%", low)
	}
	// Restarts with a clock far back: lives are told apart all the same.
	w.during = nil
	w.hosts[3].wall = -10 * time.Hour
	w.hosts[3].kill()
	w.hosts[3].start(false)
	w.until(5*time.Second, "the restarted node lends again", func() bool { return w.hosts[0].percent() >= 99 })
}

// A suspended machine decides nothing and turns no loop; when it wakes, the first
// request may come before anything else runs.
func TestAfterASuspendLoansAreGoneAtTheFirstDecision(t *testing.T) {
	w := newWorld(t, 73, fiveNodes)
	w.start()
	sleeper := w.hosts[0]
	sleeper.load[1] = 20_000
	w.run(3 * time.Second)
	if sleeper.percent() < 99 {
		t.Fatal("nothing was borrowed: the test does not test")
	}
	sleeper.stalled, sleeper.load[1] = true, 0
	w.run(time.Minute)
	if got := sleeper.share(); got > sleeper.base() {
		t.Errorf("awake, and before any turn it enforces %d, over its base %d", got, sleeper.base())
	}
	admitted := 0
	for range 20_000 {
		if sleeper.core.budgets[0].Limiter.Decide(sleeper.clock(), 1, 1).OK {
			admitted++
		}
	}
	if base := int(sleeper.base() / 1_000_000); admitted > base {
		t.Errorf("it admits %d at once, more than a second of its base, %d", admitted, base)
	}
	sleeper.stalled, sleeper.load[1] = false, 20_000
	w.until(2*time.Second, "it has the budget again", func() bool { return sleeper.percent() >= 99 })
}
