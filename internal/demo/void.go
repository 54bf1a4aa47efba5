package demo

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// What a run must show, or its verdict means nothing.
const (
	floodLeast    = 1.2  // offered and decided on, of the limit, in a flood
	admittedLeast = 0.8  // admitted, of what the ideal serves, with all nodes up
	lateMost      = 0.10 // of all offered, sent later than lateAfter
	lateAfter     = 100 * time.Millisecond
	spreadMost    = time.Second // else 10 s windows forgive 10 % too much
	lostMost      = 0.01        // of a phase's offered, lost with all nodes up
	pollsLeast    = 0.5         // of the polls, complete
)

// void lists why the run shows nothing about the budget; nil when it does.
func void(r *Result, p *plan, e evidence) []string {
	var why []string
	because := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	for i, ph := range r.Phases {
		voidPhase(p.phases[i], ph, float64(r.Limit), because)
	}
	if part := float64(r.Late+r.Overflow) / float64(max(1, r.Offered)); part > lateMost {
		because("the generator was late with %.0f %% of the requests: this machine is too busy", 100*part)
	}
	if r.Spread > spreadMost {
		because("one request in a thousand took %s to the origin: this machine is too busy", short(r.Spread))
	}
	if r.Arrived < r.Admitted {
		because("%s requests were answered as admitted, but only %s reached the origin", comma(int(r.Admitted)), comma(int(r.Arrived)))
	}
	if n := e.origin.Dropped + e.origin.Forgotten; n > 0 {
		because("the origin had no room for %d arrivals", n)
	}
	if r.BackAfter == 0 && hasRestart(p) {
		because("the killed node was never ready again")
	}
	return why
}

func voidPhase(plan phasePlan, ph PhaseResult, limit float64, because func(string, ...any)) {
	var offered, admitted, lost uint64
	var ideal float64
	errs := map[string]uint64{}
	for _, c := range ph.Classes {
		offered += c.Offered
		admitted += c.Admitted
		lost += c.Lost
		ideal += c.Ideal / 100 * float64(c.Offered)
		for k, n := range c.Errors {
			errs[k] += n
		}
	}
	if plan.flood && float64(offered-lost) < floodLeast*limit*ph.Seconds {
		because("%s: only %s requests met a node in %.1f s: no flood", ph.Name, comma(int(offered-lost)), ph.Seconds)
	}
	if len(ph.Windows) == 0 {
		because("%s: the origin did not see this phase", ph.Name)
	}
	if ph.Polls == 0 || float64(ph.PollsFull) < pollsLeast*float64(ph.Polls) {
		because("%s: only %d of %d polls of the nodes were complete", ph.Name, ph.PollsFull, ph.Polls)
	}
	switch {
	case plan.kill >= 0 && lost == 0:
		because("%s: nobody missed the killed node", ph.Name)
	case plan.down:
	case float64(admitted) < admittedLeast*ideal:
		because("%s: only %s of some %s requests were admitted", ph.Name, comma(int(admitted)), comma(int(ideal)))
	case float64(lost) > lostMost*float64(offered):
		because("%s: %s requests got lost with all nodes up (%s)", ph.Name, comma(int(lost)), kinds(errs))
	}
}

func hasRestart(p *plan) bool {
	return slices.ContainsFunc(p.phases, func(ph phasePlan) bool { return ph.start >= 0 })
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
