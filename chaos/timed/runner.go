package timed

import (
	"fmt"
	"strings"
	"time"

	"subak/chaos"
)

// Runner is the timed adversary as a [chaos.Runner].
type Runner struct{ seen []int64 }

var _ chaos.Runner = (*Runner)(nil)

// New returns a runner.
func New() *Runner { return &Runner{} }

// Name of the adversary.
func (*Runner) Name() string { return "timed" }

// Counters are what a run counts.
func (*Runner) Counters() []chaos.Counter { return counters() }

// Run simulates a seed with the given number of faults.
func (r *Runner) Run(seed uint64, mode chaos.Mode, steps int) chaos.Result {
	setup, schedule := Schedule(seed, mode, steps)
	result := r.Replay(setup, schedule)
	result.Steps = int64(steps)
	return result
}

// Schedule returns the world and the faults of a seed.
func Schedule(seed uint64, mode chaos.Mode, steps int) (Setup, []Fault) {
	s, p, r := draw(seed, mode)
	schedule := generate(&s, p, &r, steps)
	for _, f := range schedule {
		if f.Kind == Pause {
			s.OldMost += oldMax
		}
	}
	return s, schedule
}

// Replay runs a schedule, such as one that was shrunk, in the world of a seed.
func (r *Runner) Replay(s Setup, schedule []Fault) chaos.Result {
	w := newWorld(s, schedule)
	w.run()
	return r.result(w)
}

func (r *Runner) result(w *world) chaos.Result {
	r.seen = append(r.seen[:0], w.seen[:]...)
	var peak int64
	for _, s := range w.stocks {
		peak = max(peak, s.peak)
	}
	return chaos.Result{
		Seed: w.setup.Seed, Mode: w.setup.Mode, Profile: w.setup.Profile, Nodes: w.setup.Nodes, Budgets: w.setup.Budgets,
		Steps: int64(len(w.schedule)), Actions: w.events, Virtual: time.Duration(w.now), Hash: uint64(w.hash),
		PeakPPM: peak, Seen: r.seen, Violation: w.violation,
	}
}

// shrinkTries bounds the runs that shrinking takes.
const shrinkTries = 300

// Explain runs a seed again and describes it. With a violation, the schedule is
// shrunk as long as the same checker objects.
func (r *Runner) Explain(seed uint64, mode chaos.Mode, steps int) string {
	s, schedule := Schedule(seed, mode, steps)
	found := r.Replay(s, schedule)
	if found.Violation != nil {
		for i, f := range schedule { // what comes later is not needed
			if time.Duration(f.At) > found.Violation.At {
				schedule = schedule[:i]
				break
			}
		}
		schedule = chaos.Shrink(schedule, shrinkTries, func(part []Fault) bool {
			v := r.Replay(s, part).Violation
			return v != nil && v.Checker == found.Violation.Checker
		})
	}
	return r.Describe(s, schedule, lastLines)
}

// Describe runs a schedule and tells all about it, with the last lines of what
// happened where a checker objects.
func (r *Runner) Describe(s Setup, schedule []Fault, lines int) string {
	w := newWorld(s, schedule)
	w.log = &log{lines: make([]string, max(lines, 1)), reader: newGuard(w)}
	w.run()
	var b strings.Builder
	fmt.Fprintf(&b, "# seed %d, mode %s, profile %s: %d nodes, %d budgets of %v, %d classes\n", s.Seed, s.Mode, s.Profile, s.Nodes, s.Budgets, s.Limits, s.Classes)
	fmt.Fprintf(&b, "# tick %s, term %s, eps %d ppm, guard %s, clocks within %d ppm, burst %s, longest round trip %s, disks %v\n",
		s.Tick, s.Term, s.EpsPPM, s.Guard, s.RhoPPM, s.Burst, longest(s.Delay), s.Disk)
	fmt.Fprintf(&b, "# schedule: instant, kind, who, with, duration, size\n%s", Format(schedule))
	if w.violation == nil {
		fmt.Fprintf(&b, "# no checker objects; %d events, hash %016x\n", w.events, uint64(w.hash))
		return b.String()
	}
	fmt.Fprintf(&b, "# the last moments\n%s", w.log)
	v := w.violation
	fmt.Fprintf(&b, "# VIOLATION of %s at %s, event %d: %s\n", v.Checker, v.At, v.Step, v.Detail)
	return b.String()
}
