package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/load"
)

// simulation is a document as chaos/contention prints it.
const simulation = `{
  "settings": {"topology": "five", "nodes": ["ams"], "limit": 2000},
  "results": [
    {"scenario": "S2", "title": "flood at a single place",
     "subak": {"high_percent": 98.5, "legit_percent": 40, "low_percent": 20.5, "total_percent": 60, "idle_percent": -0.2, "over_percent": 0},
     "static": {"high_percent": 83, "legit_percent": 30, "low_percent": 10, "total_percent": 40, "idle_percent": 12, "over_percent": 0}}
  ],
  "verdict": "contention: ok"
}`

func TestRunsAreSetBesideTheSimulationOfTheSameScenario(t *testing.T) {
	sim, err := ReadSimulation(strings.NewReader(simulation))
	if err != nil {
		t.Fatal(err)
	}
	named := func(scenario, topology, group string, v evidence.Variant) evidence.Outcome {
		return evidence.Outcome{Run: evidence.Run{Scenario: scenario, Topology: topology, Group: group, Variant: v}}
	}
	got := Compare([]evidence.Outcome{
		named("contention-five-s2", "five", "contention", evidence.Subak),
		named("contention-five-s2", "five", "contention", evidence.Static),
		named("contention-five-s2", "five", "contention", evidence.Naive),
		named("contention-five-s12", "five", "contention", evidence.Subak),
		named("contention-cities22-s2", "cities22", "contention", evidence.Subak),
		named("fails2", "five", "contention", evidence.Subak),
		named("other-s2", "five", "", evidence.Subak),
	}, []Simulation{sim})
	if len(got) != 2 {
		t.Fatalf("%d comparisons: %+v", len(got), got)
	}
	for i, want := range []struct {
		variant evidence.Variant
		high    float64
	}{{evidence.Subak, 98.5}, {evidence.Static, 83}} {
		if c := got[i]; c.Variant != want.variant || c.Simulated.High != want.high || c.Scenario != "S2" || c.Real.Legit >= 0 {
			t.Errorf("comparison %d: %+v", i, c)
		}
	}
	if _, err := ReadSimulation(strings.NewReader(`{"results": 7}`)); err == nil {
		t.Error("a document of another shape was read")
	}
}

func TestAScoreCountsWhatSomebodyCouldServe(t *testing.T) {
	r := evidence.Run{
		Nodes: []string{"a"}, Classes: []string{"high", "low"}, Limit: 10, Bin: 500 * time.Millisecond, Length: 3 * time.Second,
		Load: load.Report{Streams: []load.StreamReport{
			{Cells: []load.Cell{{Offered: 30, Away: 10, Admitted: 15}}},
			{Cells: []load.Cell{{Offered: 20, Admitted: 5}}},
		}},
		// The last second asks for less than there is, and counts for nothing.
		Series: []evidence.Series{{
			Offered:  [][]uint32{{5, 5, 5, 5, 1, 1}, {3, 3, 3, 3, 0, 0}},
			Admitted: [][]uint32{{4, 4, 4, 4, 0, 0}, {0, 0, 0, 0, 0, 0}},
		}},
	}
	got := ScoreOf(&r)
	want := Score{High: 75, Legit: -1, Low: 25, Total: 50, Idle: got.Idle, Over: 0}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// Three whole seconds are full (0, 0.5 and 1 s on), one of 9 offered is not.
	if math.Abs(got.Idle-20) > 1e-9 {
		t.Errorf("%v %% idle, want 20", got.Idle)
	}
	if s := ScoreOf(&evidence.Run{}); s.High >= 0 || s.Total >= 0 || s.Idle >= 0 {
		t.Errorf("of nothing: %+v", s)
	}
}

func TestFaultsAreNamedAgainWhereTheyDiffer(t *testing.T) {
	a := synthetic("x", evidence.Subak, 2, 30*time.Second)
	b := synthetic("x", evidence.Naive, 2, 30*time.Second)
	names := func() int {
		var out bytes.Buffer
		if err := Origins(&out, []evidence.Outcome{{Run: a}, {Run: b}}); err != nil {
			t.Fatal(err)
		}
		return strings.Count(out.String(), ">partition 1/1</text>")
	}
	if got := names(); got != 1 {
		t.Errorf("the same partition is named %d times", got)
	}
	b.Bands[0].From -= 3 * time.Second
	if got := names(); got != 2 {
		t.Errorf("partitions at two times are named %d times", got)
	}
}

func TestABusyMachineIsTold(t *testing.T) {
	all := campaign(2, 12*time.Second)
	all[3].Run.Busy = []string{"the switch was 40 ms late"}
	for what, write := range map[string]func(*bytes.Buffer) error{
		"page":    func(b *bytes.Buffer) error { return HTML(b, all, someAbout) },
		"table":   func(b *bytes.Buffer) error { return Table(b, all) },
		"summary": func(b *bytes.Buffer) error { return Markdown(b, all, someAbout) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "The machine was too slow for what was measured in flood.") {
			t.Errorf("the %s does not tell", what)
		}
	}
}

func TestFaultsWithoutRoomForTheirNamesAreLeftToTheEvents(t *testing.T) {
	r := synthetic("x", evidence.Subak, 2, 30*time.Second)
	for i := range 50 {
		r.Bands = append(r.Bands, evidence.Band{Kind: "restart", Label: "restart of somebody", From: time.Duration(i) * 100 * time.Millisecond, To: 25 * time.Second})
	}
	p := newPlot(wide(), 30, 1)
	placed := lanesOf(&r).place(wide(), p)
	if placed.n > 1+lanesMost {
		t.Errorf("%d lanes", placed.n)
	}
	for i, lane := range placed.lane {
		for j := range i {
			a, b := r.Bands[i], r.Bands[j]
			if lane >= 0 && lane == placed.lane[j] && a.From < b.To && b.From < a.To {
				t.Errorf("bands %d and %d lie on each other in lane %d", i, j, lane)
			}
		}
	}
	if events, left := eventLines(&r); len(events) != len(r.Bands)+len(r.Events) || left != 0 {
		t.Errorf("%d events are listed and %d left out, of %d", len(events), left, len(r.Bands)+len(r.Events))
	}
}
