package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"subak/testbed/evidence"
)

// windowLines is the origin's judgement, window by window.
func windowLines(r *evidence.Run) []line {
	var out []line
	b := r.Origin.Bound
	for _, w := range b.Results {
		out = append(out, line{
			Name: "any " + seconds(w.Window), Lost: !w.OK(),
			Cells: []string{count(float64(w.Peak)), count(float64(w.Bound)), count(float64(w.Margin))},
		})
	}
	if b.LevelMax > 0 {
		out = append(out, line{
			Name: "any length, above the budget", Lost: !b.LevelOK,
			Cells: []string{count(float64(b.Level)), count(float64(b.LevelMax)), count(float64(b.LevelMax - b.Level))},
		})
	}
	return out
}

// phaseSum is what the generators saw of one class in one phase, at all nodes.
// What was for a node without a process is in none of it.
type phaseSum struct {
	offered, admitted, refused, failed uint64
	// The worst of the nodes: quantiles cannot be added up.
	admittedP99, refusedP99 time.Duration
}

// loadOf sums the cells of one class in one phase; phase -1 is all of them.
func loadOf(r *evidence.Run, class, phase int) phaseSum {
	var sum phaseSum
	for i := range r.Nodes {
		n := class*len(r.Nodes) + i
		if n >= len(r.Load.Streams) {
			break
		}
		for p := range r.Load.Streams[n].Cells {
			if phase >= 0 && p != phase {
				continue
			}
			c := &r.Load.Streams[n].Cells[p]
			sum.offered += c.Offered - min(c.Offered, c.Away)
			sum.admitted += c.Admitted
			sum.refused += c.Refused
			sum.failed += c.Failed()
			sum.admittedP99 = max(sum.admittedP99, c.AdmittedLatency.P99)
			sum.refusedP99 = max(sum.refusedP99, c.RefusedLatency.P99)
		}
	}
	return sum
}

func phaseLines(r *evidence.Run) []line {
	var out []line
	for p, ph := range r.Load.Phases {
		for k, class := range r.Classes {
			s := loadOf(r, k, p)
			if s.offered == 0 {
				continue
			}
			out = append(out, line{
				Name: clean(ph, 60) + ", " + clean(class, 40),
				Cells: []string{
					count(float64(s.offered)), count(float64(s.admitted)), count(float64(s.refused)), count(float64(s.failed)),
					percent(float64(s.admitted), float64(s.offered)), orDash(s.admittedP99), orDash(s.refusedP99),
				},
			})
		}
	}
	return out
}

func orDash(d time.Duration) string {
	if d <= 0 {
		return "–"
	}
	return seconds(d)
}

// slower tells of arrivals that the judgement leaves out.
func slower(r *evidence.Run) string {
	if r.Origin.Slower == 0 {
		return ""
	}
	return fmt.Sprintf("%s arrivals took longer to the origin than the %s that the bound allows for, and are left out of it.",
		count(float64(r.Origin.Slower)), seconds(r.Origin.Spread))
}

func network(r *evidence.Run) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.Network)) {
		parts = append(parts, clean(strings.ReplaceAll(name, "_", " "), 40)+" "+count(float64(r.Network[name])))
	}
	return strings.Join(parts, ", ")
}

// buyHeads names the columns of buys.
func buyHeads(r *evidence.Run) []cell {
	heads := []cell{{Text: "Nodes run as"}, {"Bound", true}, {"Worst 1 s: arrived of allowed", true}, {"Worst 10 s", true}, {"Highest mean of 10 s, of B", true}, {"Time above what 10 s allow", true}}
	for _, c := range r.Classes {
		heads = append(heads, cell{clean(c, 24) + " served", true})
	}
	return append(heads, cell{"Admitted in all", true})
}

// buys is what each variant did to the origin and for its users.
func buys(g []*evidence.Outcome) [][]string {
	var out [][]string
	for _, o := range g {
		r := &o.Run
		long, peak := above(r)
		kept := "kept"
		if !r.Origin.Bound.OK() {
			kept = "BROKEN"
		}
		row := []string{
			clean(string(r.Variant), 24), kept, worst(r, second), worst(r, 10*second),
			percent(peak, highest(r)), seconds(long),
		}
		admitted := uint64(0)
		for k := range r.Classes {
			s := loadOf(r, k, -1)
			admitted += s.admitted
			row = append(row, percent(float64(s.admitted), float64(s.offered)))
		}
		out = append(out, append(row, count(float64(admitted))))
	}
	return out
}

// highest is the largest limit that was in force.
func highest(r *evidence.Run) float64 {
	top := 0.0
	for _, p := range limits(r) {
		top = max(top, p.y)
	}
	return top
}

func worst(r *evidence.Run, window time.Duration) string {
	b, ok := result(r, window)
	if !ok {
		return "–"
	}
	s := count(float64(b.Peak)) + " of " + count(float64(b.Bound))
	if b.Margin < 0 {
		s += " (+" + percent(float64(-b.Margin), float64(b.Bound)) + ")"
	}
	return s
}

// says tells the excess of every variant in a sentence.
func says(g []*evidence.Outcome) []string {
	var out []string
	for _, o := range g {
		r := &o.Run
		name := clean(string(r.Variant), 24)
		if r.Origin.Bound.OK() {
			out = append(out, name+" kept the bound in windows of every length.")
			continue
		}
		w := worstWindow(r)
		long, peak := above(r)
		s := fmt.Sprintf("%s broke the bound: %s requests in %s where %s are allowed, %s too many",
			name, count(float64(w.Arrived)), seconds(w.Window), count(float64(w.Allowed)), percent(float64(w.Arrived-w.Allowed), float64(w.Allowed)))
		if long > 0 {
			s += fmt.Sprintf("; for %s the mean of 10 s was above the bound, at worst at %s of the budget", seconds(long), percent(peak, highest(r)))
		}
		out = append(out, s+".")
	}
	return out
}

// worstWindow is the window that broke the bound by the largest part, among those
// judged and those listed.
func worstWindow(r *evidence.Run) evidence.Over {
	var all []evidence.Over
	for _, b := range r.Origin.Bound.Results {
		all = append(all, evidence.Over{Window: b.Window, Arrived: b.Peak, Allowed: b.Bound})
	}
	all = append(all, r.Origin.Over...)
	all = slices.DeleteFunc(all, func(o evidence.Over) bool { return o.Allowed <= 0 })
	if len(all) == 0 {
		return evidence.Over{}
	}
	return slices.MaxFunc(all, func(a, b evidence.Over) int {
		x, y := float64(a.Arrived)/float64(a.Allowed), float64(b.Arrived)/float64(b.Allowed)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}
