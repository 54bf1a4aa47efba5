package report

import (
	"math"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	gfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// frame is a size to draw for. Lengths are points of the drawing, which the page
// stretches to the width of its column.
type frame struct {
	class   string // of the screens it is for
	width   vg.Length
	row     vg.Length // height of the data of one plot
	letter  vg.Length // size of letters
	columns int       // of envelopes: about one for each pixel
}

func wide() frame {
	return frame{class: "wide", width: 760, row: 150, letter: 8.5, columns: 380}
}

func narrow() frame {
	return frame{class: "narrow", width: 320, row: 130, letter: 9.5, columns: 160}
}

// letters is a style for text of the size s.
func letters(s vg.Length, i ink, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color: i.color(), XAlign: x, YAlign: y,
		Font:    gfont.Font{Typeface: "Liberation", Variant: "Sans", Size: s},
		Handler: text.Plain{Fonts: gfont.DefaultCache},
	}
}

func bold(s text.Style) text.Style {
	s.Font.Weight = font.WeightBold
	return s
}

func stroke(i ink, width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: i.color(), Width: width, Dashes: dashes}
}

// newPlot is an empty plot from 0 to xmax seconds and 0 to ymax.
func newPlot(f frame, xmax, ymax float64) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, xmax, 0, ymax
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle = stroke(inkMuted, 0.5)
		a.Tick.LineStyle = stroke(inkMuted, 0.5)
		a.Tick.Length = 4
		a.Padding = 0
	}
	p.Y.LineStyle.Width = 0
	p.Y.Tick.Length = 0
	p.X.Tick.Label = letters(f.letter, inkMuted, text.XCenter, text.YTop)
	p.Y.Tick.Label = letters(f.letter, inkMuted, text.XRight, text.YCenter)
	// A tick's label needs some 7 letters of room.
	p.X.Tick.Marker = ticks{most: int(f.width / (7 * f.letter)), unit: " s"}
	p.Y.Tick.Marker = ticks{most: 5}
	return p
}

// ticks are at most so many steps of 1, 2 or 5 times a power of ten.
type ticks struct {
	most int
	unit string
}

func (t ticks) Ticks(low, high float64) []plot.Tick {
	step := niceStep(high-low, t.most)
	var out []plot.Tick
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9) && len(out) < 50; i++ {
		v := i * step
		label := count(v)
		if step < 1 {
			label = trimmed(v, 2)
		}
		out = append(out, plot.Tick{Value: v, Label: label + t.unit})
	}
	return out
}

// niceStep is the smallest of 1, 2, 5, 10, 20... that cuts a range into at most
// n steps.
func niceStep(extent float64, n int) float64 {
	if !(extent > 0) || math.IsInf(extent, 0) {
		return 1
	}
	least := extent / float64(max(n, 1))
	base := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= least*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

// grid draws a hairline at every tick of y.
type grid struct{}

func (grid) Plot(c draw.Canvas, p *plot.Plot) {
	_, ty := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		c.StrokeLine2(stroke(inkGrid, 0.5), c.Min.X, ty(t.Value), c.Max.X, ty(t.Value))
	}
}

// at places a point on the canvas; what lies beyond the plot's range is drawn at
// its edge.
func at(c *draw.Canvas, p *plot.Plot, q point) vg.Point {
	tx, ty := p.Transforms(c)
	x := math.Min(p.X.Max, math.Max(p.X.Min, finite(q.x)))
	y := math.Min(p.Y.Max, math.Max(p.Y.Min, finite(q.y)))
	return vg.Point{X: tx(x), Y: ty(y)}
}

func places(c *draw.Canvas, p *plot.Plot, qs []point) []vg.Point {
	out := make([]vg.Point, len(qs))
	for i, q := range qs {
		out[i] = at(c, p, q)
	}
	return out
}

// curve is a line through points.
type curve struct {
	points []point
	style  draw.LineStyle
}

func (l curve) Plot(c draw.Canvas, p *plot.Plot) {
	if len(l.points) > 1 {
		c.StrokeLines(l.style, places(&c, p, l.points))
	}
}

// area is what lies below a line.
type area struct {
	upper []point
	ink   ink
}

func (a area) Plot(c draw.Canvas, p *plot.Plot) {
	if len(a.upper) < 2 {
		return
	}
	pts := places(&c, p, a.upper)
	pts = append(pts, at(&c, p, point{a.upper[len(a.upper)-1].x, 0}), at(&c, p, point{a.upper[0].x, 0}))
	c.FillPolygon(a.ink.color(), pts)
}

// span shades a time over the whole height.
type span struct {
	from, to float64
	ink      ink
}

func (s span) Plot(c draw.Canvas, p *plot.Plot) {
	a, b := at(&c, p, point{s.from, p.Y.Min}), at(&c, p, point{s.to, p.Y.Max})
	b.X = max(b.X, a.X+0.8) // what is over at once is seen too
	c.FillPolygon(s.ink.color(), []vg.Point{a, {X: b.X, Y: a.Y}, b, {X: a.X, Y: b.Y}})
}

// upright marks an instant.
type upright struct {
	x     float64
	style draw.LineStyle
}

func (u upright) Plot(c draw.Canvas, p *plot.Plot) {
	q := at(&c, p, point{u.x, p.Y.Min})
	c.StrokeLine2(u.style, q.X, c.Min.Y, q.X, c.Max.Y)
}

// mark is a bar along the upper edge, for what must not be overlooked.
type mark struct {
	from, to float64
	ink      ink
}

func (m mark) Plot(c draw.Canvas, p *plot.Plot) {
	a, b := at(&c, p, point{m.from, p.Y.Max}), at(&c, p, point{m.to, p.Y.Max})
	b.X = max(b.X, a.X+1)
	c.FillPolygon(m.ink.color(), []vg.Point{a, b, {X: b.X, Y: b.Y - 5}, {X: a.X, Y: a.Y - 5}})
}
