// Package show tells people and programs what was measured: tables on a terminal,
// a report as text, as JSON and as a chart.
package show

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"subak/testbed/peers/measure"
)

// column is how a metric is shown.
type column struct{ head, unit string }

func (c column) figure(v float64, m measure.Metric) string {
	if m == measure.Mid || m == measure.Tail || m == measure.CPU {
		v /= 1000 // us
	}
	return measure.Figure(v, c.unit)
}

// columnOf is a metric's column. A value has its claim's unit.
func columnOf(m measure.Metric, unit string) column {
	switch m {
	case measure.Nanos:
		return column{"time", "ns"}
	case measure.Rate:
		return column{"rate", "/s"}
	case measure.CPU:
		return column{"CPU each", "us"}
	case measure.Busy:
		return column{"cores busy", ""}
	case measure.Mid:
		return column{"p50", "us"}
	case measure.Tail:
		return column{"p99", "us"}
	}
	return column{"", unit}
}

// Case writes a case's sides with the medians over the rounds, and what was made
// of its claims.
func Case(w io.Writer, c *measure.Case, f measure.Figures, results []measure.Result) {
	var t table
	for i, s := range c.Sides {
		row := []string{"  " + s.Name}
		for _, m := range c.Show {
			row = append(row, columnOf(m, unitOf(c, i)).figure(measure.Median(f.Over(i, m)), m))
		}
		t.add(row...)
	}
	head := []string{""}
	for _, m := range c.Show {
		head = append(head, columnOf(m, "").head)
	}
	if strings.Join(head, "") != "" {
		t.rows = append([][]string{head}, t.rows...)
	}
	t.write(w)
	Claims(w, results)
}

// unitOf is the unit of the claim on a side's value.
func unitOf(c *measure.Case, side int) string {
	for _, cl := range c.Claims {
		if cl.Side == side && cl.Metric == measure.Value {
			return cl.Unit
		}
	}
	return ""
}

// Summary writes a table of the claims that have a bound.
func Summary(w io.Writer, results []measure.Result) {
	var judged []measure.Result
	for _, r := range results {
		if r.Claim.Sense != measure.NoBound {
			r.Why = "" // said where the case was shown
			judged = append(judged, r)
		}
	}
	Claims(w, judged)
}

// Claims writes a table of claims.
func Claims(w io.Writer, results []measure.Result) {
	var t table
	for _, r := range results {
		spread := ""
		if low, high := r.Spread(); len(r.Rounds) > 1 && !math.IsNaN(low) {
			spread = fmt.Sprintf("(%s to %s)", measure.Figure(low, ""), measure.Figure(high, ""))
		}
		t.add("  "+r.State.String(), r.Claim.ID, measure.Figure(r.Value, r.Claim.Unit), r.Claim.BoundText(), spread, r.Claim.What+because(r.Why))
	}
	t.left = []int{1, 3, 4, 5}
	t.write(w)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// table aligns columns: the first one to the left, others to the right unless
// listed in left.
type table struct {
	rows [][]string
	left []int
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	isLeft := map[int]bool{0: true}
	for _, i := range t.left {
		isLeft[i] = true
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if isLeft[i] {
				b.WriteString(c + pad + "  ")
			} else {
				b.WriteString(pad + c + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
