package gate_test

import (
	"net/http"
	"net/http/httptest"
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
		{"garbage", 1, []string{"X-Original-URI: api"}, 400, 0},
		{"bad escape", 1, []string{"X-Original-URI: /%zz"}, 400, 0},
		{"fragment", 1, []string{"X-Original-URI: /api/x#y"}, 400, 0},
		{"fragment in the query", 1, []string{"X-Original-URI: /api/x?a#y"}, 400, 0},
		{"another scheme", 1, []string{"X-Original-URI: ftp://shop.example/api/x"}, 400, 0},
		{"a path with two meanings", 1, []string{"X-Original-Method: POST", "X-Original-URI: /api%2fx"}, 400, 0},
		{"a malformed host", 1, []string{"X-Forwarded-Uri: /", "X-Forwarded-Host: shop..example"}, 400, 0},
		{"escaped", 1, []string{"X-Original-Method: POST", "X-Original-URI: /%61pi/x"}, 200, 1},
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
			if a.body != "" || a.ContentLength != 0 {
				t.Errorf("body %q, length %d", a.body, a.ContentLength)
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
		wantHeader(t, a, "Cache-Control", "no-store")
		if a.body != "" || a.ContentLength != 0 {
			t.Errorf("a refusal by status %d has the body %q, length %d", tc.want, a.body, a.ContentLength)
		}
		wantStatus(t, send(t, "GET", u, "/v1/check"), 429) // the proxy's own refusal
	}
}

func TestCheckOfAMalformedRequestTellsTheProxySo(t *testing.T) {
	w := newWorld(t, 10, 10)
	u := serve(t, w.gate(gate.Config{TrustedHops: 1, Check: gate.Check{Enabled: true, RefusalStatus: 403}}))
	a := send(t, "GET", u, "/v1/check", "X-Original-URI: /../x")
	wantStatus(t, a, 403)
	wantHeader(t, a, "X-Subak-Status", "400")
	wantHeader(t, a, "Retry-After", "")
	if a.body != "" {
		t.Errorf("body %q", a.body)
	}
}

func TestCheckOfARequestThatNoRuleNamesIsNotToBeRetried(t *testing.T) {
	w := newWorld(t, 10, 10)
	u := serve(t, w.gate(gate.Config{
		OnUnknown: gate.UnknownDeny, Check: gate.Check{Enabled: true, RefusalStatus: 401}, Debug: true,
	}))
	a := send(t, "GET", u, "/v1/check")
	wantStatus(t, a, 401)
	wantHeader(t, a, "X-Subak-Status", "403")
	wantHeader(t, a, "Retry-After", "")
	wantHeader(t, a, "X-Subak-Decision", "reason=unknown")
	if a.body != "" {
		t.Errorf("body %q", a.body)
	}
}

func TestCheckShowsTheQuotaOfAdmittedRequestsWhereAsked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		w := newWorld(t, 10, 10)
		u := serve(t, w.gate(gate.Config{Check: gate.Check{Enabled: true, AdmittedFields: asked}}))
		a := send(t, "GET", u, "/v1/check")
		want := ""
		if asked {
			want = `"origin/low";r=9;t=1`
		}
		wantStatus(t, a, 200)
		wantHeader(t, a, "RateLimit", want)
		if a.body != "" || a.ContentLength != 0 {
			t.Errorf("body %q, length %d", a.body, a.ContentLength)
		}
	}
}

// A proxy asks for every request of its clients: a connection for each would be
// dearer than the decision.
func TestCheckKeepsTheConnectionWhateverItAnswers(t *testing.T) {
	w := newWorld(t, 10, 2)
	u := serve(t, w.gate(gate.Config{Check: gate.Check{Enabled: true, RefusalStatus: 403}, TrustedHops: 1}))
	const ask = "GET /v1/check HTTP/1.1\nHost: x\n"
	_, r := raw(t, u, ask+"\n"+ask+"\n"+ask+"\n"+ask+"X-Original-URI: /\nX-Forwarded-Uri: /\n\n"+ask+"\n")
	for i, want := range []int{200, 200, 403, 403, 403} {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if res.StatusCode != want || res.ContentLength != 0 || res.Close {
			t.Errorf("answer %d: status %d, length %d, close %v; want %d, 0, false", i, res.StatusCode, res.ContentLength, res.Close, want)
		}
	}
}

func TestAnAdmittedCheckAllocatesNothing(t *testing.T) {
	w := newWorld(t, 1e9, 1e9)
	g := w.gate(gate.Config{
		TrustedHops: 1, Check: gate.Check{Enabled: true},
		Rules: []gate.Rule{{
			Match:  gate.Match{Methods: []string{"POST"}, Path: "/api/*", Host: "*.example", Network: prefixes("192.0.2.0/24")},
			Target: gate.Target{Budget: "origin", Class: "high"},
		}},
	})
	r := httptest.NewRequest("GET", "http://shop.example/v1/check", nil)
	r.Header = http.Header{
		"X-Original-Method": {"POST"}, "X-Original-Uri": {"/api/items/17?page=2"}, "X-Forwarded-For": {"192.0.2.7"},
	}
	rw := &discard{http.Header{}}
	if got := testing.AllocsPerRun(100, func() { g.ServeHTTP(rw, r) }); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
	if got := w.counts(0).Admitted; got != 101 {
		t.Errorf("high admitted %d, want 101", got)
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
