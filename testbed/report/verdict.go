package report

import (
	"fmt"
	"strings"

	"subak/testbed/evidence"
)

// sum counts claims.
type sum struct {
	kept, all int
	broken    []string // scenarios with a broken claim
	scenarios int
}

func tally(outcomes []evidence.Outcome) sum {
	var s sum
	for _, g := range groups(outcomes) {
		t := tallyOf(g)
		s.kept, s.all, s.scenarios = s.kept+t.kept, s.all+t.all, s.scenarios+1
		s.broken = append(s.broken, t.broken...)
	}
	return s
}

func tallyOf(g []*evidence.Outcome) sum {
	s := sum{scenarios: 1}
	for _, o := range g {
		for _, v := range o.Verdicts {
			s.all++
			if v.Kept {
				s.kept++
			}
		}
	}
	if s.kept < s.all {
		s.broken = []string{clean(g[0].Run.Scenario, 80)}
	}
	return s
}

// ok: something was claimed and all of it was kept.
func (s sum) ok() bool { return s.all > 0 && s.kept == s.all }

func (s sum) words() string {
	switch {
	case s.all == 0:
		return "Nothing was claimed"
	case s.kept == s.all:
		return fmt.Sprintf("All %d claims kept", s.all)
	}
	return fmt.Sprintf("%d of %d claims kept, %d BROKEN", s.kept, s.all, s.all-s.kept)
}

func (s sum) brief() string { return fmt.Sprintf("%d of %d", s.kept, s.all) }

// lost names the scenarios in which a claim was broken.
func (s sum) lost() string {
	if len(s.broken) == 0 {
		return ""
	}
	return "Broken in " + strings.Join(s.broken, ", ") + "."
}

// busy names the scenarios whose figures the machine itself may have spoilt.
func busy(outcomes []evidence.Outcome) string {
	var all []string
	for _, g := range groups(outcomes) {
		if len(busyRuns(g)) > 0 {
			all = append(all, clean(g[0].Run.Scenario, 80))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "The machine was too slow for what was measured in " + strings.Join(all, ", ") + "."
}

// busyRuns says how, run by run.
func busyRuns(g []*evidence.Outcome) []string {
	var out []string
	for _, o := range g {
		for _, b := range o.Run.Busy {
			out = append(out, clean(string(o.Run.Variant), 24)+": "+clean(b, 300))
		}
	}
	return out
}
