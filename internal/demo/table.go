package demo

import (
	"fmt"
	"strings"
	"time"
)

// table is the result as text, at most 100 columns wide.
func table(r *Result) string {
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	f("")
	f("%-8s%-12s%10s%10s%10s%8s %9s%9s%9s", "phase", "class", "offered", "admitted", "refused", "lost", "served", "static", "ideal")
	for _, ph := range r.Phases {
		name := ph.Name
		for _, c := range ph.Classes {
			f("%-8s%-12s%10s%10s%10s%8s %7.1f %%%7.1f %%%7.1f %%", name, c.Name,
				count(c.Offered), count(c.Admitted), count(c.Refused), count(c.Lost), c.Served, c.Static, c.Ideal)
			name = ""
		}
	}
	f("")
	f("served: admitted in %% of offered; static: had no node ever talked to another; ideal: had one")
	f("limiter known every request in advance. lost: met no node (%s).", lostKinds(r))
	f("")
	f("%-8s%48s%15s%18s", "phase", "most requests at the origin in any / bound", "sum of shares", "nodes' counters")
	f("%-8s%s%15s%18s", "", windowHeads(r), "at most", "at most")
	for _, ph := range r.Phases {
		line := fmt.Sprintf("%-8s", ph.Name)
		for _, w := range ph.Windows {
			line += fmt.Sprintf("%16s", comma(w.Prompt)+" / "+comma(w.Bound))
		}
		f("%s%13s/s%9.1f %% of bound", line, comma(int(ph.SharesSteady+0.5)), 100*fill{0, ph.Counters.Peak, ph.Counters.Bound}.fraction())
	}
	f("")
	f("bound: %s/s * (window + %s burst + %s spread) + %d; the spread is the p99.9 of the time from",
		comma(int(r.Limit)), time.Duration(r.BurstSeconds*float64(time.Second)), short(r.Spread), r.Extra)
	f("generator to origin, and %s slower requests are left out. Over windows of every length at once:", count(slower(r)))
	f("%s requests above the line of the limit, %s allowed.", comma(int(r.Level)), comma(int(r.LevelMax)))
	f("shares: what the nodes say they enforce, added up; the most that three polls in a row agree on,")
	f("as their answers are not of one instant. JSON has the most of any single poll too.")
	if r.BackAfter > 0 {
		f("The killed node was ready %s after its restart%s.", short(r.BackAfter), baseAfter(r))
	}
	for _, line := range append(append([]string(nil), r.Broken...), r.Void...) {
		f("! %s", line)
	}
	return b.String()
}

func windowHeads(r *Result) (heads string) {
	if len(r.Phases) == 0 {
		return ""
	}
	for _, w := range r.Phases[0].Windows {
		heads += fmt.Sprintf("%16s", w.Window)
	}
	return heads
}

func lostKinds(r *Result) string {
	all := map[string]uint64{}
	var lost, known uint64
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			lost += c.Lost
			for k, n := range c.Errors {
				all[k] += n
				known += n
			}
		}
	}
	if lost > known {
		all["not sent"] = lost - known
	}
	if lost == 0 {
		return "none"
	}
	return kinds(all)
}

func slower(r *Result) (n uint64) {
	for _, ph := range r.Phases {
		n += ph.Slower
	}
	return n
}

func baseAfter(r *Result) string {
	if r.BaseAfter == 0 {
		return " and had not got its own base back by the end"
	}
	return ", and had its own base back after " + short(r.BaseAfter)
}

func count(n uint64) string { return comma(int(n)) }

// short rounds a duration to what a person reads.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
