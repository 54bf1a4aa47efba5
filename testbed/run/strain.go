package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/load"
)

// strain watches whether the machine keeps up: how late a goroutine that sleeps
// is woken. Every part of the testbed and every node shares the processors, so
// what it suffers, they suffer.
type strain struct {
	mu   sync.Mutex // guards late
	late load.Histogram
}

func newStrain() *strain { return &strain{} }

const strainEvery = 5 * time.Millisecond

// watch measures until ctx ends.
func (s *strain) watch(ctx context.Context) {
	timer := time.NewTimer(strainEvery)
	defer timer.Stop()
	for {
		due := time.Now().Add(strainEvery)
		timer.Reset(strainEvery)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.mu.Lock()
		s.late.Add(time.Since(due))
		s.mu.Unlock()
	}
}

func (s *strain) latency() load.Latency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late.Latency()
}

// From where on the machine counts as too busy for what is measured.
const (
	wakeMost    = 20 * time.Millisecond  // p99 of a sleeper's lateness
	packetsMost = 0.01                   // of all packets, more than 1 ms late
	lateMost    = 0.03                   // of all requests, sent later than lateAfter
	transitMost = 100 * time.Millisecond // p99 of the way to the origin
)

// busy says how the machine was too slow, in words.
func busy(out *evidence.Run, wake load.Latency, transit load.Latency) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if wake.P99 > wakeMost {
		add("a sleeping goroutine was woken %s late (p99; at most %s)", wake.P99.Round(100*time.Microsecond), wakeMost)
	}
	if n, late := out.Network["delivered"], out.Network["late"]; n > 0 && float64(late) > packetsMost*float64(n) {
		add("%.1f %% of the packets were more than 1 ms late (at most %.0f %%)", 100*float64(late)/float64(n), 100*packetsMost)
	}
	var offered, late uint64
	for _, s := range out.Load.Streams {
		for _, c := range s.Cells {
			offered += c.Offered - c.Away
			late += c.Late
		}
	}
	if offered > 0 && float64(late) > lateMost*float64(offered) {
		add("the generator sent %.1f %% of the requests more than %s late (at most %.0f %%)", 100*float64(late)/float64(offered), lateAfter, 100*lateMost)
	}
	if transit.P99 > transitMost {
		add("one request in a hundred took %s to the origin (at most %s)", transit.P99.Round(time.Millisecond), transitMost)
	}
	return all
}
