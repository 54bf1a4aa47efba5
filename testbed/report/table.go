package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"subak/testbed/evidence"
)

// columnMost is the widest a column of the terminal's table gets; longer text is
// written in full and pushes its row's next column to the right.
const columnMost = 58

// Table writes every claim and its verdict, for a terminal: a scenario, then its
// claims with what was measured and what it was to be, and the sum at the end.
// It says BROKEN in words; no colours.
func Table(w io.Writer, outcomes []evidence.Outcome) error {
	b := bufio.NewWriter(w)
	widths := [2]int{}
	for i := range outcomes {
		for _, v := range outcomes[i].Verdicts {
			v = cleanVerdict(v)
			widths[0] = max(widths[0], min(columnMost, utf8.RuneCountInString(v.Claim)))
			widths[1] = max(widths[1], min(columnMost, utf8.RuneCountInString(v.Measured)))
		}
	}
	for _, g := range groups(outcomes) {
		for _, o := range g {
			heading := clean(o.Run.Scenario, 80)
			if o.Run.Variant != evidence.Subak && o.Run.Variant != "" {
				heading += " (" + clean(string(o.Run.Variant), 24) + ")"
			}
			fmt.Fprintf(b, "%s: %s, %s\n", heading, title(&o.Run), seconds(o.Run.Length))
			for _, v := range o.Verdicts {
				writeClaim(b, cleanVerdict(v), widths)
			}
			if len(o.Verdicts) == 0 {
				fmt.Fprintln(b, "  nothing was claimed")
			}
		}
	}
	s := tally(outcomes)
	fmt.Fprintf(b, "\n%s, %d %s\n", s.words(), s.scenarios, plural(s.scenarios, "scenario"))
	for _, line := range []string{s.lost(), busy(outcomes)} {
		if line != "" {
			fmt.Fprintln(b, line)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("report: write table: %w", err)
	}
	return nil
}

func writeClaim(w io.Writer, v evidence.Verdict, widths [2]int) {
	verdict := "kept  "
	if !v.Kept {
		verdict = "BROKEN"
	}
	fmt.Fprintf(w, "  %s  %s  %s  %s\n", verdict, pad(v.Claim, widths[0]), pad(v.Measured, widths[1]), v.Bound)
}

// pad fills s up to n runes; fmt's width counts the same but cuts nothing either.
func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
