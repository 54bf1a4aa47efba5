package outcome

import (
	"fmt"
	"io"
	"strings"
)

// Ablation is what each part of the product's rule is worth, at lag 1, and what
// borrowing adds by the depth of the low class's trough.
type Ablation struct {
	Report  *Report  `json:"report"`
	Troughs []Trough `json:"troughs"`
}

// Trough is what borrowing adds to the first class where the flood pulses.
type Trough struct {
	Low     string  `json:"low"` // the flood in a trough, of the budget
	Without float64 `json:"without"`
	With    float64 `json:"with"`
}

// NewAblation makes an ablation of rows: those of the scenarios, and those of the
// troughs by the methods no-borrowing and paper.
func NewAblation(scenarios, troughs *Report) *Ablation {
	a := &Ablation{Report: scenarios}
	for _, c := range troughs.Cases {
		with, without := troughs.Find(c.Name, "paper", 1), troughs.Find(c.Name, "no-borrowing", 1)
		a.Troughs = append(a.Troughs, Trough{c.Title, high(without), high(with)})
	}
	return a
}

// columns of the ablation's table.
func (a *Ablation) grid() [][]string {
	grid := [][]string{{"", "first class", "against the rule", "worst cycle", "legitimate", "all", "idle"}}
	var base float64
	for i, m := range a.Report.Ways {
		mean := func(of func(*Line) float64) float64 {
			x, _ := a.Report.Mean(m.Name, 1, of)
			return x
		}
		if i == 0 {
			base = mean(high)
		}
		grid = append(grid, []string{
			m.Title, fmt.Sprintf("%.1f", mean(high)), fmt.Sprintf("%+.2f", mean(high)-base),
			fmt.Sprintf("%.1f", mean(func(l *Line) float64 { return l.Worst.Mean })),
			fmt.Sprintf("%.1f", mean(legit)), fmt.Sprintf("%.1f", mean(all)), fmt.Sprintf("%.1f", mean(idle)),
		})
	}
	return grid
}

func (a *Ablation) troughs() [][]string {
	grid := [][]string{{"flood in the trough, of the budget", "no borrowing", "paper", "borrowing adds"}}
	for _, t := range a.Troughs {
		grid = append(grid, []string{t.Low, fmt.Sprintf("%.1f", t.Without), fmt.Sprintf("%.1f", t.With), fmt.Sprintf("%+.2f", t.With-t.Without)})
	}
	return grid
}

const (
	ablationTitle = "one thing changed at a time, lag 1: means over the scenarios, in percent"
	troughTitle   = "what borrowing adds to the first class, by how deep the low class's trough is (S6, lag 1)"
)

// Table writes the ablation for people.
func (a *Ablation) Table(w io.Writer) error {
	out := &printer{w: w}
	out.line("%s\n\n%s", a.Report.about(), ablationTitle)
	out.columns(a.grid())
	out.line("\n%s", troughTitle)
	out.columns(a.troughs())
	return out.err
}

// columns writes a grid whose columns are as wide as their heads.
func (p *printer) columns(grid [][]string) {
	for _, row := range grid {
		cells := make([]string, len(row)-1)
		for j := range cells {
			cells[j] = fmt.Sprintf("%*s", len(grid[0][j+1]), row[j+1])
		}
		p.line("  %-36s %s", row[0], strings.Join(cells, "  "))
	}
}

// Markdown writes the ablation for a document.
func (a *Ablation) Markdown(w io.Writer) error {
	out := &printer{w: w}
	out.line("%s.\n\n**%s**\n", a.Report.about(), ablationTitle)
	out.table(a.grid())
	out.line("\n**%s**\n", troughTitle)
	out.table(a.troughs())
	return out.err
}
