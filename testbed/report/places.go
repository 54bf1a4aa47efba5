package report

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"subak/testbed/evidence"
)

// place is the card of one node: a strip for each class, all with the same axes
// as the strips of that class on the other cards.
type place struct {
	Name   string
	Detail string
	SVG    drawing
}

// strips is what all cards of one run share.
type strips struct {
	run     *evidence.Run
	classes int
	xmax    float64
	// ymax is each strip's: the most that was admitted or enforced anywhere.
	// What is offered above that is drawn along the upper edge, and its peak is
	// written on the card, so that a flood does not flatten everything else.
	ymax []float64
	// split says that shares were recorded by class; otherwise a strip of its own
	// below the classes shows the node's share.
	split bool
}

const (
	cardWidth   = 168
	stripHeight = 40
	cardLetter  = 8.5
	cardColumns = 50
)

// places draws the cards of a run, in the order of its nodes.
func (s *sheet) places(r *evidence.Run) ([]place, error) {
	st := newStrips(r)
	var out []place
	for i := range r.Series {
		if i >= len(r.Nodes) {
			break
		}
		name := clean(r.Nodes[i], 24)
		d, err := s.draw(cardWidth, st.height(), name+": offered, admitted and enforced over time, by class", func(c draw.Canvas) {
			st.draw(c, i)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, place{Name: name, Detail: st.detail(i), SVG: d})
	}
	return out, nil
}

func newStrips(r *evidence.Run) strips {
	st := strips{run: r, classes: len(r.Classes), xmax: runEnd(r).Seconds(), split: len(r.Series) > 0}
	for i := range r.Series {
		st.split = st.split && len(r.Series[i].Shares) >= len(r.Classes)
	}
	for k := range st.count() {
		top := 1.0
		for i := range r.Series {
			top = math.Max(top, math.Max(st.admitted(i, k).max(), st.share(i, k).max()))
		}
		step := math.Pow(10, math.Floor(math.Log10(top))-1)
		st.ymax = append(st.ymax, step*math.Ceil(1.1*top/step))
	}
	return st
}

func (st *strips) count() int {
	if st.split {
		return st.classes
	}
	return st.classes + 1
}

func (st *strips) height() vg.Length {
	return vg.Length(st.count())*(stripHeight+cardLetter+4) + cardLetter + 4
}

// cell is a series of counts of one class as a rate; of all classes for the
// strip below them.
func (st *strips) cell(of [][]uint32, k int) series {
	sum := newSeries(st.run.Bin, 0)
	for c := range of {
		if c == k || k == st.classes {
			sum.add(of[c])
		}
	}
	return sum.window(second)
}

func (st *strips) admitted(i, k int) series { return st.cell(st.run.Series[i].Admitted, k) }
func (st *strips) offered(i, k int) series  { return st.cell(st.run.Series[i].Offered, k) }

// share is what node i enforces for class k, where that is known.
func (st *strips) share(i, k int) series {
	s := newSeries(st.run.Bin, 0)
	switch node := &st.run.Series[i]; {
	case k == st.classes:
		s.values = node.Share
	case st.split:
		s.values = node.Shares[k]
	}
	return s
}

func (st *strips) stripName(k int) string {
	if k == st.classes {
		return "all classes"
	}
	return clean(st.run.Classes[k], 20)
}

// detail says what a card cannot show.
func (st *strips) detail(i int) string {
	peak := 0.0
	for k := range st.classes {
		peak = math.Max(peak, st.offered(i, k).max())
	}
	return "offered ≤ " + count(peak) + "/s"
}

func (st *strips) draw(c draw.Canvas, i int) {
	top := c.Max.Y
	small := letters(cardLetter, inkMuted, text.XLeft, text.YTop)
	right := letters(cardLetter, inkMuted, text.XRight, text.YTop)
	for k := range st.count() {
		c.FillText(small, vg.Point{X: 1, Y: top - 1}, st.stripName(k))
		c.FillText(right, vg.Point{X: cardWidth - 1, Y: top - 1}, "0 to "+count(st.ymax[k])+"/s")
		top -= cardLetter + 3
		cell := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: 1, Y: top - stripHeight}, Max: vg.Point{X: cardWidth - 1, Y: top},
		}}
		st.strip(i, k).Draw(cell)
		c.StrokeLine2(stroke(inkMuted, 0.5), cell.Min.X, cell.Min.Y, cell.Max.X, cell.Min.Y)
		top -= stripHeight + 1
	}
	c.FillText(small, vg.Point{X: 1, Y: top - 1}, "0")
	c.FillText(right, vg.Point{X: cardWidth - 1, Y: top - 1}, trimmed(st.xmax, 0)+" s")
}

func (st *strips) strip(i, k int) *plot.Plot {
	p := newPlot(frame{width: cardWidth, letter: cardLetter}, st.xmax, st.ymax[k])
	p.HideAxes()
	p.Y.Scale = rootScale{}
	p.Add(hairline(st.ymax[k] / 4))
	for _, b := range st.run.Bands {
		if len(b.Nodes) == 0 || slices.Contains(b.Nodes, i) {
			p.Add(span{b.From.Seconds(), b.To.Seconds(), inkBand})
		}
	}
	for _, d := range downs(&st.run.Series[i], st.run.Bin.Seconds()) {
		p.Add(span{d.x, d.y, inkGrid})
	}
	fill, line := classArea(k), classInk(k)
	if k == st.classes {
		fill, line = inkGrid, inkMuted
	}
	admitted := st.admitted(i, k).envelope(cardColumns)
	p.Add(
		area{admitted, fill},
		curve{st.offered(i, k).envelope(cardColumns), stroke(line, 0.6, 1.5, 1)},
		curve{st.share(i, k).envelope(cardColumns), stroke(inkShare, 1)},
	)
	return p
}

// rootScale is a square-root axis: a place with a hundredth of the load still has
// a tenth of the height.
type rootScale struct{}

func (rootScale) Normalize(low, high, v float64) float64 {
	return math.Sqrt(math.Max(0, (v-low)/(high-low)))
}

// hairline is a line of the grid at one value.
type hairline float64

func (h hairline) Plot(c draw.Canvas, p *plot.Plot) {
	q := at(&c, p, point{0, float64(h)})
	c.StrokeLine2(stroke(inkGrid, 0.5), c.Min.X, q.Y, c.Max.X, q.Y)
}

// downs are the times, from x to y, in which a node did not answer.
func downs(s *evidence.Series, bin float64) []point {
	var out []point
	for i, up := range s.Up {
		switch {
		case up > 0:
		case i > 0 && s.Up[i-1] == 0:
			out[len(out)-1].y = float64(i+1) * bin
		default:
			out = append(out, point{float64(i) * bin, float64(i+1) * bin})
		}
	}
	return out
}

// placesLegend explains the cards.
func placesLegend(r *evidence.Run) string {
	s := newStrips(r)
	share := "strong line: share enforced"
	if !s.split {
		share = "strong line: share enforced, in the lowest strip"
	}
	return "Area: admitted, mean of 1 s; dotted line: offered, along the upper edge where it is more than the axis shows; " +
		share + ". Grey: the node did not answer. All cards have the same axes; the upright one is a square root, the hairline a quarter of its end."
}
