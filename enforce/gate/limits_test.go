package gate_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"subak/enforce/gate"
)

// serveWith runs a gate's server with the limits of its configuration.
func serveWith(t testing.TB, cfg gate.Config, h http.Handler) (*url.URL, *gate.Server) {
	t.Helper()
	srv, err := gate.NewServer(cfg, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	scheme := "http"
	if cfg.TLS != nil {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: ln.Addr().String()}, srv
}

// limited is a gate behind a server, both with the same limits, in front of h.
func (w *world) limited(lim gate.Limits, h http.HandlerFunc) (*url.URL, *gate.Gate, *gate.Server) {
	w.t.Helper()
	cfg := gate.Config{Name: "edge", Limits: lim, Backends: to(serve(w.t, h))}
	g := w.gate(cfg)
	u, srv := serveWith(w.t, cfg, g)
	return u, g, srv
}

func serverCollector(s *gate.Server) prometheus.Collector {
	return gate.NewServerCollector(func() []*gate.Server { return []*gate.Server{s} })
}

func reads(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err == nil {
		fmt.Fprintf(w, "%d", n)
	}
}

func TestAHeadThatIsTooLargeIsA431(t *testing.T) {
	w := newWorld(t, 10, 10)
	u, _, _ := w.limited(gate.Limits{HeaderBytes: 8 << 10}, reads)
	_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 16<<10)+"\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("%v, %v", res, err)
	}
	if a := w.counts(1).Offered; a != 0 {
		t.Errorf("%d offered", a)
	}
}

func TestABodyThatIsTooLargeIsA413(t *testing.T) {
	w := newWorld(t, 10, 10)
	u, g, _ := w.limited(gate.Limits{BodyBytes: 10}, reads)
	post := func(body io.Reader) int {
		res, err := http.Post(u.String(), "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := post(strings.NewReader("0123456789")); got != 200 {
		t.Errorf("10 bytes: %d", got)
	}
	if got := post(strings.NewReader("0123456789x")); got != 413 {
		t.Errorf("11 bytes: %d", got)
	}
	if c := w.counts(1).Admitted; c != 1 {
		t.Errorf("%d charged, want 1: a length that is known is refused before", c)
	}
	if got := post(io.MultiReader(strings.NewReader("01234"), strings.NewReader("56789x"))); got != 413 {
		t.Errorf("11 bytes in chunks: %d", got)
	}
	if got := metric(t, collector(g), "budget_gate_bad_bodies_total"); got != 2 {
		t.Errorf("%v counted, want 2", got)
	}
	if got := metric(t, collector(g), "budget_gate_backend_failures_total"); got != 0 {
		t.Errorf("%v failures of the backend", got)
	}
}

func TestTooManyRequestsAtOnceAreShedWith503AndNotCharged(t *testing.T) {
	w := newWorld(t, 10, 10)
	arrived, hold := make(chan struct{}, 2), make(chan struct{})
	u, g, _ := w.limited(gate.Limits{InFlight: 2}, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-hold
	})
	first := make(chan int, 2)
	for range 2 {
		go func() {
			res, err := http.Get(u.String())
			if err != nil {
				first <- 0
				return
			}
			res.Body.Close()
			first <- res.StatusCode
		}()
	}
	<-arrived
	<-arrived
	if got := metric(t, collector(g), "budget_gate_shed_total"); got != 0 {
		t.Errorf("%v shed", got)
	}
	a := send(t, "GET", u, "/")
	wantStatus(t, a, 503)
	wantHeader(t, a, "Retry-After", "1")
	close(hold)
	for range 2 {
		if got := <-first; got != 200 {
			t.Errorf("status %d of one that was in", got)
		}
	}
	if c := w.counts(1); c.Offered != 2 {
		t.Errorf("counts %+v, want 2 offered", c)
	}
	if got := metric(t, collector(g), "budget_gate_shed_total"); got != 1 {
		t.Errorf("%v shed, want 1", got)
	}
	wantStatus(t, send(t, "GET", u, "/"), 200)
}

func TestConnectionsBeyondTheLimitAreClosedAndRoomIsUsedAgain(t *testing.T) {
	w := newWorld(t, 10, 10)
	u, _, srv := w.limited(gate.Limits{Connections: 2}, reads)
	get := func(c net.Conn, r *bufio.Reader) error {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		return err
	}
	a, ar := rawBytes(t, u, "")
	b, br := rawBytes(t, u, "")
	if err := errors.Join(get(a, ar), get(b, br)); err != nil {
		t.Fatal(err)
	}
	c, cr := rawBytes(t, u, "")
	if err := get(c, cr); err == nil {
		t.Fatal("a third connection was served")
	}
	if got := metric(t, serverCollector(srv), "budget_gate_connections_refused_total"); got != 1 {
		t.Errorf("%v refused, want 1", got)
	}
	a.Close()
	for { // until the server has noticed
		d, dr := rawBytes(t, u, "")
		if get(d, dr) == nil {
			break
		}
		d.Close()
	}
}

// Slow clients: with a limit of some milliseconds the connection must end; how
// soon does not matter here.
func TestASlowHeadIsCutOff(t *testing.T) {
	w := newWorld(t, 10, 10)
	u, _, _ := w.limited(gate.Limits{HeaderTimeout: 20 * time.Millisecond}, reads)
	_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow")
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if a := w.counts(1).Offered; a != 0 {
		t.Errorf("%d offered", a)
	}
}

func TestASlowBodyIsA408AndFreesTheBackend(t *testing.T) {
	for _, head := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
		t.Run(head, func(t *testing.T) {
			w := newWorld(t, 10, 10)
			freed := make(chan struct{})
			u, g, _ := w.limited(gate.Limits{BodyStall: 20 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
				defer close(freed)
				reads(w, r)
			})
			_, r := rawBytes(t, u, "POST / HTTP/1.1\r\nHost: a\r\n"+head+"\r\n\r\n3\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != http.StatusRequestTimeout {
				t.Fatalf("%v, %v; want 408", res, err)
			}
			<-freed
			if got := metric(t, collector(g), "budget_gate_bad_bodies_total"); got != 1 {
				t.Errorf("%v counted, want 1", got)
			}
		})
	}
}

func TestASlowBodyOfARefusedRequestIsNotWaitedForEither(t *testing.T) {
	w := newWorld(t, 10, 0)
	u, _, _ := w.limited(gate.Limits{BodyStall: 20 * time.Millisecond}, reads)
	_, r := rawBytes(t, u, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
	if codes := statuses(r); len(codes) != 1 || codes[0] != 429 {
		t.Errorf("answers %v", codes)
	}
}

func TestASlowBodyOverHTTP2EndsItsStream(t *testing.T) {
	w := newWorld(t, 10, 10)
	u, _, _ := w.limited(gate.Limits{BodyStall: 20 * time.Millisecond}, reads)
	fr := framer(t, u)
	headers(t, fr, false, ":method", "POST", ":scheme", "http", ":authority", "a", ":path", "/")
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := f.(*http2.MetaHeadersFrame); ok {
			if got := h.PseudoValue("status"); got != "408" {
				t.Errorf("status %s, want 408", got)
			}
			return
		}
		if _, ok := f.(*http2.RSTStreamFrame); ok {
			return
		}
	}
}

// endless writes until it is stopped, and says so.
func endless(stopped chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer close(stopped)
		buf := bytes.Repeat([]byte("x"), 64<<10)
		for {
			if _, err := w.Write(buf); err != nil {
				return
			}
		}
	}
}

func TestASlowReaderIsCutOffAndFreesTheBackend(t *testing.T) {
	w := newWorld(t, 10, 10)
	stopped := make(chan struct{})
	u, g, _ := w.limited(gate.Limits{WriteStall: 20 * time.Millisecond}, endless(stopped))
	c, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-stopped
	if _, err := io.Copy(io.Discard, r); err == nil {
		t.Log("the connection ended in order")
	}
	c.Close()
	waitFor(t, func() bool {
		return metric(t, collector(g), "budget_gate_responses_cut_total", "by=client") == 1
	})
}

func TestASlowReaderOverHTTP2LosesItsStreamOnly(t *testing.T) {
	w := newWorld(t, 10, 10)
	stopped := make(chan struct{})
	u, _, _ := w.limited(gate.Limits{WriteStall: 20 * time.Millisecond}, endless(stopped))
	fr := framer(t, u) // its window of 64 KiB is never opened
	headers(t, fr, true, ":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/")
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := f.(*http2.RSTStreamFrame); ok {
			break
		}
	}
	<-stopped
	if err := fr.WritePing(false, [8]byte{1}); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatalf("the connection ended too: %v", err)
		}
		if p, ok := f.(*http2.PingFrame); ok && p.IsAck() {
			return
		}
	}
}

// A stream that pauses for longer than the stall limit is not the client's fault.
func TestAStreamThatPausesIsNotCutOff(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(proto, func(t *testing.T) {
			w := newWorld(t, 10, 10)
			next := make(chan struct{})
			u, _, _ := w.limited(gate.Limits{WriteStall: 10 * time.Millisecond, BodyStall: 10 * time.Millisecond},
				func(w http.ResponseWriter, r *http.Request) {
					for range 3 {
						fmt.Fprint(w, "x")
						http.NewResponseController(w).Flush()
						select {
						case <-next:
						case <-r.Context().Done():
							return
						}
					}
				})
			tr := &http.Transport{Protocols: new(http.Protocols)}
			tr.Protocols.SetHTTP1(proto == "HTTP/1.1")
			tr.Protocols.SetUnencryptedHTTP2(proto == "HTTP/2")
			defer tr.CloseIdleConnections()
			res, err := (&http.Client{Transport: tr}).Get(u.String())
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			for range 3 {
				if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
				<-ctx.Done()
				cancel()
				next <- struct{}{}
			}
			if _, err := res.Body.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("end: %v", err)
			}
		})
	}
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	w := newWorld(t, 10, 10)
	u, _, _ := w.limited(gate.Limits{IdleTimeout: 20 * time.Millisecond}, reads)
	_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
}

// waitFor polls what another goroutine is about to do.
func waitFor(t testing.TB, done func() bool) {
	t.Helper()
	for range 10_000 {
		if done() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		<-ctx.Done()
		cancel()
	}
	t.Fatal("it did not happen")
}

// framer opens an HTTP/2 connection.
func framer(t testing.TB, u *url.URL) *http2.Framer {
	t.Helper()
	c, _ := rawBytes(t, u, http2.ClientPreface)
	fr := http2.NewFramer(c, c)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := fr.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return fr
}

// headers begins stream 1 with the given fields.
func headers(t testing.TB, fr *http2.Framer, end bool, fields ...string) {
	t.Helper()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	if err := fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: end, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
}
