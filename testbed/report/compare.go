package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"subak/testbed/evidence"
)

// Simulation is what `go run ./chaos/contention --json` prints: the contention
// scenarios in virtual time, on one topology.
type Simulation struct {
	Settings struct {
		Topology string `json:"topology"`
	} `json:"settings"`
	Results []Simulated `json:"results"`
}

// Simulated is one scenario of it.
type Simulated struct {
	Scenario string `json:"scenario"`
	Title    string `json:"title"`
	Subak    Score  `json:"subak"`
	Static   Score  `json:"static"`
}

// simulationMost is the most bytes that are read of a simulation.
const simulationMost = 1 << 20

// ReadSimulation reads that document.
func ReadSimulation(r io.Reader) (Simulation, error) {
	var s Simulation
	if err := json.NewDecoder(io.LimitReader(r, simulationMost)).Decode(&s); err != nil {
		return s, fmt.Errorf("report: read simulation: %w", err)
	}
	return s, nil
}

// Compare sets the runs of contention scenarios beside simulations of the same
// scenario on the same topology: a run of S2 is one whose name ends in "-s2", in
// the group "contention". Runs that no simulation is of are left out, as are
// naive ones.
func Compare(outcomes []evidence.Outcome, simulations []Simulation) []Comparison {
	var out []Comparison
	for i := range outcomes {
		r := &outcomes[i].Run
		for _, sim := range simulations {
			if r.Group != "contention" || sim.Settings.Topology != r.Topology {
				continue
			}
			for _, s := range sim.Results {
				score, ok := s.of(r)
				if ok {
					out = append(out, Comparison{
						Scenario: s.Scenario, Title: s.Title, Topology: r.Topology, Variant: r.Variant,
						Real: ScoreOf(r), Simulated: score,
					})
				}
			}
		}
	}
	return out
}

// of is what the simulator says of the run's scenario and variant.
func (s *Simulated) of(r *evidence.Run) (Score, bool) {
	if s.Scenario == "" || !strings.HasSuffix(r.Scenario, "-"+strings.ToLower(s.Scenario)) {
		return Score{}, false
	}
	switch r.Variant {
	case evidence.Subak:
		return s.Subak, true
	case evidence.Static:
		return s.Static, true
	}
	return Score{}, false
}

// ScoreOf is how well a run served its demand. Over is how far the bound was
// exceeded at the origin; Legit is below 0 where the run does not tell.
func ScoreOf(r *evidence.Run) Score {
	var all phaseSum
	served := func(s phaseSum) float64 {
		if s.offered == 0 {
			return -1
		}
		return 100 * float64(s.admitted) / float64(s.offered)
	}
	score := Score{High: -1, Legit: -1, Low: -1, Idle: idle(r)}
	for k := range r.Classes {
		s := loadOf(r, k, -1)
		all.offered, all.admitted = all.offered+s.offered, all.admitted+s.admitted
		if k == 0 {
			score.High = served(s)
		}
		if k == len(r.Classes)-1 {
			score.Low = served(s)
		}
	}
	if r.LegitOffered > 0 {
		score.Legit = 100 * r.LegitAdmitted / r.LegitOffered
	}
	score.Total = served(all)
	if !r.Origin.Bound.OK() {
		w := worstWindow(r)
		score.Over = 100 * math.Max(0, float64(w.Arrived)/float64(max(1, w.Allowed))-1)
	}
	return score
}

// idle is the part of the budget, in percent, that was left unused in seconds in
// which at least all of it was asked for; below 0 where there are none.
func idle(r *evidence.Run) float64 {
	offered, admitted := newSeries(r.Bin, 0), newSeries(r.Bin, 0)
	for i := range r.Series {
		for _, c := range r.Series[i].Offered {
			offered.add(c)
		}
		for _, c := range r.Series[i].Admitted {
			admitted.add(c)
		}
	}
	asked, used := offered.window(second), admitted.window(second)
	steps := limits(r)
	var whole, got float64
	for i, v := range asked.values {
		budget := level(steps, asked.end(i))
		if v < budget || i >= len(used.values) {
			continue
		}
		whole += budget
		got += math.Min(used.values[i], budget)
	}
	if whole <= 0 {
		return -1
	}
	return 100 * (1 - got/whole)
}
