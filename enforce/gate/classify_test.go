package gate_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"subak/enforce"
	"subak/enforce/gate"
)

// classOf tells by the limiter's counts where one request went.
func classOf(t *testing.T, cfg gate.Config, r *http.Request) string {
	t.Helper()
	w := newWorld(t, 1000, 1000)
	cfg.Check.Enabled = true
	cfg.Check.Path = "/never"
	cfg.Default = gate.Target{Budget: "origin", Class: "low"}
	for i := range cfg.Rules {
		cfg.Rules[i].Target = gate.Target{Budget: "origin", Class: "high"}
	}
	cfg.Backends = nil
	g := w.gate(cfg)
	r.URL.Path, r.Header["X-Path"] = "/never", nil
	g.ServeHTTP(httptest.NewRecorder(), r)
	switch high, low := w.counts(0).Offered, w.counts(1).Offered; {
	case high == 1 && low == 0:
		return "high"
	case high == 0 && low == 1:
		return "low"
	}
	t.Fatal("charged nowhere or twice")
	return ""
}

func TestRulesMatchWhatTheySay(t *testing.T) {
	for _, tc := range []struct {
		name   string
		match  gate.Match
		method string
		uri    string
		host   string
		header string
		peer   string
		want   string
	}{
		{name: "empty rule matches all", want: "high"},
		{name: "method", match: gate.Match{Methods: []string{"PUT", "POST"}}, method: "POST", want: "high"},
		{name: "other method", match: gate.Match{Methods: []string{"POST"}}, want: "low"},
		{name: "exact path", match: gate.Match{Path: "/a"}, uri: "/a?q=1", want: "high"},
		{name: "exact path, longer", match: gate.Match{Path: "/a"}, uri: "/ab", want: "low"},
		{name: "path prefix", match: gate.Match{Path: "/api/*"}, uri: "/api/v1/x", want: "high"},
		{name: "path prefix needs the slash", match: gate.Match{Path: "/api/*"}, uri: "/apix", want: "low"},
		{name: "path glob", match: gate.Match{Path: "/u/*/photo/*.jpg"}, uri: "/u/7/photo/a/b.jpg", want: "high"},
		{name: "path glob, wrong end", match: gate.Match{Path: "/u/*/photo/*.jpg"}, uri: "/u/7/photo/b.png", want: "low"},
		{name: "path glob does not overlap", match: gate.Match{Path: "/aba*ba"}, uri: "/aba", want: "low"},
		{name: "dots cannot dodge", match: gate.Match{Path: "/api/*"}, uri: "/x/../api/y", want: "high"},
		{name: "escaped dots cannot dodge", match: gate.Match{Path: "/api/*"}, uri: "/x/%2e%2e/api/y", want: "high"},
		{name: "double slashes cannot dodge", match: gate.Match{Path: "/api/*"}, uri: "//api//y", want: "high"},
		{name: "escapes cannot dodge", match: gate.Match{Path: "/api/*"}, uri: "/%61pi/y", want: "high"},
		{name: "dots cannot claim", match: gate.Match{Path: "/api/*"}, uri: "/api/../x", want: "low"},
		{name: "host", match: gate.Match{Host: "Shop.Example.com"}, host: "shop.example.COM:8080", want: "high"},
		{name: "host with the root's dot", match: gate.Match{Host: "a.example"}, host: "a.example.", want: "high"},
		{name: "host glob", match: gate.Match{Host: "*.example.com"}, host: "a.b.example.com", want: "high"},
		{name: "host glob needs the label", match: gate.Match{Host: "*.example.com"}, host: "example.com", want: "low"},
		{name: "ipv6 host", match: gate.Match{Host: "[::1]"}, host: "[::1]:80", want: "high"},
		{name: "header", match: gate.Match{Headers: map[string]string{"x-verified": "1"}}, header: "X-Verified: 1", want: "high"},
		{name: "header missing", match: gate.Match{Headers: map[string]string{"x-verified": "*"}}, want: "low"},
		{name: "header glob", match: gate.Match{Headers: map[string]string{"User-Agent": "bot/*"}}, header: "User-Agent: bot/2", want: "high"},
		{name: "second header value cannot claim", match: gate.Match{Headers: map[string]string{"X-Verified": "1"}}, header: "X-Verified: 1|X-Verified: 0", want: "low"},
		{name: "network", match: gate.Match{Network: prefixes("10.0.0.0/8", "192.0.2.0/24")}, peer: "192.0.2.9:1", want: "high"},
		{name: "other network", match: gate.Match{Network: prefixes("10.0.0.0/8")}, peer: "192.0.2.9:1", want: "low"},
		{name: "ipv4 in ipv6", match: gate.Match{Network: prefixes("192.0.2.0/24")}, peer: "[::ffff:192.0.2.9]:1", want: "high"},
		{name: "all must hold", match: gate.Match{Path: "/a", Methods: []string{"POST"}}, uri: "/a", want: "low"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			uri := tc.uri
			if uri == "" {
				uri = "/"
			}
			method := tc.method
			if method == "" {
				method = "GET"
			}
			r := httptest.NewRequest(http.MethodGet, "/never", nil)
			r.Header.Set("X-Original-Uri", uri)
			r.Header.Set("X-Original-Method", method)
			r.RemoteAddr = "198.51.100.1:1"
			if tc.peer != "" {
				r.RemoteAddr = tc.peer
			}
			if tc.host != "" {
				r.Host = tc.host
			}
			for line := range strings.SplitSeq(tc.header, "|") {
				if name, value, ok := strings.Cut(line, ": "); ok {
					r.Header.Add(name, value)
				}
			}
			cfg := gate.Config{TrustedHops: 1, Rules: []gate.Rule{{Match: tc.match}}}
			if got := classOf(t, cfg, r); got != tc.want {
				t.Errorf("class %s, want %s", got, tc.want)
			}
		})
	}
}

// Lesson O26: a forged header from an untrusted peer changes nothing.
func TestHeaderRulesHoldForTrustedPeersOnly(t *testing.T) {
	for _, tc := range []struct {
		name    string
		hops    int
		trusted []netip.Prefix
		header  string
		want    string
	}{
		{"trusted peer", 1, prefixes("198.51.100.0/24"), "X-Verified", "high"},
		{"untrusted peer", 1, prefixes("172.16.0.0/12"), "X-Verified", "low"},
		{"trusted peer without hops", 0, prefixes("198.51.100.0/24"), "X-Verified", "high"},
		{"untrusted peer without hops", 0, prefixes("172.16.0.0/12"), "X-Verified", "low"},
		{"any peer by configuration", 0, nil, "X-Verified", "high"},
		{"the host is part of every request", 1, prefixes("172.16.0.0/12"), "Host", "high"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/never", nil)
			r.RemoteAddr = "198.51.100.1:1234"
			r.Host = "1"
			r.Header.Set("X-Verified", "1")
			cfg := gate.Config{
				TrustedHops: tc.hops, TrustedPeers: tc.trusted,
				Rules: []gate.Rule{{Match: gate.Match{Headers: map[string]string{tc.header: "1"}}}},
			}
			if got := classOf(t, cfg, r); got != tc.want {
				t.Errorf("class %s, want %s", got, tc.want)
			}
		})
	}
}

func TestFirstRuleThatMatchesDecidesAndCosts(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	u := serve(t, w.gate(gate.Config{
		Backends: to(serve(t, http.HandlerFunc(echo))),
		Rules: []gate.Rule{
			{Match: gate.Match{Path: "/dear"}, Target: gate.Target{Budget: "origin", Class: "high", Cost: 7}},
			{Match: gate.Match{Path: "/*"}, Target: gate.Target{Budget: "origin", Class: "low", Cost: 3}},
			{Match: gate.Match{}, Target: gate.Target{Budget: "origin", Class: "high"}},
		},
	}))
	wantStatus(t, send(t, "GET", u, "/dear"), 200)
	wantStatus(t, send(t, "GET", u, "/cheap"), 200)
	if h, l := w.counts(0).Admitted, w.counts(1).Admitted; h != 7 || l != 3 {
		t.Fatalf("high %d, low %d; want 7, 3", h, l)
	}
}

// Lesson O26: a claim counts only as far as a trusted hop vouches for it.
func TestClientAddressIsTheHopThatIsVouchedFor(t *testing.T) {
	for _, tc := range []struct {
		name    string
		hops    int
		trusted []netip.Prefix
		xff     []string
		inside  bool // 10.0.0.0/8
	}{
		{"no hops: the field is ignored", 0, nil, []string{"10.1.1.1"}, false},
		{"one hop: the last entry", 1, nil, []string{"203.0.113.5, 10.1.1.1"}, true},
		{"one hop: what a client wrote further left is ignored", 1, nil, []string{"10.1.1.1, 203.0.113.5"}, false},
		{"two hops", 2, nil, []string{"10.1.1.1, 203.0.113.5"}, true},
		{"two hops over two lines", 2, nil, []string{"10.1.1.1", "203.0.113.5"}, true},
		{"two hops, one entry: as far as it goes", 2, nil, []string{"10.1.1.1"}, true},
		{"no field", 1, nil, nil, false},
		{"garbage ends the chain", 2, nil, []string{"10.1.1.1, junk, 203.0.113.5"}, false},
		{"empty entry ends the chain", 2, nil, []string{"10.1.1.1,,203.0.113.5"}, false},
		{"with a port", 1, nil, []string{"10.1.1.1:443"}, true},
		{"untrusted peer", 1, prefixes("172.16.0.0/12"), []string{"10.1.1.1"}, false},
		{"trusted peer", 1, prefixes("198.51.100.0/24"), []string{"10.1.1.1"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/never", nil)
			r.RemoteAddr = "198.51.100.1:1234"
			r.Header["X-Forwarded-For"] = tc.xff
			cfg := gate.Config{
				TrustedHops: tc.hops, TrustedPeers: tc.trusted,
				Rules: []gate.Rule{{Match: gate.Match{Network: prefixes("10.0.0.0/8")}}},
			}
			want := "low"
			if tc.inside {
				want = "high"
			}
			if got := classOf(t, cfg, r); got != want {
				t.Errorf("class %s, want %s", got, want)
			}
		})
	}
}

func TestForgedFieldsOfAnUntrustedPeerChangeNothing(t *testing.T) {
	forged := []string{
		"X-Forwarded-For: 10.0.0.1", "X-Forwarded-Host: inside.example", "X-Forwarded-Proto: https",
		"X-Forwarded-Uri: /api/x", "X-Original-URI: /api/x", "X-Original-Method: POST", "Forwarded: for=10.0.0.1",
	}
	w := newWorld(t, 1000, 1000)
	u := serve(t, w.gate(gate.Config{
		Backends: to(serve(t, http.HandlerFunc(echo))),
		Check:    gate.Check{Enabled: true},
		Rules: []gate.Rule{
			{Match: gate.Match{Network: prefixes("10.0.0.0/8")}, Target: gate.Target{Budget: "origin", Class: "high"}},
			{Match: gate.Match{Path: "/api/*"}, Target: gate.Target{Budget: "origin", Class: "high"}},
			{Match: gate.Match{Methods: []string{"POST"}}, Target: gate.Target{Budget: "origin", Class: "high"}},
			{Match: gate.Match{Host: "inside.example"}, Target: gate.Target{Budget: "origin", Class: "high"}},
		},
	}))
	a := send(t, "GET", u, "/x", forged...)
	wantStatus(t, a, 200)
	wantStatus(t, send(t, "GET", u, "/v1/check", forged...), 200)
	if h, l := w.counts(0).Offered, w.counts(1).Offered; h != 0 || l != 2 {
		t.Fatalf("high %d, low %d; want 0, 2", h, l)
	}
	h := a.echoed(t).Header
	if got := h["X-Forwarded-For"]; len(got) != 1 || got[0] != "127.0.0.1" {
		t.Errorf("backend is told X-Forwarded-For %q", got)
	}
	if h.Get("X-Forwarded-Host") != u.Host || h.Get("X-Forwarded-Proto") != "http" || h.Get("Forwarded") != "" {
		t.Errorf("backend is told %v", h)
	}
}

func TestTrustedHopsChainIsPassedOnAndExtended(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo))), TrustedHops: 1}))
	e := send(t, "GET", u, "/a%2Fb?x=%20", "Host: shop.example", "X-Forwarded-For: 203.0.113.5",
		"X-Forwarded-For: 203.0.113.6", "X-Forwarded-Host: front.example", "X-Forwarded-Proto: https").echoed(t)
	if got := e.Header.Get("X-Forwarded-For"); got != "203.0.113.5, 203.0.113.6, 127.0.0.1" {
		t.Errorf("X-Forwarded-For %q", got)
	}
	if e.Header.Get("X-Forwarded-Host") != "front.example" || e.Header.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("header %v", e.Header)
	}
	if e.Host != "shop.example" || e.URI != "/a%2Fb?x=%20" {
		t.Errorf("host %q, uri %q", e.Host, e.URI)
	}
}

func TestUnknownRequestsFollowOnUnknownAndAreCounted(t *testing.T) {
	for _, tc := range []struct {
		on     gate.Unknown
		status int
		low    int64
	}{
		{gate.UnknownDefault, 200, 1},
		{gate.UnknownDeny, 403, 0},
		{gate.UnknownAllow, 200, 0},
	} {
		w := newWorld(t, 1000, 1000)
		g := w.gate(gate.Config{
			Backends: to(serve(t, http.HandlerFunc(echo))), OnUnknown: tc.on,
			Rules: []gate.Rule{{Match: gate.Match{Path: "/known"}, Target: gate.Target{Budget: "origin", Class: "high"}}},
		})
		u := serve(t, g)
		wantStatus(t, send(t, "GET", u, "/known"), 200)
		wantStatus(t, send(t, "GET", u, "/other"), tc.status)
		if got := w.counts(1).Offered; got != tc.low {
			t.Errorf("on_unknown %d: low offered %d, want %d", tc.on, got, tc.low)
		}
		if got := metric(t, collector(g), "budget_gate_unknown_total", "listener=edge"); got != 1 {
			t.Errorf("on_unknown %d: %v counted, want 1", tc.on, got)
		}
	}
}

func TestConfigReportsEveryFault(t *testing.T) {
	w := newWorld(t, 1, 1)
	_, err := gate.New(gate.Config{
		TrustedHops: -1,
		Backends:    []gate.Backend{{}, {URL: mustURL("ftp://x"), Weight: 1}, {URL: mustURL("http://x"), Weight: -1}},
		Check:       gate.Check{Enabled: true, Path: "check", RefusalStatus: 200},
		Default:     gate.Target{Budget: "nope", Class: "low"},
		Rules: []gate.Rule{
			{Match: gate.Match{Path: "api"}, Target: gate.Target{Budget: "origin", Class: "none", Cost: -1}},
			{Match: gate.Match{}, Target: gate.Target{Budget: "origin", Class: "low", Cost: enforce.MaxCost + 1}},
		},
	}, w.deps())
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"trusted_hops", "backends[0]", "backends[1]", "backends[2]", "check.path", "check.refusal_status",
		"default", "rules[0].cost", "rules[0].match.path", "rules[0]: no class", "rules[1].cost",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from %q", want, err)
		}
	}
	if _, err := gate.New(gate.Config{OnUnknown: gate.UnknownDeny}, w.deps()); err == nil || errors.Is(err, nil) {
		t.Error("a gate without backends and check was accepted")
	}
}
