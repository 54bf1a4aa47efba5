package report

import (
	"cmp"
	"math"
	"slices"
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
	}
	for _, r := range runs {
		k.rows = append(k.rows, row{rowTitle(r, runs, "arrivals at the origin, per second"), originPlot(f, r, xmax, ymax), lanesOf(r)})
	}
	return k
}

func lanesOf(r *evidence.Run) lanes { return lanes{phases: r.Phases, bands: r.Bands} }

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
		budgetEntry(runs[0]),
		entry{name: "bound of any 1 s", style: stroke(inkBound, 1, 5, 2.5)},
	)
	for _, r := range runs {
		if len(broken(r)) > 0 {
			return append(out, entry{name: "a window in which the bound was broken", fill: inkBroken})
		}
	}
	return out
}

func budgetEntry(r *evidence.Run) entry {
	e := entry{name: "budget B", style: stroke(inkLimit, 0.8, 1.5, 1.5)}
	if len(r.Limits) == 0 {
		e.name += ", " + count(float64(r.Limit)) + "/s"
	}
	return e
}

func originPlot(f frame, r *evidence.Run, xmax, ymax float64) *plot.Plot {
	p := scene(f, r, xmax, ymax)
	parts := arrivals(r, second)
	// From the whole down to the first class, each over the one before.
	for k := len(parts) - 1; k >= 0; k-- {
		upper := total(parts[:k+1]).envelope(f.columns)
		p.Add(area{upper, classArea(k)})
		if k == len(parts)-1 {
			p.Add(curve{upper, stroke(classInk(k), 0.7)})
		}
	}
	p.Add(curve{total(arrivals(r, 10*second)).envelope(f.columns), stroke(inkText, 1)})
	steps := limits(r)
	p.Add(curve{steps, stroke(inkLimit, 0.8, 1.5, 1.5)}, curve{allowed(r, second), stroke(inkBound, 1, 5, 2.5)})
	for _, b := range broken(r) {
		p.Add(mark{from: b.x, to: b.y, ink: inkBroken})
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
			budgetEntry(runs[0]),
		},
	}
	for _, r := range runs {
		p := scene(f, r, xmax, ymax)
		p.Add(curve{shares(r).envelope(f.columns), stroke(classInk(0), 1.3)}, curve{limits(r), stroke(inkLimit, 0.8, 1.5, 1.5)})
		k.rows = append(k.rows, row{rowTitle(r, runs, "sum of what the nodes enforce, per second"), p, lanesOf(r)})
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
		if v > level(line, mean.end(i)) {
			long += r.Bin
		}
	}
	return long, peak
}

// broken are the times, from x to y, of windows in which the bound was broken:
// those that the origin lists, and those of 1 s and 10 s that bins show, since the
// list is cut. Where the origin's exact judgement is good there are none.
func broken(r *evidence.Run) []point {
	if r.Origin.Bound.OK() {
		return nil
	}
	var all []point
	for _, o := range r.Origin.Over {
		all = append(all, point{o.At.Seconds(), (o.At + o.Window).Seconds()})
	}
	for _, width := range []time.Duration{second, 10 * second} {
		mean, line := total(arrivals(r, width)), allowed(r, width)
		for i, v := range mean.values {
			if end := mean.end(i); v > level(line, end) {
				all = append(all, point{end - width.Seconds(), end})
			}
		}
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	var out []point
	for _, s := range all {
		if n := len(out); n > 0 && s.x <= out[n-1].y {
			out[n-1].y = math.Max(out[n-1].y, s.y)
		} else {
			out = append(out, s)
		}
	}
	return out
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
