package gate_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"subak/enforce/gate"
)

// nowhere is an address of which every dial is refused.
var nowhere = &url.URL{Scheme: "http", Host: "nowhere.invalid:80"}

// partly dials, but not to nowhere; refused counts.
func partly(refused *atomic.Int64) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == nowhere.Host {
			refused.Add(1)
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}}
}

func (w *world) gateOver(t *http.Transport, cfg gate.Config) *gate.Gate {
	w.t.Helper()
	deps := w.deps()
	deps.Transport = t
	cfg.Name, cfg.Default = "edge", gate.Target{Budget: "origin", Class: "low"}
	g, err := gate.New(cfg, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(t.CloseIdleConnections)
	return g
}

func TestARefusedConnectionIsTriedElsewhereAndChargedOnce(t *testing.T) {
	for _, method := range []string{"GET", "POST", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t, 10, 10)
			var refused, hits atomic.Int64
			good := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				hits.Add(1)
				io.Copy(w, r.Body)
			}))
			g := w.gateOver(partly(&refused), gate.Config{Backends: to(nowhere, good)})
			u := serve(t, g)
			req, _ := http.NewRequest(method, u.String(), strings.NewReader("the body"))
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if b, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(b) != "the body" {
				t.Errorf("%d %q", res.StatusCode, b)
			}
			if refused.Load() != 1 || hits.Load() != 1 {
				t.Errorf("%d refused, %d served", refused.Load(), hits.Load())
			}
			if c := w.counts(1); c.Offered != 1 || c.Admitted != 1 {
				t.Errorf("counts %+v, want one", c)
			}
			if got := metric(t, collector(g), "budget_gate_retries_total"); got != 1 {
				t.Errorf("%v retries", got)
			}
		})
	}
}

func TestRetriesEndWithTheAttemptsAllowed(t *testing.T) {
	for attempts, want := range map[int]int64{-1: 1, 0: 2, 2: 3} {
		w := newWorld(t, 10, 10)
		var refused atomic.Int64
		g := w.gateOver(partly(&refused), gate.Config{
			Backends: to(nowhere, nowhere, nowhere, nowhere), Retry: gate.Retry{Attempts: attempts},
		})
		wantStatus(t, send(t, "GET", serve(t, g), "/"), 502)
		if got := refused.Load(); got != want {
			t.Errorf("attempts %d: %d dials, want %d", attempts, got, want)
		}
		if c := w.counts(1); c.Offered != 1 {
			t.Errorf("counts %+v", c)
		}
	}
}

// Once a backend may have seen a request, only that backend's answer counts.
func TestWhatABackendMayHaveSeenIsNotTriedElsewhere(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t, 10, 10)
			var other atomic.Int64
			hangsUp := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					c.Close()
				}
			}))
			second := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
			u := serve(t, w.gate(gate.Config{Backends: to(hangsUp, second)}))
			req, _ := http.NewRequest(method, u.String(), strings.NewReader("x"))
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 502 || other.Load() != 0 {
				t.Errorf("status %d, %d at the other", res.StatusCode, other.Load())
			}
		})
	}
}

// The backend here closes a kept connection when it is used again.
func TestAKeptConnectionThatIsClosedIsReplaced(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var conns atomic.Int64
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				if _, err := c.Read(buf); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				c.Read(buf) // the second request: no answer
			}()
		}
	}()
	w := newWorld(t, 10, 10)
	u := serve(t, w.gate(gate.Config{Backends: to(&url.URL{Scheme: "http", Host: ln.Addr().String()})}))
	for range 3 {
		wantStatus(t, send(t, "GET", u, "/"), 200)
	}
	if got := conns.Load(); got != 3 {
		t.Errorf("%d connections, want 3", got)
	}
	if c := w.counts(1); c.Admitted != 3 {
		t.Errorf("counts %+v, want 3", c)
	}
}

// statusBackend answers with what status holds.
func statusBackend(t *testing.T, status *atomic.Int64, hits *atomic.Int64) *url.URL {
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.WriteHeader(int(status.Load()))
	}))
}

func TestABackendThatKeepsSayingItCannotServeIsAvoidedForAWhile(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	var status, sick, well, ok atomic.Int64
	status.Store(503)
	ok.Store(200)
	u := serve(t, w.gate(gate.Config{Backends: to(statusBackend(t, &status, &sick), statusBackend(t, &ok, &well))}))
	ask := func(n int) {
		for range n {
			send(t, "GET", u, "/")
		}
	}
	ask(30)
	if got := sick.Load(); got != 5 {
		t.Errorf("%d requests at the sick backend, want 5", got)
	}
	w.now.Add(int64(1100 * time.Millisecond))
	ask(30)
	if got := sick.Load(); got != 6 {
		t.Errorf("%d requests at the sick backend after a second, want one probe more", got)
	}
	w.now.Add(int64(1100 * time.Millisecond))
	ask(10)
	if got := sick.Load(); got != 6 {
		t.Errorf("%d requests at the sick backend, want none: its second time out is longer", got)
	}
	status.Store(200)
	w.now.Add(int64(1100 * time.Millisecond))
	ask(21)
	if got := sick.Load(); got < 6+9 {
		t.Errorf("%d requests at the backend that is well again", got)
	}
}

func TestAnErrorOfTheApplicationPutsNoBackendOut(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	var status, sick, well, ok atomic.Int64
	status.Store(500)
	ok.Store(200)
	u := serve(t, w.gate(gate.Config{Backends: to(statusBackend(t, &status, &sick), statusBackend(t, &ok, &well))}))
	for range 40 {
		send(t, "GET", u, "/")
	}
	if sick.Load() != 20 || well.Load() != 20 {
		t.Errorf("%d and %d requests, want 20 each", sick.Load(), well.Load())
	}
}

func TestNeverMoreThanHalfAreAvoidedForWhatTheyAnswer(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	var status atomic.Int64
	status.Store(503)
	var hits [3]atomic.Int64
	var bs []*url.URL
	for i := range hits {
		bs = append(bs, statusBackend(t, &status, &hits[i]))
	}
	u := serve(t, w.gate(gate.Config{Backends: to(bs...)}))
	for range 90 {
		wantStatus(t, send(t, "GET", u, "/"), 503) // the backends' own
	}
	out := 0
	for i := range hits {
		if hits[i].Load() <= 5 {
			out++
		}
	}
	if out != 1 {
		t.Errorf("hits %d, %d, %d: %d out, want 1", hits[0].Load(), hits[1].Load(), hits[2].Load(), out)
	}
}

func TestWhenNoBackendCanBeReachedTheirTurnsGoOn(t *testing.T) {
	w := newWorld(t, 1000, 1000)
	var refused atomic.Int64
	g := w.gateOver(partly(&refused), gate.Config{Backends: to(nowhere, nowhere), Retry: gate.Retry{Attempts: -1}})
	u := serve(t, g)
	for range 10 {
		wantStatus(t, send(t, "GET", u, "/"), 502)
	}
	if got := refused.Load(); got != 10 {
		t.Errorf("%d dials, want 10: a request is the only probe there is", got)
	}
}
