package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"subak/testbed/evidence"
)

// reaction is how long the demand steps of one run took.
type reaction struct {
	name      string
	took      []float64 // seconds, rising
	never     int
	mean, p95 time.Duration
}

func reactionOf(r *evidence.Run) reaction {
	out := reaction{name: clean(r.Scenario, 40)}
	if r.Variant != evidence.Subak && r.Variant != "" {
		out.name += " (" + clean(string(r.Variant), 20) + ")"
	}
	var all []time.Duration
	for _, s := range r.Steps {
		if s.Took < 0 {
			out.never++
			continue
		}
		all = append(all, s.Took)
		out.mean += s.Took
	}
	slices.Sort(all)
	for _, d := range all {
		out.took = append(out.took, d.Seconds())
	}
	if n := len(all); n > 0 {
		out.mean /= time.Duration(n)
		out.p95 = all[(95*n+99)/100-1]
	}
	return out
}

// words says a reaction in figures.
func (r reaction) words() string {
	s := fmt.Sprintf("%d steps, mean %s, p95 %s", len(r.took)+r.never, seconds(r.mean), seconds(r.p95))
	if r.never > 0 {
		s += fmt.Sprintf(", %d never", r.never)
	}
	return s
}

// target is a claim's line.
type target struct {
	name string
	at   float64 // seconds
}

// targets finds the lines that claims draw across reactions: durations in the
// bound of a claim that speaks of a mean or a p95.
func targets(verdicts []evidence.Verdict) []target {
	var out []target
	for _, v := range verdicts {
		about := strings.ToLower(v.Claim + " " + v.Bound)
		if !strings.Contains(about, "react") && !strings.Contains(about, "step") {
			continue
		}
		fields := strings.FieldsFunc(strings.ToLower(v.Bound), func(r rune) bool { return strings.ContainsRune(" ,;()≤<=", r) })
		out = append(out, targetsIn(fields, about)...)
	}
	return out
}

// targetsIn pairs each duration with the mean or the p95 that stands nearest, or
// with what the claim as a whole is about.
func targetsIn(fields []string, about string) []target {
	var out []target
	for i, f := range fields {
		d, err := time.ParseDuration(f)
		if err != nil && i+1 < len(fields) {
			d, err = time.ParseDuration(f + fields[i+1])
		}
		if err != nil || d <= 0 || d > time.Minute {
			continue
		}
		name := nearest(fields, i)
		if name == "" && (strings.Contains(about, "p95") || strings.Contains(about, "95th")) && !strings.Contains(about, "mean") {
			name = "p95"
		} else if name == "" {
			name = "mean"
		}
		out = append(out, target{name + " at most " + seconds(d), d.Seconds()})
	}
	return out
}

func nearest(fields []string, i int) string {
	for step := 1; step <= 3; step++ {
		for _, j := range []int{i - step, i + step} {
			if j < 0 || j >= len(fields) {
				continue
			}
			switch {
			case strings.HasPrefix(fields[j], "mean"):
				return "mean"
			case strings.HasPrefix(fields[j], "p95"), strings.HasPrefix(fields[j], "95"):
				return "p95"
			}
		}
	}
	return ""
}

// reactionStack draws the distribution of reactions: at each time the part of
// the steps that were over by then.
func reactionStack(f frame, all []reaction, claims []target) stack {
	xmax := 0.1
	for _, r := range all {
		if n := len(r.took); n > 0 {
			xmax = math.Max(xmax, 1.1*r.took[n-1])
		}
	}
	for _, t := range claims {
		xmax = math.Max(xmax, 1.15*t.at)
	}
	p := newPlot(f, xmax, 100)
	p.Y.Tick.Marker = percentTicks{}
	p.Add(grid{})
	k := stack{label: "Distribution of the reaction times of demand steps"}
	for i, t := range claims {
		p.Add(claimLine{t, f, i})
	}
	for i, r := range all {
		style := stroke(classInk(i), 1.3, dashes(i)...)
		p.Add(distribution{r, classInk(i), style})
		k.legend = append(k.legend, entry{name: r.name + ": " + r.words(), style: style})
		k.label += "; " + r.name + ": " + r.words()
	}
	k.rows = []row{{title: "demand steps that had 99 % of their target by then", plot: p}}
	return k
}

type percentTicks struct{}

func (percentTicks) Ticks(_, _ float64) []plot.Tick {
	var out []plot.Tick
	for v := 0.0; v <= 100; v += 25 {
		out = append(out, plot.Tick{Value: v, Label: count(v) + " %"})
	}
	return out
}

// distribution is a step line with a dot for each step.
type distribution struct {
	reaction
	ink   ink
	style draw.LineStyle
}

// dashes tell curves apart where colours do not.
func dashes(i int) []vg.Length {
	return [][]vg.Length{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}}[i%4]
}

func (d distribution) Plot(c draw.Canvas, p *plot.Plot) {
	n := float64(len(d.took) + d.never)
	line := []point{{0, 0}}
	for i, t := range d.took {
		line = append(line, point{t, 100 * float64(i) / n}, point{t, 100 * float64(i+1) / n})
	}
	c.StrokeLines(d.style, places(&c, p, line))
	for i, t := range d.took {
		g := draw.GlyphStyle{Color: d.ink.color(), Radius: 2.2, Shape: draw.CircleGlyph{}}
		c.DrawGlyphNoClip(g, at(&c, p, point{t, 100 * float64(i+1) / n}))
	}
}

// claimLine is a claim's line with its name, one below the other at the foot.
type claimLine struct {
	target
	frame frame
	row   int
}

func (l claimLine) Plot(c draw.Canvas, p *plot.Plot) {
	q := at(&c, p, point{l.at, 0})
	c.StrokeLine2(stroke(inkBound, 1, 5, 2.5), q.X, c.Min.Y, q.X, c.Max.Y)
	style := letters(l.frame.letter, inkBound, text.XRight, text.YBottom)
	x := q.X - 4
	if x-style.Width(l.name) < c.Min.X {
		style.XAlign, x = text.XLeft, q.X+3
	}
	c.FillText(style, vg.Point{X: x, Y: c.Min.Y + 3 + vg.Length(l.row)*1.4*l.frame.letter}, l.name)
}
