package gate_test

import (
	"net/http"
	"testing"

	"subak/enforce/gate"
)

func TestCheckAnswersForTheOriginalRequest(t *testing.T) {
	for _, tc := range []struct {
		name   string
		hops   int
		header []string
		status int
		high   int64
	}{
		{"nginx", 1, []string{"X-Original-Method: POST", "X-Original-URI: /api/x?y=1"}, 200, 1},
		{"nginx, another method", 1, []string{"X-Original-Method: GET", "X-Original-URI: /api/x"}, 200, 0},
		{"Traefik, Caddy", 1, []string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /api/x", "X-Forwarded-Host: shop.example"}, 200, 1},
		{"dots", 1, []string{"X-Original-Method: POST", "X-Original-URI: /z/../api/x"}, 200, 1},
		{"absolute", 1, []string{"X-Original-Method: POST", "X-Original-URI: http://shop.example/api/x"}, 200, 1},
		{"not described", 1, nil, 200, 0},
		{"no trusted hop", 0, []string{"X-Original-Method: POST", "X-Original-URI: /api/x"}, 200, 0},
		{"both families", 1, []string{"X-Original-Method: POST", "X-Original-URI: /api/x", "X-Forwarded-Uri: /"}, 403, 0},
		{"both families without a method", 1, []string{"X-Original-URI: /api/x", "X-Forwarded-Uri: /"}, 403, 0},
		{"method of the other family", 1, []string{"X-Original-Method: POST", "X-Forwarded-Uri: /api/x"}, 403, 0},
		{"two lines", 1, []string{"X-Original-URI: /api/x", "X-Original-URI: /"}, 403, 0},
		{"two methods", 1, []string{"X-Original-Method: POST", "X-Original-Method: GET", "X-Original-URI: /api/x"}, 403, 0},
		{"garbage", 1, []string{"X-Original-URI: api"}, 403, 0},
		{"bad escape", 1, []string{"X-Original-URI: /%zz"}, 403, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 10, 10)
			g := w.gate(gate.Config{
				TrustedHops: tc.hops, Check: gate.Check{Enabled: true},
				Rules: []gate.Rule{{Match: gate.Match{Methods: []string{"POST"}, Path: "/api/*"}, Target: gate.Target{Budget: "origin", Class: "high"}}},
			})
			a := send(t, "GET", serve(t, g), "/v1/check", tc.header...)
			wantStatus(t, a, tc.status)
			if got := w.counts(0).Admitted; got != tc.high {
				t.Errorf("high admitted %d, want %d", got, tc.high)
			}
			forged := metric(t, collector(g), "budget_gate_check_forged_total")
			if want := tc.status == 403; (forged == 1) != want {
				t.Errorf("%v counted as forged", forged)
			}
			if tc.status == 200 && (a.body != "" || a.Header.Get("RateLimit") == "") {
				t.Errorf("body %q, header %v", a.body, a.Header)
			}
		})
	}
}

func TestCheckMatchesTheForwardedHost(t *testing.T) {
	w := newWorld(t, 10, 10)
	u := serve(t, w.gate(gate.Config{
		TrustedHops: 1, Check: gate.Check{Enabled: true},
		Rules: []gate.Rule{{Match: gate.Match{Host: "shop.example"}, Target: gate.Target{Budget: "origin", Class: "high"}}},
	}))
	send(t, "GET", u, "/v1/check", "X-Forwarded-Uri: /", "X-Forwarded-Host: shop.example:443")
	if got := w.counts(0).Admitted; got != 1 {
		t.Errorf("high admitted %d, want 1", got)
	}
}

// Lesson O24: nginx's auth_request turns anything but 2xx, 401 and 403 into a 500.
func TestCheckRefusesWithTheConfiguredStatus(t *testing.T) {
	for _, tc := range []struct {
		status, want int
		subak        string
	}{
		{0, 429, ""},
		{403, 403, "429"},
		{401, 401, "429"},
	} {
		w := newWorld(t, 10, 0)
		u := serve(t, w.gate(gate.Config{
			Backends: to(serve(t, http.HandlerFunc(echo))),
			Check:    gate.Check{Enabled: true, Path: "/auth", RefusalStatus: tc.status},
		}))
		a := send(t, "GET", u, "/auth")
		wantStatus(t, a, tc.want)
		wantHeader(t, a, "X-Subak-Status", tc.subak)
		wantHeader(t, a, "Retry-After", "10")
		wantHeader(t, a, "RateLimit", `"origin/low";r=0;t=10`)
		wantStatus(t, send(t, "GET", u, "/v1/check"), 429) // the proxy's own refusal
	}
}

func TestListenerWithoutBackendsServesTheCheckOnly(t *testing.T) {
	w := newWorld(t, 10, 10)
	u := serve(t, w.gate(gate.Config{Check: gate.Check{Enabled: true}}))
	wantStatus(t, send(t, "GET", u, "/"), 404)
	wantStatus(t, send(t, "GET", u, "/v1/check"), 200)
}

func TestCheckPathIsForwardedWhereCheckIsOff(t *testing.T) {
	w := newWorld(t, 10, 10)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo)))}))
	if e := send(t, "GET", u, "/v1/check").echoed(t); e.URI != "/v1/check" {
		t.Errorf("backend saw %+v", e)
	}
}
