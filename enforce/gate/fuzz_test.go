package gate_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"subak/enforce/gate"
)

// FuzzHeaders throws every field that a gate reads at it. It must neither panic
// nor decide anything but the statuses it knows.
func FuzzHeaders(f *testing.F) {
	f.Add("10.0.0.1, [::1]:80", "/a/../b?c", "", "POST", "h.example:80", "1.2.3.4:5", 2)
	f.Add(",,,", "", "http://x/%2e%2e/", "", "[::1", "@", 1)
	f.Add(strings.Repeat("1,", 500), "//", "", "\x00", "a:b:c", "", 9)
	w := newWorld(f, 1000, 1000)
	var gates []*gate.Gate
	for hops := range 4 {
		gates = append(gates, w.gate(gate.Config{
			TrustedHops: hops, Check: gate.Check{Enabled: true}, Debug: true,
			Rules: []gate.Rule{
				{Match: gate.Match{Network: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Path: "*a*b*"}, Target: gate.Target{Budget: "origin", Class: "high"}},
				{Match: gate.Match{Host: "*.example", Methods: []string{"POST"}, Headers: map[string]string{"X-Forwarded-For": "*,*"}}, Target: gate.Target{Budget: "origin", Class: "high"}},
			},
		}))
	}
	f.Fuzz(func(t *testing.T, xff, orig, fwd, method, host, remote string, hops int) {
		w.now.Add(1e9)
		r := httptest.NewRequest(http.MethodGet, "/v1/check", nil)
		r.Host, r.RemoteAddr = host, remote
		for name, v := range map[string]string{
			"X-Forwarded-For": xff, "X-Original-Uri": orig, "X-Forwarded-Uri": fwd,
			"X-Original-Method": method, "X-Forwarded-Method": method, "X-Forwarded-Host": host,
		} {
			if v != "" {
				r.Header[name] = []string{v}
			}
		}
		rec := httptest.NewRecorder()
		gates[uint(hops)%4].ServeHTTP(rec, r)
		if c := rec.Code; c != 200 && c != 400 && c != 403 && c != 429 {
			t.Fatalf("status %d", c)
		}
	})
}
