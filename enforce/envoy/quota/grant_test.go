package quota

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
)

func TestRatesAreWholeTokensPerWholeSeconds(t *testing.T) {
	for _, c := range []struct {
		rate          allocator.Rate
		cost          int64
		fill, seconds uint32
	}{
		{1000 * allocator.Unit, 1, 1000, 1},
		{300_000, 1, 3, 10},
		{1_500_000, 1, 3, 2},
		{333_333_333, 1, 1333, 4}, // near enough
		{100*allocator.Unit/3 + 1, 1, 100, 3},
		{10_000, 1, 1, 100},
		{1000 * allocator.Unit, 3, 1333, 4},
		{11, 1, 0, 0}, // less than one a day
		{0, 1, 0, 0},
	} {
		if g := express(c.rate, c.cost); g.fill != c.fill || g.seconds != c.seconds {
			t.Errorf("%d at cost %d: %d per %d s, want %d per %d s", c.rate, c.cost, g.fill, g.seconds, c.fill, c.seconds)
		}
	}
}

func TestWhatIsExpressedIsNeverMoreAndHardlyLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.SampledFrom([]int64{1, 2, 7, 1000}).Draw(t, "cost")
		rate := allocator.Rate(rapid.Int64Range(0, int64(enforce.MaxRate)).Draw(t, "rate")) >> rapid.IntRange(0, 50).Draw(t, "shift")
		g := express(rate, cost)
		if g.rate(cost) > rate {
			t.Fatalf("%d became %d per %d s: %d", rate, g.fill, g.seconds, g.rate(cost))
		}
		if g.fill == math.MaxUint32 {
			return // as much as Envoy can count
		}
		// One part in 30 for slow rates, in a thousand from 30 requests per second.
		requests := rate / allocator.Rate(cost)
		if requests >= 100 && g.rate(cost) < rate-rate/30-allocator.Rate(cost) || requests >= 30*allocator.Unit && g.rate(cost) < rate-rate/500-allocator.Rate(cost) {
			t.Fatalf("%d became %d", rate, g.rate(cost))
		}
	})
}

// Envoy truncates a fill interval to seconds, divides by it, and does not see
// that two buckets differ in it unless the nanoseconds do.
func TestTwoGrantsAreNeverTheSameBucketToEnvoy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) grant {
			return grant{
				rapid.Uint32Range(1, 3).Draw(t, name+" tokens"), rapid.Uint32Range(1, 3).Draw(t, name+" fill"),
				rapid.Uint32Range(1, secondsMax).Draw(t, name+" seconds"),
			}
		}
		a, b := draw("a"), draw("b")
		x, y := a.strategy().GetTokenBucket(), b.strategy().GetTokenBucket()
		if sameToEnvoy(x, y) != (a == b) {
			t.Fatalf("%+v and %+v", a, b)
		}
		if x.FillInterval.Seconds < 1 || x.FillInterval.CheckValid() != nil {
			t.Fatalf("interval %v", x.FillInterval)
		}
	})
}

func TestNoRateIsARefusal(t *testing.T) {
	if s := (grant{}).strategy(); s.GetTokenBucket() != nil || s.GetBlanketRule().String() != "DENY_ALL" {
		t.Errorf("%v", s)
	}
}

func TestFillIsMaxMinAndExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) allocator.Rate {
			return allocator.Rate(rapid.Int64Range(0, 1000).Draw(t, "want"))
		}), 1, 12).Draw(t, "wants")
		total := allocator.Rate(rapid.Int64Range(0, 5000).Draw(t, "total"))
		out := make([]allocator.Rate, len(want))
		fill(out, want, total)
		var sum, asked allocator.Rate
		for i := range out {
			sum += out[i]
			asked += want[i]
			if out[i] < 0 || out[i] > want[i] {
				t.Fatalf("%v of %v", out, want)
			}
			for j := range out { // nobody who lacks has less than another, but for rounding
				if out[i] < want[i] && out[j] > out[i]+1 {
					t.Fatalf("%v of %v", out, want)
				}
			}
		}
		if sum != min(total, asked) {
			t.Fatalf("%v adds up to %d of %d", out, sum, min(total, asked))
		}
		var given allocator.Rate
		for i, x := range due(want, total) {
			given += x
			if x < out[i] {
				t.Fatalf("due is less than fair: %v", due(want, total))
			}
		}
		if given > total {
			t.Fatalf("%d due of %d", given, total)
		}
	})
}

func TestReportsAreCountedOnceAndEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m meter
		now := sec
		var in, out int64
		for range rapid.IntRange(1, 40).Draw(t, "reports") {
			now += rapid.Int64Range(0, 3*sec).Draw(t, "gap")
			a, r := rapid.Int64Range(0, 1000).Draw(t, "admitted"), rapid.Int64Range(0, 1000).Draw(t, "refused")
			m.report(now, a, r, rapid.Int64Range(-1, 1<<62).Draw(t, "elapsed"), 1)
			in += a + r
			for range rapid.IntRange(0, 5).Draw(t, "turns") {
				now += rapid.Int64Range(0, sec/5).Draw(t, "turn")
				a, r := m.tell(now)
				if a < 0 || r < 0 {
					t.Fatal("negative")
				}
				out += a + r
			}
			if out > in || m.demand < 0 || m.used < 0 {
				t.Fatalf("%d told of %d, demand %d", out, in, m.demand)
			}
		}
		a, r := m.tell(now + gapMax)
		if out += a + r; out != in {
			t.Fatalf("%d told of %d", out, in)
		}
	})
}

func TestDemandFollowsAStepAtOnceAndNoiseSlowly(t *testing.T) {
	var m meter
	now := sec
	for range 20 {
		now += sec / 2
		m.report(now, 50, 50, 0, 1)
	}
	if got := float64(m.used) / 1e6; math.Abs(got-200) > 20 {
		t.Errorf("demand %.1f, want 200", got)
	}
	used := m.used
	for i := range 20 {
		now += sec / 2
		m.report(now, 95+10*int64(i%2), 0, 0, 1)
	}
	if m.used != used {
		t.Errorf("5 %% of noise moved it from %d to %d", used, m.used)
	}
	now += sec / 2
	m.report(now, 100, 900, 0, 1)
	if got := float64(m.used) / 1e6; got != 2000 {
		t.Errorf("a step to 2000 shows as %.1f", got)
	}
}

func TestWhatIsEarnedIsRoundedDown(t *testing.T) {
	if earned(3, int64(time.Second)/2) != 1 || earned(-1, sec) != 0 || earned(1, -1) != 0 || earned(math.MaxInt64, math.MaxInt64) != 1<<62 {
		t.Error("wrong")
	}
}
