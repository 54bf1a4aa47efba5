package report

import (
	"math"
	"time"

	"gonum.org/v1/plot"

	"subak/chaos/bound"
	"subak/testbed/evidence"
)

// second is the window of the rates that are drawn: short enough to show a burst,
// long enough for the bound of it to be of the budget's size.
const second = time.Second

// originStack shows what reached the origin, a run under the other.
func originStack(f frame, runs []*evidence.Run) stack {
	xmax, ymax := 0.0, 1.0
	for _, r := range runs {
		xmax = math.Max(xmax, runEnd(r).Seconds())
		ymax = math.Max(ymax, 1.04*total(arrivals(r, second)).max())
		for _, p := range allowed(r, second) {
			ymax = math.Max(ymax, 1.12*p.y)
		}
	}
	k := stack{
		label:  "Arrivals at the origin over time, against the budget and the bound: " + variantNames(runs),
		legend: originLegend(runs),
		lanes:  lanes{phases: runs[0].Phases, bands: runs[0].Bands},
	}
	for _, r := range runs {
		k.rows = append(k.rows, row{title: rowTitle(r, runs, "arrivals at the origin, per second"), plot: originPlot(f, r, xmax, ymax)})
	}
	return k
}

func rowTitle(r *evidence.Run, runs []*evidence.Run, what string) string {
	if len(runs) == 1 {
		return what
	}
	return clean(string(r.Variant), 24) + ": " + what
}

func originLegend(runs []*evidence.Run) []entry {
	var out []entry
	classes := runs[0].Classes
	for k, name := range classes {
		out = append(out, entry{name: clean(name, 24), fill: classArea(k)})
	}
	out = append(out,
		entry{name: "all, mean of 10 s", style: stroke(inkText, 1)},
		entry{name: "budget B", style: stroke(inkLimit, 0.8, 1.5, 1.5)},
		entry{name: "bound of any 1 s", style: stroke(inkBound, 1, 5, 2.5)},
	)
	for _, r := range runs {
		if len(r.Origin.Over) > 0 {
			return append(out, entry{name: "bound broken, in a window of some length", fill: inkBroken})
		}
	}
	return out
}

func originPlot(f frame, r *evidence.Run, xmax, ymax float64) *plot.Plot {
	p := scene(f, r, xmax, ymax)
	var below []point
	parts := arrivals(r, second)
	for k := range parts {
		upper := total(parts[:k+1]).envelope(f.columns)
		p.Add(area{upper: upper, lower: below, ink: classArea(k)})
		below = upper
	}
	for k := range parts {
		p.Add(curve{total(parts[:k+1]).envelope(f.columns), stroke(classInk(k), 0.7)})
	}
	p.Add(curve{total(arrivals(r, 10*second)).envelope(f.columns), stroke(inkText, 1)})
	steps := limits(r)
	p.Add(curve{steps, stroke(inkLimit, 0.8, 1.5, 1.5)}, curve{allowed(r, second), stroke(inkBound, 1, 5, 2.5)})
	for _, o := range r.Origin.Over {
		p.Add(mark{from: o.At.Seconds(), to: (o.At + o.Window).Seconds(), ink: inkBroken})
	}
	return p
}

// scene is an empty plot of a run with its faults and phases.
func scene(f frame, r *evidence.Run, xmax, ymax float64) *plot.Plot {
	p := newPlot(f, xmax, ymax)
	for _, b := range r.Bands {
		p.Add(span{b.From.Seconds(), b.To.Seconds(), inkBand})
	}
	p.Add(grid{})
	for i, ph := range r.Phases {
		if i > 0 {
			p.Add(upright{ph.From.Seconds(), stroke(inkMuted, 0.5, 1, 2)})
		}
	}
	return p
}

// sharesStack shows what the nodes enforced in sum, a run under the other.
func sharesStack(f frame, runs []*evidence.Run) (stack, bool) {
	xmax, ymax, some := 0.0, 1.0, false
	for _, r := range runs {
		xmax = math.Max(xmax, runEnd(r).Seconds())
		sum := shares(r)
		some = some || len(sum.values) > 0
		ymax = math.Max(ymax, 1.08*sum.max())
		for _, p := range limits(r) {
			ymax = math.Max(ymax, 1.15*p.y)
		}
	}
	k := stack{
		label: "Sum of the shares that nodes enforce over time, against the budget: " + variantNames(runs),
		legend: []entry{
			{name: "sum of shares", style: stroke(classInk(0), 1.3)},
			{name: "budget B", style: stroke(inkLimit, 0.8, 1.5, 1.5)},
		},
		lanes: lanes{phases: runs[0].Phases, bands: runs[0].Bands},
	}
	for _, r := range runs {
		p := scene(f, r, xmax, ymax)
		p.Add(curve{shares(r).envelope(f.columns), stroke(classInk(0), 1.3)}, curve{limits(r), stroke(inkLimit, 0.8, 1.5, 1.5)})
		k.rows = append(k.rows, row{title: rowTitle(r, runs, "sum of what the nodes enforce, per second"), plot: p})
	}
	return k, some
}

func variantNames(runs []*evidence.Run) string {
	out := ""
	for i, r := range runs {
		if i > 0 {
			out += ", "
		}
		out += clean(string(r.Variant), 24)
	}
	return out
}

// result is the origin's judgement of windows of one length.
func result(r *evidence.Run, window time.Duration) (bound.Result, bool) {
	for _, b := range r.Origin.Bound.Results {
		if b.Window == window {
			return b, true
		}
	}
	return bound.Result{}, false
}

// above is for how long the mean of 10 s was above what the bound allows any
// window of 10 s, and the highest of those means.
func above(r *evidence.Run) (long time.Duration, peak float64) {
	const width = 10 * second
	mean := total(arrivals(r, width))
	line := allowed(r, width)
	for i, v := range mean.values {
		peak = math.Max(peak, v)
		if v > level(line, (float64(i)+1)*mean.bin) {
			long += r.Bin
		}
	}
	return long, peak
}

// level is a step line's value at x.
func level(steps []point, x float64) float64 {
	y := 0.0
	for _, p := range steps {
		if p.x > x && y > 0 {
			break
		}
		y = p.y
	}
	return y
}
