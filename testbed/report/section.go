package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"subak/testbed/evidence"
)

// section makes the part of one scenario from the runs of its variants.
func (s *sheet) section(g []*evidence.Outcome, place int) (section, error) {
	first := &g[0].Run
	sec := section{
		ID: slug(first.Scenario, place), Name: clean(first.Scenario, 80), Title: title(first),
		Why: clean(first.Why, 1000), Tally: tallyOf(g).brief(), Facts: runFacts(first), Busy: busyRuns(g),
	}
	for _, o := range g {
		for _, v := range o.Verdicts {
			c := claim{Verdict: cleanVerdict(v)}
			if len(g) > 1 {
				c.Variant = clean(string(o.Run.Variant), 24)
			}
			sec.Claims = append(sec.Claims, c)
		}
	}
	if len(g) > 1 {
		sec.BuyHeads, sec.Buys, sec.Says = buyHeads(first), buys(g), says(g)
	}
	var err error
	if sec.Figures, err = s.rateFigures(g); err != nil {
		return sec, err
	}
	if sec.Reaction, err = s.reactionFigures(g); err != nil {
		return sec, err
	}
	for i, o := range g {
		part, err := s.runPart(&o.Run, i == 0)
		if err != nil {
			return sec, err
		}
		if len(g) > 1 {
			part.Suffix = ": " + clean(string(o.Run.Variant), 24)
		}
		sec.Runs = append(sec.Runs, part)
	}
	return sec, nil
}

func title(r *evidence.Run) string {
	if t := clean(r.Title, 200); t != "" {
		return t
	}
	return clean(r.Scenario, 80)
}

func cleanVerdict(v evidence.Verdict) evidence.Verdict {
	return evidence.Verdict{
		Claim: clean(v.Claim, 400), Measured: clean(v.Measured, 400), Bound: clean(v.Bound, 400), Kept: v.Kept,
	}
}

func runFacts(r *evidence.Run) []fact {
	out := []fact{
		{Name: "Topology", Text: fmt.Sprintf("%s, %d nodes", clean(r.Topology, 60), len(r.Nodes))},
		{Name: "Longest round trip", Text: seconds(r.MaxRTT)},
		{Name: "Budget", Text: count(float64(r.Limit)) + "/s, burst " + seconds(r.Burst)},
		{Name: "Tick, term", Text: seconds(r.Tick) + ", " + seconds(r.Term)},
		{Name: "Length", Text: seconds(r.Length)},
		{Name: "Seed", Text: fmt.Sprint(r.Seed)},
	}
	return slices.DeleteFunc(out, func(f fact) bool { return strings.HasPrefix(f.Text, "0 s") })
}

// both draws a stack for wide and for narrow screens.
func (s *sheet) both(caption string, make func(frame) stack) (figure, error) {
	fig := figure{Caption: caption}
	for _, f := range []frame{wide(), narrow()} {
		d, err := s.stack(f, make(f))
		if err != nil {
			return fig, err
		}
		fig.SVG += template.HTML(d.inline(f.class))
	}
	return fig, nil
}

func runsOf(g []*evidence.Outcome) []*evidence.Run {
	var out []*evidence.Run
	for _, o := range g {
		out = append(out, &o.Run)
	}
	return out
}

func (s *sheet) rateFigures(g []*evidence.Outcome) ([]figure, error) {
	runs := runsOf(g)
	var out []figure
	origin, err := s.both("", func(f frame) stack { return originStack(f, runs) })
	if err != nil {
		return nil, err
	}
	out = append(out, origin)
	if _, some := sharesStack(wide(), runs); some {
		sum, err := s.both("Nodes that did not answer are left out. Nodes are asked one by one, so that the sum of a bin in which shares move may be off by what moves.", func(f frame) stack {
			k, _ := sharesStack(f, runs)
			return k
		})
		if err != nil {
			return nil, err
		}
		out = append(out, sum)
	}
	return out, nil
}

func (s *sheet) reactionFigures(g []*evidence.Outcome) ([]figure, error) {
	all, lines := reactions(g)
	if len(all) == 0 {
		return nil, nil
	}
	fig, err := s.both("", func(f frame) stack { return reactionStack(f, all, lines) })
	return []figure{fig}, err
}

// reactions are the runs that timed demand steps, and the lines of their claims.
func reactions(g []*evidence.Outcome) ([]reaction, []target) {
	var all []reaction
	var lines []target
	for _, o := range g {
		if len(o.Run.Steps) == 0 {
			continue
		}
		all = append(all, reactionOf(&o.Run))
		for _, t := range targets(o.Verdicts) {
			if !slices.Contains(lines, t) {
				lines = append(lines, t)
			}
		}
	}
	return all, lines
}

func (s *sheet) runPart(r *evidence.Run, open bool) (runPart, error) {
	part := runPart{
		Open: open, Legend: placesLegend(r), Windows: windowLines(r), Phases: phaseLines(r), Slower: slower(r), Network: network(r),
	}
	cards, err := s.places(r)
	if err != nil {
		return part, err
	}
	for _, c := range cards {
		part.Places = append(part.Places, card{c.Name, c.Detail, template.HTML(c.SVG.inline(""))})
	}
	for _, d := range footprint(r) {
		if !open {
			break // of a baseline nobody asks what it costs
		}
		fig, err := s.dots(d)
		if err != nil {
			return part, err
		}
		part.Dots = append(part.Dots, titled{d.title, template.HTML(fig.inline(""))})
	}
	part.Events, part.Left = eventLines(r)
	part.EventCount = len(part.Events) + part.Left
	return part, nil
}

// eventLine is one event or the beginning of a fault.
type eventLine struct {
	At, Node, Kind, Text string
	at                   time.Duration
}

// eventsMost is how many events of a run are listed.
const eventsMost = 250

func eventLines(r *evidence.Run) (out []eventLine, left int) {
	for _, e := range r.Events {
		out = append(out, eventLine{Node: names(r.Nodes, []int{e.Node}), Kind: clean(e.Kind, 40), Text: clean(e.Text, 300), at: e.At})
	}
	for _, b := range r.Bands {
		text := clean(b.Label, 200) + ", until " + seconds(b.To)
		out = append(out, eventLine{Node: names(r.Nodes, b.Nodes), Kind: "fault: " + clean(b.Kind, 40), Text: text, at: b.From})
	}
	slices.SortStableFunc(out, func(a, b eventLine) int { return int(max(-1, min(1, a.at-b.at))) })
	for i := range out {
		out[i].At = trimmed(out[i].at.Seconds(), 2) + " s"
	}
	left = max(0, len(out)-eventsMost)
	return out[:len(out)-left], left
}
