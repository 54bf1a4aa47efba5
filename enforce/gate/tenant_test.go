package gate_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/gate"
)

// tenantWorld is a world whose class low, of 100/s, gives each tenant a tenth.
func tenantWorld(t testing.TB) *world {
	w := newWorld(t, 100, 100)
	w.lim = enforce.NewLimiter(enforce.LimiterConfig{Classes: 2, Tenants: []enforce.TenantConfig{{}, {Share: 100_000}}}, 0)
	r := 100 * allocator.Unit
	w.lim.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: 2 * r, Classes: []allocator.Rate{r, r}}})
	w.limits[0].Limiter = w.lim
	return w
}

// ask sends one request straight to the handler, from an address, and returns
// the status and the answer's fields.
func ask(g *gate.Gate, from, path string, keys ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = from
	for _, k := range keys {
		r.Header.Add("X-Key", k)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func TestOneTenantAloneCannotSpendTheClassAndIsToldWhenToComeBack(t *testing.T) {
	const trusted, other = "10.1.2.3:99", "192.0.2.1:99"
	for _, tc := range []struct {
		name     string
		from     func(i int) string // a flood
		keys     func(i int) []string
		path     string
		stranger [2]string // from, key: a tenant of its own
	}{
		{"by header", nil, func(int) []string { return []string{"a"} }, "/", [2]string{trusted, "b"}},
		{"without the header all are one", nil, func(int) []string { return nil }, "/", [2]string{trusted, "b"}},
		{"with several of it too", nil, func(i int) []string { return []string{"a", fmt.Sprint(i)} }, "/", [2]string{trusted, "a"}},
		{"a header of a peer that may not set it counts for nothing", func(int) string { return other }, func(i int) []string { return []string{fmt.Sprint(i)} }, "/", [2]string{trusted, "1"}},
		{"by address where the rule says so", func(i int) string { return fmt.Sprintf("192.0.2.7:%d", 1000+i) }, nil, "/by-address", [2]string{"192.0.2.8:99", ""}},
		{"an IPv6 site is one", func(i int) string { return fmt.Sprintf("[2001:db8:0:1::%x]:99", i) }, nil, "/by-address", [2]string{"[2001:db8:0:2::1]:99", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := tenantWorld(t)
			g := w.gate(gate.Config{
				Backends: to(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))), TrustedPeers: prefixes("10.0.0.0/8"), Tenant: gate.TenantSource{Header: "x-key"},
				Rules: []gate.Rule{{
					Match: gate.Match{Path: "/by-address"}, Target: gate.Target{Budget: "origin", Class: "low"}, Tenant: gate.TenantSource{Client: true},
				}},
			})
			flood := func(i int) *httptest.ResponseRecorder {
				from, keys := trusted, []string(nil)
				if tc.from != nil {
					from = tc.from(i)
				}
				if tc.keys != nil {
					keys = tc.keys(i)
				}
				return ask(g, from, tc.path, keys...)
			}
			flood(0) // a new tenant begins without a burst
			w.now.Add(int64(10 * time.Second))
			passed := 0
			for i := range 50 {
				a := flood(i)
				if a.Code == 204 {
					passed++
				} else if got := a.Header().Get("Ratelimit-Policy"); a.Code != 429 || a.Header().Get("Retry-After") != "1" || got != `"origin/low";q=10;w=1` {
					t.Fatalf("refused with %d, Retry-After %q, policy %s", a.Code, a.Header().Get("Retry-After"), got)
				}
			}
			if passed != 10 {
				t.Errorf("%d passed at once, want the 10 that a tenth of the class's bucket holds", passed)
			}
			if a := ask(g, tc.stranger[0], tc.path, tc.stranger[1]); a.Code != 204 {
				t.Errorf("another tenant got %d", a.Code)
			}
			w.now.Add(int64(time.Second))
			if a := flood(0); a.Code != 204 {
				t.Errorf("%d after the second it was told to wait", a.Code)
			}
			if c := w.counts(1); c.Offered != 13 || c.Refused != 40 || c.Excess != 40 {
				t.Errorf("%+v: want 13 offered, and 40 refused that are no demand", c)
			}
			if got := metric(t, collector(g), "budget_gate_decisions_total", "reason=tenant-empty"); got != 40 {
				t.Errorf("%v decisions tenant-empty, want 40", got)
			}
		})
	}
}

func TestTwoSourcesOfOneTenantAreAFault(t *testing.T) {
	both := gate.TenantSource{Header: "X-Key", Client: true}
	cfg := gate.Config{Check: gate.Check{Enabled: true}, Tenant: both, Rules: []gate.Rule{{Tenant: both}}}
	err := cfg.Validate()
	for _, want := range []string{"\ntenant: header and", "\nrules[0].tenant: header and"} {
		if !strings.Contains("\n"+fmt.Sprint(err), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}
