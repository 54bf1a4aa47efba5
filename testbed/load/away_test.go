package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestArrivalsForADeadTargetAreCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		b := newBubble()
		srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(200 * time.Millisecond) })}
		go func() { _ = srv.Serve(b) }()
		g, err := New(Config{
			Phases: []Phase{{"p", 3 * time.Second}},
			Streams: []Stream{
				{Name: "dead", URL: "http://x/", Rates: []float64{10}, Arrivals: Uniform, Conns: 4, Dial: func(ctx context.Context, n, a string) (net.Conn, error) {
					if s := time.Since(start(t)); s > time.Second && s < 2*time.Second {
						return nil, io.EOF
					}
					dials.Add(1)
					return b.dial(ctx, n, a)
				}},
				{Name: "alive", URL: "http://x/", Rates: []float64{10}, Arrivals: Uniform, Conns: 4, Dial: b.dial},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-g.Started()
			time.Sleep(time.Second)
			g.Away(0, true) // what is under way is answered all the same
			time.Sleep(time.Second)
			g.Away(0, false)
		}()
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := g.Report()
		checkSum(t, r)
		dead, alive := r.Streams[0].Cells[0], r.Streams[1].Cells[0]
		if dead.Away != 10 || dead.Admitted != 20 || dead.Failed() != 0 {
			t.Errorf("dead: %+v, want 20 admitted and 10 away", dead)
		}
		if alive.Admitted != 30 || alive.Away != 0 {
			t.Errorf("alive: %+v, want 30 admitted", alive)
		}
		for i, n := range r.Streams[0].Away {
			if inside := i >= 10 && i < 20; n > 0 && !inside {
				t.Errorf("%d away in bin %d", n, i)
			}
		}
		_ = srv.Close()
		synctest.Wait()
	})
}

// start is when a bubble begins.
func start(*testing.T) time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestAFailureOfATargetThatIsAwayIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble()
		killed := make(chan struct{})
		srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			<-killed
			panic(http.ErrAbortHandler)
		})}
		go func() { _ = srv.Serve(b) }()
		g, err := New(Config{
			Phases:  []Phase{{"p", time.Second}},
			Streams: []Stream{{Name: "s", URL: "http://x/", Rates: []float64{5}, Arrivals: Uniform, Dial: b.dial}},
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-g.Started()
			time.Sleep(time.Second)
			g.Away(0, true)
			close(killed)
		}()
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := g.Report()
		checkSum(t, r)
		if c := r.Streams[0].Cells[0]; c.Away != 5 || c.Failed() != 0 {
			t.Errorf("%+v, want all five away", c)
		}
		_ = srv.Close()
		synctest.Wait()
	})
}

func TestConnectionsToAFormerLifeAreNotUsedAgain(t *testing.T) {
	var handlers [2]*httptest.Server
	for i := range handlers {
		handlers[i] = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer handlers[i].Close()
	}
	var life atomic.Int64
	served := make(chan struct{}, 1000)
	g, err := New(Config{
		Phases: []Phase{{"before", 300 * time.Millisecond}, {"down", 300 * time.Millisecond}, {"after", 300 * time.Millisecond}},
		Streams: []Stream{{
			Name: "s", URL: "http://x/", Rates: []float64{50, 0, 50}, Arrivals: Uniform, Conns: 3,
			Dial: func(ctx context.Context, n, _ string) (net.Conn, error) {
				served <- struct{}{}
				return (&net.Dialer{}).DialContext(ctx, n, handlers[life.Load()].Listener.Addr().String())
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-g.Started()
		<-served
		timer := time.NewTimer(time.Until(g.Start().Add(400 * time.Millisecond))) // nothing is offered then
		<-timer.C
		g.Away(0, true)
		life.Store(1)
		handlers[0].CloseClientConnections()
		g.Away(0, false)
	}()
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := g.Report()
	checkSum(t, r)
	for i, c := range r.Streams[0].Cells {
		if c.Failed() > 0 || c.Admitted != c.Offered {
			t.Errorf("phase %d: %+v, want everything answered", i, c)
		}
	}
}

func TestATraceOfManyRatesGivesItsArrivalsInAFewPhases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := rapid.SliceOfN(rapid.Float64Range(0, 200), 1, 300).Draw(t, "rates")
		every := time.Duration(rapid.IntRange(1, 300).Draw(t, "ms")) * time.Millisecond
		ends := []time.Duration{time.Second, 5 * time.Second, 60 * time.Second}
		all := drain(newSchedule(1, 0, Stream{Rates: rates, Every: every, Arrivals: Uniform}, ends))
		want, last := 0.0, time.Duration(0)
		for i, r := range rates {
			from := min(time.Duration(i)*every, ends[2])
			want += r * (min(time.Duration(i+1)*every, ends[2]) - from).Seconds()
		}
		if got := float64(len(all)); got < want-1.5 || got > want+1.5 {
			t.Fatalf("%g arrivals, want %g", got, want)
		}
		for _, a := range all {
			begin := time.Duration(0)
			if a.phase > 0 {
				begin = ends[a.phase-1]
			}
			if a.at < last || a.at < begin || a.at >= ends[a.phase] {
				t.Fatalf("arrival at %v (after %v) is said to be of phase %d", a.at, last, a.phase)
			}
			last = a.at
		}
	})
}

func TestAnEndlessRequestEndsWithItsContextOrItsServer(t *testing.T) {
	leave := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	conns := make(chan struct{}, 1)
	dial := func(ctx context.Context, n, a string) (net.Conn, error) {
		conns <- struct{}{}
		return (&net.Dialer{}).DialContext(ctx, n, a)
	}
	go func() { <-conns; cancel() }()
	if _, _, err := Endless(ctx, dial, srv.URL); err != nil {
		t.Errorf("ended by its context: %v", err)
	}
	close(leave)
	if status, n, err := Endless(t.Context(), nil, srv.URL); status != 200 || n != 5 || err != nil {
		t.Errorf("ended by the server: status %d, %d bytes, %v", status, n, err)
	}
	if _, _, err := Endless(t.Context(), nil, "ftp://x"); err == nil {
		t.Error("any URL will do")
	}
}
