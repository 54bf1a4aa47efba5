package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"subak/chaos/timed"
)

// idleMost is the part of the budget, in percent, that may lie idle while all of
// it is asked for, besides what the insurance keeps: what demand that moves
// takes to be heard of.
//
// That, and that sharing serves no less of the high class, is claimed of cycles of
// at least claimedFrom and with an insurance of at least claimedInsured. Without
// insurance, what the high class does not use at one moment is lent to a flood
// elsewhere and missing at the next, which a node on its base is spared.
const (
	idleMost       = 3.0
	claimedFrom    = 2 * time.Second
	claimedInsured = 100_000 // ppm
)

// report is all that a run came to.
type report struct {
	Settings settings `json:"settings"`
	Results  []row    `json:"results"`
	Verdict  string   `json:"verdict"`
}

// row is one scenario.
type row struct {
	Scenario string  `json:"scenario"`
	Title    string  `json:"title"`
	Subak    figures `json:"subak"`
	Static   figures `json:"static"`
}

// figures are one variant of one scenario, in percent.
type figures struct {
	High  float64 `json:"high_percent"`  // of the high class's demand, served
	Legit float64 `json:"legit_percent"` // of the legitimate part of the low class's
	Low   float64 `json:"low_percent"`   // of the low class's, flood included
	Total float64 `json:"total_percent"` // of all demand
	// Idle is what was not served, of the budget, while the demand was the budget
	// or more; below 0 where buckets held something from before.
	Idle float64 `json:"idle_percent"`
	// Insured is the most that the insurance may keep of the budget.
	Insured float64 `json:"insured_percent"`
	// Over is how far the enforced rates together were ever over the budget.
	Over      float64 `json:"over_percent"`
	Objection string  `json:"objection,omitempty"` // of a checker
}

func figuresOf(c *timed.Contest, r timed.Contested) figures {
	all := timed.Served{Offered: r.High.Offered + r.Low.Offered, Admitted: r.High.Admitted + r.Low.Admitted}
	f := figures{
		High: r.High.Percent(), Legit: r.Legit.Percent(), Low: r.Low.Percent(), Total: all.Percent(),
		Over: max(0, float64(r.PeakPPM-1_000_000)/10_000), Objection: r.Objection,
	}
	if r.Contended > 0 {
		f.Idle = 100 * (1 - r.Used/r.Contended)
	}
	budget := float64(c.Limit) * c.Cycle.Seconds() * float64(c.Cycles)
	f.Insured = float64(c.InsurancePPM) / 10_000 * r.High.Offered / budget
	return f
}

// faults are what in a row should not be, in words.
func (r *row) faults(s *settings) []string {
	var all []string
	say := func(format string, args ...any) {
		all = append(all, r.Scenario+": "+fmt.Sprintf(format, args...))
	}
	for _, v := range []struct {
		name string
		figures
	}{{"subak", r.Subak}, {"static", r.Static}} {
		if v.Over > 0 {
			say("%s was %.4f %% over the budget", v.name, v.Over)
		}
		if v.Objection != "" {
			say("%s: %s", v.name, v.Objection)
		}
	}
	if s.Cycle < claimedFrom || s.InsurancePPM < claimedInsured {
		return all
	}
	if r.Subak.High < r.Static.High {
		say("subak serves %.1f %% of the high class, static %.1f %%", r.Subak.High, r.Static.High)
	}
	if most := idleMost + r.Subak.Insured; r.Subak.Idle > most {
		say("%.1f %% idle, at most %.1f %% with the insurance", r.Subak.Idle, most)
	}
	return all
}

// head prints the settings and the heading of the table.
func (r *report) head(out io.Writer) {
	s := &r.Settings
	fmt.Fprintf(out, "%d places (%s), longest round trip %s; limit %d/s, insurance %g %%; cycles %d to %d of %s, slow shapes %d times faster, seed %d; in virtual time\n",
		len(s.Nodes), s.Topology, s.MaxRTT.Round(time.Millisecond), s.Limit, float64(s.InsurancePPM)/10_000,
		s.First, s.First+s.Cycles-1, s.Cycle, s.Hasten, s.Seed)
	fmt.Fprintf(out, "%-31s %-14s%-14s%-14s%-14s%s\n", "served in %, subak | static", "high class", "legitimate", "all", "idle", "over-commit")
}

func (r *row) print(out io.Writer) {
	pair := func(a, b float64) string { return fmt.Sprintf("%5.1f |%5.1f", a, b) }
	a, b := &r.Subak, &r.Static
	fmt.Fprintf(out, "%s %-28s %-14s%-14s%-14s%-14s%.4g | %.4g\n", r.Scenario, r.Title,
		pair(a.High, b.High), pair(a.Legit, b.Legit), pair(a.Total, b.Total), pair(a.Idle, b.Idle), a.Over, b.Over)
}

// finish prints the verdict and returns the exit code.
func (r *report) finish(out io.Writer, asJSON bool) int {
	code := 0
	var faults []string
	var subak, static float64
	for i := range r.Results {
		x := &r.Results[i]
		faults = append(faults, x.faults(&r.Settings)...)
		subak += x.Subak.High / float64(len(r.Results))
		static += x.Static.High / float64(len(r.Results))
	}
	r.Verdict = fmt.Sprintf("contention: ok, %d scenarios, high class served %.1f %% (static %.1f %%), over-commit 0", len(r.Results), subak, static)
	if len(faults) > 0 {
		code = 1
		r.Verdict = "contention: FAILED, " + strings.Join(faults, "; ")
	}
	if !asJSON {
		fmt.Fprintln(out, r.Verdict)
		return code
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return 2
	}
	return code
}
