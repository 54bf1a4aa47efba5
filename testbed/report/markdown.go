package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"subak/testbed/evidence"
)

// Markdown writes the summary: the verdict, what was run and how, the pictures of
// About, every claim, what the protocol buys over the baselines, and the
// contention scenarios beside the simulator.
func Markdown(w io.Writer, outcomes []evidence.Outcome, about About) error {
	b := bufio.NewWriter(w)
	s := tally(outcomes)
	fmt.Fprintf(b, "# The testbed: %s\n\nWritten by the testbed from a run; not edited by hand.\n\n", s.words())
	for _, line := range []string{s.lost(), busy(outcomes)} {
		if line != "" {
			fmt.Fprintf(b, "%s\n\n", escape(line))
		}
	}
	for _, f := range aboutFacts(outcomes, about) {
		if f.Code {
			fmt.Fprintf(b, "* %s: `%s`\n", f.Name, strings.ReplaceAll(f.Text, "`", "'"))
		} else {
			fmt.Fprintf(b, "* %s: %s\n", f.Name, escape(f.Text))
		}
	}
	for _, f := range about.Figures {
		fmt.Fprintf(b, "\n![%s](<%s>)\n\n%[1]s\n", escape(clean(f.Caption, 300)), strings.NewReplacer("<", "", ">", "").Replace(clean(f.Path, 200)))
	}
	writeClaims(b, outcomes)
	writeBuys(b, outcomes)
	writeComparisons(b, about.Comparisons)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("report: write summary: %w", err)
	}
	return nil
}

// escape keeps foreign text from being markup or a cell's end.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_[]<>|#~&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func writeRow(w io.Writer, cells ...string) {
	for _, c := range cells {
		fmt.Fprintf(w, "| %s ", escape(c))
	}
	fmt.Fprintln(w, "|")
}

func writeHead(w io.Writer, cells ...string) {
	writeRow(w, cells...)
	fmt.Fprintln(w, strings.Repeat("| --- ", len(cells))+"|")
}

func writeClaims(w io.Writer, outcomes []evidence.Outcome) {
	fmt.Fprint(w, "\n## Claims\n\n")
	writeHead(w, "scenario", "claim", "measured", "bound", "")
	for _, g := range groups(outcomes) {
		for _, o := range g {
			name := clean(o.Run.Scenario, 80)
			if len(g) > 1 {
				name += ", " + clean(string(o.Run.Variant), 24)
			}
			for _, v := range o.Verdicts {
				v = cleanVerdict(v)
				kept := "kept"
				if !v.Kept {
					kept = "BROKEN"
				}
				writeRow(w, name, v.Claim, v.Measured, v.Bound, kept)
			}
		}
	}
}

func writeBuys(w io.Writer, outcomes []evidence.Outcome) {
	for _, g := range groups(outcomes) {
		if len(g) < 2 {
			continue
		}
		fmt.Fprintf(w, "\n## What the protocol buys: %s\n\n", escape(title(&g[0].Run)))
		for _, s := range says(g) {
			fmt.Fprintf(w, "* %s\n", escape(s))
		}
		fmt.Fprintln(w)
		var heads []string
		for _, h := range buyHeads(&g[0].Run) {
			heads = append(heads, h.Text)
		}
		writeHead(w, heads...)
		for _, row := range buys(g) {
			writeRow(w, row...)
		}
	}
}

func writeComparisons(w io.Writer, all []Comparison) {
	for _, g := range byTopology(all) {
		fmt.Fprintf(w, "\n## Contention, %s: real processes beside the simulator\n\n", escape(clean(g[0].Topology, 60)))
		fmt.Fprint(w, "In percent: of the demand that was served, of the budget that lay idle or was exceeded. Real, then simulated.\n\n")
		writeHead(w, "scenario", "high class", "legitimate low", "low class", "all", "idle", "above budget")
		for _, c := range g {
			cells := []string{comparisonName(c)}
			v := scores(c)
			for i := 0; i < len(v); i += 2 {
				cells = append(cells, v[i]+", "+v[i+1])
			}
			writeRow(w, cells...)
		}
	}
}
