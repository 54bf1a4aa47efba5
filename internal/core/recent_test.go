package core

import (
	"testing"
	"time"

	"subak/allocator"
	"subak/enforce"
)

// What a node refuses is counted, not guessed from demand and share: bursts and
// tokens that other classes leave are admitted beyond the share.
func TestRefusalsPerSecondAreThoseOfTheLastOneOrTwoSeconds(t *testing.T) {
	const second = int64(time.Second)
	start := 1000 * second
	r := newRecent(2, start)
	counts := make([]enforce.Counts, 2)
	want := func(at int64, rate int64) {
		t.Helper()
		if got := r.refused(at, 1, counts); got != allocator.Rate(rate)*allocator.Unit {
			t.Errorf("%v/s at %d s, want %d/s", got, (at-start)/second, rate)
		}
		if got := r.refused(at, 0, counts); got != 0 {
			t.Errorf("the quiet class refuses %v", got)
		}
	}
	want(start, 0)
	now := start
	for range 40 { // 4 s of 50 refusals per second
		now += second / 10
		counts[1].Refused += 5
		r.note(now, counts)
	}
	want(now, 50)
	for range 20 { // all quiet
		now += second / 10
		r.note(now, counts)
	}
	want(now, 0)
	counts[1].Refused += 30
	want(now+second/2, 30/1.5)
}
