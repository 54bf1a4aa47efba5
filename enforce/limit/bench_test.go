package limit

import (
	"testing"
	"time"

	"subak/enforce"
)

// What a handle costs beside the limiter itself, with a clock that costs nothing.
func BenchmarkAllow(b *testing.B) {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, 0)
	l.SetSchedule(0, rate(1_000_000_000))
	o := &one{}
	o.limiter.Store(l)
	var at int64
	now := func() int64 { at += 10; return at }
	s := NewSet(Config{Limits: o, Now: now})
	c, err := s.Class("b", "c")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("limiter", func(b *testing.B) {
		for b.Loop() {
			l.Decide(now(), 0, 1)
		}
	})
	b.Run("handle", func(b *testing.B) {
		for b.Loop() {
			c.Allow()
		}
	})
	b.Run("wait", func(b *testing.B) {
		at += int64(time.Second)
		for b.Loop() {
			if err := c.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
