package schedule

import (
	"testing"

	"subak/chaos"
)

// BenchmarkSeed is one seed of 1,000 steps, all modes and profiles in turn.
func BenchmarkSeed(b *testing.B) {
	r := New("")
	seed := uint64(0)
	for b.Loop() {
		seed++
		if res := r.Run(seed, chaos.ModeOf(seed), 1000); res.Violation != nil {
			b.Fatal(res.Violation.Detail)
		}
	}
}
