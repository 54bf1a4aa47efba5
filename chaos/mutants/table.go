package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// table prints outcomes as they come.
type table struct {
	out  io.Writer
	rows []outcome
}

const rowFormat = "%-42s %-18s %-44s %-10s %6s %8s  %s\n"

func (t *table) head() {
	fmt.Fprintf(t.out, rowFormat, "rule switched off", "rule", "adversary", "caught by", "seeds", "peak/B", "rule kept")
}

func (t *table) row(o outcome) {
	t.rows = append(t.rows, o)
	by := o.Checker
	if !o.Caught {
		by = "NOBODY"
	}
	if o.Fault != "" {
		by = "FAULT"
	}
	kept := "0 objections"
	if o.Kept > 0 {
		kept = "OBJECTED TO"
	}
	fmt.Fprintf(t.out, rowFormat, o.Name, o.Rule, o.Adversary, by, fmt.Sprint(o.Seeds), fmt.Sprintf("%.2f", o.Peak), kept)
	if o.Fault != "" {
		fmt.Fprintln(t.out, "    "+o.Fault)
	} else if o.Kept > 0 {
		fmt.Fprintln(t.out, "    "+o.Detail)
	}
}

// verdict is the last line and the exit status.
func (t *table) verdict(took time.Duration) (string, int) {
	caught, slowest, code := 0, 0, exitOK
	var bad []string
	for i := range t.rows {
		o := &t.rows[i]
		if o.Caught {
			caught++
			slowest = max(slowest, o.Seeds)
		}
		if !o.ok() {
			bad = append(bad, o.Name)
			code = max(code, exitSurvivor)
		}
		if o.Fault != "" {
			code = exitFault
		}
	}
	line := fmt.Sprintf("%d of %d caught, slowest %d seeds, %.0f s", caught, len(t.rows), slowest, took.Seconds())
	if len(bad) > 0 {
		return "mutants: FAILED, " + line + "; not in order: " + strings.Join(bad, "; "), code
	}
	return "mutants: ok, " + line, code
}

func printList(out io.Writer, list []Mutant) {
	for _, m := range list {
		fmt.Fprintf(out, "%-42s %-18s %s\n", m.Name, m.Rule, m.Breaks)
	}
}
