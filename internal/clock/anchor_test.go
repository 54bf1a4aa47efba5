package clock

import (
	"math/bits"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// counter is a counter beside the time that it should count.
type counter struct {
	now    int64  // what the clock should read
	ticks  uint64 // what the counter reads
	hz     uint64
	ppm    int64 // by how much the clock's rate is off from what it was, as NTP does it
	rest   uint64
	anchor *anchor
	last   int64
}

func (c *counter) pass(ns int64) {
	hi, lo := bits.Mul64(uint64(ns), c.hz)
	lo, carry := bits.Add64(lo, c.rest, 0)
	q, r := bits.Div64(hi+carry, lo, 1e9)
	c.ticks, c.rest = c.ticks+q, r
	c.now += ns + ns*c.ppm/1_000_000
}

// read does what Boot.Now does, with full readings that take some time, and says
// whether it counted.
func (c *counter) read(takes int64) (reading int64, counted bool) {
	if d := c.ticks - c.anchor.ticks; d < c.anchor.span {
		return c.anchor.at(d), true
	}
	before := c.ticks
	c.pass(takes / 2)
	t := c.now
	c.pass(takes - takes/2)
	c.anchor = c.anchor.follow(before, c.ticks, t)
	return max(t, c.anchor.boot), false
}

func (c *counter) calibrate(t *rapid.T) {
	c.last, _ = c.read(rapid.SampledFrom([]int64{50, 1e6}).Draw(t, "first reading takes"))
	for i := range int64(500) {
		c.pass(i % 2 * 400_000)
		got, counted := c.read(50)
		if got < c.last || counted && max(got-c.now, c.now-got) > int64(BootError) {
			t.Fatalf("read %d after %d at %d", got, c.last, c.now)
		}
		c.last = got
	}
	if c.anchor.span == 0 {
		t.Fatalf("a counter of %d Hz is not used after 100 ms: %+v", c.hz, c.anchor)
	}
}

func drawCounter(t *rapid.T) *counter {
	c := &counter{
		now: rapid.Int64Range(1e9, 1e17).Draw(t, "now"), ticks: rapid.Uint64().Draw(t, "ticks"),
		hz: rapid.Uint64Range(20e6, 5e9).Draw(t, "hz"), anchor: &anchor{counts: true},
	}
	c.calibrate(t)
	return c
}

// check compares a reading with the time that it should be.
func (c *counter) check(t *rapid.T, takes int64) {
	got, counted := c.read(takes)
	if got < c.last {
		t.Fatalf("read %d after %d", got, c.last)
	}
	c.last = got
	off := got - c.now
	if !counted {
		off += takes - takes/2 // that long ago the reading was made
	}
	if off > int64(BootError) || off < -int64(BootError) {
		t.Fatalf("off by %d ns (counted %v, %+v)", off, counted, c.anchor)
	}
}

func TestCountedReadingsRiseAndStayWithinTheirError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCounter(t)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { c.check(t, rapid.Int64Range(0, 900).Draw(t, "takes")) },
			"pass": func(t *rapid.T) {
				c.pass(rapid.Int64Range(0, rapid.SampledFrom([]int64{100, 1e5, 1e6, 1e9, 1e13}).Draw(t, "scale")).Draw(t, "dt"))
			},
			"be busy": func(t *rapid.T) {
				for range 100 {
					c.pass(rapid.Int64Range(0, 2e5).Draw(t, "dt"))
					c.check(t, 50)
				}
			},
			"never rest": func(t *rapid.T) {
				for range 100 { // on both sides of each end of the counting
					if left := int64(c.anchor.span-(c.ticks-c.anchor.ticks)) * int64(1e9) / int64(c.hz); left > 50 {
						c.pass(left - 20)
						c.check(t, 50)
					}
					c.pass(40)
					c.check(t, 50)
				}
			},
			"slew": func(t *rapid.T) { c.ppm = rapid.Int64Range(-500, 500).Draw(t, "ppm") },
		})
	})
}

// The counter runs on through a suspend, or begins anew somewhere.
func TestTheFirstReadingAfterASuspendIsAFullOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCounter(t)
		c.pass(rapid.Int64Range(0, 1e6).Draw(t, "awake"))
		c.check(t, 50)
		if rapid.Bool().Draw(t, "runs on") {
			c.pass(rapid.Int64Range(1e6, 1e15).Draw(t, "asleep"))
		} else {
			c.now += rapid.Int64Range(1e6, 1e15).Draw(t, "asleep")
			c.ticks = rapid.Uint64Max(c.anchor.ticks>>1).Draw(t, "begins at")
		}
		want := c.now
		if got, counted := c.read(0); counted || got != want {
			t.Fatalf("read %d (counted %v), want %d", got, counted, want)
		}
	})
}

// As after a migration to other hardware.
func TestACounterWithAnotherRateIsFoundOutAndMeasuredAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCounter(t)
		c.hz = c.hz * uint64(rapid.SampledFrom([]int{50, 80, 95, 105, 150, 300}).Draw(t, "percent")) / 100
		worst := int64(0)
		for range 300 {
			c.pass(100_000)
			got, _ := c.read(50)
			if got < c.last {
				t.Fatalf("read %d after %d", got, c.last)
			}
			c.last, worst = got, max(worst, got-c.now, c.now-got)
		}
		// For one span it is believed.
		if worst > 3*anchorSpan {
			t.Errorf("off by %d ns in between", worst)
		}
		c.calibrate(t)
		c.pass(100_000)
		c.check(t, 50)
	})
}

// A reading that was preempted is neither taken for a jump of the counter nor
// believed to be of the moment it ended in.
func TestAPreemptedReadingIsSurvived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCounter(t)
		c.pass(anchorSpan + 1)
		took := rapid.Int64Range(1e3, 2e7).Draw(t, "preempted for")
		c.last, _ = c.read(took)
		if c.anchor.span == 0 {
			t.Fatalf("preempted for %d ns, and the counter is not used any more", took)
		}
		c.pass(anchorSpan + 1)
		c.check(t, 50)
	})
}

// fast is a Boot in a bubble with a counter of 3 GHz.
func (m *machine) fast() *Boot {
	b := m.boot()
	start := time.Now()
	b.count = func() uint64 { return uint64(time.Since(start)+time.Duration(m.asleep.Load())) * 3 }
	b.anchor.Store(&anchor{counts: true})
	for range 50 {
		time.Sleep(time.Millisecond)
		b.Now()
	}
	return b
}

func TestBootCountsOnAndCoarseRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		b := m.fast()
		want := func() int64 { return int64(time.Hour) + int64(50*time.Millisecond) }
		start := time.Now()
		for range 10_000 {
			time.Sleep(7 * time.Microsecond)
			exact := want() + int64(time.Since(start))
			for name, got := range map[string]int64{"Now": b.Now(), "Relaxed": b.Relaxed()} {
				if off := got - exact; off > int64(BootError) || off < -int64(BootError) {
					t.Fatalf("%s is off by %d", name, off)
				}
			}
		}
		c := NewCoarse(b)
		var coarse, distinct int64
		for range 10_000 {
			time.Sleep(7 * time.Microsecond)
			got := c.Now()
			if late := want() + int64(time.Since(start)) - got; late > int64(CoarseError) || late < -int64(BootError) {
				t.Fatalf("Coarse is late by %d", late)
			}
			if got < coarse {
				t.Fatalf("Coarse read %d after %d", got, coarse)
			}
			if got != coarse {
				distinct++
			}
			coarse = got
		}
		if distinct < 130 || distinct > 150 { // 70 ms by half milliseconds
			t.Errorf("%d distinct readings: does Coarse repeat?", distinct)
		}
	})
}

func TestNoKindOfReadingMissesASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, read := range map[string]func(*Boot) func() int64{
			"Now": func(b *Boot) func() int64 { return b.Now }, "Relaxed": func(b *Boot) func() int64 { return b.Relaxed },
			"Coarse": func(b *Boot) func() int64 { return NewCoarse(b).Now },
		} {
			var m machine
			b := m.fast()
			now := read(b)
			before := now()
			m.suspend(2 * time.Second)
			if got := now() - before; got < int64(2*time.Second-BootError) || got > int64(2*time.Second+CoarseError) {
				t.Errorf("%s went on by %v over a suspend of 2 s", name, time.Duration(got))
			}
		}
	})
}

func TestWithoutACounterEveryReadingIsAFullOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		b := m.boot()
		c := NewCoarse(b)
		for i := range int64(100) {
			if want := int64(time.Hour) + i; b.Now() != want || b.Relaxed() != want || c.Now() != want {
				t.Fatalf("%d, %d and %d, want %d", b.Now(), b.Relaxed(), c.Now(), want)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

func TestCoarseReadingsRiseOnEveryGoroutine(t *testing.T) {
	var newest atomic.Int64
	c := NewCoarse(NewBoot())
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 20_000 {
				seen := newest.Load()
				now := c.Now()
				if now < seen {
					t.Errorf("read %d after %d was read", now, seen)
					return
				}
				for old := newest.Load(); now > old && !newest.CompareAndSwap(old, now); old = newest.Load() {
				}
			}
		}()
	}
	for range 4 {
		<-done
	}
}

func TestTheCPUsCounterRises(t *testing.T) {
	if !haveTicks {
		if readTicks() != 0 || readTicksInOrder() != 0 {
			t.Error("a counter where there is none")
		}
		return
	}
	for range 1000 {
		a, b := readTicksInOrder(), readTicksInOrder()
		if b < a {
			t.Fatalf("%d after %d", b, a)
		}
	}
	if readTicks() == 0 {
		t.Error("the counter reads 0")
	}
}
