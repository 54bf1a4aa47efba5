package schedule

import (
	"fmt"
	"strings"
	"time"

	"subak/allocator/ledger"
	"subak/chaos"
)

// shrinkTries bounds the replays of a shrink; one takes about a millisecond.
const shrinkTries = 6000

// Explain runs a seed again and describes it.
func (r *Runner) Explain(seed uint64, mode chaos.Mode, steps int) string {
	full, res := r.Record(seed, mode, steps)
	var b strings.Builder
	r.head(&b, res)
	if res.Violation == nil {
		r.replay(seed, mode, full, true)
		fmt.Fprintf(&b, "no violation; %d actions:\n", len(full))
		r.tellStory(&b)
		return b.String()
	}
	short := r.Shrink(seed, mode, full, res.Violation.Checker)
	shown := r.replay(seed, mode, short, true)
	fmt.Fprintf(&b, "shrunk from %d to %d actions; they end in\n%s\n\n", len(full), len(short), describe(shown.Violation))
	r.tellStory(&b)
	b.WriteString("\nprocesses at the end:")
	b.WriteString(r.w.whoLags())
	fmt.Fprintf(&b, "\n\nschedule, as sim --schedule reads it (seed %d, mode %v):\n%s", seed, mode, Format(short))
	fmt.Fprintf(&b, "\nreplay: go run ./chaos/sim --mode %v --seed %d --steps %d%s -v\n", mode, seed, steps, r.profileFlag())
	return b.String()
}

func (r *Runner) profileFlag() string {
	if r.only == "" {
		return ""
	}
	return " --profile " + r.only
}

// head describes the world of a result, which is the present one.
func (r *Runner) head(b *strings.Builder, res chaos.Result) {
	w := r.w
	fmt.Fprintf(b, "seed %d, mode %v, profile %s: %d names, %d budgets, clocks within %d ppm, terms", res.Seed, res.Mode, res.Profile, w.nodes, w.budgets, chaos.Rho(w.eps))
	for i := range w.nodes {
		disk := ""
		if w.hasDisk[i] {
			disk = "+disk"
		}
		fmt.Fprintf(b, " n%d %v%s", i, w.terms[i], disk)
	}
	fmt.Fprintf(b, "\n%d steps, %d actions, %v of true time, trace %016x\n", res.Steps, res.Actions, res.Virtual.Round(time.Millisecond), res.Hash)
	if res.Violation != nil {
		b.WriteString(describe(res.Violation) + "\n")
	}
}

func describe(v *chaos.Violation) string {
	if v == nil {
		return "no violation"
	}
	return fmt.Sprintf("VIOLATION of %s at %v, step %d: %s", v.Checker, v.At.Round(time.Microsecond), v.Step, v.Detail)
}

// Record runs a seed and returns its schedule.
func (r *Runner) Record(seed uint64, mode chaos.Mode, steps int) ([]Action, chaos.Result) {
	r.w.record = true
	res := r.Run(seed, mode, steps)
	r.w.record = false
	return append([]Action(nil), r.w.done...), res
}

// Replay runs a schedule in the world of a seed.
func (r *Runner) Replay(seed uint64, mode chaos.Mode, schedule []Action) chaos.Result {
	return r.replay(seed, mode, schedule, false)
}

func (r *Runner) replay(seed uint64, mode chaos.Mode, schedule []Action, telling bool) chaos.Result {
	p := r.profile(seed, mode)
	r.w.telling = telling
	r.w.reset(seed, mode, p, 0)
	for _, a := range schedule {
		if r.w.failed != nil {
			break
		}
		r.w.nextID = a.ID
		r.w.act(a)
	}
	r.w.telling = false
	return r.result(p)
}

// Shrink takes actions out of a failing schedule while the same checker objects.
func (r *Runner) Shrink(seed uint64, mode chaos.Mode, schedule []Action, checker string) []Action {
	return chaos.Shrink(schedule, shrinkTries, func(s []Action) bool {
		v := r.Replay(seed, mode, s).Violation
		return v != nil && v.Checker == checker
	})
}

// tellStory writes what the last replay told, the last part of it if it is long.
func (r *Runner) tellStory(b *strings.Builder) {
	const most = 400
	story := r.w.story
	if left := len(story) - most; left > 0 {
		fmt.Fprintf(b, "  ... %d lines\n", left)
		story = story[left:]
	}
	for _, line := range story {
		b.WriteString("  " + line + "\n")
	}
}

// tellAction notes an action and where it led.
func (w *world) tellAction(a Action) {
	if !w.telling {
		return
	}
	what := a.Kind.String()
	switch a.Kind {
	case Pass:
		what = "" // the clock of the next line shows it
	case Deliver:
		what = fmt.Sprintf("hears #%d", a.Ref)
	case Publish, Edit, Start, Crash:
		what = "" // tells itself
	case Demand:
		what = fmt.Sprintf("demands %d of b%d", a.Arg, a.Ref)
	case Skew:
		what = fmt.Sprintf("clock at %+d ppm", a.Arg)
	}
	if what != "" {
		w.tell("n%d %s", a.Node, what)
	}
}

// tellRow notes a row as it leaves.
func (w *world) tellRow(r *ledger.Row) {
	if !w.telling {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "n%d publishes %d/%d at %v", r.Node, r.Inc, r.Seq, r.Epoch)
	if r.Acked {
		b.WriteString(" acked")
	}
	if r.Recovering {
		b.WriteString(" recovering")
	}
	b.WriteString(", heard")
	for k, h := range r.Heard {
		if h.Inc != 0 && ledger.NodeID(k) != r.Node {
			fmt.Fprintf(&b, " n%d:%d/%d", k, h.Inc, h.Seq)
		}
	}
	for i, s := range r.Sections {
		fmt.Fprintf(&b, "; [%d] C %d D %d", i, s.Ceiling, s.Demand)
		for _, x := range s.Loans {
			fmt.Fprintf(&b, " lends %d to n%d", x.Amount, x.To)
		}
		for _, c := range s.Caps {
			fmt.Fprintf(&b, " caps n%d at %d from %d", c.Lender, c.Amount, c.Seq)
		}
	}
	fmt.Fprintf(&b, "; wait %d", r.Extra)
	w.tell("%s", b.String())
}

// Tell replays a schedule and says what happens.
func (r *Runner) Tell(seed uint64, mode chaos.Mode, schedule []Action) string {
	var b strings.Builder
	res := r.replay(seed, mode, schedule, true)
	r.head(&b, res)
	r.tellStory(&b)
	b.WriteString("\nprocesses at the end:" + r.w.whoLags() + "\n")
	return b.String()
}
