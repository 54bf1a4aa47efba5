package gate

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
)

// paced is a pacer over a bytes budget of one class with the given rate, in
// bytes per second, in a bubble whose clock is the lease clock.
func paced(rate int64) (*pacer, *enforce.Limiter) {
	begin := time.Now()
	now := func() int64 { return int64(time.Since(begin)) }
	lim := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, now())
	setRate(lim, now(), rate)
	return &pacer{to: &target{limiter: lim}, now: now, waits: new(atomic.Int64), first: make(chan struct{}, 1)}, lim
}

func setRate(lim *enforce.Limiter, now, rate int64) {
	r := allocator.Rate(rate) * allocator.Unit
	lim.SetSchedule(now, []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r}}})
}

// sent is a piece that was paid for.
type sent struct {
	at    int64
	bytes int
}

// wantBound fails if more than rate*w + rate*burst went out in any window of w.
func wantBound(t *rapid.T, log []sent, rate int64) {
	for i := range log {
		sum := int64(0)
		for j := i; j < len(log); j++ {
			sum += int64(log[j].bytes)
			window := log[j].at - log[i].at
			if allowed := rate + rate*window/int64(time.Second) + 1; sum > allowed {
				t.Fatalf("%d bytes within %v, at %d/s allowed %d", sum, time.Duration(window), rate, allowed)
			}
		}
	}
}

func TestPacedStreamsTogetherNeverGoOverAndWasteNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rate := rapid.Int64Range(1, 200_000).Draw(rt, "rate")
		streams := rapid.IntRange(1, 8).Draw(rt, "streams")
		synctest.Test(t, func(t *testing.T) {
			p, lim := paced(rate)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			logs := make(chan []sent, streams)
			for range streams {
				go func() {
					var log []sent
					for {
						n, err := p.take(ctx, bufferBytes, 0)
						if err != nil {
							break
						}
						log = append(log, sent{p.now(), n})
					}
					logs <- log
				}()
			}
			var all []sent
			total, least := int64(0), int64(math.MaxInt64)
			for range streams {
				log := <-logs
				mine := int64(0)
				for _, s := range log {
					mine += int64(s.bytes)
				}
				total, least = total+mine, min(least, mine)
				all = append(all, log...)
			}
			sortByTime(all)
			wantBound(rt, all, rate)
			if total < 19*rate {
				rt.Fatalf("%d streams sent %d bytes in 20 s at %d/s", streams, total, rate)
			}
			if rate >= 1000 && least < total/int64(4*streams) {
				rt.Fatalf("one of %d streams got %d of %d bytes", streams, least, total)
			}
			counts := make([]enforce.Counts, 1)
			lim.Counts(counts)
			if c := counts[0]; c.Admitted != total || c.Offered <= total || c.Offered > 2*total+int64(8*bufferBytes) {
				rt.Fatalf("counts %+v for %d bytes: demand must be above, and at most twice that", c, total)
			}
		})
	})
}

func sortByTime(log []sent) {
	for i := 1; i < len(log); i++ {
		for j := i; j > 0 && log[j].at < log[j-1].at; j-- {
			log[j], log[j-1] = log[j-1], log[j]
		}
	}
}

func TestAStreamWithinItsBudgetNeitherWaitsNorLooksThirsty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, lim := paced(1_000_000)
		time.Sleep(time.Second)
		for range 100 {
			if n, err := p.take(t.Context(), 5000, time.Second); n != 5000 || err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		counts := make([]enforce.Counts, 1)
		lim.Counts(counts)
		if c := counts[0]; c.Offered != 500_000 || c.Refused != 0 || p.waits.Load() != 0 {
			t.Errorf("counts %+v, %d waits", c, p.waits.Load())
		}
	})
}

func TestAWaitForEgressEndsWithTheStallLimitTheClientOrAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, lim := paced(0)
		begin := time.Now()
		if _, err := p.take(t.Context(), 100, 3*time.Second); !errors.Is(err, errEgress) || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := p.take(ctx, 100, time.Minute); !errors.Is(err, errClient) {
			t.Error(err)
		}
		time.AfterFunc(time.Second, func() { setRate(lim, p.now(), 1000) })
		begin = time.Now()
		if n, err := p.take(t.Context(), 100, time.Minute); n != 100 || err != nil || time.Since(begin) > 2*time.Second {
			t.Errorf("%d, %v after %v", n, err, time.Since(begin))
		}
	})
}

func TestPiecesAreAPartOfTheBucketAndOneByteAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, lim := paced(8000)
		for rate, want := range map[int64]int{8000: 1000, 4: 1, 0: 1, 1 << 40: bufferBytes} {
			setRate(lim, p.now(), rate)
			if got := p.piece(bufferBytes); got != want {
				t.Errorf("at %d/s: %d, want %d", rate, got, want)
			}
		}
	})
}
