package report

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"subak/testbed/evidence"
)

// dots is one quantity at every node: a filled dot, and a ring for a second one
// where there is one (below 0: none).
type dots struct {
	title         string
	names         []string
	first, second []float64
	legend        [2]string
	unit          func(float64) string
	ink           ink
}

// footprint is the figures of what running a node costs; those that were not
// measured are missing.
func footprint(r *evidence.Run) []dots {
	gossip := dots{
		title: "Gossip, bytes/s", unit: size,
		legend: [2]string{"sent, mean", "received, mean"}, ink: classInk(0),
	}
	memory := dots{title: "Resident memory", unit: size, legend: [2]string{"most", ""}, ink: classInk(3)}
	cpu := dots{
		title: "CPU, % of one core", unit: func(v float64) string { return trimmed(v, 1) + " %" },
		legend: [2]string{"mean", "most in 1 s"}, ink: classInk(1),
	}
	for i := range r.Series {
		if i >= len(r.Nodes) {
			break
		}
		s, name := &r.Series[i], clean(r.Nodes[i], 12)
		if sent, _ := rate(s.GossipSent, s.Up, r); sent >= 0 {
			received, _ := rate(s.GossipReceived, s.Up, r)
			gossip.add(name, sent, received)
		}
		if m := most(s.RSS); m > 0 {
			memory.add(name, m, -1)
		}
		if mean, peak := rate(s.CPU, s.Up, r); mean >= 0 && most(s.CPU) > 0 {
			cpu.add(name, 100*mean/1e9, 100*peak/1e9)
		}
	}
	var out []dots
	for _, d := range []dots{gossip, memory, cpu} {
		if len(d.names) > 0 {
			out = append(out, d)
		}
	}
	return out
}

func (d *dots) add(name string, first, second float64) {
	d.names = append(d.names, name)
	d.first, d.second = append(d.first, first), append(d.second, second)
}

func most(values []int64) float64 {
	m := 0.0
	for _, v := range values {
		m = math.Max(m, float64(v))
	}
	return m
}

// rate is how fast a counter rose while its node answered, per second: the mean
// and the highest of 1 s. A counter that falls began anew with its process. It
// is -1 where nothing was counted.
func rate(counter []int64, up []uint8, r *evidence.Run) (mean, peak float64) {
	rises := newSeries(r.Bin, len(counter))
	bins := 0
	for i := 1; i < len(counter); i++ {
		if i < len(up) && (up[i] == 0 || up[i-1] == 0) {
			continue
		}
		bins++
		if counter[i] >= counter[i-1] {
			rises.values[i] = float64(counter[i] - counter[i-1])
		} else {
			rises.values[i] = float64(max(counter[i], 0))
		}
	}
	if bins == 0 {
		return -1, -1
	}
	sum := 0.0
	for _, v := range rises.values {
		sum += v
	}
	return sum / (float64(bins) * rises.bin), rises.window(second).max()
}

const (
	dotsWidth  = 300
	dotsLine   = 11
	dotsLetter = 9
)

// dots draws the figure.
func (s *sheet) dots(d dots) (drawing, error) {
	xmax := 1e-9
	for i := range d.names {
		xmax = math.Max(xmax, 1.05*math.Max(d.first[i], d.second[i]))
	}
	height := vg.Length(len(d.names))*dotsLine + 34
	f := frame{width: dotsWidth, letter: dotsLetter}
	return s.draw(dotsWidth, height, d.title+" of every node", func(c draw.Canvas) {
		d.drawKey(f, c)
		p := newPlot(f, xmax, float64(len(d.names)))
		p.X.Tick.Marker = valueTicks{d.unit}
		p.Y.Tick.Marker = rowTicks{d.names}
		p.Add(d)
		cell := c
		cell.Max.Y -= 14
		cell.Max.X -= 12
		p.Draw(cell)
	})
}

func (d dots) drawKey(f frame, c draw.Canvas) {
	style := letters(f.letter, inkText, text.XLeft, text.YCenter)
	x, y := vg.Length(6), c.Max.Y-6
	for i, name := range d.legend {
		if name == "" {
			continue
		}
		drawDot(c, vg.Point{X: x, Y: y}, d.ink, i == 0)
		c.FillText(style, vg.Point{X: x + 6, Y: y}, name)
		x += style.Width(name) + 22
	}
}

// Plot draws the dots from the first node at the top down.
func (d dots) Plot(c draw.Canvas, p *plot.Plot) {
	for i := range d.names {
		y := float64(len(d.names)-i) - 0.5
		a, b := at(&c, p, point{0, y}), at(&c, p, point{d.first[i], y})
		c.StrokeLine2(stroke(inkGrid, 0.5), a.X, a.Y, c.Max.X, a.Y)
		if d.second[i] >= 0 {
			e := at(&c, p, point{d.second[i], y})
			c.StrokeLine2(stroke(d.ink, 0.6), b.X, b.Y, e.X, e.Y)
			drawDot(c, e, d.ink, false)
		}
		drawDot(c, b, d.ink, true)
	}
}

func drawDot(c draw.Canvas, at vg.Point, i ink, filled bool) {
	g := draw.GlyphStyle{Color: i.color(), Radius: 3, Shape: draw.CircleGlyph{}}
	c.DrawGlyphNoClip(g, at)
	if !filled {
		g.Color, g.Radius = inkPanel.color(), 1.8
		c.DrawGlyphNoClip(g, at)
	}
}

// valueTicks are few ticks with a unit.
type valueTicks struct{ unit func(float64) string }

func (t valueTicks) Ticks(low, high float64) []plot.Tick {
	step := niceStep(high-low, 4)
	var out []plot.Tick
	for i := 0.0; i*step <= high && len(out) < 9; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: t.unit(i * step)})
	}
	return out
}

// rowTicks name rows from the top down.
type rowTicks struct{ names []string }

func (t rowTicks) Ticks(_, _ float64) []plot.Tick {
	var out []plot.Tick
	for i, n := range t.names {
		out = append(out, plot.Tick{Value: float64(len(t.names)-i) - 0.5, Label: n})
	}
	return out
}
