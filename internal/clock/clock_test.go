package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// suspended returns a clock in a bubble, and the knob that adds suspended time.
func suspended(boot int64) (*Boot, *atomic.Int64) {
	var extra atomic.Int64
	extra.Store(boot)
	start := time.Now()
	return newBoot(func() (int64, bool) { return int64(time.Since(start)) + extra.Load(), true }), &extra
}

func TestSuspendedTimeCountsWithinTheRefreshInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, extra := suspended(int64(time.Hour))
		if got, want := b.Now(), int64(time.Hour); got != want {
			t.Fatalf("first reading %d, want %d", got, want)
		}
		extra.Add(int64(3 * time.Second)) // the machine sleeps
		time.Sleep(10 * time.Millisecond)
		if got, want := b.Now(), int64(time.Hour+3*time.Second+10*time.Millisecond); got != want {
			t.Fatalf("after suspend %d, want %d", got, want)
		}
		if n, total := b.Jumps(); n != 1 || total != 3*time.Second {
			t.Fatalf("jumps %d, %v; want 1, 3s", n, total)
		}
	})
}

func TestReadingNeverGoesBackwardsWhenTheOffsetIsMeasuredLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, extra := suspended(int64(time.Hour))
		before := b.Now()
		extra.Add(-int64(time.Minute))
		time.Sleep(20 * time.Millisecond)
		if got := b.Now(); got != before+int64(20*time.Millisecond) {
			t.Fatalf("reading %d after %d", got, before)
		}
		if n, _ := b.Jumps(); n != 0 {
			t.Fatalf("%d jumps, want 0", n)
		}
	})
}

func TestBetterMeasurementIsNotAJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, extra := suspended(0)
		extra.Add(int64(50 * time.Microsecond))
		time.Sleep(10 * time.Millisecond)
		if got, want := b.Now(), int64(10*time.Millisecond+50*time.Microsecond); got != want {
			t.Fatalf("reading %d, want %d", got, want)
		}
		if n, _ := b.Jumps(); n != 0 {
			t.Fatalf("%d jumps, want 0", n)
		}
	})
}

func TestWithoutBootTimeTheMonotonicClockRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoot(func() (int64, bool) { return 0, false })
		time.Sleep(time.Second)
		if got, want := b.Now(), int64(time.Second); got != want {
			t.Fatalf("reading %d, want %d", got, want)
		}
	})
}

func TestRealClockRisesOnEveryGoroutine(t *testing.T) {
	b := NewBoot()
	var newest atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20_000 {
				seen := newest.Load()
				now := b.Now()
				if now < seen {
					t.Errorf("read %d after %d was read", now, seen)
					return
				}
				for {
					old := newest.Load()
					if now <= old || newest.CompareAndSwap(old, now) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	boot, ok := readBoot()
	if ok && boot-b.Now() > int64(time.Second) {
		t.Fatalf("clock reads %d, boot time is %d", b.Now(), boot)
	}
}

func BenchmarkNow(b *testing.B) {
	c := NewBoot()
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}
