package run

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"subak/testbed/evidence"
)

// recorder takes down what is done, with its times. Its methods may be called
// from any goroutine once begin was.
type recorder struct {
	start time.Time // set by begin, before anybody records

	mu     sync.Mutex // guards what follows
	bands  []evidence.Band
	events []evidence.Event
	limits []evidence.Limit
	steps  []evidence.Step
	failed []string
}

func newRecorder() *recorder { return &recorder{} }

// begin sets time 0.
func (r *recorder) begin(start time.Time) { r.start = start }

// now is the time since the start of the load.
func (r *recorder) now() time.Duration { return time.Since(r.start) }

// event takes down what was done or seen now, by the fault of a name.
func (r *recorder) event(fault string, node int, kind, format string, args ...any) {
	r.eventAt(r.now(), fault, node, kind, format, args...)
}

func (r *recorder) eventAt(at time.Duration, fault string, node int, kind, format string, args ...any) {
	text := fault
	if said := fmt.Sprintf(format, args...); said != "" {
		text += " " + said
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, evidence.Event{At: at, Node: node, Kind: kind, Text: text})
	if kind == failedKind {
		r.failed = append(r.failed, text)
	}
}

// failedKind is the kind of event of something that could not be done.
const failedKind = "failed"

func (r *recorder) band(b evidence.Band) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bands = append(r.bands, b)
}

func (r *recorder) limit(l evidence.Limit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limits = append(r.limits, l)
}

func (r *recorder) step(s evidence.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

// fill puts everything, by time, into a run.
func (r *recorder) fill(out *evidence.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out.Bands, out.Events = slices.Clone(r.bands), slices.Clone(r.events)
	out.Limits, out.Steps = slices.Clone(r.limits), slices.Clone(r.steps)
	slices.SortStableFunc(out.Bands, func(a, b evidence.Band) int { return int(a.From - b.From) })
	slices.SortStableFunc(out.Events, func(a, b evidence.Event) int { return int(a.At - b.At) })
	slices.SortStableFunc(out.Limits, func(a, b evidence.Limit) int { return int(a.At - b.At) })
	slices.SortStableFunc(out.Steps, func(a, b evidence.Step) int { return int(a.At - b.At) })
}
