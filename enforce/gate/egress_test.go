package gate_test

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/gate"
)

// egressGate has a bytes budget "out" with one class "all" of the given rate in
// bytes per second beside the request budget. Its clock stands still.
func egressGate(t *testing.T, rate allocator.Rate, lim gate.Limits, h http.HandlerFunc) (w *world, g *gate.Gate, out *enforce.Limiter) {
	w = newWorld(t, 100, 100)
	out = enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, 0)
	rate *= allocator.Unit
	out.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: rate, Classes: []allocator.Rate{rate}}})
	w.limits = append(w.limits, gate.Budget{Name: "out", Classes: []string{"all"}, Limiter: out})
	return w, w.gate(gate.Config{Backends: to(serve(t, h)), Limits: lim, Egress: gate.Target{Budget: "out", Class: "all"}}), out
}

func bytesOut(l *enforce.Limiter) int64 {
	c := make([]enforce.Counts, 1)
	l.Counts(c)
	return c[0].Admitted
}

func TestBodiesArePaidByTheByteAndHeadsAreNot(t *testing.T) {
	_, g, out := egressGate(t, 1_000_000, gate.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		w.Write(bytes.Repeat([]byte("x"), 100_000))
	})
	u := serve(t, g)
	if a := send(t, "GET", u, "/"); len(a.body) != 100_000 || bytesOut(out) != 100_000 {
		t.Errorf("%d bytes, %d paid", len(a.body), bytesOut(out))
	}
	send(t, "HEAD", u, "/")
	if got := bytesOut(out); got != 100_000 {
		t.Errorf("%d paid after a HEAD", got)
	}
}

func TestABodyBeyondTheEgressIsCutAtTheStallLimitAndNotAByteLater(t *testing.T) {
	_, g, out := egressGate(t, 50_000, gate.Limits{WriteStall: 20 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		w.Write(bytes.Repeat([]byte("x"), 100_000))
	})
	res, err := http.Get(serve(t, g).String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil || len(b) > 50_000 {
		t.Errorf("%d bytes of a bucket of 50000, %v", len(b), err)
	}
	if got := bytesOut(out); got > 50_000 {
		t.Errorf("%d paid", got)
	}
	c := collector(g)
	waitFor(t, func() bool { return metric(t, c, "budget_gate_responses_cut_total", "by=egress") == 1 })
	if got := metric(t, c, "budget_gate_egress_waits_total"); got == 0 {
		t.Error("no wait counted")
	}
}

func TestAWaitingBodyGoesOnWhenThereIsEgressAgain(t *testing.T) {
	w, g, _ := egressGate(t, 50_000, gate.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		w.Write(bytes.Repeat([]byte("x"), 100_000))
	})
	u := serve(t, g)
	done := make(chan int, 1)
	go func() { done <- len(send(t, "GET", u, "/").body) }()
	c := collector(g)
	waitFor(t, func() bool { return metric(t, c, "budget_gate_egress_waits_total") > 0 })
	for {
		w.now.Add(int64(100 * time.Millisecond))
		select {
		case n := <-done:
			if n != 100_000 {
				t.Errorf("%d bytes", n)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAWebSocketIsPaidByTheByteTowardsTheClient(t *testing.T) {
	_, g, out := egressGate(t, 1_000_000, gate.Limits{}, websocketEcho(t).ServeHTTP)
	c, r := rawBytes(t, serve(t, g), "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	msg := strings.Repeat("x", 1000)
	io.WriteString(c, msg)
	if _, err := io.ReadFull(r, make([]byte, len(msg))); err != nil {
		t.Fatal(err)
	}
	if got := bytesOut(out); got != 1000 {
		t.Errorf("%d paid, want 1000", got)
	}
}

func TestARulesEgressComesBeforeTheListeners(t *testing.T) {
	w := newWorld(t, 100, 100)
	g := w.gate(gate.Config{
		Backends: to(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "12345") }))),
		Rules: []gate.Rule{{
			Match: gate.Match{Path: "/big/*"}, Target: gate.Target{Budget: "origin", Class: "low"}, Egress: gate.Target{Budget: "origin", Class: "high"},
		}},
	})
	u := serve(t, g)
	send(t, "GET", u, "/small")
	if got := w.counts(0).Admitted; got != 0 {
		t.Errorf("%d bytes paid without a rule", got)
	}
	send(t, "GET", u, "/big/x")
	if got := w.counts(0).Admitted; got != 5 {
		t.Errorf("%d bytes paid, want 5", got)
	}
}

func TestAnEgressBudgetThatIsMissingLetsNothingPassUnpaced(t *testing.T) {
	w := newWorld(t, 100, 100)
	deps := w.deps()
	cfg := gate.Config{
		Name: "edge", Backends: to(serve(t, http.HandlerFunc(echo))), Default: gate.Target{Budget: "origin", Class: "low"},
		Egress: gate.Target{Budget: "typo", Class: "all"},
	}
	if _, err := gate.New(cfg, deps); err == nil {
		t.Error("no error")
	}
	deps.Missing = func(gate.Target) {}
	g, err := gate.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, send(t, "GET", serve(t, g), "/"), 403)
}
