package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func files(t *testing.T) (panels, alerts []query) {
	t.Helper()
	panels, err := read("../grafana/dashboards/subak.json", panelQueries)
	if err != nil {
		t.Fatal(err)
	}
	if alerts, err = read("../prometheus/alerts.yml", alertQueries); err != nil {
		t.Fatal(err)
	}
	return panels, alerts
}

// The words of an operator at night, and the metrics that answer.
func TestTheDashboardShowsWhatAnOperatorAsks(t *testing.T) {
	panels, alerts := files(t)
	if len(alerts) < 10 {
		t.Errorf("only %d alerts", len(alerts))
	}
	shown := metrics(panels)
	for _, name := range []string{
		"budget_limit_rate", "budget_share_rate", "budget_class_demand_rate", "budget_class_share_rate",
		"budget_class_refused_units_total", "budget_lent_rate", "budget_borrowed_rate", "budget_node_view_digests",
		"budget_node_live_members", "budget_gossip_wire_bytes_total", "traffic_latency_seconds", "budget_node_alarm",
		"process_resident_memory_bytes",
	} {
		if !slices.Contains(shown, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestNamesInQuotesAreNoMetrics(t *testing.T) {
	q := []query{{"", `rate(budget_a_total{x="budget_b"}[1m]) / go_c{y=~"process_d|\"budget_e"} + budget_a_total`}}
	if got, want := metrics(q), []string{"budget_a_total", "go_c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAVariableThatIsNotKnownIsAFault(t *testing.T) {
	_, err := panelQueries([]byte(`{"panels":[{"title":"x","targets":[{"expr":"budget_a{z=\"$zone\"}"}]}]}`))
	if err == nil || !strings.Contains(err.Error(), `panel "x"`) {
		t.Errorf("got %v", err)
	}
}

// fake is a Prometheus that knows some expressions by what they contain.
func fake(t *testing.T, series map[string]int, refused string) prometheus {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expr := r.FormValue("query")
		if refused != "" && strings.Contains(expr, refused) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"status":"error","error":"parse error"}`))
			return
		}
		n := 1
		for part, count := range series {
			if strings.Contains(expr, part) {
				n = count
			}
		}
		result := strings.TrimSuffix(strings.Repeat("{},", n), ",")
		_, _ = w.Write([]byte(`{"status":"success","data":{"result":[` + result + `]}}`))
	}))
	t.Cleanup(server.Close)
	return prometheus(server.URL)
}

func TestEachFaultIsFoundAndNamed(t *testing.T) {
	panels, alerts := files(t)
	for _, test := range []struct {
		name    string
		series  map[string]int
		refused string
		want    string // in every fault; "" for none
	}{
		{"all is well", map[string]int{"firing": 0}, "", ""},
		{"a metric is gone", map[string]int{"firing": 0, "budget_lent_rate": 0}, "", "budget_lent_rate"},
		{"a query is refused", map[string]int{"firing": 0}, "budget_node_frozen", "parse error"},
		{"an alert saw nothing", map[string]int{"firing": 0, "SubakIsolated": 0}, "", "SubakIsolated: never became pending"},
		{"an alert fired", map[string]int{"firing": 1}, "", "SubakOverBudget: has fired"},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults := fake(t, test.series, test.refused).check(context.Background(), panels, alerts,
				[]string{"SubakIsolated"}, []string{"SubakOverBudget"})
			if (len(faults) == 0) != (test.want == "") {
				t.Fatalf("faults %q", faults)
			}
			for _, f := range faults {
				if !strings.Contains(f, test.want) {
					t.Errorf("fault %q does not say %q", f, test.want)
				}
			}
		})
	}
}
