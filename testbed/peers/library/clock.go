package library

import "subak/internal/clock"

// precise is the clock that a node has by default.
func precise() func() int64 { return clock.NewBoot().Now }

// coarse is the clock of a node with coarse_clock on.
func coarse() func() int64 { return clock.NewBoot().Now }
