package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"subak/internal/api"
)

// event is one server-sent event.
type event struct {
	kind   string
	id     int64
	status api.Status
	past   api.History
}

// readEvent reads the next event that carries data.
func readEvent(t *testing.T, r *bufio.Reader) event {
	t.Helper()
	var e event
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "id":
			e.id, err = strconv.ParseInt(value, 10, 64)
		case "event":
			e.kind = value
		case "data":
			if e.kind == "history" {
				err = json.Unmarshal([]byte(value), &e.past)
			} else {
				err = json.Unmarshal([]byte(value), &e.status)
			}
			if err == nil {
				return e
			}
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
}

// pipes is an in-memory listener, so that a server can run in a bubble of
// virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7947} }

// dial opens a connection and sends a GET.
func (p *pipes) dial(t *testing.T, path string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	p.conns <- server
	if _, err := io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return client
}

// bubbled starts a server over pipes inside a synctest bubble.
func bubbled(t *testing.T, b Backend) (s *Server, p *pipes, stop func()) {
	t.Helper()
	s, err := New(Config{Listen: "127.0.0.1:0"}, b)
	if err != nil {
		t.Fatal(err)
	}
	s.listener.Close()
	p = newPipes()
	s.listener = p
	stop = runUntil(t, s)
	synctest.Wait()
	return s, p, stop
}

// response reads the header of a streaming response and returns its body.
func response(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v %v", resp, err)
	}
	return bufio.NewReader(resp.Body)
}

func TestAStreamStartsWithThePastAndOutlivesEveryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, stop := bubbled(t, &scripted{scene: fiveCities()})
		time.Sleep(10*time.Second + 100*time.Millisecond) // virtual: a past to tell of, and no sample at this very moment
		conn := p.dial(t, "/v1/events")
		events := response(t, conn)
		past := readEvent(t, events)
		if n := len(past.past.Millis); past.kind != "history" || past.past.Budget != "origin" || n < 10 || n > 11 { // nobody looked: one a second
			t.Fatalf("first event: %s of %q with %d points, want a history of 10 or 11", past.kind, past.past.Budget, n)
		}
		last := readEvent(t, events)
		if last.kind != "status" || last.id != past.id+100 {
			t.Fatalf("second event: %s at %d, want a snapshot of now, at %d", last.kind, last.id, past.id+100)
		}
		for i := range int64(240) { // two minutes
			if e := readEvent(t, events); e.kind != "status" || e.id != past.id+500*(i+1) {
				t.Fatalf("%s at %d, want a snapshot every 500 ms, the next at %d", e.kind, e.id, past.id+500*(i+1))
			}
		}
		conn.Close()
		stop()
	})
}

func TestAStreamOfOneBudgetLeavesOutTheCellsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := fiveCities()
		sc.budgets = []string{"origin", "egress"}
		_, p, stop := bubbled(t, &scripted{scene: sc})
		conn := p.dial(t, "/v1/events?budget=egress")
		events := response(t, conn)
		if past := readEvent(t, events); past.past.Budget != "egress" {
			t.Errorf("history of %q, want egress only", past.past.Budget)
		}
		st := readEvent(t, events).status
		if len(st.Budgets) != 2 || len(st.Budgets[0].Cells) != 0 || len(st.Budgets[1].Cells) != 5 || st.Budgets[0].SumShare == 0 {
			t.Errorf("want the sums of both budgets and the cells of egress: %+v", st.Budgets)
		}
		conn.Close()
		stop()
	})
}

func TestAFreezeShowsInTheStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, stop := bubbled(t, &scripted{scene: fiveCities()})
		conn := p.dial(t, "/v1/events")
		events := response(t, conn)
		readEvent(t, events)
		before := readEvent(t, events)
		time.Sleep(100 * time.Millisecond) // virtual, well inside the interval
		s.backend.Freeze(true)
		s.hub.nudge()
		if e := readEvent(t, events); !e.status.Frozen || e.id-before.id != 100 {
			t.Errorf("frozen %v after %d ms, want true after 100", e.status.Frozen, e.id-before.id)
		}
		conn.Close()
		stop()
	})
}

func TestAStreamThatStopsReadingLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, stop := bubbled(t, &scripted{scene: fiveCities()})
		conn := p.dial(t, "/v1/events") // and never reads
		synctest.Wait()
		if n := testutil.ToFloat64(s.metrics.streams); n != 1 {
			t.Fatalf("%v streams, want 1", n)
		}
		time.Sleep(500 * time.Millisecond * (streamQueue + 1)) // virtual
		synctest.Wait()
		if n, dropped := testutil.ToFloat64(s.metrics.streams), testutil.ToFloat64(s.metrics.streamsClosed.WithLabelValues("slow")); n != 0 || dropped != 1 {
			t.Errorf("%v streams and %v dropped, want 0 and 1", n, dropped)
		}
		// Its request ends too, by the deadline of the write that hangs.
		time.Sleep(writeTimeout + time.Second)
		synctest.Wait()
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("the connection should be closed: %v", err)
		}
		stop()
	})
}

func TestTooManyStreamsAreRefusedAndAClosedOneMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, stop := bubbled(t, &scripted{scene: fiveCities()})
		var conns []net.Conn
		for range streamsMax {
			conn := p.dial(t, "/v1/events")
			go io.Copy(io.Discard, conn)
			conns = append(conns, conn)
		}
		synctest.Wait()
		refused := p.dial(t, "/v1/events")
		resp, err := http.ReadResponse(bufio.NewReader(refused), nil)
		if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Fatalf("%v %v, want 503 with Retry-After", resp, err)
		}
		if n := testutil.ToFloat64(s.metrics.streamsClosed.WithLabelValues("limit")); n != 1 {
			t.Errorf("%v refused, want 1", n)
		}
		conns[0].Close()
		refused.Close()
		time.Sleep(time.Second) // virtual: the server notices
		fresh := p.dial(t, "/v1/events")
		readEvent(t, response(t, fresh))
		for _, c := range append(conns, fresh) {
			c.Close()
		}
		stop()
	})
}

func TestTheEndOfRunEndsStreamsAndLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := New(Config{Listen: "127.0.0.1:0"}, &scripted{scene: fiveCities()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	readEvent(t, response(t, conn))
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("the address still answers")
	}
}

func TestRunReportsALostListener(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0"}, &scripted{scene: fiveCities()})
	if err != nil {
		t.Fatal(err)
	}
	s.listener.Close()
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("Run returned %v, want an error that names the address", err)
	}
}
