package gate_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"subak/enforce/gate"
)

func TestLimitCollectorReportsTheLimitersFigures(t *testing.T) {
	w := newWorld(t, 10, 2)
	for range 5 {
		w.lim.DecideClient(w.now.Load(), 1, 1, 7)
	}
	c := gate.NewLimitCollector(func() gate.Budgets { return w.limits })
	for name, want := range map[string]float64{
		"budget_class_offered_units_total":  3,
		"budget_class_admitted_units_total": 2,
		"budget_class_refused_units_total":  3,
		"budget_class_retried_units_total":  2,
		"budget_class_borrowed_units_total": 0,
	} {
		if got := metric(t, c, name, "budget=origin", "class=low"); got != want {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
}

// Lesson O27: what clients send makes no series.
func TestSeriesAreBoundedByTheConfiguration(t *testing.T) {
	w := newWorld(t, 10, 1000)
	g := w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo))), TrustedHops: 1})
	u := serve(t, g)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector(g), gate.NewLimitCollector(func() gate.Budgets { return w.limits }))
	series := func() (n int) {
		fams, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fams {
			n += len(f.GetMetric())
		}
		return n
	}
	before := series()
	for i := range 50 {
		send(t, "GET", u, fmt.Sprintf("/%d?x=%d", i, i), fmt.Sprintf("Host: h%d", i), fmt.Sprintf("X-Forwarded-For: 10.0.0.%d", i))
	}
	if after := series(); after != before {
		t.Errorf("%d series after, %d before", after, before)
	}
}

func TestTwoBackendsOnOneHostShareASeries(t *testing.T) {
	w := newWorld(t, 10, 10)
	u := serve(t, http.HandlerFunc(echo))
	g, _ := w.gateDown(gate.Config{Backends: to(u, u)})
	at := serve(t, g)
	send(t, "GET", at, "/")
	send(t, "GET", at, "/")
	if got := metric(t, collector(g), "budget_gate_backend_failures_total"); got != 2 {
		t.Errorf("%v failures, want 2", got)
	}
}
