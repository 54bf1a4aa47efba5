package through

import (
	"testing"
	"time"

	"subak/chaos/timed"
	"subak/testbed/topology"
)

func TestTheProtocolServesAboutWhatItsIdealDoesAndNeverMoreThanTheBudget(t *testing.T) {
	c := timed.DefaultContest()
	c.Topology, c.Limit, c.Cycle, c.Cycles = topology.Five(), 200, 2*time.Second, 6
	rows, err := Run(t.Context(), &Plan{Contest: c, Scenarios: []string{"S2", "S4"}, Seeds: []uint64{1, 2}, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.PeakPPM > 1_000_000 || r.PeakPPM < 900_000 || r.Objection != "" {
			t.Errorf("%s: most enforced %d ppm of the budget, %s", r.Case, r.PeakPPM, r.Objection)
		}
		if d := r.High.Mean - r.Ideal.Mean; d < -5 || d > 5 {
			t.Errorf("%s: %.1f %% served, ideal %.1f %%", r.Case, r.High.Mean, r.Ideal.Mean)
		}
	}
	if len(rows) != 2 || rows[0].Case != "S2" || rows[1].Case != "S4" {
		t.Errorf("rows %+v, want S2 and S4", rows)
	}
}
