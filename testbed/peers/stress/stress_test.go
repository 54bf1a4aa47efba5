package stress

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"subak/internal/clock"
	"subak/testbed/peers/measure"
)

func TestAShortStressKeepsTheBound(t *testing.T) {
	c := Case("stress/x", "the clock", clock.NewBoot().Now, 50*time.Millisecond)
	f, err := c.Run(t.Context(), 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Claims[0].Judge(f); r.State != measure.OK || r.Claim.Bound != float64(runtime.GOMAXPROCS(0)) {
		t.Errorf("%v tokens above the bound: %v", r.Value, r.State)
	}
	if admitted := c.Claims[3].Judge(f).Value; admitted <= 0 {
		t.Error("nothing was admitted")
	}
}

// A clock that runs at ten times the speed of time lets ten times the rate through:
// the count must show it, or it would show nothing.
func TestTooManyTokensAreSeen(t *testing.T) {
	now := clock.NewBoot().Now
	start := now()
	o, err := play(t.Context(), func() int64 { return start + 10*(now()-start) }, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if o.over < o.rate/100 {
		t.Errorf("%d of %d tokens over at a rate of %d/s by a clock that is ten times as fast", o.over, o.admitted, o.rate)
	}
}

func TestAnInterruptedStressSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := play(ctx, clock.NewBoot().Now, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
