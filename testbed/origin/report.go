package origin

import (
	"slices"
	"time"

	"subak/testbed/load"
)

// Report is what has arrived so far.
type Report struct {
	Windows []time.Duration `json:"windows_ns"`
	Classes []string        `json:"classes"` // the last is "other"
	Phases  []PhaseReport   `json:"phases"`
	// Series counts arrivals [class][bin] since the reset, up to an hour.
	Bin     time.Duration `json:"bin_ns"`
	Series  [][]uint32    `json:"series"`
	Elapsed time.Duration `json:"elapsed_ns"`
	// Transit is the time from generator to origin, over all phases.
	Transit load.Latency `json:"transit"`
	// Dropped counts arrivals that the log had no room for, Forgotten those
	// that left a window early for want of memory; either makes peaks too low.
	Dropped   uint64 `json:"dropped"`
	Forgotten uint64 `json:"forgotten"`
}

// PhaseReport is one phase. Peaks has the most arrivals in any window of each
// length that ended in the phase.
type PhaseReport struct {
	Name     string       `json:"name"`
	Arrivals []uint64     `json:"arrivals"` // by class
	Peaks    []int        `json:"peaks"`
	Transit  load.Latency `json:"transit"`
}

// Report returns a copy of the state.
func (o *Origin) Report() Report {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := Report{
		Windows: o.cfg.Windows, Classes: o.cfg.Classes, Bin: bin,
		Elapsed: time.Duration(load.Monotonic() - o.start),
		Transit: o.transit.Latency(), Dropped: o.dropped, Forgotten: o.live.forgotten,
	}
	for _, s := range o.series {
		r.Series = append(r.Series, slices.Clone(s))
	}
	for i, p := range o.phases {
		r.Phases = append(r.Phases, PhaseReport{
			Name: p.name, Arrivals: slices.Clone(p.arrivals),
			Peaks: peaksOf(o.live, i, len(o.cfg.Windows)), Transit: p.transit.Latency(),
		})
	}
	return r
}

// Peaks are the most arrivals [phase][window] among those whose transit was at
// most the spread, and how many were slower.
type Peaks struct {
	Spread time.Duration `json:"spread_ns"`
	Peaks  [][]int       `json:"peaks"`
	Slower []uint64      `json:"slower"` // by phase
}

// Peaks counts the logged arrivals whose transit was at most spread.
func (o *Origin) Peaks(spread time.Duration) Peaks {
	o.mu.Lock()
	log, phases, windows := o.log, len(o.phases), o.cfg.Windows // the log only grows
	o.mu.Unlock()
	r := Peaks{Spread: spread, Slower: make([]uint64, phases)}
	prompt := newPeaks(windows)
	for _, e := range log {
		if e.transit > int64(spread) {
			r.Slower[e.phase]++
			continue
		}
		prompt.add(e.at, int(e.phase))
	}
	for i := range phases {
		r.Peaks = append(r.Peaks, peaksOf(prompt, i, len(windows)))
	}
	return r
}

func peaksOf(p *peaks, phase, windows int) []int {
	if phase >= len(p.peak) {
		return make([]int, windows)
	}
	return slices.Clone(p.peak[phase])
}
