package schedule

import (
	"time"

	"subak/chaos"
)

// Runner simulates seeds. It belongs to one goroutine.
type Runner struct {
	w        *world
	profiles []Profile
	shares   int
	counters []chaos.Counter
	only     string
}

var _ chaos.Runner = (*Runner)(nil)

// New returns a runner. profile is the name of the only profile to use; empty,
// each seed chooses one.
func New(profile string) *Runner {
	r := &Runner{w: newWorld(), profiles: Profiles(), counters: counters(), only: profile}
	for _, p := range r.profiles {
		r.shares += p.Share
	}
	return r
}

// Name returns the adversary's name on the command line.
func (r *Runner) Name() string { return "schedule" }

// Counters returns what a run counts.
func (r *Runner) Counters() []chaos.Counter { return r.counters }

// Run simulates one seed.
func (r *Runner) Run(seed uint64, mode chaos.Mode, steps int) chaos.Result {
	p := r.profile(seed, mode)
	r.w.reset(seed, mode, p, steps)
	r.w.run()
	return r.result(p)
}

// profile is the one that a seed chooses.
func (r *Runner) profile(seed uint64, mode chaos.Mode) *Profile {
	rng := chaos.NewRand(seed*31 + uint64(mode))
	at := rng.IntN(r.shares)
	for i := range r.profiles {
		p := &r.profiles[i]
		at -= p.Share
		if r.only == p.Name || r.only == "" && at < 0 {
			return p
		}
	}
	return &r.profiles[0]
}

func (r *Runner) result(p *Profile) chaos.Result {
	w := r.w
	return chaos.Result{
		Seed: w.seed, Mode: w.mode, Profile: p.Name, Nodes: w.nodes, Budgets: w.budgets,
		Steps: w.step, Actions: w.acted, Virtual: time.Duration(w.t), Hash: uint64(w.hash),
		PeakPPM: w.peak, Seen: w.seen[:], Violation: w.failed,
	}
}
