package chaos

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestShrinkFindsTheFewElementsThatMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		need := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, min(n, 5), rapid.ID).Draw(t, "need")
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		got := Shrink(items, 5000, func(list []int) bool {
			for _, x := range need {
				if !slices.Contains(list, x) {
					return false
				}
			}
			return true
		})
		slices.Sort(need)
		if !slices.Equal(got, need) {
			t.Fatalf("got %v, want %v", got, need)
		}
		if len(items) != n || items[0] != 0 || items[n-1] != n-1 {
			t.Fatal("the list given was changed")
		}
	})
}

func TestShrinkAsksNoMoreThanItMayAndKeepsAFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tries := rapid.IntRange(0, 60).Draw(t, "tries")
		bad := rapid.IntRange(0, 99).Draw(t, "bad")
		asked := 0
		got := Shrink(make99(), tries, func(list []int) bool { asked++; return slices.Contains(list, bad) })
		if asked > tries || !slices.Contains(got, bad) {
			t.Fatalf("asked %d of %d times, got %v without %d", asked, tries, got, bad)
		}
	})
}

func make99() []int {
	items := make([]int, 100)
	for i := range items {
		items[i] = i
	}
	return items
}

func TestAClockNeverRunsBackAndItsWakeUpsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Int64Range(0, 1<<40).Draw(t, "now")
		c := NewClock(now, rapid.Int64Range(0, 1<<40).Draw(t, "reading"))
		last := c.At(now)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			now += rapid.Int64Range(0, 1<<34).Draw(t, "passes")
			if c.At(now) < last {
				t.Fatalf("the clock ran back from %d to %d", last, c.At(now))
			}
			last = c.At(now)
			c.SetRate(now, rapid.Int64Range(-50_000, 50_000).Draw(t, "ppm"))
			if c.At(now) != last {
				t.Fatalf("a change of rate moved the reading from %d to %d", last, c.At(now))
			}
			target := last + rapid.Int64Range(1, 1<<33).Draw(t, "ahead")
			when := c.When(now, target)
			if c.At(when) < target || c.At(when-1) >= target {
				t.Fatalf("reads %d at %d and %d before, want to reach %d first", c.At(when), when, c.At(when-1), target)
			}
		}
	})
}

func TestRhoIsWhatEpsAllowsFor(t *testing.T) {
	for _, eps := range []int64{1001, 10_000, 50_000, 1_000_000} {
		rho := Rho(eps)
		if (1_000_000+eps)*(1_000_000-rho) < (1_000_000+rho)*1_000_000 {
			t.Errorf("eps %d ppm is too little for rho %d ppm", eps, rho)
		}
	}
}

func TestModesAreReadByTheirNamesAndTakeTurns(t *testing.T) {
	turns := map[Mode]bool{}
	for i, m := range Modes() {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("mode %v is read as %v, %v", m, got, err)
		}
		turns[ModeOf(uint64(i)+1_000_000)] = true
	}
	if len(turns) != len(Modes()) {
		t.Errorf("%d modes had a turn, want %d", len(turns), len(Modes()))
	}
	if _, err := ParseMode("nonsense"); err == nil {
		t.Error("a mode of no such name is read")
	}
}

func TestNumbersAreWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRand(rapid.Uint64().Draw(t, "seed"))
		n := rapid.Int64Range(1, 1<<62).Draw(t, "n")
		for range 50 {
			if x := r.Int64N(n); x < 0 || x >= n {
				t.Fatalf("%d is outside [0, %d)", x, n)
			}
		}
	})
}
