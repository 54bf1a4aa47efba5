package outcome

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"subak/internal/evaluation"
	"subak/internal/evaluation/through"
)

// view is one table: a figure of every case and method.
type view struct {
	title string
	of    func(*Line) float64
}

func (r *Report) views() []view {
	views := []view{{"first class served, % of its demand", high}}
	if len(r.Lines) > 0 {
		for k := 1; k < len(r.Lines[0].Classes); k++ {
			name := fmt.Sprintf("class %d served, %% of its demand", k+1)
			views = append(views, view{name, func(l *Line) float64 { return l.Classes[k].Mean }})
		}
	}
	for i := range r.Lines {
		if r.Lines[i].Legit.Most > 0 && r.Lines[i].Legit != (evaluation.Figures{Mean: 100, Least: 100, Most: 100}) {
			views = append(views, view{"legitimate part of the last class served, %", legit})
			break
		}
	}
	return append(views, view{"all demand served, %", all}, view{"idle, % of the budget while demand reached it", idle})
}

// Table writes the figures for people, a table for each lag and figure, and the
// claims.
func (r *Report) Table(w io.Writer) error {
	out := &printer{w: w}
	out.line("%s", r.about())
	for _, lag := range r.About.Lags {
		for _, v := range r.views() {
			out.line("")
			out.line("%s, %s", v.title, lagWords(lag))
			for _, row := range r.grid(v.of, lag) {
				out.line("  %-42s %s", row[0], strings.Join(pad(row[1:]), " "))
			}
		}
	}
	if len(r.Vertices) > 0 {
		out.line("\n%s", rangeTitle)
		for _, row := range r.rangeGrid() {
			out.line("  %-42s %s", row[0], strings.Join(pad(row[1:]), " "))
		}
	}
	if len(r.Protocol) > 0 {
		out.line("\n%s", protocolTitle)
		for _, row := range r.protocolGrid() {
			out.line("  %-42s %s", row[0], strings.Join(pad(row[1:]), " "))
		}
	}
	if over := r.over(); over > 0 {
		out.line("\nOVER the budget by up to %g a second", over)
	} else {
		out.line("\nno target ever exceeded the budget")
	}
	r.printClaims(out)
	return out.err
}

func (r *Report) over() (most float64) {
	for i := range r.Lines {
		most = max(most, r.Lines[i].Over)
	}
	return most
}

func (r *Report) about() string {
	seeds := make([]string, len(r.About.Seeds))
	for i, s := range r.About.Seeds {
		seeds[i] = strconv.FormatUint(s, 10)
	}
	words := fmt.Sprintf("%d nodes, budget %s, %d cycles counted", r.About.Nodes, r.About.Budget, r.About.Cycles)
	if len(seeds) > 1 {
		words += fmt.Sprintf(", mean of the seeds %s", strings.Join(seeds, " "))
	}
	if r.About.WhatIf != "" {
		words += "; what if: " + r.About.WhatIf
	}
	return words
}

func lagWords(lag int) string {
	if lag == 0 {
		return "targets follow the present demand (lag 0)"
	}
	return "targets follow the demand of the cycle before (lag 1)"
}

// grid is a head and a row for every method, with the mean over the cases at the
// end where there are several.
func (r *Report) grid(of func(*Line) float64, lag int) [][]string {
	head := []string{""}
	for _, c := range r.Cases {
		head = append(head, c.Name)
	}
	if len(r.Cases) > 1 {
		last := "mean"
		if r.About.WhatIf != "" {
			last = "change"
		}
		head = append(head, last)
	}
	grid := [][]string{head}
	for _, m := range r.Ways {
		row := []string{m.Title}
		for _, c := range r.Cases {
			cell := "-"
			if l := r.Find(c.Name, m.Name, lag); l != nil {
				cell = fmt.Sprintf("%.1f", of(l))
			}
			row = append(row, cell)
		}
		switch mean, ok := r.Mean(m.Name, lag, of); {
		case !ok || len(r.Cases) < 2:
		case r.About.WhatIf != "":
			row = append(row, fmt.Sprintf("%+.1f", of(r.Find(r.Cases[1].Name, m.Name, lag))-of(r.Find(r.Cases[0].Name, m.Name, lag))))
		default:
			row = append(row, fmt.Sprintf("%.1f", mean))
		}
		grid = append(grid, row)
	}
	return grid
}

const rangeTitle = "the two-class LP's many optima: all serve as much in all, and which one a solver returns is decided by how it breaks ties; first class served, %, lag 0"

// rangeGrid is what the two-class LP's optima serve of the first class.
func (r *Report) rangeGrid() [][]string {
	grid := [][]string{{""}, {"least: max(0, B - D of the others)"}, {"most: min(B, D of the first class)"}, {"gonum's simplex, some cycles of one seed"}}
	for _, v := range r.Vertices {
		l := r.line(v.Case)
		for i, cell := range []string{v.Case, fmt.Sprintf("%.1f", l.Least.Mean), fmt.Sprintf("%.1f", l.Most.Mean), fmt.Sprintf("%.1f", v.Percent)} {
			grid[i] = append(grid[i], cell)
		}
	}
	return grid
}

// line is any line of a case: the range is the same in all of them.
func (r *Report) line(name string) *Line {
	for i := range r.Lines {
		if r.Lines[i].Case == name {
			return &r.Lines[i]
		}
	}
	return nil
}

const protocolTitle = "through the protocol: whole nodes, leased loans, gossip as late as between the cities, every request decided; first class served, %"

// protocolGrid is the protocol's figures beside those of its ideal.
func (r *Report) protocolGrid() [][]string {
	rows := []struct {
		title string
		of    func(*through.Row) float64
	}{
		{"through the protocol", func(x *through.Row) float64 { return x.High.Mean }},
		{"ideal of the same rule, lag 1", func(x *through.Row) float64 { return x.Ideal.Mean }},
		{"ideal of the same rule, lag 0", func(x *through.Row) float64 { return x.Ahead.Mean }},
		{"legitimate part, through the protocol", func(x *through.Row) float64 { return x.Legit.Mean }},
		{"most enforced at an instant, % of the budget", func(x *through.Row) float64 { return float64(x.PeakPPM) / 10_000 }},
	}
	head := []string{""}
	for i := range r.Protocol {
		head = append(head, r.Protocol[i].Case)
	}
	grid := [][]string{append(head, "mean")}
	for _, row := range rows {
		cells, mean := []string{row.title}, 0.0
		for i := range r.Protocol {
			x := row.of(&r.Protocol[i])
			mean += x / float64(len(r.Protocol))
			cells = append(cells, fmt.Sprintf("%.1f", x))
		}
		grid = append(grid, append(cells, fmt.Sprintf("%.1f", mean)))
	}
	return grid
}

// pad brings cells to one width.
func pad(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = fmt.Sprintf("%6s", c)
	}
	return out
}

// printer writes lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table writes a grid in Markdown.
func (p *printer) table(grid [][]string) {
	for i, row := range grid {
		p.line("| %s |", strings.Join(row, " | "))
		if i == 0 {
			p.line("|%s", strings.Repeat(" --- |", len(row)))
		}
	}
}

// Markdown writes the tables for a document.
func (r *Report) Markdown(w io.Writer) error {
	out := &printer{w: w}
	out.line("%s.", r.about())
	for _, lag := range r.About.Lags {
		for _, v := range r.views() {
			out.line("\n**%s, %s**\n", v.title, lagWords(lag))
			out.table(r.grid(v.of, lag))
		}
	}
	if len(r.Vertices) > 0 {
		out.line("\n**%s**\n", rangeTitle)
		out.table(r.rangeGrid())
	}
	if len(r.Protocol) > 0 {
		out.line("\n**%s**\n", protocolTitle)
		out.table(r.protocolGrid())
	}
	if len(r.Claims) > 0 {
		out.line("\n| claim | figure | |\n| --- | --- | --- |")
		for _, c := range r.Claims {
			out.line("| %s | %s | %s |", c.Words, c.Figure, c.verdict())
		}
	}
	return out.err
}

// JSON writes the report as one document.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// CSV writes a row for every case, method, lag and figure.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"case", "method", "lag", "figure", "mean", "least", "most"}) // Flush says what failed
	for i := range r.Lines {
		l := &r.Lines[i]
		put := func(name string, f evaluation.Figures) {
			number := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
			_ = out.Write([]string{l.Case, l.Method, strconv.Itoa(l.Lag), name, number(f.Mean), number(f.Least), number(f.Most)})
		}
		for k, f := range l.Classes {
			put(fmt.Sprintf("class%d", k+1), f)
		}
		put("legit", l.Legit)
		put("all", l.All)
		put("idle", l.Idle)
		put("unplaced", l.Unplaced)
		put("worst", l.Worst)
		put("over", evaluation.Figures{Mean: l.Over, Least: l.Over, Most: l.Over})
	}
	out.Flush()
	return out.Error()
}
