package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"subak/internal/api"
	nodes "subak/testbed/cluster"
	"subak/testbed/load"
	"subak/testbed/origin"
)

// step is one change of a running cluster.
type step struct {
	name, title string
	length      time.Duration
	nodes       []int // who has load, by position in the plan
	ask         int   // the node that is asked
	edit        *nodes.Edit
	start       int   // node to start first; -1 none
	kill        int   // node to kill -9 first; -1 none
	limit       int64 // in force afterwards, requests/s
}

// How the changes are judged.
const (
	// servedLeast is the least part of the smaller limit that must reach the
	// origin in every half second, or service counts as interrupted. The base of
	// the killed node, a seventh, is out of reach until it is forgotten.
	servedLeast = 0.7
	// settleFor is waited after a change is in force before windows are judged by
	// the new limit alone: as long as the longest window.
	settleFor = 1100 * time.Millisecond
)

var changeWindows = []time.Duration{100 * time.Millisecond, time.Second}

// changesPlan is the cluster: the demo's five nodes, and one more that joins.
func changesPlan(limit int64, scale float64) plan {
	p := script(limit, scale)
	p.phases = nil
	p.insurance = 0
	p.first = len(p.nodes)
	p.nodes = append(p.nodes, nodePlan{"jnb", 40, "127.0.0.6"})
	return p
}

// changesScript is what happens to it.
func (p *plan) changesScript(scale float64) []step {
	limit, half := p.limit, p.limit/2
	seconds := func(s float64) time.Duration { return time.Duration(s * scale * float64(time.Second)).Round(seriesBin) }
	five, six, joined, rest := []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4, 5}, []int{0, 1, 2, 4, 5}, []int{0, 1, 2, 5}
	split := func(first int64) []int64 { return []int64{10_000 * first, 1_000_000 - 10_000*first} }
	all := []step{
		{name: "steady", title: "nothing changes", length: seconds(4), nodes: five, limit: limit},
		{name: "cut", title: "budget cut by half, at fra", length: seconds(5), nodes: five, ask: 1, edit: &nodes.Edit{Limit: half}, limit: half},
		{name: "restore", title: "budget restored, at iad", length: seconds(5), nodes: five, ask: 2, edit: &nodes.Edit{Limit: limit, Revert: true}, limit: limit},
		{name: "re-split", title: "classes 60/40 to 30/70, at ams", length: seconds(5), nodes: five, edit: &nodes.Edit{Reserve: split(30)}, limit: limit},
		{name: "join", title: "jnb starts and is added", length: seconds(7), nodes: five, edit: &nodes.Edit{Roster: six}, start: 5, limit: limit},
		{name: "remove", title: "gru is removed, at jnb", length: seconds(5), nodes: joined, ask: 5, edit: &nodes.Edit{Roster: joined}, limit: limit},
		{name: "forget", title: "kill -9 of sin; it is forgotten", length: seconds(9), nodes: joined, ask: 2, edit: &nodes.Edit{Forget: []int{4}}, kill: 4, limit: limit},
		{name: "rest", title: "nothing changes", length: seconds(4), nodes: rest, limit: limit},
	}
	for i := range all {
		if all[i].name != "join" {
			all[i].start = -1
		}
		if all[i].name != "forget" {
			all[i].kill = -1
		}
	}
	return all
}

// StepResult is what one change did.
type StepResult struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Epoch string `json:"epoch,omitempty"`
	// InForce is from the question to the answer that the change is in force at
	// every node; 0 for a step without one.
	InForce time.Duration `json:"in_force_ns"`
	// UnderWay and Settled are the fullest windows before and after that: the
	// first is judged by the larger of the two limits.
	UnderWay []WindowResult `json:"under_way"`
	Settled  []WindowResult `json:"settled"`
	// Least is the emptiest half second at the origin, in requests/s.
	Least  float64 `json:"least"`
	Floor  float64 `json:"floor"`  // and what it must not be below
	Errors uint64  `json:"errors"` // requests to live nodes without an answer
}

// ChangesResult is the outcome of all of them.
type ChangesResult struct {
	Limit   int64         `json:"limit"`
	Seed    uint64        `json:"seed"`
	Spread  time.Duration `json:"spread_ns"`
	Steps   []StepResult  `json:"steps"`
	Broken  []string      `json:"broken"`
	Void    []string      `json:"void"`
	Verdict string        `json:"verdict"`
}

// RunChanges starts the demo's cluster and changes everything about it under
// load: the limit, the classes, the nodes. It judges the origin's arrivals by the
// limit in force and by what was still served.
func RunChanges(ctx context.Context, opt Options) (ChangesResult, error) {
	if err := opt.validate(); err != nil {
		return ChangesResult{}, err
	}
	progress := opt.Out
	if opt.JSON {
		progress = opt.Err
	}
	ui := newScreen(progress, true)
	defer ui.end()
	c, err := newClusterOf(opt, ui, changesPlan(opt.Limit, opt.Scale))
	if err != nil {
		return ChangesResult{}, err
	}
	defer c.close()
	if err := c.up(ctx); err != nil {
		return ChangesResult{}, err
	}
	r, err := c.changes(ctx)
	if err != nil {
		return r, err
	}
	if opt.JSON {
		enc := json.NewEncoder(opt.Out)
		enc.SetIndent("", "  ")
		return r, enc.Encode(r)
	}
	_, err = fmt.Fprintf(opt.Out, "%s\n%s\n", changesTable(&r), r.Verdict)
	return r, err
}

// changes plays the steps under load and judges them.
func (c *cluster) changes(ctx context.Context) (ChangesResult, error) {
	steps := c.plan.changesScript(c.opt.Scale)
	r := ChangesResult{Limit: c.plan.limit, Seed: c.opt.Seed}
	g, err := load.New(load.Config{Seed: c.opt.Seed, Phases: stepPhases(steps), Streams: c.stepStreams(steps), Late: lateAfter, Bin: seriesBin})
	if err != nil {
		return r, err
	}
	if err := c.origin.Reset(ctx, origin.Config{Classes: c.plan.classNames(), Windows: changeWindows}); err != nil {
		return r, err
	}
	start := time.Now()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Run(inner) }) // its only error is that of the context
	var end time.Duration
	for i := range steps {
		began := time.Now()
		end += steps[i].length
		s, err := c.step(inner, &steps[i], began, start.Add(end))
		if err != nil {
			cancel()
			wg.Wait()
			return r, err
		}
		r.Steps = append(r.Steps, s)
	}
	wg.Wait()
	return r, c.judgeChanges(ctx, &r, steps, g.Report())
}

func stepPhases(steps []step) (all []load.Phase) {
	for _, s := range steps {
		all = append(all, load.Phase{Name: s.name, Length: s.length})
	}
	return all
}

// stepStreams offers twice the limit throughout: 60 % of it by weight at the
// nodes that have load, the rest as a flood at ams.
func (c *cluster) stepStreams(steps []step) []load.Stream {
	p := c.plan
	for _, s := range steps {
		ph := phasePlan{rates: newCells(len(p.classes), len(p.nodes))}
		weights := 0.0
		for _, i := range s.nodes {
			weights += float64(p.nodes[i].weight)
		}
		for _, i := range s.nodes {
			part := float64(p.limit) * float64(p.nodes[i].weight) / weights
			ph.rates[confirmed][i], ph.rates[uncleared][i] = 0.3*part, 0.3*part
		}
		ph.rates[uncleared][floodAt] += 1.4 * float64(p.limit)
		p.phases = append(p.phases, ph)
	}
	return p.streams(c.proxies())
}

// step does one change and waits until its time is over.
func (c *cluster) step(ctx context.Context, s *step, began time.Time, end time.Time) (StepResult, error) {
	r := StepResult{Name: s.name, Title: s.title}
	if s.kill >= 0 {
		c.nodes.Kill(s.kill)
	}
	if err := c.origin.Enter(ctx, s.name); err != nil {
		return r, err
	}
	if s.start >= 0 {
		if err := c.startNode(s.start); err != nil {
			return r, err
		}
		if err := c.nodes.AwaitMet(ctx, s.start, s.ask); err != nil {
			return r, fmt.Errorf("demo: %w", err)
		}
	}
	c.ui.say("%-9s %s", s.name, s.title)
	if s.edit != nil {
		change, err := c.applyStep(ctx, s, end)
		if err != nil {
			return r, fmt.Errorf("demo: %s: %w\n%s", s.name, err, c.nodes.LastLines(8))
		}
		for _, line := range change.Plan {
			c.ui.say("            %s", line)
		}
		r.Epoch, r.InForce = change.Epoch, time.Since(began)
		c.ui.say("            in force at every node after %s", short(r.InForce))
	}
	if err := pause(ctx, min(settleFor, time.Until(end))); err != nil {
		return r, err
	}
	if err := c.origin.Enter(ctx, s.name+", settled"); err != nil {
		return r, err
	}
	for time.Until(end) > 0 {
		if err := c.crashed(); err != nil {
			return r, err
		}
		if err := pause(ctx, min(100*time.Millisecond, time.Until(end))); err != nil {
			return r, err
		}
	}
	return r, nil
}

// applyStep asks for a change and waits until it is in force, until end at most.
func (c *cluster) applyStep(ctx context.Context, s *step, end time.Time) (api.Change, error) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	made, err := c.nodes.Apply(ctx, s.ask, *s.edit)
	if err == nil {
		_, err = c.nodes.AwaitChange(ctx, s.ask, made.Epoch)
	}
	return made, err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// judgeChanges fills in what the witnesses say, and the verdict.
func (c *cluster) judgeChanges(ctx context.Context, r *ChangesResult, steps []step, l load.Report) error {
	seen, err := c.origin.Report(ctx)
	if err != nil {
		return err
	}
	r.Spread = seen.Transit.P999
	j, err := c.origin.Judge(ctx, origin.Claim{Limit: c.plan.limit, Burst: c.plan.burst, Slots: int64(c.plan.extra()), Spread: r.Spread})
	if err != nil {
		return err
	}
	before := c.plan.limit
	var at time.Duration
	for i := range steps {
		s := &r.Steps[i]
		higher, lower := max(before, steps[i].limit), min(before, steps[i].limit)
		s.UnderWay = c.windows(seen, j, 2*i+1, higher)
		s.Settled = c.windows(seen, j, 2*i+2, steps[i].limit)
		s.Floor = servedLeast * float64(lower)
		s.Least = leastHalf(seen, at, at+steps[i].length)
		for k := range l.Streams {
			if node := k % len(c.plan.nodes); node != steps[i].kill {
				cell := l.Streams[k].Cells[i]
				s.Errors += cell.Failed()
			}
		}
		before, at = steps[i].limit, at+steps[i].length
	}
	if lost := seen.Dropped + seen.Forgotten; lost > 0 {
		r.Void = append(r.Void, fmt.Sprintf("the origin could not keep %d of its arrivals, so its windows are too low", lost))
	}
	r.judge(l)
	return nil
}

// windows are the fullest windows that ended in one of the origin's phases,
// against the bound under a limit.
func (c *cluster) windows(seen origin.Report, j origin.Judgement, phase int, limit int64) (all []WindowResult) {
	p := c.plan
	p.limit = limit
	for w, length := range seen.Windows {
		if phase < len(seen.Phases) && phase < len(j.Peaks) {
			all = append(all, WindowResult{length, seen.Phases[phase].Peaks[w], j.Peaks[phase][w], p.bound(length, j.Claim.Spread)})
		}
	}
	return all
}

// leastHalf is the emptiest half second at the origin in a stretch of the run,
// in requests/s.
func leastHalf(r origin.Report, from, to time.Duration) float64 {
	halves := halfSeconds(r)
	const half = 500 * time.Millisecond
	least := -1.0
	for i := int((from + half - 1) / half); i < len(halves) && time.Duration(i+1)*half <= to; i++ {
		if least < 0 || halves[i] < least {
			least = halves[i]
		}
	}
	return max(least, 0)
}

// judge fills in Broken, Void and Verdict.
func (r *ChangesResult) judge(l load.Report) {
	var offered, late uint64
	for _, s := range l.Streams {
		for _, c := range s.Cells {
			offered += c.Offered
			late += c.Late + c.Overflow
		}
	}
	if part := float64(late) / float64(max(1, offered)); part > lateMost {
		r.Void = append(r.Void, fmt.Sprintf("the generator was late with %.0f %% of the requests: this machine is too busy", 100*part))
	}
	if r.Spread > spreadMost {
		r.Void = append(r.Void, fmt.Sprintf("one request in a thousand took %s to the origin: this machine is too busy", short(r.Spread)))
	}
	fullest := 0.0
	for _, s := range r.Steps {
		if len(s.UnderWay) != len(changeWindows) || len(s.Settled) != len(changeWindows) {
			r.Broken = append(r.Broken, s.Name+": the origin did not watch all of it, so the bound is not checked")
		}
		for i, w := range append(slices.Clone(s.UnderWay), s.Settled...) {
			part := "under way"
			if i >= len(s.UnderWay) {
				part = "in force"
			}
			fullest = max(fullest, float64(w.Prompt)/float64(w.Bound))
			if w.Prompt > w.Bound {
				r.Broken = append(r.Broken, fmt.Sprintf("%s, %s: %s requests reached the origin within %s, the bound is %s", s.Name, part, comma(w.Prompt), w.Window, comma(w.Bound)))
			}
		}
		if s.Least < s.Floor {
			r.Broken = append(r.Broken, fmt.Sprintf("%s: service fell to %s, at least %s was to be served", s.Name, perSecond(s.Least), perSecond(s.Floor)))
		}
		if s.Errors > 0 {
			r.Broken = append(r.Broken, fmt.Sprintf("%s: %d requests to live nodes had no answer", s.Name, s.Errors))
		}
	}
	switch {
	case len(r.Void) > 0: // a machine that is too busy breaks everything else too
		r.Verdict = "no verdict: " + r.Void[0] + more(len(r.Void)+len(r.Broken)-1)
	case len(r.Broken) > 0:
		r.Verdict = "BROKEN: " + r.Broken[0] + more(len(r.Broken)-1)
	default:
		r.Verdict = fmt.Sprintf("changes kept: %d changes under load; the fullest window held %.1f %% of its bound, service was never below %.0f %% of the limit, no request was lost",
			r.changes(), 100*fullest, 100*r.leastServed())
	}
}

// OK is exit status 0.
func (r *ChangesResult) OK() bool { return len(r.Broken) == 0 && len(r.Void) == 0 && len(r.Steps) > 0 }

func (r *ChangesResult) changes() (n int) {
	for _, s := range r.Steps {
		if s.Epoch != "" {
			n++
		}
	}
	return n
}

func (r *ChangesResult) leastServed() float64 {
	least := 1.0
	for _, s := range r.Steps {
		least = min(least, servedLeast*s.Least/s.Floor)
	}
	return least
}

// changesTable is the result as text.
func changesTable(r *ChangesResult) string {
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	f("")
	f("%-9s %-30s %8s %15s %15s %8s %4s", "step", "", "in force", "1s under way", "1s in force", "least", "lost")
	for _, s := range r.Steps {
		force := "-"
		if s.InForce > 0 {
			force = short(s.InForce)
		}
		f("%-9s %-30s %8s %15s %15s %8s %4d", s.Name, s.Title, force, lastWindow(s.UnderWay), lastWindow(s.Settled), perSecond(s.Least), s.Errors)
	}
	f("")
	f("1s: most requests at the origin within a second / bound; while a change is under way the larger of")
	f("both limits counts. The bound is limit * (window + burst + %s spread) + 12. least: the emptiest half", short(r.Spread))
	f("second. lost: requests to nodes that were not killed, without an answer. at: the node that was asked.")
	for _, line := range append(append([]string(nil), r.Broken...), r.Void...) {
		f("! %s", line)
	}
	return b.String()
}

func lastWindow(all []WindowResult) string {
	if len(all) == 0 {
		return "-"
	}
	w := all[len(all)-1]
	return comma(w.Prompt) + " / " + comma(w.Bound)
}
