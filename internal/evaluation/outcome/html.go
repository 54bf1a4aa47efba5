package outcome

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
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
	Plot   bars
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

// HTML writes a page of its own, with plots, that needs nothing else. Bars need no
// plotting library: the one that the testbed uses would keep its fonts and their
// tables in the memory of every node.
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
		p.Plots = append(p.Plots, figure{v.title, r.bars(v, lag), r.legend()})
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
func inks() [mostBars]string {
	return [mostBars]string{"#8b9693", "#1763b8", "#d97706", "#0b8f78", "#8a4fb0", "#8a7a00", "#7a4a2b", "#b3202c"}
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
		all = append(all, entry{css(i), m.Title})
	}
	return all
}

// css is the colour of the i-th method.
func css(i int) template.CSS { return template.CSS(inks()[i]) } //nolint:gosec // our own

// A plot in points: the room for bars, and around it for the scale and the names.
const (
	plotWidth, plotHeight = 640, 210
	plotLeft, plotTop     = 34, 10
	plotRight, plotBottom = plotLeft + plotWidth, plotTop + plotHeight
)

// bars plots a figure of every case, a bar for each method.
func (r *Report) bars(v view, lag int) bars {
	b := bars{Width: plotRight + 10, Height: plotBottom + 24, Left: plotLeft, Right: plotRight, Bottom: plotBottom}
	for percent := 0; percent <= 100; percent += 25 {
		b.Lines = append(b.Lines, rule{plotBottom - float64(plotHeight*percent)/100, fmt.Sprintf("%d %%", percent)})
	}
	shown := r.shown()
	group := float64(plotWidth) / float64(len(r.Cases))
	width := group / float64(len(shown)+1)
	for i, c := range r.Cases {
		left := plotLeft + group*float64(i)
		b.Names = append(b.Names, rule{left + group/2, c.Name})
		for j, m := range shown {
			l := r.Find(c.Name, m.Name, lag)
			if l == nil {
				continue
			}
			height := plotHeight * min(100, max(0, v.of(l))) / 100
			b.Bars = append(b.Bars, bar{
				X: left + width*(float64(j)+0.5), Y: plotBottom - height, Width: width, Height: height, Color: css(j),
				Says: fmt.Sprintf("%s, %s: %.1f %%", c.Name, m.Title, v.of(l)),
			})
		}
	}
	return b
}

// bars is a plot as the template draws it.
type bars struct {
	Width, Height, Left, Right, Bottom int
	Lines, Names                       []rule
	Bars                               []bar
}

// rule is a line of the scale at a height, or a name at a place.
type rule struct {
	At   float64
	Says string
}

type bar struct {
	X, Y, Width, Height float64
	Color               template.CSS
	Says                string
}
