package library

import (
	"time"

	"subak/internal/clock"
	"subak/testbed/peers/measure"
	"subak/testbed/peers/stress"
)

// precise is the clock that a node has by default.
func precise() func() int64 { return clock.NewBoot().Relaxed }

// coarse is the clock of a node with coarse_clock on.
func coarse() func() int64 { return clock.NewCoarse(clock.NewBoot()).Now }

// Stress is the stress of all cores by each clock, each of length span.
func Stress(span time.Duration) []measure.Case {
	return []measure.Case{
		stress.Case("stress/precise", "the precise clock", precise(), span),
		stress.Case("stress/coarse", "the coarse clock", coarse(), span),
	}
}
