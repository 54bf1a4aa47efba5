package report

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// bars is the contention scenarios of one topology: for each a bar of the real
// processes and one of the simulator, in percent.
type bars struct {
	names           []string
	real, simulated []float64
}

func barsStack(f frame, title string, of []Comparison, pick func(Score) float64) stack {
	var b bars
	for _, c := range of {
		b.names = append(b.names, clean(c.Scenario, 14))
		b.real, b.simulated = append(b.real, pick(c.Real)), append(b.simulated, pick(c.Simulated))
	}
	p := newPlot(f, float64(len(b.names)), 100)
	p.Y.Tick.Marker = percentTicks{}
	p.X.Tick.Marker = groupTicks{b.names}
	p.X.Tick.LineStyle.Color = inkPanel.color() // keeps the names off the axis
	p.Add(grid{}, b)
	return stack{
		label: title,
		legend: []entry{
			{name: "real processes", fill: classInk(0)},
			{name: "simulator", fill: classArea(1)},
		},
		rows: []row{{title: title, plot: p}},
	}
}

// Plot draws the pairs; a value that is not known has no bar.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	for i := range b.names {
		for j, v := range []float64{b.real[i], b.simulated[i]} {
			if !(v >= 0) {
				continue
			}
			fill := classInk(0)
			if j == 1 {
				fill = classArea(1)
			}
			from := float64(i) + 0.16 + 0.35*float64(j)
			lo, hi := at(&c, p, point{from, 0}), at(&c, p, point{from + 0.33, v})
			c.FillPolygon(fill.color(), []vg.Point{lo, {X: hi.X, Y: lo.Y}, hi, {X: lo.X, Y: hi.Y}})
		}
	}
}

type groupTicks struct{ names []string }

func (t groupTicks) Ticks(_, _ float64) []plot.Tick {
	var out []plot.Tick
	for i, n := range t.names {
		out = append(out, plot.Tick{Value: float64(i) + 0.5, Label: n})
	}
	return out
}
