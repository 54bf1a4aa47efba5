package gate_test

import (
	"fmt"
	"net/http"
	"testing"

	"subak/enforce/gate"
)

func TestARenewedGateServesTheNewRulesAndGoesOnCounting(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	cfg := gate.Config{Name: "edge", Backends: to(serve(t, http.HandlerFunc(echo))), Default: gate.Target{Budget: "origin", Class: "low"}}
	old := w.gate(cfg)
	send(t, "GET", serve(t, old), "/pay")
	cfg.Rules = []gate.Rule{{Match: gate.Match{Path: "/pay"}, Target: gate.Target{Budget: "origin", Class: "high"}}}
	g, err := old.Renew(cfg, w.limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	u := serve(t, g)
	send(t, "GET", u, "/pay")
	send(t, "GET", u, "/")
	for class, want := range map[string]float64{"high": 1, "low": 2} {
		if got := metric(t, collector(g), "budget_gate_decisions_total", "class="+class, "reason=admitted"); got != want {
			t.Errorf("class %s: %v decisions, want %v", class, got, want)
		}
	}
	if got := metric(t, collector(g), "budget_gate_unknown_total"); got != 2 {
		t.Errorf("%v unknown, want 2: one before, one after", got)
	}
	send(t, "GET", serve(t, old), "/pay") // a request that the old gate still had
	if got := metric(t, collector(g), "budget_gate_decisions_total", "class=low", "reason=admitted"); got != 3 {
		t.Errorf("%v decisions, want 3: the old gate's count too", got)
	}
	if _, err := g.Renew(gate.Config{Name: "edge"}, w.limits); err == nil {
		t.Error("a configuration with faults made a gate")
	}
}

func TestARuleWhoseBudgetIsGoneGoesTheWayOfTheUnknown(t *testing.T) {
	for _, tc := range []struct {
		on     gate.Unknown
		gone   string // the default's budget
		status int
	}{
		{gate.UnknownDefault, "origin", 200},
		{gate.UnknownDefault, "gone", 403},
		{gate.UnknownDeny, "origin", 403},
		{gate.UnknownAllow, "origin", 200},
	} {
		w := newWorld(t, 1000, 1000)
		deps := w.deps()
		missing := ""
		deps.Missing = func(t gate.Target) { missing += fmt.Sprint(t.Budget, "/", t.Class, " ") }
		g, err := gate.New(gate.Config{
			Name: "edge", Backends: to(serve(t, http.HandlerFunc(echo))), OnUnknown: tc.on,
			Default: gate.Target{Budget: tc.gone, Class: "low"},
			Rules:   []gate.Rule{{Match: gate.Match{Path: "/pay"}, Target: gate.Target{Budget: "other", Class: "high"}}},
		}, deps)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		wantStatus(t, send(t, "GET", serve(t, g), "/pay"), tc.status)
		want := "other/high "
		if tc.gone == "gone" && tc.on == gate.UnknownDefault {
			want += "gone/low "
		}
		if missing != want {
			t.Errorf("told of %q, want %q", missing, want)
		}
		if got := metric(t, collector(g), "budget_gate_unknown_total"); got != 1 {
			t.Errorf("%v unknown, want 1", got)
		}
	}
}
