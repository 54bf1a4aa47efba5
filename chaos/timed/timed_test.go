package timed_test

import (
	"testing"

	"subak/chaos"
	"subak/chaos/timed"
)

func TestProbe(t *testing.T) {
	r := timed.New()
	for seed := range uint64(40) {
		x := r.Run(seed, chaos.Plain, 36)
		t.Logf("%d %s n%d b%d events %d virtual %s peak %d hash %x %v", seed, x.Profile, x.Nodes, x.Budgets, x.Actions, x.Virtual, x.PeakPPM, x.Hash, x.Violation)
	}
}
