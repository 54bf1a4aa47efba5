package library

import (
	"runtime"
	"testing"
	"time"

	"subak/testbed/peers/measure"
)

// Every side of every case decides, with the outcome that it is there for.
func TestEveryCaseRuns(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range (Scale{Batch: 200 * time.Microsecond, Batches: 1}).Cases() {
		f, err := c.Run(t.Context(), 1, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, cl := range c.Claims {
			if r := cl.Judge(f); r.State == measure.Missing || seen[cl.ID] {
				t.Errorf("%s: %v; measured, and only once", cl.ID, r.State)
			}
			seen[cl.ID] = true
		}
	}
}

func TestABatchWithTheWrongOutcomeFails(t *testing.T) {
	s := Scale{Batch: time.Millisecond}
	all := loop(func(n int) int { return n })
	none := loop(func(int) int { return 0 })
	for _, tc := range []struct {
		name string
		want outcome
		l    loop
		ok   bool
	}{
		{"admitted as wanted", admits, all, true}, {"refused in spite of", admits, none, false},
		{"refused as wanted", refuses, none, true}, {"admitted in spite of", refuses, all, false},
	} {
		slow := func(n int) int {
			for range n {
				runtime.Gosched()
			}
			return tc.l(n)
		}
		for _, side := range []measure.Side{s.side(tc.name, tc.want, slow), s.crowd(tc.name, tc.want, slow)} {
			if r, err := side.Batch(t.Context()); (err == nil) != tc.ok || r.Ops == 0 || r.Elapsed <= 0 {
				t.Errorf("%s: %+v, %v", tc.name, r, err)
			}
		}
	}
}

func TestABatchIsCalibratedToItsLength(t *testing.T) {
	perOp, made := 250*time.Nanosecond, time.Second // made: at the first decision
	got := calibrate(time.Millisecond, func(n int) (int, time.Duration) {
		took := made + time.Duration(n)*perOp
		made = 0
		return n, took
	})
	if got != 4000 {
		t.Errorf("%d decisions of %v in a millisecond, want 4000", got, perOp)
	}
}

func TestTogetherMakesEveryDecisionOnce(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	admitted, took := together(func(n int) int { return n }, 100*procs)
	if admitted != 100*procs || took <= 0 {
		t.Errorf("%d of %d decisions in %v", admitted, 100*procs, took)
	}
}
