// Package contention is the eight contention scenarios as demand traces: who asks
// for how much of a budget, of which class, in each cycle.
//
// # Model
//
// There are two classes. The high class is reserved 60 % of the budget, the low
// class the rest. The low class is a flood with a legitimate part in it, 10 % of
// the budget; [Trace.Legit] tells the parts apart. Time is counted in cycles
// of any length.
//
// The high class and the legitimate part spread over the places by weight, times
// a fixed factor between 0.7 and 1.3 for each place that no seed changes; the
// flood spreads by weight. Each place's demand of either class is off by noise
// of 10 % that lasts (autoregressive, 0.7 from one cycle to the next), the flood
// by fresh noise of 5 %. The eight scenarios:
//
//   - S1 uniform: a flood of 150 % of the budget everywhere; the high class asks
//     for 110 % of its reservation.
//   - S2 single: a flood of 150 % at fra alone, or, where there is no fra, at the
//     first place of the greatest weight; high class 115 %.
//   - S3 regional: a flood of 120 % over the places in Europe; high class 115 %,
//     and a quarter more of it in Europe. Six of 22 cities (ams arn cdg fra lhr
//     mad), two of five (ams fra).
//   - S4 rotating: a flood of 150 % at one place, which changes every 5 cycles;
//     high class 100 %, twice as much at that place.
//   - S5 flash crowd: a flood of 100 % everywhere; high class 95 %. In each 150
//     cycles, from the 20th, North America's high class rises by 240 % within 15
//     cycles, stays there for 30 and falls back in 60. North America is nine of
//     22 cities, one of five (iad).
//   - S6 pulse and bursts: a flood of 150 % everywhere for 9 cycles, then of 23 %
//     for 3; high class 100 %, two and a half times as much at a place in a
//     burst. A burst begins with a chance of 6 % and ends with one of 25 % in
//     each cycle, at each place for itself.
//   - S7 follow the sun: a flood of 120 % everywhere; high class 110 %. Both it and
//     the legitimate part swing by 70 % with the local time; most is asked for at
//     18 h. A day is 240 cycles.
//   - S8 mismatch: a flood of 60 % everywhere; high class 145 %, spread not by
//     weight w but by 120 - w (where a weight is 120 or more: by the greatest and
//     the least weight together, less w).
//
// # Units and invariants
//
// Demands are [allocator.Rate], micro-units/s. All arithmetic is in integers, with
// random numbers that depend on nothing but the seed, the cycle and the place: the
// same scenario, topology, limit and seed give the same trace on every CPU. A
// demand is never negative; a trace scales with the limit but for rounding, by a
// few micro-units. The demands of a cycle add up to less than 2^63: a limit with which
// they might not is refused.
//
// # Concurrency
//
// A Trace belongs to one goroutine.
package contention

import (
	"fmt"
	"slices"
	"strings"

	"subak/allocator"
	"subak/testbed/topology"
)

// The classes, in order of priority, and what is reserved for the high one, in
// ppm of the budget.
const (
	High = iota
	Low
	Classes

	ReserveHighPPM = 600_000
)

// MaxLimit is the largest budget of a trace, in requests/s.
const MaxLimit = 1_000_000_000_000

// Trace is a scenario at the places of a topology.
type Trace struct {
	scenario *Scenario
	places   []topology.Place
	limit    allocator.Rate
	seed     uint64
	hasten   int64

	mix, weights spread // of legitimate demand and of a flood everywhere
	home         []bool // the flood's own place or region
	crowded      []bool // the flash crowd's region
	homes        spread // of a flood there
	now          state
}

// Names of the eight scenarios: S1 to S8.
func Names() []string {
	var names []string
	for _, s := range builtIn() {
		names = append(names, s.Name)
	}
	return names
}

// Find returns one of the eight.
func Find(name string) (Scenario, error) {
	all := builtIn()
	if at := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name }); at >= 0 {
		return all[at], nil
	}
	return Scenario{}, fmt.Errorf("contention scenario %q: unknown; mend: one of %s", name, strings.Join(Names(), ", "))
}

// Title of one of the eight; empty for an unknown one.
func Title(name string) string {
	s, _ := Find(name)
	return s.Title
}

// New returns the trace of one of the eight scenarios; see [Scenario.Trace].
func New(name string, t topology.Topology, limit int64, seed uint64) (*Trace, error) {
	s, err := Find(name)
	if err != nil {
		return nil, err
	}
	return s.Trace(t, limit, seed)
}

// Trace returns the demand of a scenario that was read, at the places of
// a topology. The limit is the budget in whole requests/s, 1 to [MaxLimit], or less where
// the scenario may ask for so many times as much that it could not be counted. The error
// tells what is wrong and how to mend it.
func (s *Scenario) Trace(t topology.Topology, limit int64, seed uint64) (*Trace, error) {
	switch most := s.maxLimit(); {
	case limit < 1 || limit > most:
		return nil, fmt.Errorf("contention scenario %s: limit %d; mend: 1 to %d requests/s", s.Name, limit, most)
	case len(t.Places) < 2:
		return nil, fmt.Errorf("contention scenario %s: %d places; mend: a topology of 2 or more", s.Name, len(t.Places))
	}
	tr := &Trace{
		scenario: s, places: t.Places, limit: allocator.Rate(limit) * allocator.Unit, seed: seed, hasten: 1,
	}
	if err := tr.settle(t); err != nil {
		return nil, fmt.Errorf("contention scenario %s: %w", s.Name, err)
	}
	tr.rewind()
	return tr, nil
}

// Hasten lets the slow shapes, the crowd of S5 and the day of S7, run this many
// times faster, 1 to 50, so that a short run sees all of them. Nothing else
// changes.
func (t *Trace) Hasten(times int) error {
	if times < 1 || times > 50 {
		return fmt.Errorf("contention scenario %s: hastened %d times; mend: 1 to 50", t.scenario.Name, times)
	}
	t.hasten = int64(times)
	t.rewind()
	return nil
}

// Name of the scenario.
func (t *Trace) Name() string { return t.scenario.Name }

// Nodes is the number of places.
func (t *Trace) Nodes() int { return len(t.places) }

// Cycle puts the demands of cycle n, 0 or more, into dst[class*Nodes+place], of
// length Classes*Nodes. Going back to an earlier cycle takes as long as playing
// all cycles up to it.
func (t *Trace) Cycle(n int, dst []allocator.Rate) {
	if len(dst) != Classes*len(t.places) {
		panic(fmt.Sprintf("contention: %d demands for %d places", len(dst), len(t.places)))
	}
	t.play(n)
	copy(dst, t.now.high)
	for i := range t.places {
		dst[len(t.places)+i] = t.now.legit[i] + t.now.flood[i]
	}
}

// Legit puts the legitimate part of the low class's demand in cycle n into
// dst[place], of length Nodes. The rest of it is the flood.
func (t *Trace) Legit(n int, dst []allocator.Rate) {
	if len(dst) != len(t.places) {
		panic(fmt.Sprintf("contention: %d legitimate demands for %d places", len(dst), len(t.places)))
	}
	t.play(n)
	copy(dst, t.now.legit)
}
