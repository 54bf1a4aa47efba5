package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// machine is a machine in a bubble whose clocks the test moves.
type machine struct{ asleep, step atomic.Int64 } // time suspended, wall clock set by hand

// suspend adds to the boot clock and to the wall clock, not to the monotonic one.
func (m *machine) suspend(d time.Duration) { m.asleep.Add(int64(d)) }

// boot returns the lease clock of a machine that has run for an hour.
func (m *machine) boot() *Boot {
	start := time.Now()
	return newBoot(
		func() (int64, bool) { return int64(time.Hour+time.Since(start)) + m.asleep.Load(), true },
		func(t time.Time) int64 { return t.UnixNano() + m.asleep.Load() + m.step.Load() })
}

func TestTheFirstReadingAfterASuspendCountsAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		b := m.boot()
		for i := range int64(5) {
			m.suspend(3 * time.Minute)
			if got, want := b.Now(), int64(time.Hour+time.Duration(i+1)*3*time.Minute); got != want {
				t.Fatalf("after suspend %d: %d, want %d", i, got, want)
			}
		}
		if n, total := b.Jumps(); n != 5 || total != 15*time.Minute {
			t.Fatalf("jumps %d, %v; want 5, 15m", n, total)
		}
	})
}

func TestASuspendThatTheWallClockHidesCountsWithinTheRefreshInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		b := m.boot()
		m.suspend(3 * time.Second)
		m.step.Add(-int64(3 * time.Second)) // set back in the same moment
		time.Sleep(10 * time.Millisecond)
		if got, want := b.Now(), int64(time.Hour+3*time.Second+10*time.Millisecond); got != want {
			t.Fatalf("after suspend %d, want %d", got, want)
		}
	})
}

func TestStepsOfTheWallClockChangeNoReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		b := m.boot()
		for i, step := range []time.Duration{time.Hour, -2 * time.Hour, 30 * 365 * 24 * time.Hour, -time.Millisecond, time.Microsecond} {
			m.step.Add(int64(step))
			if got, want := b.Now(), int64(time.Hour)+int64(i)*1e6; got != want {
				t.Fatalf("after a step of %s: %d, want %d", step, got, want)
			}
			time.Sleep(time.Millisecond)
		}
		if n, _ := b.Jumps(); n != 0 {
			t.Fatalf("%d jumps, want 0", n)
		}
	})
}

func TestReadingNeverGoesBackwardsWhenTheOffsetIsMeasuredLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		b := m.boot()
		before := b.Now()
		m.suspend(-time.Minute)
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
		var m machine
		b := m.boot()
		m.suspend(50 * time.Microsecond)
		time.Sleep(10 * time.Millisecond)
		if got, want := b.Now(), int64(time.Hour+10*time.Millisecond+50*time.Microsecond); got != want {
			t.Fatalf("reading %d, want %d", got, want)
		}
		if n, _ := b.Jumps(); n != 0 {
			t.Fatalf("%d jumps, want 0", n)
		}
	})
}

func TestWithoutBootTimeTheMonotonicClockRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoot(func() (int64, bool) { return 0, false }, time.Time.UnixNano)
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

func BenchmarkCoarse(b *testing.B) {
	c := NewCoarse(NewBoot())
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}
