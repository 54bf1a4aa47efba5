package report

import (
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"subak/testbed/evidence"
)

// stack is plots one under the other on the same axes, with a legend above and
// the faults and phases named over each plot in which they are others than in the
// one above.
type stack struct {
	label  string
	legend []entry
	rows   []row
}

type row struct {
	title string
	plot  *plot.Plot
	lanes lanes // left out where they are those of the row above
}

// entry is one line of a legend: a swatch of what is drawn and its name.
type entry struct {
	name  string
	fill  ink // where dashes and width are not set
	style draw.LineStyle
}

// stack makes the drawing of a stack.
func (s *sheet) stack(f frame, k stack) (drawing, error) {
	legend := legendLines(f, k.legend)
	head := vg.Length(len(legend))*1.45*f.letter + 4
	height := head + rowGap*vg.Length(len(k.rows)-1)
	var names []placed
	for i, r := range k.rows {
		if i > 0 && r.lanes.like(k.rows[i-1].lanes) {
			r.lanes = lanes{}
		}
		names = append(names, r.lanes.place(f, r.plot))
		height += rowHeight(f, r, names[i])
	}
	return s.draw(f.width, height, k.label, func(c draw.Canvas) {
		drawLegend(f, c, legend)
		top := c.Max.Y - head
		for i, r := range k.rows {
			h := rowHeight(f, r, names[i])
			cell := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: 2, Y: top - h}, Max: vg.Point{X: f.width - 2, Y: top},
			}}
			drawRow(f, cell, r, names[i])
			top -= h + rowGap
		}
	})
}

// drawRow draws a title, below it the names of faults and phases, and the plot.
func drawRow(f frame, c draw.Canvas, r row, names placed) {
	if r.title != "" {
		c.FillText(bold(letters(f.letter+0.5, inkText, text.XLeft, text.YTop)), vg.Point{X: c.Min.X, Y: c.Max.Y - 2}, r.title)
		c.Max.Y -= 1.6 * f.letter
	}
	lanes := c
	c.Max.Y -= names.height(f) + topTick*f.letter
	lanes.Rectangle.Min.X, lanes.Rectangle.Max.X = r.plot.DataCanvas(c).Min.X, r.plot.DataCanvas(c).Max.X
	names.draw(f, lanes, r.plot)
	r.plot.Draw(c)
}

func rowHeight(f frame, r row, names placed) vg.Length {
	h := f.row + (2.6+topTick)*f.letter + names.height(f)
	if r.title != "" {
		h += 1.6 * f.letter
	}
	return h
}

const (
	swatch = 16
	rowGap = 12
	// topTick is room for the highest tick's label, in letters.
	topTick = 0.6
)

// legendLines breaks entries into lines that fit.
func legendLines(f frame, all []entry) [][]entry {
	style := letters(f.letter, inkText, text.XLeft, text.YCenter)
	var lines [][]entry
	x := vg.Length(0)
	for _, e := range all {
		w := swatch + 4 + style.Width(e.name) + 12
		if len(lines) == 0 || x+w > f.width {
			lines, x = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
		x += w
	}
	return lines
}

func drawLegend(f frame, c draw.Canvas, lines [][]entry) {
	style := letters(f.letter, inkText, text.XLeft, text.YCenter)
	for i, line := range lines {
		x, y := vg.Length(2), c.Max.Y-vg.Length(i)*1.45*f.letter-0.7*f.letter
		for _, e := range line {
			if e.style.Width > 0 {
				c.StrokeLine2(e.style, x, y, x+swatch, y)
			} else {
				c.FillPolygon(e.fill.color(), []vg.Point{
					{X: x, Y: y - 3}, {X: x + swatch, Y: y - 3}, {X: x + swatch, Y: y + 3}, {X: x, Y: y + 3},
				})
			}
			c.FillText(style, vg.Point{X: x + swatch + 4, Y: y}, e.name)
			x += swatch + 4 + style.Width(e.name) + 12
		}
	}
}

// lanes are the names above a plot: phases in the first lane, faults in as many
// more as they need so as not to lie on each other.
type lanes struct {
	phases []evidence.Phase
	bands  []evidence.Band
}

// lanesMost is how many lanes faults may have; what finds no room is shaded and
// listed among the events, but not named here.
const lanesMost = 4

// like says that two runs had the same faults and phases to within what is seen.
func (l lanes) like(m lanes) bool {
	const near = 500 * time.Millisecond
	same := func(a, b time.Duration) bool { return (a - b).Abs() <= near }
	return slices.EqualFunc(l.phases, m.phases, func(a, b evidence.Phase) bool {
		return a.Name == b.Name && same(a.From, b.From) && same(a.To, b.To)
	}) && slices.EqualFunc(l.bands, m.bands, func(a, b evidence.Band) bool {
		return bandName(a) == bandName(b) && same(a.From, b.From) && same(a.To, b.To)
	})
}

type placed struct {
	lanes
	n     int
	first int   // lane of the first band
	lane  []int // of each band; -1: no room
}

// height of the lanes and of a gap below them.
func (l placed) height(f frame) vg.Length {
	if l.n == 0 {
		return 0
	}
	return vg.Length(l.n)*laneHeight(f) + 3
}

func laneHeight(f frame) vg.Length { return 1.45*f.letter + 2 }

func (l lanes) place(f frame, p *plot.Plot) placed {
	out := placed{lanes: l}
	if len(l.phases) > 1 {
		out.n, out.first = 1, 1
	}
	style := letters(f.letter, inkText, text.XLeft, text.YBottom)
	perSecond := 0.93 * float64(f.width) / (p.X.Max - p.X.Min)
	var ends []float64
	for _, b := range l.bands {
		from := b.From.Seconds() * perSecond
		to := max(b.To.Seconds()*perSecond, from+float64(style.Width(bandName(b)))+4)
		lane := -1
		for i, e := range ends {
			if e <= from {
				lane = i
				break
			}
		}
		if lane < 0 && len(ends) < lanesMost {
			ends = append(ends, 0)
			lane = len(ends) - 1
		}
		if lane >= 0 {
			ends[lane] = to
		}
		out.lane = append(out.lane, lane)
	}
	out.n += len(ends)
	return out
}

func bandName(b evidence.Band) string {
	if b.Label == "" {
		return clean(b.Kind, 40)
	}
	return clean(b.Label, 40)
}

// draw writes the names into the part of the canvas above the plot.
func (l placed) draw(f frame, c draw.Canvas, p *plot.Plot) {
	y := func(lane int) vg.Length { return c.Max.Y - vg.Length(lane+1)*laneHeight(f) + 3 }
	for i, ph := range l.phases {
		if l.first == 0 {
			break
		}
		from, to := at(&c, p, point{ph.From.Seconds(), 0}).X, at(&c, p, point{ph.To.Seconds(), 0}).X
		if i > 0 {
			c.StrokeLine2(stroke(inkMuted, 0.5), from, y(0)-2, from, y(0)+f.letter)
		}
		style := letters(f.letter, inkMuted, text.XLeft, text.YBottom)
		c.FillText(style, vg.Point{X: from + 3, Y: y(0)}, fit(style, clean(ph.Name, 60), to-from-6))
	}
	for i, b := range l.bands {
		if l.lane[i] < 0 {
			continue
		}
		from, to := at(&c, p, point{b.From.Seconds(), 0}).X, at(&c, p, point{b.To.Seconds(), 0}).X
		h := y(l.first + l.lane[i])
		c.StrokeLine2(stroke(inkEdge, 2), from, h-1.5, max(to, from+1.5), h-1.5)
		style := letters(f.letter, inkText, text.XLeft, text.YBottom)
		name := fit(style, bandName(b), f.width-8)
		x := max(min(from, f.width-4-style.Width(name)), 2)
		c.FillText(style, vg.Point{X: x, Y: h + 0.5}, name)
	}
}

// fit cuts a name to a width, or to nothing where not even three letters fit.
func fit(s text.Style, name string, w vg.Length) string {
	if s.Width(name) <= w {
		return name
	}
	r := []rune(name)
	for n := len(r) - 1; n >= 3; n-- {
		if short := string(r[:n]) + "…"; s.Width(short) <= w {
			return short
		}
	}
	return ""
}
