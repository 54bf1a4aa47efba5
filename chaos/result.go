package chaos

import "time"

// A Runner simulates. It belongs to one goroutine.
type Runner interface {
	// Name of the adversary, as on the command line.
	Name() string
	// Counters are what the runner counts; Result.Seen has their order.
	Counters() []Counter
	// Run simulates one seed for the given number of steps, or until a checker
	// objects. The result is the same each time. Result.Seen is valid until the
	// next run.
	Run(seed uint64, mode Mode, steps int) Result
	// Explain runs a seed again and describes it: with a violation, the shrunk
	// schedule, the rows and decisions of the last moments and the violation;
	// without, the whole schedule.
	Explain(seed uint64, mode Mode, steps int) string
}

// Counter is something that a run may meet.
type Counter struct {
	Name string
	// Must says that a campaign in which it never happened proves too little.
	Must bool
	// Only says in which modes it can happen; nil means all.
	Only []Mode
}

// In reports whether the counter can rise in mode m.
func (c Counter) In(m Mode) bool {
	for _, o := range c.Only {
		if o == m {
			return true
		}
	}
	return len(c.Only) == 0
}

// Result is what one seed gave.
type Result struct {
	Seed    uint64
	Mode    Mode
	Profile string // the kind of adversary that the seed chose
	Nodes   int
	Budgets int
	Steps   int64         // decisions of the adversary
	Actions int64         // single events: a row delivered, a clock advanced ...
	Virtual time.Duration // true time that passed
	// Hash of all actions and their outcomes.
	Hash uint64
	// PeakPPM is the greatest sum of enforced rates, as a share of the budget
	// then in force.
	PeakPPM int64
	Seen    []int64 // by counter
	// Violation is nil if every checker was content.
	Violation *Violation
}

// Violation is an objection of a checker.
type Violation struct {
	Checker string // which law was broken, in a few words
	At      time.Duration
	Step    int64
	Detail  string
}
