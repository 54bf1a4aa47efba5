package web

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"subak/internal/api"
)

// call makes one request. header holds "Name: value" pairs; Host sets the host.
func call(t *testing.T, s *Server, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	// No kept-alive connections: they would outlive the test.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// refusalText is the message of a JSON error body.
func refusalText(t *testing.T, body string) string {
	t.Helper()
	var e api.Error
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error == "" {
		t.Fatalf("body %q is no JSON error: %v", body, err)
	}
	return e.Error
}

func TestAnOpenAddressNeedsATokenOrAnExplicitInsecure(t *testing.T) {
	for _, listen := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:7947"} {
		_, err := New(Config{Listen: listen}, &scripted{})
		if err == nil {
			t.Fatalf("%s without a token was accepted", listen)
		}
		for _, mend := range []string{listen, "admin.token_file", "127.0.0.1", "admin.insecure"} {
			if !strings.Contains(err.Error(), mend) {
				t.Errorf("%s: the error %q does not name %s", listen, err, mend)
			}
		}
	}
	for name, cfg := range map[string]Config{
		"loopback":  {Listen: "127.0.0.1:0"},
		"loopback6": {Listen: "[::1]:0"},
		"localhost": {Listen: "localhost:0"},
		"token":     {Listen: "0.0.0.0:0", Token: "t"},
		"insecure":  {Listen: "0.0.0.0:0", Insecure: true},
	} {
		s, err := New(cfg, &scripted{scene: fiveCities()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.HasSuffix(s.Addr(), ":0") {
			t.Errorf("%s: Addr %s names no real port", name, s.Addr())
		}
		serveUntilNow(t, s)
	}
}

// serveUntilNow runs a server and stops it, which gives up its address.
func serveUntilNow(t *testing.T, s *Server) {
	t.Helper()
	runUntil(t, s)()
}

func TestConfigFaultsAreAllReported(t *testing.T) {
	_, err := New(Config{ReadToken: "r", SampleEvery: 1}, &scripted{})
	if err == nil || !strings.Contains(err.Error(), "read token") || !strings.Contains(err.Error(), "sample interval") {
		t.Errorf("got %v, want both faults", err)
	}
	for _, listen := range []string{"nonsense", "unix:", "127.0.0.1:notaport"} {
		if _, err := New(Config{Listen: listen}, &scripted{}); err == nil {
			t.Errorf("listen %q was accepted", listen)
		}
	}
}

// concrete replaces the pattern of a route by a path that reaches it.
func concrete(path string) string {
	switch path {
	case "/{$}":
		return "/"
	case "/ui/{file}":
		return "/ui/app.js"
	case "/":
		return "/nothing-here"
	case "/debug/pprof/profile", "/debug/pprof/trace":
		return path + "?seconds=999"
	}
	return path
}

func TestEveryRouteButProbesAndThePageNeedsTheToken(t *testing.T) {
	s := serve(t, Config{Token: "full", ReadToken: "reader", Gatherer: prometheus.NewRegistry()}, &scripted{scene: fiveCities()})
	free := map[string]bool{"/": true, "/ui/app.js": true, "/nothing-here": true, "/healthz": true, "/readyz": true}
	for _, rt := range s.routes() {
		path := concrete(rt.path)
		status := func(header ...string) int {
			resp, _ := call(t, s, rt.method, path, header...)
			return resp.StatusCode
		}
		for _, header := range []string{"Accept: */*", "Authorization: Bearer wrong", "Authorization: Bearer ", "Authorization: Basic full", "Authorization: full"} {
			if got, want := status(header) == 401, !free[path]; got != want {
				t.Errorf("%s with %q: refused %v, want %v", path, header, got, want)
			}
		}
		if got := status("Authorization: Bearer full"); got == 401 || got == 403 {
			t.Errorf("%s refuses the token: %d", path, got)
		}
		writes := rt.method == http.MethodPost || strings.HasPrefix(path, "/debug/")
		if got := status("Authorization: Bearer reader") == 403; got != writes {
			t.Errorf("%s refuses the read token: %v, want %v", path, got, writes)
		}
	}
}

func TestSharesAreReadByThoseWhoMayRead(t *testing.T) {
	open := serve(t, Config{}, &scripted{scene: fiveCities()})
	if resp, body := call(t, open, "GET", "/v1/shares"); resp.StatusCode != 200 || !strings.Contains(body, `"total":`) {
		t.Errorf("shares: %d %s", resp.StatusCode, body)
	}
	if resp, _ := call(t, serve(t, Config{Token: "full"}, &scripted{scene: fiveCities()}), "GET", "/v1/shares"); resp.StatusCode != 401 {
		t.Errorf("without the token: %d, want 401", resp.StatusCode)
	}
}

func TestReachIsAskedByPostAndSaysWhenItIsBusy(t *testing.T) {
	s := serve(t, Config{}, &scripted{scene: fiveCities()})
	if resp, body := call(t, s, "POST", "/v1/reach"); resp.StatusCode != 200 || !strings.Contains(body, `"advertised":"192.0.2.1:7946"`) {
		t.Errorf("reach: %d %s", resp.StatusCode, body)
	}
	if resp, body := call(t, s, "POST", "/v1/reach"); resp.StatusCode != 409 || !strings.Contains(body, "busy") {
		t.Errorf("reach, while it goes on: %d %s", resp.StatusCode, body)
	}
}

func TestNoReadTokenIsNotAnEmptyReadToken(t *testing.T) {
	s := serve(t, Config{Token: "full"}, &scripted{scene: fiveCities()})
	if resp, _ := call(t, s, "GET", "/v1/status", "Authorization: Bearer "); resp.StatusCode != 401 {
		t.Errorf("an empty token: %d, want 401", resp.StatusCode)
	}
}

func TestWritesFromAnotherSiteAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		want   int
	}{
		{"curl", nil, 200},
		{"our own page", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"another site", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"another site navigates", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 403},
		{"another port of this host", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"an old browser on another site", []string{"Origin: http://evil.example"}, 403},
		{"a sandboxed page", []string{"Origin: null"}, 403},
	} {
		backend := &scripted{scene: fiveCities()}
		s := serve(t, Config{}, backend)
		resp, body := call(t, s, "POST", "/v1/freeze", c.header...)
		backend.set(func(b *scripted) {
			if resp.StatusCode != c.want || b.frozen != (c.want == 200) {
				t.Errorf("%s: %d %s, frozen %v, want %d", c.name, resp.StatusCode, body, b.frozen, c.want)
			}
		})
	}
}

func TestReadsForAnotherSiteAreRefusedButLinksWork(t *testing.T) {
	s := serve(t, Config{}, &scripted{scene: fiveCities()})
	if resp, _ := call(t, s, "GET", "/v1/status", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"); resp.StatusCode != 403 {
		t.Errorf("a read embedded by another site: %d, want 403", resp.StatusCode)
	}
	if resp, _ := call(t, s, "GET", "/v1/status", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"); resp.StatusCode != 200 {
		t.Errorf("a link followed from another site: %d, want 200", resp.StatusCode)
	}
}

func TestAReboundHostNameIsRefusedWithoutAToken(t *testing.T) {
	open := serve(t, Config{Hosts: []string{"Admin.Example"}}, &scripted{scene: fiveCities()})
	insecure := serve(t, Config{Listen: "0.0.0.0:0", Insecure: true}, &scripted{scene: fiveCities()})
	token := serve(t, Config{Token: "t"}, &scripted{scene: fiveCities()})
	for _, c := range []struct {
		name string
		s    *Server
		path string
		host string
		want int
	}{
		{"rebound", open, "/v1/status", "evil.example", 421},
		{"rebound, with port", open, "/v1/status", "evil.example:7947", 421},
		{"rebound page", open, "/", "evil.example", 421},
		{"looks like localhost", open, "/v1/status", "localhost.evil.example", 421},
		{"no host", open, "/v1/status", " ", 421},
		{"localhost", open, "/v1/status", "LOCALHOST:7947", 200},
		{"address", open, "/v1/status", "127.0.0.1:1", 200},
		{"address 6", open, "/v1/status", "[::1]:7947", 200},
		{"configured", open, "/v1/status", "admin.example.", 200},
		{"service name", open, "/v1/status", "ams:7947", 421},
		{"service name on an insecure one", insecure, "/v1/status", "ams:7947", 200},
		{"rebound on an insecure one", insecure, "/v1/status", "evil.example", 421},
		{"probe", open, "/healthz", "evil.example", 200},
		{"any name with a token", token, "/", "evil.example", 200},
	} {
		if resp, body := call(t, c.s, "GET", c.path, "Host: "+c.host); resp.StatusCode != c.want {
			t.Errorf("%s: host %q: %d %s, want %d", c.name, c.host, resp.StatusCode, body, c.want)
		}
	}
}

func TestStatusIsTheBackendsSnapshot(t *testing.T) {
	backend := &scripted{scene: fiveCities(), sec: 200, hold: true}
	s := serve(t, Config{}, backend)
	resp, body := call(t, s, "GET", "/v1/status")
	var got api.Status
	if err := json.Unmarshal([]byte(body), &got); err != nil || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v, type %q", err, resp.Header.Get("Content-Type"))
	}
	if diff := cmp.Diff(backend.Status(), got); diff != "" {
		t.Errorf("the status changed on the way (-sent +got):\n%s", diff)
	}

	backend.set(func(b *scripted) { b.mend = func(st *api.Status) { st.TickMillis = math.NaN() } })
	resp, body = call(t, s, "GET", "/v1/status")
	if text := refusalText(t, body); resp.StatusCode != 500 || !strings.Contains(text, "NaN") {
		t.Errorf("a figure that JSON cannot hold: %d %s, want a 500 that says so", resp.StatusCode, text)
	}
}

func TestExplainAnswersOrSaysWhyNot(t *testing.T) {
	s := serve(t, Config{}, &scripted{scene: fiveCities()})
	for _, c := range []struct {
		name, query string
		want        int
		text        string
	}{
		{"a cell", "?budget=origin&class=uncleared&node=lon", 200, "nothing unused is left"},
		{"this node", "?budget=origin&class=uncleared", 200, "uncleared"},
		{"no class", "?budget=origin", 400, "class=C"},
		{"no such budget", "?budget=nope&class=uncleared", 404, "nope"},
		{"a fault", "?budget=origin&class=broken", 500, "on fire"},
		{"an overlong name", "?budget=origin&class=" + strings.Repeat("x", 257), 400, "256"},
		{"a zero byte", "?budget=origin&class=a%00b", 400, "name"},
	} {
		if resp, body := call(t, s, "GET", "/v1/explain"+c.query); resp.StatusCode != c.want || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s, want %d with %q", c.name, resp.StatusCode, body, c.want, c.text)
		}
	}
}

func TestFreezeReachesTheNodeAndItsFaultTheCaller(t *testing.T) {
	backend := &scripted{scene: fiveCities()}
	s := serve(t, Config{}, backend)
	for _, c := range []struct {
		path string
		want bool
	}{{"/v1/freeze", true}, {"/v1/unfreeze", false}} {
		_, body := call(t, s, "POST", c.path)
		var got api.Frozen
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		backend.set(func(b *scripted) {
			if got.Frozen != c.want || b.frozen != c.want {
				t.Errorf("%s: answer %v, node %v, want %v", c.path, got.Frozen, b.frozen, c.want)
			}
		})
	}
	backend.set(func(b *scripted) { b.freezeErr = errors.New("the loop is stopped") })
	if resp, body := call(t, s, "POST", "/v1/freeze"); resp.StatusCode != 500 || refusalText(t, body) != "the loop is stopped" {
		t.Errorf("%d %s, want the node's own error", resp.StatusCode, body)
	}
}

func TestProbesTellReadinessApartFromHealth(t *testing.T) {
	backend := &scripted{scene: fiveCities()}
	s := serve(t, Config{Token: "t"}, backend)
	if resp, body := call(t, s, "GET", "/readyz"); resp.StatusCode != 503 || body != "not ok: no config epoch is in force yet\n" {
		t.Errorf("not ready: %d %q", resp.StatusCode, body)
	}
	if resp, body := call(t, s, "GET", "/healthz"); resp.StatusCode != 200 || body != "ok\n" {
		t.Errorf("healthy while not ready: %d %q", resp.StatusCode, body)
	}
	backend.set(func(b *scripted) { b.ready = true })
	if resp, body := call(t, s, "GET", "/readyz"); resp.StatusCode != 200 || body != "ok: share in force\n" {
		t.Errorf("ready: %d %q", resp.StatusCode, body)
	}
}

func TestEveryAnswerIsHardenedAndEveryRefusalIsJSON(t *testing.T) {
	s := serve(t, Config{}, &scripted{scene: fiveCities()})
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"GET", "/ui/style.css", 200}, {"GET", "/v1/status", 200}, {"HEAD", "/v1/events", 200}, {"GET", "/debug/pprof/", 200},
		{"GET", "/ui/absent.js", 404}, {"GET", "/ui/..%2fweb.go", 404}, {"GET", "/ui/%2e%2e", 404}, {"GET", "/nothing", 404}, {"GET", "/metrics", 404},
		{"POST", "/v1/status", 405}, {"GET", "/v1/freeze", 405}, {"DELETE", "/", 405},
		{"GET", "/debug/pprof/profile?seconds=61", 400}, {"GET", "/debug/pprof/heap?seconds=-1", 400}, {"GET", "/debug/pprof/trace?seconds=NaN", 400},
		{"GET", "/debug/pprof/trace?seconds=0.01", 200},
		{"GET", "/v1/history?budget=nope", 404},
	} {
		resp, body := call(t, s, c.method, c.path)
		if resp.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, resp.StatusCode, c.want)
			continue
		}
		h := resp.Header
		if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s %s lacks a security header: %v", c.method, c.path, h)
		}
		if c.want >= 400 {
			refusalText(t, body)
		}
	}
}

func TestOverlongHeadersAreRefused(t *testing.T) {
	s := serve(t, Config{}, &scripted{scene: fiveCities()})
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The server stops reading at its limit (and 4 KiB of slack), so exactly that
	// much is sent: more would reset the connection and lose the answer.
	head := "GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: "
	if _, err := io.WriteString(conn, head+strings.Repeat("x", headerBytesMax+4096-len(head))); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 431 {
		t.Errorf("%v, %v, want 431", resp, err)
	}
}

func TestMetricsShowTheGathererAndTheServersOwn(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "budget_test_figure", Help: "A figure."}))
	s := serve(t, Config{Gatherer: r, Registerer: r}, &scripted{scene: fiveCities()})
	call(t, s, "GET", "/v1/status", "Host: evil.example")
	_, body := call(t, s, "GET", "/metrics")
	for _, want := range []string{"budget_test_figure 0", "budget_admin_streams 0", `budget_admin_refused_total{reason="host"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %q:\n%s", want, body)
		}
	}
}

func TestCloseGivesUpTheAddressOfAServerThatNeverRan(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0"}, &scripted{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := New(Config{Listen: s.Addr()}, &scripted{})
	if err != nil {
		t.Fatalf("the address is still taken: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
