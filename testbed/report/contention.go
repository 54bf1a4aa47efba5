package report

import (
	"slices"

	"subak/testbed/evidence"
)

// contention is the comparisons of one topology.
type contention struct {
	Topology string
	Figures  []figure
	Heads    []string
	Rows     []line
}

func (s *sheet) contention(all []Comparison) ([]contention, error) {
	var out []contention
	for _, g := range byTopology(all) {
		c := contention{Topology: clean(g[0].Topology, 60)}
		product := slices.DeleteFunc(slices.Clone(g), func(c Comparison) bool { return c.Variant != evidence.Subak && c.Variant != "" })
		for _, m := range []struct {
			name string
			pick func(Score) float64
		}{
			{"high class served, percent of its demand", func(s Score) float64 { return s.High }},
			{"all demand served, percent", func(s Score) float64 { return s.Total }},
		} {
			if len(product) == 0 {
				break
			}
			fig, err := s.both("", func(f frame) stack { return barsStack(f, m.name, product, m.pick) })
			if err != nil {
				return nil, err
			}
			c.Figures = append(c.Figures, fig)
		}
		for range 6 {
			c.Heads = append(c.Heads, "real", "sim.")
		}
		for _, x := range g {
			c.Rows = append(c.Rows, line{Name: comparisonName(x), Cells: scores(x)})
		}
		out = append(out, c)
	}
	return out, nil
}

func comparisonName(c Comparison) string {
	name := clean(c.Scenario, 40)
	if t := clean(c.Title, 100); t != "" && t != name {
		name += ": " + t
	}
	if c.Variant != evidence.Subak && c.Variant != "" {
		name += " (" + clean(string(c.Variant), 24) + ")"
	}
	return name
}

// scores are the figures of a comparison, real and simulated by turns.
func scores(c Comparison) []string {
	var out []string
	for _, pair := range [][2]float64{
		{c.Real.High, c.Simulated.High}, {c.Real.Legit, c.Simulated.Legit}, {c.Real.Low, c.Simulated.Low},
		{c.Real.Total, c.Simulated.Total},
		{c.Real.Idle, c.Simulated.Idle}, {c.Real.Over, c.Simulated.Over},
	} {
		for _, v := range pair {
			if v >= 0 {
				out = append(out, decimal(v))
			} else {
				out = append(out, "–")
			}
		}
	}
	return out
}

func byTopology(all []Comparison) [][]Comparison {
	var out [][]Comparison
	place := map[string]int{}
	for _, c := range all {
		g, ok := place[c.Topology]
		if !ok {
			g = len(out)
			place[c.Topology] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], c)
	}
	return out
}
