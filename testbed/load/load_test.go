package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble is an HTTP server over net.Pipe, for virtual time.
type bubble struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newBubble() *bubble {
	return &bubble{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (b *bubble) Accept() (net.Conn, error) {
	select {
	case c := <-b.conns:
		return c, nil
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

func (b *bubble) Close() error   { b.once.Do(func() { close(b.closed) }); return nil }
func (b *bubble) Addr() net.Addr { return &net.UnixAddr{Name: "bubble", Net: "unix"} }

func (b *bubble) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case b.conns <- far:
		return near, nil
	case <-b.closed:
		return nil, errors.New("closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs cfg against h in virtual time.
func inBubble(t *testing.T, cfg Config, h http.HandlerFunc) Report {
	t.Helper()
	var r Report
	synctest.Test(t, func(t *testing.T) {
		b := newBubble()
		srv := &http.Server{Handler: h}
		go func() { _ = srv.Serve(b) }()
		cfg.Dial = b.dial
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		r = g.Report()
		_ = srv.Close()
		synctest.Wait()
	})
	return r
}

func checkSum(t *testing.T, r Report) {
	t.Helper()
	for _, s := range r.Streams {
		var cells [5]uint64
		for i, c := range s.Cells {
			outcomes := [5]uint64{c.Offered, c.Admitted, c.Refused, c.Away, c.Failed()}
			if c.Offered != c.Admitted+c.Refused+c.Away+c.Failed() {
				t.Errorf("%s phase %d: offered is not the sum of admitted, refused, away and failed: %v", s.Name, i, outcomes)
			}
			for k, n := range outcomes {
				cells[k] += n
			}
		}
		var series [5]uint64
		for k, bins := range [5][]uint32{s.Offered, s.Admitted, s.Refused, s.Away, s.Failed} {
			for _, n := range bins {
				series[k] += uint64(n)
			}
		}
		if series != cells {
			t.Errorf("%s: offered, admitted, refused, away, failed by the series %v, by the cells %v", s.Name, series, cells)
		}
	}
}

func TestLatencyCountsFromTheIntendedStart(t *testing.T) {
	// One connection, 10 requests/s, each answered in 1 s: the i-th waits for
	// the i-1 before it. A closed loop would report 1 s for all of them.
	r := inBubble(t, Config{
		Phases:  []Phase{{"slow", 2 * time.Second}},
		Streams: []Stream{{Name: "s", URL: "http://x/", Rates: []float64{10}, Arrivals: Uniform, Conns: 1}},
		Timeout: time.Minute,
	}, func(w http.ResponseWriter, _ *http.Request) { time.Sleep(time.Second) })
	checkSum(t, r)
	c := r.Streams[0].Cells[0]
	if c.Offered != 20 || c.Admitted != 20 {
		t.Fatalf("offered %d, admitted %d, want 20 of each", c.Offered, c.Admitted)
	}
	// The last is due at 1.9 s to 2 s and answered 20 s after the first, which
	// is due at 0 to 0.1 s.
	if got, want := c.AdmittedLatency.Max, 18100*time.Millisecond; got != want {
		t.Errorf("longest latency %v, want %v", got, want)
	}
	if c.Late != 19 {
		t.Errorf("%d late, want all but the first", c.Late)
	}
}

func TestWhatThePoolCannotTakeIsCountedAsOverflow(t *testing.T) {
	r := inBubble(t, Config{
		Phases:  []Phase{{"stuck", time.Second}},
		Streams: []Stream{{Name: "s", URL: "http://x/", Rates: []float64{100}, Arrivals: Uniform, Conns: 2}},
		Queue:   5, Timeout: 10 * time.Second,
	}, func(w http.ResponseWriter, _ *http.Request) { time.Sleep(5 * time.Second) })
	checkSum(t, r)
	c := r.Streams[0].Cells[0]
	if c.Offered != 100 || c.Admitted != 7 || c.Overflow != 93 {
		t.Errorf("offered %d, admitted %d, overflow %d; want 100, 2+5, 93", c.Offered, c.Admitted, c.Overflow)
	}
}

func TestAnArrivalBelongsToThePhaseItWasDueIn(t *testing.T) {
	r := inBubble(t, Config{
		Phases:  []Phase{{"one", time.Second}, {"two", time.Second}},
		Streams: []Stream{{Name: "s", URL: "http://x/", Rates: []float64{10, 0}, Conns: 50}},
	}, func(w http.ResponseWriter, _ *http.Request) { time.Sleep(1500 * time.Millisecond) })
	checkSum(t, r)
	if one, two := r.Streams[0].Cells[0], r.Streams[0].Cells[1]; one.Admitted != one.Offered || one.Offered == 0 || two.Offered != 0 || two.Admitted != 0 {
		t.Errorf("phases %+v and %+v: the answers left the phase of their arrival", one, two)
	}
}

func TestATimeoutIsAnErrorOfItsOwnKind(t *testing.T) {
	r := inBubble(t, Config{
		Phases:  []Phase{{"p", time.Second}},
		Streams: []Stream{{Name: "s", URL: "http://x/", Rates: []float64{3}, Arrivals: Uniform}},
		Timeout: 100 * time.Millisecond,
	}, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
	})
	checkSum(t, r)
	if c := r.Streams[0].Cells[0]; c.Errors[kindTimeout] != 3 {
		t.Errorf("errors %v, want 3 timeouts", c.Errors)
	}
}

func TestOverLoopbackEveryAnswerIsCountedByItsKind(t *testing.T) {
	var hits [4]atomic.Uint64
	var clients sync.Map
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stamp, err := strconv.ParseInt(r.Header.Get(StampHeader), 10, 64); err != nil || stamp > Monotonic() {
			t.Errorf("stamp %q is not a past instant", r.Header.Get(StampHeader))
		}
		clients.Store(r.Header.Get("X-Forwarded-For"), true)
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		hits[n].Add(1)
		if r.Header.Get("X-Class") != fmt.Sprint(n) {
			t.Errorf("class header %q on path %q", r.Header.Get("X-Class"), r.URL.Path)
		}
		switch n {
		case 0:
			_, _ = io.WriteString(w, "fine\n")
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3: // breaks the connection in the middle of a response
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}
	}))
	defer srv.Close()
	cfg := Config{Seed: 3, Phases: []Phase{{"p", 300 * time.Millisecond}}}
	for n := range 4 {
		cfg.Streams = append(cfg.Streams, Stream{
			Name: fmt.Sprint(n), URL: fmt.Sprintf("%s/%d", srv.URL, n), Header: map[string]string{"X-Class": fmt.Sprint(n)},
			Rates: []float64{300}, Clients: 50, Conns: 4,
		})
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := g.Report()
	checkSum(t, r)
	for n, s := range r.Streams {
		c := s.Cells[0]
		got := []uint64{c.Admitted, c.Refused, c.Errors["status 5xx"], c.Errors[kindReset]}
		for i := range got {
			want := uint64(0)
			if i == n {
				want = hits[n].Load()
			}
			if got[i] != want {
				t.Errorf("stream %d: %v by kind, server saw %d (errors %v)", n, got, hits[n].Load(), c.Errors)
				break
			}
		}
		if hits[n].Load() != c.Offered || c.Offered == 0 {
			t.Errorf("stream %d: %d offered, %d reached the server: a request was lost or repeated", n, c.Offered, hits[n].Load())
		}
	}
	distinct := 0
	clients.Range(func(k, _ any) bool { distinct++; return strings.HasPrefix(k.(string), "10.0.0.") })
	if distinct < 40 || distinct > 50 {
		t.Errorf("%d distinct clients of 50", distinct)
	}
}

func TestADeadTargetIsConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	g, err := New(Config{
		Phases:  []Phase{{"p", 100 * time.Millisecond}},
		Streams: []Stream{{Name: "s", URL: "http://" + l.Addr().String(), Rates: []float64{100}, Arrivals: Uniform}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := g.Report()
	checkSum(t, r)
	if c := r.Streams[0].Cells[0]; c.Errors[kindRefused] != 10 {
		t.Errorf("errors %v, want 10 refused connections", c.Errors)
	}
}

func TestCancellingEndsTheRunAndKeepsTheSum(t *testing.T) {
	reached := make(chan struct{}, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	defer srv.Close()
	g, err := New(Config{
		Phases:  []Phase{{"p", time.Hour}},
		Streams: []Stream{{Name: "s", URL: srv.URL, Rates: []float64{500}, Conns: 3}},
		Timeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	if err := g.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
	r := g.Report()
	checkSum(t, r)
	if c := r.Streams[0].Cells[0]; c.Errors[kindCancelled] == 0 || c.Admitted != 0 {
		t.Errorf("cell %+v, want cancelled requests only", c)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	cfg := Config{
		Phases: []Phase{{"p", 0}},
		Streams: []Stream{
			{Name: "a", URL: "https://x/", Rates: []float64{1}},
			{Name: "b", URL: "http://x/", Rates: []float64{1, 2}},
			{Name: "c", URL: "http://x/", Rates: []float64{-1}},
			{Name: "d", URL: "http://x/", Rates: []float64{1}, Clients: 1<<24 + 1},
		},
	}
	err := cfg.Validate()
	for _, want := range []string{"length 0s", `"https://x/"`, "2 rates for 1 phases", "rate -1", `"d"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no fault about %s in %v", want, err)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }))
	defer srv.Close()
	c, err := newConn(Stream{Name: "s", URL: srv.URL, Clients: 10}, (&net.Dialer{}).DialContext, time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	defer c.drop()
	b.ReportAllocs()
	for b.Loop() {
		if status, err := c.do(b.Context(), 1); err != nil || status != 200 {
			b.Fatal(status, err)
		}
	}
}
