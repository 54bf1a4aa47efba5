package web

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"subak/internal/api"
)

// pastModel is an obviously right history: all points ever, cut on reading.
type pastModel map[string][]point

func (m pastModel) of(budget string) api.History {
	points := m[budget]
	if len(points) > historyPoints {
		points = points[len(points)-historyPoints:]
	}
	out := api.History{Budget: budget, Unit: "/s", Millis: []int64{}, Limit: []float64{}, Share: []float64{}, Demand: []float64{}}
	for _, p := range points {
		out.Millis = append(out.Millis, p.millis)
		out.Limit = append(out.Limit, p.limit)
		out.Share = append(out.Share, p.share)
		out.Demand = append(out.Demand, p.demand)
	}
	return out
}

func TestTheHistoryIsTheNewestPointsOfTheBudgetsThatExist(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, model := newHistory(), pastModel{}
		millis := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "periods") {
			budgets := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "budgets")
			for range rapid.IntRange(1, 400).Draw(t, "samples") {
				millis++
				st := api.Status{}
				next := pastModel{}
				for i, name := range budgets {
					p := point{millis, float64(i), float64(millis) / 2, float64(millis) * 3}
					st.Budgets = append(st.Budgets, api.Budget{Name: name, Unit: "/s", Limit: p.limit, SumShare: p.share, SumDemand: p.demand})
					next[name] = append(model[name], p)
				}
				h.record(millis, st.Sums())
				model = next
			}
			for _, name := range []string{"a", "b", "c"} {
				got, ok := h.of(name)
				if _, want := model[name]; ok != want {
					t.Fatalf("%s known: %v, want %v", name, ok, want)
				}
				if ok {
					if diff := cmp.Diff(model.of(name), got); diff != "" {
						t.Fatalf("%s (-want +got):\n%s", name, diff)
					}
				}
			}
		}
	})
}

func TestTheHistoryHoldsABoundedNumberOfBudgets(t *testing.T) {
	h := newHistory()
	var st api.Status
	for i := range historyBudgets + 7 {
		st.Budgets = append(st.Budgets, api.Budget{Name: fmt.Sprint(i)})
	}
	if dropped := h.record(1, st.Sums()); dropped != 7 {
		t.Errorf("%d samples dropped, want 7", dropped)
	}
	if n := len(h.names()); n != historyBudgets {
		t.Errorf("%d budgets kept, want %d", n, historyBudgets)
	}
}
