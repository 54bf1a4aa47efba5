// Package library measures decisions inside of one process: ours as a Go program
// makes them, beside those of the limiters that Go programs commonly use.
//
// Everything is measured with limits so high that every decision admits, or so
// low that every one refuses; a batch with another outcome fails. A batch is
// a tight loop of a fixed number of decisions, calibrated to take [Scale.Batch].
// Ours always charges a class and its budget and counts the demand; the others
// charge one bucket and count nothing.
//
// Peers: golang.org/x/time/rate, against which claims are made;
// github.com/throttled/throttled (a keyed GCRA over an in-memory store) and
// go.uber.org/ratelimit (which paces callers and never refuses) for comparison.
package library

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/limit"
	"subak/testbed/peers/measure"
)

// Scale is how much is measured.
type Scale struct {
	// Batch is how long a batch of one side takes, about.
	Batch time.Duration
	// Batches is how many of them each side has in a round.
	Batches int
}

const (
	high  = 1_000_000_000 // units per second: nothing that a loop does reaches it
	low   = 1             // units per second: next to nothing passes
	burst = time.Second
)

// subject is a budget of two classes of ours with a door for Go code; what is
// decided is of the first class.
type subject struct {
	limiter *enforce.Limiter
	class   *limit.Class
	now     func() int64
}

// one finds the subject's limiter by any name.
type one struct{ l *enforce.Limiter }

func (o one) Limiter(string, string) (*enforce.Limiter, int, bool) { return o.l, 0, true }

// newSubject makes a subject whose rate, units per second, is in force for ever.
func newSubject(now func() int64, perSecond int64, cfg enforce.LimiterConfig) *subject {
	cfg.Classes = 2
	if cfg.Burst == 0 {
		cfg.Burst = burst
	}
	l := enforce.NewLimiter(cfg, now())
	r := allocator.Rate(perSecond) * allocator.Unit
	l.SetSchedule(now(), []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r - r/4, r / 4}}})
	c, err := limit.NewSet(limit.Config{Limits: one{l}, Now: now}).Class("budget", "class")
	if err != nil {
		panic(err) // one finds everything
	}
	return &subject{limiter: l, class: c, now: now}
}

// loop makes n decisions and returns how many admitted.
type loop func(n int) int

func (s *subject) allow(n int) (admitted int) {
	for range n {
		if s.class.Allow() {
			admitted++
		}
	}
	return admitted
}

func (s *subject) decide(n int) (admitted int) {
	for range n {
		if s.limiter.Decide(s.now(), 0, 1).OK {
			admitted++
		}
	}
	return admitted
}

// request is decide in the form that doors use, which may have a tenant.
func (s *subject) request(n int) (admitted int) {
	for range n {
		if s.limiter.DecideRequest(s.now(), enforce.Request{Cost: 1}).OK {
			admitted++
		}
	}
	return admitted
}

// outcome is what every decision of a loop must be.
type outcome uint8

const (
	admits outcome = iota
	refuses
)

// check fails a batch of n decisions whose outcome is another one. Of a bucket
// that refuses, a token now and then is its rate; a bucket that has just begun
// holds nothing yet, so a few refusals are as right.
func (o outcome) check(n, admitted int) error {
	wrong := n - admitted
	if o == refuses {
		wrong = admitted
	}
	if wrong > 64+n/1000 {
		return fmt.Errorf("%d of %d decisions had the wrong outcome", wrong, n)
	}
	return nil
}

// side runs a loop on one goroutine.
func (s Scale) side(name string, want outcome, l loop) measure.Side {
	return s.timed(name, want, func(n int) (int, time.Duration) {
		start := time.Now()
		admitted := l(n)
		return admitted, time.Since(start)
	})
}

// crowd runs a loop on all cores at once.
func (s Scale) crowd(name string, want outcome, l loop) measure.Side {
	return s.timed(name, want, func(n int) (int, time.Duration) { return together(l, n) })
}

// timed calibrates a run of n decisions on its first batch.
func (s Scale) timed(name string, want outcome, run func(n int) (int, time.Duration)) measure.Side {
	n := 0
	return measure.Side{Name: name, Batch: func(context.Context) (measure.Reading, error) {
		if n == 0 {
			n = calibrate(s.Batch, run)
		}
		admitted, took := run(n)
		return measure.Reading{Ops: int64(n), Elapsed: took}, want.check(n, admitted)
	}}
}

// calibrate finds how many decisions take about span. The first run is not
// counted: it may have to make what it decides with.
func calibrate(span time.Duration, run func(n int) (int, time.Duration)) int {
	run(1)
	n := 1000
	for {
		_, took := run(n)
		if took >= span/4 || n >= 1<<28 {
			return max(int(float64(n)*float64(span)/float64(max(took, 1))), 1)
		}
		n *= 2
	}
}

// together runs a loop on as many goroutines as there are cores, n decisions in
// all, and returns what they admitted and how long they took from the moment at
// which all were ready.
func together(l loop, n int) (admitted int, took time.Duration) {
	procs := runtime.GOMAXPROCS(0)
	each := max(n/procs, 1)
	var ready, total atomic.Int64
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for range procs {
		wg.Go(func() {
			ready.Add(1)
			<-gate
			total.Add(int64(l(each)))
		})
	}
	for ready.Load() < int64(procs) {
		runtime.Gosched()
	}
	start := time.Now()
	close(gate)
	wg.Wait()
	return int(total.Load()), time.Since(start)
}

// allocs is a side that reports how many allocations a decision makes.
func allocs(name string, l loop) measure.Side {
	return measure.Side{Name: name, Batch: func(context.Context) (measure.Reading, error) {
		return measure.Reading{Value: testing.AllocsPerRun(2000, func() { l(1) })}, nil
	}}
}
