package outcome

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

//go:embed page.html
var pageHTML string

// page is what the template shows.
type page struct {
	About, Over string
	Plots       []figure
	Tables      []titled
	Claims      []Claim
}

type figure struct {
	Title  string
	SVG    template.HTML
	Legend []entry
}

// entry is a colour and what it stands for.
type entry struct {
	Color template.CSS
	Name  string
}

type titled struct {
	Title string
	Grid  [][]string
}

// HTML writes a page of its own, with plots, that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	p := page{About: r.about(), Claims: r.Claims, Over: "No target ever exceeded the budget."}
	if over := r.over(); over > 0 {
		p.Over = fmt.Sprintf("Targets exceeded the budget by up to %g a second.", over)
	}
	lag := r.About.Lags[0]
	for _, v := range []view{{"First class served, % of its demand, " + lagWords(lag), high}, {"All demand served, %, " + lagWords(lag), all}} {
		svg, err := r.bars(v, lag)
		if err != nil {
			return err
		}
		p.Plots = append(p.Plots, figure{v.title, svg, r.legend()})
	}
	for _, lag := range r.About.Lags {
		for _, v := range r.views() {
			p.Tables = append(p.Tables, titled{v.title + ", " + lagWords(lag), r.grid(v.of, lag)})
		}
	}
	if len(r.Vertices) > 0 {
		p.Tables = append(p.Tables, titled{rangeTitle, r.rangeGrid()})
	}
	if len(r.Protocol) > 0 {
		p.Tables = append(p.Tables, titled{protocolTitle, r.protocolGrid()})
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err = b.WriteTo(w)
	return err
}

// mostBars is how many methods a plot shows: nobody tells more colours apart.
const mostBars = 8

// inks are apart in hue and in lightness for protan, deutan and tritan eyes.
func inks() [mostBars]color.RGBA {
	return [mostBars]color.RGBA{
		{0x8b, 0x96, 0x93, 0xff}, {0x17, 0x63, 0xb8, 0xff}, {0xd9, 0x77, 0x06, 0xff}, {0x0b, 0x8f, 0x78, 0xff},
		{0x8a, 0x4f, 0xb0, 0xff}, {0x8a, 0x7a, 0x00, 0xff}, {0x7a, 0x4a, 0x2b, 0xff}, {0xb3, 0x20, 0x2c, 0xff},
	}
}

// shown are the methods of the plots: all, or the ones that matter most.
func (r *Report) shown() []Name {
	if len(r.Ways) <= mostBars {
		return r.Ways
	}
	var some []Name
	for _, want := range []string{"static", "paper", "pool-first", "insurance10", "revocable", "protect50", "lp2", "oracle"} {
		for _, m := range r.Ways {
			if m.Name == want {
				some = append(some, m)
			}
		}
	}
	if len(some) == 0 {
		return r.Ways[:mostBars]
	}
	return some
}

func (r *Report) legend() (all []entry) {
	for i, m := range r.shown() {
		c := inks()[i]
		all = append(all, entry{template.CSS(fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)), m.Title}) //nolint:gosec // three bytes
	}
	return all
}

// bars plots a figure of every case, a bar for each method.
func (r *Report) bars(v view, lag int) (template.HTML, error) {
	p := plot.New()
	p.Y.Min, p.Y.Max = 0, 100
	p.Y.Label.Text = "%"
	p.Add(plotter.NewGrid())
	shown := r.shown()
	width := vg.Points(560 / float64(max(1, len(r.Cases)*(len(shown)+1))))
	for i, m := range shown {
		var values plotter.Values
		for _, c := range r.Cases {
			x := 0.0
			if l := r.Find(c.Name, m.Name, lag); l != nil {
				x = v.of(l)
			}
			values = append(values, x)
		}
		bar, err := plotter.NewBarChart(values, width)
		if err != nil {
			return "", fmt.Errorf("plot: %w", err)
		}
		bar.LineStyle.Width = 0
		bar.Color = inks()[i]
		bar.Offset = width * vg.Length(float64(i)-float64(len(shown)-1)/2)
		p.Add(bar)
	}
	names := make([]string, len(r.Cases))
	for i, c := range r.Cases {
		names[i] = c.Name
	}
	p.NominalX(names...)
	c := vgsvg.New(680, 250)
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", fmt.Errorf("plot: %w", err)
	}
	return template.HTML(b.Bytes()[bytes.Index(b.Bytes(), []byte("<svg")):]), nil //nolint:gosec // names are escaped by vgsvg
}
