package show

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"subak/testbed/peers/measure"
)

// The chart's measures, in points.
const (
	rowHeight  = 26
	chartWidth = 760
	nameWidth  = 190
	letterSize = 9.5
	around     = 14
)

// inks are the chart's colours.
type inks struct{ text, grid, ok, short, bound color.Color }

func palette() inks {
	return inks{
		text: color.RGBA{0x22, 0x2b, 0x33, 0xff}, grid: color.RGBA{0xdd, 0xe2, 0xe6, 0xff},
		ok: color.RGBA{0x2f, 0x7d, 0x6b, 0xff}, short: color.RGBA{0xc2, 0x55, 0x2d, 0xff},
		bound: color.RGBA{0x22, 0x2b, 0x33, 0xff},
	}
}

// Chart draws the claims that are ratios and have a bound: a bar for what was
// measured, a line over all rounds, and a mark at the bound.
func Chart(w io.Writer, title string, results []measure.Result) error {
	var bars []measure.Result
	top := 1.0
	for _, r := range results {
		if r.Claim.Relation == measure.Ratio && r.Claim.Sense != measure.NoBound && r.State != measure.Missing {
			bars = append(bars, r)
			_, high := r.Spread()
			top = math.Max(top, math.Max(high, r.Claim.Bound))
		}
	}
	c := vgsvg.New(chartWidth, vg.Length(len(bars)*rowHeight+60))
	canvas := draw.New(c)
	canvas.FillPolygon(color.White, []vg.Point{canvas.Min, {X: canvas.Max.X, Y: canvas.Min.Y}, canvas.Max, {X: canvas.Min.X, Y: canvas.Max.Y}})
	b := board{canvas: draw.Crop(canvas, around, -around, around, -around), inks: palette(), top: math.Ceil(top*5) / 5}
	b.axis(title)
	for i, r := range bars {
		b.bar(i, r)
	}
	if _, err := c.WriteTo(w); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}

// board is the canvas with its scale: ratios from 0 to top.
type board struct {
	canvas draw.Canvas
	inks   inks
	top    float64
}

func (b *board) x(v float64) vg.Length {
	from := b.canvas.Min.X + nameWidth
	return from + (b.canvas.Max.X-from-60)*vg.Length(math.Min(v, b.top)/b.top)
}

// y is the top of row i.
func (b *board) y(i int) vg.Length { return b.canvas.Max.Y - 24 - vg.Length(i*rowHeight) }

func (b *board) write(s string, at vg.Point, x text.XAlignment) {
	b.canvas.FillText(text.Style{
		Color: b.inks.text, XAlign: x, YAlign: text.YCenter,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: letterSize},
		Handler: text.Plain{Fonts: font.DefaultCache},
	}, at, s)
}

func (b *board) line(ink color.Color, width vg.Length, from, to vg.Point) {
	b.canvas.StrokeLines(draw.LineStyle{Color: ink, Width: width}, []vg.Point{from, to})
}

func (b *board) axis(title string) {
	b.write(title, vg.Point{X: b.canvas.Min.X, Y: b.canvas.Max.Y - 4}, text.XLeft)
	ticks := plot.DefaultTicks{}.Ticks(0, b.top)
	for _, t := range ticks {
		if t.IsMinor() || t.Value > b.top {
			continue
		}
		x := b.x(t.Value)
		b.line(b.inks.grid, 0.6, vg.Point{X: x, Y: b.canvas.Min.Y + 12}, vg.Point{X: x, Y: b.y(0)})
		b.write(t.Label, vg.Point{X: x, Y: b.canvas.Min.Y + 4}, text.XCenter)
	}
}

func (b *board) bar(i int, r measure.Result) {
	ink := b.inks.ok
	if r.State == measure.Short {
		ink = b.inks.short
	}
	high, low := b.y(i)-5, b.y(i)-rowHeight+7
	mid := (high + low) / 2
	left, right := b.x(0), b.x(r.Value)
	b.canvas.FillPolygon(ink, []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}})
	least, most := r.Spread()
	b.line(b.inks.text, 0.8, vg.Point{X: b.x(least), Y: mid}, vg.Point{X: b.x(most), Y: mid})
	b.line(b.inks.bound, 2, vg.Point{X: b.x(r.Claim.Bound), Y: low - 3}, vg.Point{X: b.x(r.Claim.Bound), Y: high + 3})
	b.write(r.Claim.ID, vg.Point{X: b.canvas.Min.X, Y: mid}, text.XLeft)
	after := math.Max(math.Max(r.Value, most), r.Claim.Bound)
	b.write(measure.Figure(r.Value, "")+"  "+r.Claim.BoundText(), vg.Point{X: b.x(after) + 6, Y: mid}, text.XLeft)
}
