package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"subak/testbed/load"
	"subak/testbed/origin"
)

// Result is everything the demo found out.
type Result struct {
	Limit        int64         `json:"limit"` // requests/s
	BurstSeconds float64       `json:"burst_seconds"`
	Extra        int           `json:"extra"` // requests: the constant part of the bound
	Spread       time.Duration `json:"spread_ns"`
	Seed         uint64        `json:"seed"`
	Nodes        []NodeResult  `json:"nodes"`
	Phases       []PhaseResult `json:"phases"`
	Offered      uint64        `json:"offered"`
	Admitted     uint64        `json:"admitted"` // answered 2xx
	Arrived      uint64        `json:"arrived"`  // at the origin
	Late         uint64        `json:"late"`     // sent more than 100 ms after due
	Overflow     uint64        `json:"overflow"` // never sent
	// BackAfter is from the restart of the killed node until it was ready,
	// BaseAfter until it had its own base again; 0 when that was not seen.
	BackAfter time.Duration `json:"back_after_ns"`
	BaseAfter time.Duration `json:"base_after_ns"`
	// Level is the strictest test: how full a bucket got that every arrival
	// fills and the limit drains; LevelMax is what the burst, the spread and the
	// buckets allow. It covers windows of every length.
	Level    int64    `json:"level"`
	LevelMax int64    `json:"level_max"`
	Broken   []string `json:"broken"` // where the bound was broken
	Void     []string `json:"void"`   // why the run shows nothing
	Verdict  string   `json:"verdict"`
}

// NodeResult is one node of the cluster.
type NodeResult struct {
	Name   string  `json:"name"`
	Weight int64   `json:"weight"`
	Base   float64 `json:"base"` // requests/s
}

// PhaseResult is one phase.
type PhaseResult struct {
	Name    string         `json:"name"`
	Title   string         `json:"title"`
	Seconds float64        `json:"seconds"`
	Classes []ClassResult  `json:"classes"`
	Windows []WindowResult `json:"windows"`
	Slower  uint64         `json:"slower"` // arrivals slower than the spread
	Transit load.Latency   `json:"transit"`
	// SharesSteady is the largest sum of enforced shares over all nodes that
	// three polls in a row reached, SharesPeak that of any one, in requests/s. The
	// nodes do not answer for the same instant, so a single sum may pass the
	// limit while capacity moves though the true sum does not.
	SharesSteady float64 `json:"shares_steady"`
	SharesPeak   float64 `json:"shares_peak"`
	Polls        int     `json:"polls"`
	PollsFull    int     `json:"polls_complete"`
	// Counters is the fullest window between two polls by the nodes' counters.
	Counters WindowResult `json:"counters"`
}

// ClassResult is one class in one phase, in requests and percent of offered.
type ClassResult struct {
	Name     string            `json:"name"`
	Offered  uint64            `json:"offered"`
	Admitted uint64            `json:"admitted"`
	Refused  uint64            `json:"refused"`
	Lost     uint64            `json:"lost"` // met an error or were never sent
	Errors   map[string]uint64 `json:"errors,omitempty"`
	Served   float64           `json:"served_percent"`
	Static   float64           `json:"static_percent"`
	Ideal    float64           `json:"ideal_percent"`
	P99      time.Duration     `json:"admitted_p99_ns"` // worst node
}

// WindowResult is the fullest window of one length.
type WindowResult struct {
	Window time.Duration `json:"window_ns"`
	Peak   int           `json:"peak"`   // all arrivals
	Prompt int           `json:"prompt"` // those no slower than the spread
	Bound  int           `json:"bound"`
}

// evidence is what the witnesses say.
type evidence struct {
	seed           uint64
	load           load.Report
	origin         origin.Report
	judged         origin.Judgement
	watched        []watched
	backAt, baseAt time.Duration // since the start of the run
}

// conclude puts the evidence together and judges it.
func conclude(p *plan, e evidence) Result {
	r := Result{
		Limit: p.limit, BurstSeconds: p.burst.Seconds(), Extra: p.extra(), Spread: e.judged.Claim.Spread, Seed: e.seed,
	}
	for i, n := range p.nodes {
		base := 0.0
		for k := range p.classes {
			base += p.base(k, i)
		}
		r.Nodes = append(r.Nodes, NodeResult{n.name, n.weight, base})
	}
	static, ideal := refer(p, e.load)
	var begin time.Duration
	for i, ph := range p.phases {
		pr := PhaseResult{Name: ph.name, Title: ph.title, Seconds: ph.length.Seconds()}
		for k := range p.classes {
			pr.Classes = append(pr.Classes, classResult(p, e.load, i, k, static[i][k], ideal[i][k]))
		}
		addWitnesses(&pr, p, e, i)
		r.Phases = append(r.Phases, pr)
		if ph.start >= 0 {
			r.BackAfter, r.BaseAfter = max(0, e.backAt-begin), max(0, e.baseAt-begin)
		}
		begin += ph.length
	}
	total(&r, e)
	judge(&r, p, e)
	return r
}

// refer runs the references over the offered series: requests served by
// [phase][class].
func refer(p *plan, l load.Report) (static, ideal [][]float64) {
	refs := newReferences(p)
	static, ideal = newCells(len(p.phases), len(p.classes)), newCells(len(p.phases), len(p.classes))
	bins := 0
	for _, s := range l.Streams {
		bins = max(bins, len(s.Offered))
	}
	phase, end := 0, p.phases[0].length
	for b := range bins {
		for middle := l.Bin*time.Duration(b) + l.Bin/2; middle >= end && phase < len(p.phases)-1; {
			phase++
			end += p.phases[phase].length
		}
		offered := newCells(len(p.classes), len(p.nodes))
		for k := range p.classes {
			for i := range p.nodes {
				s := l.Streams[k*len(p.nodes)+i]
				offered[k][i] = float64(s.Offered[b] - s.Failed[b])
			}
		}
		st, id := refs.step(offered, l.Bin.Seconds())
		for k := range p.classes {
			static[phase][k] += st[k]
			ideal[phase][k] += id[k]
		}
	}
	return static, ideal
}

func classResult(p *plan, l load.Report, phase, k int, static, ideal float64) ClassResult {
	c := ClassResult{Name: p.classes[k].name, Errors: map[string]uint64{}}
	for i := range p.nodes {
		cell := l.Streams[k*len(p.nodes)+i].Cells[phase]
		c.Offered += cell.Offered
		c.Admitted += cell.Admitted
		c.Refused += cell.Refused
		c.Lost += cell.Failed()
		c.P99 = max(c.P99, cell.AdmittedLatency.P99)
		for kind, n := range cell.Errors {
			c.Errors[kind] += n
		}
	}
	c.Served = percent(float64(c.Admitted), c.Offered)
	c.Static = percent(static, c.Offered)
	c.Ideal = percent(ideal, c.Offered)
	return c
}

// percent of the offered; at most 100 in spite of rounding.
func percent(part float64, offered uint64) float64 {
	if offered == 0 {
		return 100
	}
	return min(100, 100*part/float64(offered))
}

// addWitnesses enters what the origin and the nodes say about phase i. The
// origin counts one phase more: the time before the first.
func addWitnesses(pr *PhaseResult, p *plan, e evidence, i int) {
	if at := i + 1; at < len(e.origin.Phases) && at < len(e.judged.Peaks) {
		o := e.origin.Phases[at]
		pr.Transit, pr.Slower = o.Transit, e.judged.Slower[at]
		for w, length := range e.origin.Windows {
			pr.Windows = append(pr.Windows, WindowResult{length, o.Peaks[w], e.judged.Peaks[at][w], p.bound(length, e.judged.Claim.Spread)})
		}
	}
	if i < len(e.watched) {
		w := e.watched[i]
		pr.SharesPeak, pr.SharesSteady, pr.Polls, pr.PollsFull = w.sharesPeak, w.sharesSteady, w.polls, w.complete
		pr.Counters = WindowResult{w.nearest.between, w.nearest.admitted, w.nearest.admitted, w.nearest.bound}
	}
}

func total(r *Result, e evidence) {
	for _, s := range e.load.Streams {
		for _, c := range s.Cells {
			r.Offered += c.Offered
			r.Admitted += c.Admitted
			r.Late += c.Late
			r.Overflow += c.Overflow
		}
	}
	for _, ph := range e.origin.Phases {
		for _, n := range ph.Arrivals {
			r.Arrived += n
		}
	}
}

// judge fills in Broken, Void and Verdict.
func judge(r *Result, p *plan, e evidence) {
	for _, ph := range r.Phases {
		for _, w := range ph.Windows {
			if w.Prompt > w.Bound {
				r.Broken = append(r.Broken, fmt.Sprintf("%s: %s requests reached the origin within %s, the bound is %s",
					ph.Name, comma(w.Prompt), w.Window, comma(w.Bound)))
			}
		}
		if c := ph.Counters; c.Peak > c.Bound {
			r.Broken = append(r.Broken, fmt.Sprintf("%s: the nodes counted %s admissions within %s, the bound is %s",
				ph.Name, comma(c.Peak), c.Window.Round(time.Millisecond), comma(c.Bound)))
		}
	}
	if r.Level, r.LevelMax = e.judged.Bound.Level, e.judged.Bound.LevelMax; !e.judged.Bound.OK() && len(r.Broken) == 0 {
		r.Broken = append(r.Broken, fmt.Sprintf("%s requests above the limit's line in some window, %s are allowed",
			comma(int(r.Level)), comma(int(r.LevelMax))))
	}
	r.Void = void(r, p, e)
	r.Verdict = verdict(r)
}

func verdict(r *Result) string {
	switch {
	case len(r.Broken) > 0:
		return fmt.Sprintf("budget BROKEN: %s%s", r.Broken[0], more(len(r.Broken)-1))
	case len(r.Void) > 0:
		return fmt.Sprintf("no verdict: %s%s", r.Void[0], more(len(r.Void)-1))
	}
	fullest, in := r.fullest()
	served, static, ideal := r.overall(0)
	return fmt.Sprintf("budget kept: %s/s over %d nodes; the fullest window (%s, %s) holds %s of %s requests; %s served: %.1f %% of all offered (static split %.1f %%, ideal %.1f %%)",
		comma(int(r.Limit)), len(r.Nodes), fullest.Window, in, comma(fullest.Prompt), comma(fullest.Bound),
		r.Phases[0].Classes[0].Name, served, static, ideal)
}

// overall is what of class k was served over the whole run, in percent.
func (r *Result) overall(k int) (served, static, ideal float64) {
	var offered, admitted uint64
	for _, ph := range r.Phases {
		c := ph.Classes[k]
		offered += c.Offered
		admitted += c.Admitted
		static += c.Static / 100 * float64(c.Offered)
		ideal += c.Ideal / 100 * float64(c.Offered)
	}
	return percent(float64(admitted), offered), percent(static, offered), percent(ideal, offered)
}

// fullest is the window at the origin that came nearest to its bound.
func (r *Result) fullest() (w WindowResult, phase string) {
	best := -1.0
	for _, ph := range r.Phases {
		for _, c := range ph.Windows {
			if f := float64(c.Prompt) / float64(c.Bound); f > best {
				best, w, phase = f, c, ph.Name
			}
		}
	}
	return w, phase
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

func comma(n int) string { return humanize.Comma(int64(n)) }

// kinds lists errors as "3 timeout, 1 status 5xx", by name.
func kinds(errs map[string]uint64) string {
	var all []string
	for _, k := range sortedKeys(errs) {
		all = append(all, fmt.Sprintf("%d %s", errs[k], k))
	}
	return strings.Join(all, ", ")
}
