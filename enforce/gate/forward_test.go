package gate_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"subak/enforce/gate"
)

// websocketEcho upgrades by hand and echoes bytes.
func websocketEcho(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			http.Error(w, "no upgrade: "+r.Header.Get("Connection")+r.Header.Get("Upgrade"), http.StatusBadRequest)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		io.Copy(c, rw)
	})
}

func TestWebSocketPassesThroughAsOneRequest(t *testing.T) {
	w := newWorld(t, 10, 5)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, websocketEcho(t)))}))
	c, r := raw(t, u, "GET /ws HTTP/1.1\nHost: a\nConnection: Upgrade\nUpgrade: websocket\n\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("RateLimit") == "" {
		t.Fatalf("got %v", res)
	}
	for _, msg := range []string{"hello", "again"} {
		fmt.Fprint(c, msg)
		buf := make([]byte, len(msg))
		if _, err := io.ReadFull(r, buf); err != nil || string(buf) != msg {
			t.Fatalf("echo %q, %v", buf, err)
		}
	}
	if got := w.counts(1).Admitted; got != 1 {
		t.Errorf("%d charged, want 1", got)
	}
}

// An h2c upgrade would open a tunnel full of requests that nobody judges.
func TestUpgradeToHTTP2IsNotForwarded(t *testing.T) {
	w := newWorld(t, 10, 5)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo)))}))
	e := send(t, "GET", u, "/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk").echoed(t)
	if e.Header.Get("Upgrade") != "" || e.Header.Get("Connection") != "" {
		t.Errorf("backend saw %v", e.Header)
	}
}

func TestStreamReachesTheClientAsItIsWritten(t *testing.T) {
	seen := make(chan struct{})
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			fmt.Fprint(w, "data: x\n\n")
			http.NewResponseController(w).Flush()
			select {
			case <-seen: // only what got through lets the next one out
			case <-r.Context().Done():
				return
			}
		}
	}))
	w := newWorld(t, 10, 5)
	u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
	res, err := http.Get(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 9)
	for range 3 {
		if _, err := io.ReadFull(res.Body, buf); err != nil {
			t.Fatal(err)
		}
		seen <- struct{}{}
	}
}

func TestRequestBodyIsStreamedNotBuffered(t *testing.T) {
	got := make(chan byte)
	backend := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b := make([]byte, 1)
		for {
			if _, err := r.Body.Read(b); err != nil {
				return
			}
			got <- b[0]
		}
	}))
	w := newWorld(t, 10, 5)
	u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		res, err := http.Post(u.String(), "text/plain", pr)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	for _, c := range []byte("abc") {
		if _, err := pw.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
		if b := <-got; b != c { // before the next one is even sent
			t.Fatalf("backend got %q, want %q", b, c)
		}
	}
	pw.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestHTTP2(t *testing.T) {
	proto := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
	plain := serve(t, proto)
	h2c := *plain
	h2c.Scheme = "h2c"
	for _, tc := range []struct {
		name    string
		backend *url.URL
		want    string // what the backend was spoken to in
	}{
		{"to an HTTP/1.1 backend", plain, "HTTP/1.1"},
		{"to an h2c backend", &h2c, "HTTP/2.0"},
	} {
		t.Run("over TLS "+tc.name, func(t *testing.T) {
			w := newWorld(t, 10, 5)
			srv := httptest.NewUnstartedServer(w.gate(gate.Config{Backends: to(tc.backend)}))
			srv.EnableHTTP2 = true
			srv.StartTLS()
			defer srv.Close()
			checkHTTP2(t, srv.Client(), srv.URL, tc.want)
		})
		t.Run("in clear text "+tc.name, func(t *testing.T) {
			w := newWorld(t, 10, 5)
			tr := &http.Transport{Protocols: new(http.Protocols)}
			tr.Protocols.SetUnencryptedHTTP2(true)
			defer tr.CloseIdleConnections()
			u := serve(t, w.gate(gate.Config{Backends: to(tc.backend)}))
			checkHTTP2(t, &http.Client{Transport: tr}, u.String(), tc.want)
		})
	}
}

func checkHTTP2(t *testing.T, c *http.Client, url, want string) {
	t.Helper()
	for i := range 6 {
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case res.ProtoMajor != 2:
			t.Fatalf("answered in %s", res.Proto)
		case i < 5 && (res.StatusCode != 200 || string(body) != want):
			t.Fatalf("%d: backend spoken to in %q, want %q", res.StatusCode, body, want)
		case i == 5 && res.StatusCode != http.StatusTooManyRequests:
			t.Fatalf("status %d, want 429", res.StatusCode)
		}
	}
}

// outage is a transport whose dials to one host fail while it is down.
type outage struct {
	host string
	down atomic.Bool
}

// newOutage begins down.
func newOutage(u *url.URL) *outage {
	o := &outage{host: u.Host}
	o.down.Store(true)
	return o
}

func (o *outage) transport() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == o.host && o.down.Load() {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		},
	}
}

// gateDown is a gate whose first backend is down.
func (w *world) gateDown(cfg gate.Config) (*gate.Gate, *outage) {
	w.t.Helper()
	o := newOutage(cfg.Backends[0].URL)
	deps := w.deps()
	deps.Transport = o.transport()
	cfg.Name, cfg.Default, cfg.Retry.Attempts = "edge", gate.Target{Budget: "origin", Class: "low"}, -1
	g, err := gate.New(cfg, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	return g, o
}

func TestDeadBackendIsA502OfOurOwnAndCountedApart(t *testing.T) {
	w := newWorld(t, 10, 5)
	dead := serve(t, http.HandlerFunc(echo))
	g, _ := w.gateDown(gate.Config{Backends: to(dead)})
	a := send(t, "GET", serve(t, g), "/")
	wantStatus(t, a, 502)
	wantHeader(t, a, "Content-Type", "application/problem+json")
	if !strings.Contains(a.body, "could not be reached") {
		t.Errorf("body %s", a.body)
	}
	if got := metric(t, collector(g), "budget_gate_backend_failures_total", "backend="+dead.Host); got != 1 {
		t.Errorf("%v failures counted, want 1", got)
	}
	if c := w.counts(1); c.Admitted != 1 || c.Refused != 0 {
		t.Errorf("counts %+v: a dead backend is no refusal", c)
	}
}

func TestRefusedConnectionIsA502(t *testing.T) {
	w := newWorld(t, 10, 5)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Close() // a backend that hangs up at once
		}
	}()
	defer ln.Close()
	u := serve(t, w.gate(gate.Config{Backends: to(&url.URL{Scheme: "http", Host: ln.Addr().String()})}))
	wantStatus(t, send(t, "GET", u, "/"), 502)
}

func TestDeadBackendIsSkippedForAWhileAndUsedAgainOnceItAnswers(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	var hits atomic.Int64
	flaky := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	g, o := w.gateDown(gate.Config{Backends: to(flaky, serve(t, http.HandlerFunc(echo)))})
	u := serve(t, g)
	wantFailures := func(when string, want int) {
		t.Helper()
		bad := 0
		for range 20 {
			if send(t, "GET", u, "/").StatusCode == 502 {
				bad++
			}
		}
		if bad != want {
			t.Errorf("%s: %d of 20 requests failed, want %d", when, bad, want)
		}
	}
	pause := int64(1100 * time.Millisecond)
	wantFailures("at first", 1)
	w.now.Add(pause)
	wantFailures("after a second", 1)
	w.now.Add(pause)
	wantFailures("the second pause is longer", 0)
	o.down.Store(false)
	w.now.Add(pause)
	hits.Store(0)
	wantFailures("recovered", 0)
	if got := hits.Load(); got != 10 {
		t.Errorf("%d of 20 requests on the recovered backend, want 10", got)
	}
	o.down.Store(true)
	wantFailures("down again", 1)
	w.now.Add(pause)
	wantFailures("its first pause is short again", 1)
}

func TestSilentBackendIsA504(t *testing.T) {
	hang := make(chan struct{})
	backend := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer close(hang)
	w := newWorld(t, 10, 5)
	u := serve(t, w.gate(gate.Config{Backends: to(backend), ResponseTimeout: 20 * time.Millisecond}))
	wantStatus(t, send(t, "GET", u, "/"), 504)
}

func TestClientThatLeavesIsNoBackendFailure(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	backend := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done() // the proxy hangs up on the backend too
		close(left)
	}))
	w := newWorld(t, 10, 5)
	g := w.gate(gate.Config{Backends: to(backend)})
	done := make(chan struct{})
	u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		g.ServeHTTP(w, r)
	}))
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	go func() {
		<-arrived
		cancel()
	}()
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Fatal("the request was not cut")
	}
	<-left
	<-done
	c := collector(g)
	if got := metric(t, c, "budget_gate_client_gone_total"); got != 1 {
		t.Errorf("%v gone, want 1", got)
	}
	if got := metric(t, c, "budget_gate_backend_failures_total"); got != 0 {
		t.Errorf("%v backend failures, want 0", got)
	}
}

func TestQuotaFieldsSurviveAnInformationalResponse(t *testing.T) {
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "done")
	}))
	w := newWorld(t, 10, 5)
	u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
	hints := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil }}
	req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), "GET", u.String(), nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if hints != 1 || res.Header.Get("RateLimit") == "" {
		t.Errorf("%d hints, header %v", hints, res.Header)
	}
}

func TestTrailersAndStatusPassThrough(t *testing.T) {
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "short and stout")
		w.Header().Set("X-Sum", "15")
	}))
	w := newWorld(t, 10, 5)
	a := send(t, "GET", serve(t, w.gate(gate.Config{Backends: to(backend)})), "/")
	wantStatus(t, a, 418)
	if a.Trailer.Get("X-Sum") != "15" || a.body != "short and stout" {
		t.Errorf("trailer %v, body %q", a.Trailer, a.body)
	}
}

func TestConnectIsNotForwarded(t *testing.T) {
	w := newWorld(t, 10, 5)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo)))}))
	_, r := raw(t, u, "CONNECT inside:22 HTTP/1.1\nHost: inside:22\n\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Fatalf("%v, %v", res, err)
	}
}

func TestBackendsShareTrafficByWeight(t *testing.T) {
	var hits [3]atomic.Int64
	var bs []gate.Backend
	for i, weight := range []int{5, 0, 2} { // 0 means 1
		u := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits[i].Add(1) }))
		bs = append(bs, gate.Backend{URL: u, Weight: weight})
	}
	w := newWorld(t, 10, 1000)
	u := serve(t, w.gate(gate.Config{Backends: bs}))
	for range 40 {
		wantStatus(t, send(t, "GET", u, "/"), 200)
	}
	if a, b, c := hits[0].Load(), hits[1].Load(), hits[2].Load(); a != 25 || b != 5 || c != 10 {
		t.Errorf("hits %d, %d, %d; want 25, 5, 10", a, b, c)
	}
}

func TestTLSBackendWithAPathPrefix(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer srv.Close()
	w := newWorld(t, 10, 5)
	deps := w.deps()
	deps.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
	g, err := gate.New(gate.Config{
		Backends: to(mustURL(srv.URL + "/base")), Default: gate.Target{Budget: "origin", Class: "low"},
	}, deps)
	if err != nil {
		t.Fatal(err)
	}
	if e := send(t, "GET", serve(t, g), "/x?y=1").echoed(t); e.URI != "/base/x?y=1" {
		t.Errorf("backend saw %q", e.URI)
	}
}

func TestAnOutageIsLoggedAtItsBeginAndItsEndOnly(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	var logged strings.Builder // written by one handler at a time: send waits for each answer
	backend := serve(t, http.HandlerFunc(echo))
	o := newOutage(backend)
	deps := w.deps()
	deps.Transport, deps.Log = o.transport(), slog.New(slog.NewTextHandler(&logged, nil))
	g, err := gate.New(gate.Config{
		Name: "edge", Backends: to(backend), Default: gate.Target{Budget: "origin", Class: "low"},
	}, deps)
	if err != nil {
		t.Fatal(err)
	}
	u := serve(t, g)
	wantLines := func(when string, warnings, recoveries int) {
		t.Helper()
		send(t, "GET", u, "/")
		send(t, "GET", u, "/")
		down, up := strings.Count(logged.String(), "backend cannot be reached"), strings.Count(logged.String(), "backend answers again")
		if down != warnings || up != recoveries {
			t.Errorf("%s: %d warnings, %d recoveries; want %d, %d\n%s", when, down, up, warnings, recoveries, logged.String())
		}
	}
	wantLines("down", 1, 0)
	o.down.Store(false)
	wantLines("up", 1, 1)
	o.down.Store(true)
	wantLines("down again at once: flapping is not worth lines", 1, 1)
	w.now.Add(int64(10 * time.Second))
	wantLines("down for longer", 2, 1)
	o.down.Store(false)
	wantLines("up again", 2, 2)
}
