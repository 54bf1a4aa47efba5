package origin

import (
	"fmt"
	"slices"
	"time"

	"subak/allocator"
	"subak/chaos/bound"
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

// Claim is a bound to judge the arrivals by: in any window of w at most
// Limit*(w+Spread+Burst) requests and Slots more.
type Claim struct {
	Limit int64 `json:"limit"` // requests/s
	// Changes of the limit, by rising time.
	Changes []Change      `json:"changes,omitempty"`
	Burst   time.Duration `json:"burst_ns"`
	Slots   int64         `json:"slots"`
	Spread  time.Duration `json:"spread_ns"`
	// Over is how many broken stretches of each window length to list.
	Over int `json:"over,omitempty"`
}

// Change is a limit in requests/s that binds from an instant on.
type Change struct {
	At    int64 `json:"at"` // ns of [load.Monotonic]
	Limit int64 `json:"limit"`
}

// overMax and changesMax bound what a claim may ask for.
const (
	overMax    = 1000
	changesMax = 1000
)

func (c *Claim) config(windows []time.Duration) (bound.Config, error) {
	b := bound.Config{
		Limit: allocator.Rate(c.Limit) * allocator.Unit, Burst: c.Burst, Slots: c.Slots, Spread: c.Spread,
		Windows: windows, Over: c.Over,
	}
	if c.Over < 0 || c.Over > overMax || len(c.Changes) > changesMax {
		return b, fmt.Errorf("origin: at most %d broken stretches and %d changes", overMax, changesMax)
	}
	limits := []int64{c.Limit}
	for _, ch := range c.Changes {
		limits = append(limits, ch.Limit)
		b.Changes = append(b.Changes, bound.Change{At: ch.At, Limit: allocator.Rate(ch.Limit) * allocator.Unit})
	}
	for _, l := range limits {
		if l < 0 || l > limitMax {
			return b, fmt.Errorf("origin: limit %d is outside 0..%d", l, limitMax)
		}
	}
	return b, nil
}

// Judgement is about the logged arrivals whose transit was at most the spread.
type Judgement struct {
	Claim  Claim    `json:"claim"`
	Peaks  [][]int  `json:"peaks"`  // [phase][window]
	Slower []uint64 `json:"slower"` // arrivals left out, by phase
	// Bound is the outcome over the whole run: each window, and windows of
	// every length at once.
	Bound bound.Report `json:"bound"`
}

// Judge tests a claim. It takes some 0.1 us for each logged arrival.
func (o *Origin) Judge(c Claim) (Judgement, error) {
	o.mu.Lock()
	log, phases, windows := o.log, len(o.phases), o.cfg.Windows // the log only grows
	o.mu.Unlock()
	j := Judgement{Claim: c, Slower: make([]uint64, phases)}
	config, err := c.config(windows)
	if err != nil {
		return j, err
	}
	checker, err := bound.New(config)
	if err != nil {
		return j, fmt.Errorf("origin: %w", err)
	}
	prompt := newPeaks(windows)
	for _, e := range log {
		if e.transit > int64(c.Spread) {
			j.Slower[e.phase]++
			continue
		}
		prompt.add(e.at, int(e.phase))
		if err := checker.Add(bound.Admission{At: e.at, Cost: 1}); err != nil {
			return j, fmt.Errorf("origin: %w", err)
		}
	}
	for i := range phases {
		j.Peaks = append(j.Peaks, peaksOf(prompt, i, len(windows)))
	}
	j.Bound = checker.Report()
	return j, nil
}

// Arrivals counts the logged arrivals by class and bin of time since the instant
// start (ns of [load.Monotonic]); those outside of the bins are left out. The last
// class is "other".
func (o *Origin) Arrivals(start int64, bin time.Duration, bins int) [][]uint32 {
	o.mu.Lock()
	log, classes := o.log, len(o.cfg.Classes) // the log only grows
	o.mu.Unlock()
	all := make([][]uint32, classes)
	for k := range all {
		all[k] = make([]uint32, bins)
	}
	for _, e := range log {
		if e.at < start {
			continue
		}
		if i := (e.at - start) / int64(bin); i < int64(bins) {
			all[e.class][i]++
		}
	}
	return all
}

func peaksOf(p *peaks, phase, windows int) []int {
	if phase >= len(p.peak) {
		return make([]int, windows)
	}
	return slices.Clone(p.peak[phase])
}
