package timed

import (
	"slices"
	"strings"
	"testing"
	"time"

	"subak/allocator"
	"subak/chaos"
)

// few are the faults of a seed in tests: less than a round.
const few = 8

// small returns the first seed from the given one on whose world is small.
func small(seed uint64, mode chaos.Mode) uint64 {
	for {
		if s, _, _ := draw(seed, mode); s.Nodes <= 5 && s.Budgets <= 2 {
			return seed
		}
		seed++
	}
}

func TestNoCheckerObjectsInAnyMode(t *testing.T) {
	r := New()
	for _, mode := range chaos.Modes() {
		seed := small(100*uint64(mode), mode)
		x := r.Run(seed, mode, few)
		if x.Violation != nil {
			t.Errorf("%s, seed %d: %+v\n%s", mode, seed, *x.Violation, r.Explain(seed, mode, few))
		}
		if x.PeakPPM < 999_000 || x.Seen[healed] == 0 {
			t.Errorf("%s, seed %d: peak %d ppm of the budget, %d heals: it was never tight", mode, seed, x.PeakPPM, x.Seen[healed])
		}
	}
}

// What each of them found is in docs/campaign.md.
func TestNoCheckerObjectsToASeedThatOnceFailed(t *testing.T) {
	const faults = 40 // as in the campaign
	r := New()
	for _, seed := range []uint64{1075, 1090, 1110, 1200, 1224, 1695, 1736} {
		if x := r.Run(seed, chaos.ModeOf(seed), faults); x.Violation != nil {
			t.Errorf("%s, seed %d: %+v", chaos.ModeOf(seed), seed, *x.Violation)
		}
	}
}

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(2) {
		seed = small(50*seed, chaos.Plain)
		a, b := New().Run(seed, chaos.Plain, few), New().Run(seed, chaos.Plain, few)
		if a.Hash != b.Hash || a.Actions != b.Actions {
			t.Errorf("seed %d: trace %x of %d events, then %x of %d", seed, a.Hash, a.Actions, b.Hash, b.Actions)
		}
		seen[a.Hash] = true
	}
	if len(seen) != 2 {
		t.Errorf("2 seeds gave %d traces", len(seen))
	}
}

func TestAScheduleIsReadAsItIsPrinted(t *testing.T) {
	for seed := range uint64(50) {
		_, schedule := Schedule(seed, chaos.Plain, 100)
		again, err := Parse("# a comment\n\n" + Format(schedule))
		if err != nil || !slices.Equal(schedule, again) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for _, bad := range []string{"1s", "1s crash n1 0 1s 0 7", "1s flood n1 0 1s 0", "1 crash n1 0 1s 0", "1s crash nx 0 1s 0"} {
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: error %v, want one that names the line", bad, err)
		}
	}
}

func TestAScheduleForOtherNodesDoesNothingWrong(t *testing.T) {
	s := fast(1)
	var odd []Fault
	for k := range faultKinds {
		odd = append(odd, Fault{At: warmUp, For: 1e9, Kind: k, Who: 1000, With: 1000, Arg: 1 << 40}, Fault{At: warmUp, For: -1, Kind: k, Who: -7, With: -7, Arg: -1},
			Fault{At: warmUp, For: -1, Kind: k, Who: 1, With: -7, Arg: -1})
	}
	if v := New().Replay(s, odd).Violation; v != nil && v.Checker != "heal" {
		t.Error(*v)
	}
}

// fast draws a small world whose nodes all have work.
func fast(seed uint64) Setup {
	s, _, _ := draw(seed, chaos.Plain)
	s.Nodes, s.Budgets, s.Classes, s.Limits = 3, 1, 2, []int64{9000}
	s.Weights, s.Disk, s.Delay = []int64{1, 1, 1}, []bool{true, true, false}, matrix(3, func(int, int) int64 { return 50_000 })
	s.Jitter, s.LossPPM, s.DuplicatePPM, s.Pull, s.RelayPPM, s.EdgePPM, s.CostMost = 0, 0, 0, 0, 0, 0, 1
	s.EpsPPM, s.RhoPPM, s.Guard, s.Term = 10_000, 0, 0, 2*time.Second
	s.Burst = 100 * time.Millisecond
	return s
}

// busy is a schedule in which the first node borrows all there is, is cut off from
// 6 s on, and the others want it back.
func busy() []Fault {
	return []Fault{
		{At: 3e9, Kind: Demand, Who: 0, With: 1, Arg: 20_000_000},
		{At: 6e9, For: 3e9, Kind: Split, Who: -1, Arg: 1},
		{At: 6e9 + 1, Kind: Demand, Who: 1, With: 1, Arg: 20_000_000},
		{At: 6e9 + 1, Kind: Demand, Who: 2, With: 1, Arg: 20_000_000},
	}
}

// TestClocksBeyondTheirAllowanceAreFoundOut shows that the adversary is sharp:
// with a lease of 2 s and clocks that differ by less than the allowance of 1 %
// nothing happens; with a little more the borrower still uses what its lender
// has taken back.
func TestClocksBeyondTheirAllowanceAreFoundOut(t *testing.T) {
	for _, c := range []struct {
		ppm    int64 // of the slow borrower and, the other way, of the fast lenders
		broken bool
	}{{4950, false}, {5200, true}} {
		schedule := append(busy(), Fault{At: 1, Kind: Drift, Who: 0, Arg: -c.ppm}, Fault{At: 1, Kind: Drift, Who: 1, Arg: c.ppm}, Fault{At: 1, Kind: Drift, Who: 2, Arg: c.ppm})
		v := New().Replay(fast(7), append(schedule, Fault{At: 9e9, Kind: Burst, Who: 0})).Violation
		if (v != nil) != c.broken {
			t.Errorf("clocks off by %d ppm: violation %v, want one: %v", c.ppm, v, c.broken)
		}
	}
}

func TestAFailingScheduleIsShrunkToWhatMatters(t *testing.T) {
	schedule := append(busy(), Fault{At: 1, Kind: Drift, Who: 0, Arg: -5200}, Fault{At: 1, Kind: Drift, Who: 1, Arg: 5200}, Fault{At: 4e9, For: 1e9, Kind: Loss, Who: -1, Arg: 100_000},
		Fault{At: 5e9, Kind: Wall, Who: 2, Arg: 5000}, Fault{At: 8e9, Kind: Wall, Who: 2, Arg: 5000})
	r := New()
	fails := func(part []Fault) bool { return r.Replay(fast(7), part).Violation != nil }
	if !fails(schedule) {
		t.Fatal("the schedule does not fail: the test does not test")
	}
	short := chaos.Shrink(schedule, shrinkTries, fails)
	for _, f := range short {
		if f.Kind == Loss || f.Kind == Wall {
			t.Errorf("%s is not needed", f)
		}
	}
	text := r.Describe(fast(7), short, lastLines)
	for _, want := range []string{"VIOLATION of", "takes the row", "split n-1", "drift n0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// TestEachCheckerSeesWhatItIsFor breaks the world behind the product's back.
func TestEachCheckerSeesWhatItIsFor(t *testing.T) {
	for checker, sabotage := range map[string]func(w *world){
		"budget": func(w *world) { w.stocks[0].limit-- },
		"shares": func(w *world) { w.stocks[0].shares[1]--; w.lapse(w.hosts[1]) },
		"agreement": func(w *world) {
			t := w.hosts[1].budget("b0").Target
			t[0]++
			t[1]--
		},
		"starved": func(w *world) {
			for _, h := range w.hosts {
				h.floor[0] = lowest{since: w.now, cur: 9000 * allocator.Unit, prev: 9000 * allocator.Unit, full: true}
			}
			h := w.hosts[0] // lends its base to the busy one
			b := h.budget("b0")
			b.Total[0], b.View.Ceilings[0] = 9000*allocator.Unit, 9000*allocator.Unit
			w.notStarved(h, 0)
		},
		"heal":        func(w *world) { w.net.cut = []Fault{{Kind: Split, Arg: 1}} },
		"reservation": func(w *world) { clear(w.stocks[0].admitted); w.unhealed = w.healedAt; w.judgeQuiet() },
	} {
		s := fast(9)
		schedule := []Fault{
			{At: 3e9, Kind: Demand, Who: 1, With: 1, Arg: 20_000_000},
			{At: 6e9, For: quiet, Kind: Heal, Who: -1},
		}
		w := newWorld(s, schedule)
		w.start()
		for i := range schedule {
			w.queue.add(event{at: schedule[i].At, kind: begins, to: -1, gen: uint32(i)})
		}
		w.runUntil(7e9)
		if w.violation != nil {
			t.Fatalf("before the sabotage: %v", *w.violation)
		}
		sabotage(w)
		if checker == "agreement" {
			w.check(w.hosts[1])
		}
		w.runUntil(15e9)
		if w.violation == nil || w.violation.Checker != checker {
			t.Errorf("%s: violation %v", checker, w.violation)
		}
	}
}

func TestTheCitiesAreAsFarApartAsTheDesignCounts(t *testing.T) {
	m := cityDelays(labNodes)
	if got := longest(m).Round(time.Millisecond); got != 282*time.Millisecond {
		t.Errorf("longest round trip %s, want 282ms", got)
	}
}

func TestADemandStepOverCitiesIsServedWithinTwoRoundTrips(t *testing.T) {
	l := newLab(1, 0)
	l.wait(4 * time.Second)
	l.spread(0.8)
	l.wait(2 * time.Second)
	l.set(7, l.load[7]+1.5)
	want := l.ideal(nil)[7] / 100 * 99
	if took, ok := l.reached(time.Second, func() bool { return l.enforced(7) >= want }); !ok || took > 2*longest(l.delay) {
		t.Errorf("served after %s (ever: %v)", took, ok)
	}
}
