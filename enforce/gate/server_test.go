package gate_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"subak/enforce/gate"
)

// certificate writes a pair of files for 127.0.0.1, and returns its authority.
func certificate(t testing.TB) (*gate.TLS, *x509.CertPool) {
	t.Helper()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	pair := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	files := &gate.TLS{CertFile: filepath.Join(t.TempDir(), "cert"), KeyFile: filepath.Join(t.TempDir(), "key")}
	for name, b := range map[string]*pem.Block{
		files.CertFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, files.KeyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return files, pool
}

func overTLS(pool *x509.CertPool, h2 bool) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!h2)
	tr.Protocols.SetHTTP2(h2)
	return &http.Client{Transport: tr}
}

func TestTLSListenerSpeaksBothProtocolsAndTellsTheBackend(t *testing.T) {
	files, pool := certificate(t)
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP2=%v", h2), func(t *testing.T) {
			w := newWorld(t, 10, 10)
			cfg := gate.Config{Name: "edge", TLS: files, Backends: to(serve(t, http.HandlerFunc(echo)))}
			u, srv := serveWith(t, cfg, w.gate(cfg))
			c := overTLS(pool, h2)
			defer c.CloseIdleConnections()
			for range 2 {
				res, err := c.Get(u.String() + "/x")
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				e := answer{res, string(body)}.echoed(t)
				if (res.ProtoMajor == 2) != h2 || e.URI != "/x" || e.Header.Get("X-Forwarded-Proto") != "https" {
					t.Errorf("%s, backend saw %+v", res.Proto, e)
				}
			}
			if got := metric(t, serverCollector(srv), "budget_gate_tls_handshake_failures_total"); got != 0 {
				t.Errorf("%v handshakes failed", got)
			}
		})
	}
}

func TestFramingIsCheckedBehindTLSToo(t *testing.T) {
	files, pool := certificate(t)
	w := newWorld(t, 10, 10)
	cfg := gate.Config{Name: "edge", TLS: files, Backends: to(serve(t, http.HandlerFunc(echo)))}
	u, srv := serveWith(t, cfg, w.gate(cfg))
	c, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if codes := statuses(bufio.NewReader(c)); len(codes) != 1 || codes[0] != 400 {
		t.Errorf("answers %v", codes)
	}
	if got := metric(t, serverCollector(srv), "budget_gate_misframed_total"); got != 1 {
		t.Errorf("%v counted", got)
	}
}

func TestClearTextOnATLSListenerIsA400AndASilentClientIsCutOff(t *testing.T) {
	files, _ := certificate(t)
	cfg := gate.Config{TLS: files, Limits: gate.Limits{HeaderTimeout: 50 * time.Millisecond}}
	u, srv := serveWith(t, cfg, http.HandlerFunc(echo))
	_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if codes := statuses(r); len(codes) != 1 || codes[0] != 400 {
		t.Errorf("answers %v", codes)
	}
	_, r = rawBytes(t, u, "\x16\x03")
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return metric(t, serverCollector(srv), "budget_gate_tls_handshake_failures_total") == 2 })
}

func TestACertificateIsReplacedUnderLoad(t *testing.T) {
	files, pool := certificate(t)
	other, otherPool := certificate(t)
	cfg := gate.Config{TLS: files}
	u, srv := serveWith(t, cfg, http.HandlerFunc(echo))
	ask := func(p *x509.CertPool) error {
		c := overTLS(p, true)
		defer c.CloseIdleConnections()
		res, err := c.Get(u.String())
		if err == nil {
			res.Body.Close()
		}
		return err
	}
	if err := ask(pool); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.KeyFile, []byte("bad"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := srv.ReloadTLS(); err == nil {
		t.Error("a bad key is no error")
	}
	if err := ask(pool); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{other.CertFile: files.CertFile, other.KeyFile: files.KeyFile} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.ReloadTLS(); err != nil {
		t.Fatal(err)
	}
	if err := ask(otherPool); err != nil {
		t.Error(err)
	}
	if got := metric(t, serverCollector(srv), "budget_gate_tls_reloads_total", "result=refused"); got != 1 {
		t.Errorf("%v refused", got)
	}
}

func TestABadConfigurationMakesNoServer(t *testing.T) {
	for _, cfg := range []gate.Config{{TLS: &gate.TLS{}}, {Limits: gate.Limits{InFlight: -1}}, {TLS: &gate.TLS{CertFile: "/none", KeyFile: "/none"}}} {
		if _, err := gate.NewServer(cfg, nil, nil); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

// holding is a backend that answers when it is let.
func holding(t *testing.T) (u *url.URL, arrived, let chan struct{}) {
	arrived, let = make(chan struct{}, 1), make(chan struct{})
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-let
		fmt.Fprint(w, "done")
	})), arrived, let
}

func TestShutdownFinishesWhatIsUnderWayAndTellsItsClient(t *testing.T) {
	w := newWorld(t, 10, 10)
	backend, arrived, let := holding(t)
	cfg := gate.Config{Name: "edge", Backends: to(backend)}
	u, srv := serveWith(t, cfg, w.gate(cfg))
	idle, idleReader := rawBytes(t, u, "")
	_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-arrived
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(context.Background()) }()
	waitFor(t, func() bool {
		c, err := net.Dial("tcp", u.Host)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(let)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "done" || !res.Close {
		t.Errorf("%q, close %v", body, res.Close)
	}
	idle.Close()
	_, _ = io.Copy(io.Discard, idleReader)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestShutdownSendsGOAWAYAndFinishesTheStream(t *testing.T) {
	w := newWorld(t, 10, 10)
	backend, arrived, let := holding(t)
	cfg := gate.Config{Name: "edge", Backends: to(backend)}
	u, srv := serveWith(t, cfg, w.gate(cfg))
	fr := framer(t, u)
	headers(t, fr, true, ":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/")
	<-arrived
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(context.Background()) }()
	goAway, data := false, ""
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			if !goAway {
				close(let)
			}
			goAway = true
		case *http2.DataFrame:
			data += string(f.Data())
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = fr.WritePing(true, f.Data)
			}
		}
	}
	if !goAway || data != "done" {
		t.Errorf("GOAWAY %v, data %q", goAway, data)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestShutdownIsBoundedAndCloseCutsTheRestOff(t *testing.T) {
	w := newWorld(t, 10, 10)
	backend, arrived, let := holding(t)
	defer close(let)
	cfg := gate.Config{Name: "edge", Backends: to(backend)}
	u, srv := serveWith(t, cfg, w.gate(cfg))
	_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-arrived
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if codes := statuses(r); len(codes) != 0 {
		t.Errorf("answers %v", codes)
	}
}

// webSocket opens one through a gate whose backend is h.
func webSocket(t *testing.T, h http.Handler) (c net.Conn, r *bufio.Reader, srv *gate.Server) {
	w := newWorld(t, 10, 10)
	cfg := gate.Config{Name: "edge", Backends: to(serve(t, h))}
	u, srv := serveWith(t, cfg, w.gate(cfg))
	c, r = rawBytes(t, u, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	return c, r, srv
}

func TestShutdownTellsWebSocketsBetweenTwoFrames(t *testing.T) {
	// The client's bytes come back as the backend's: frames without masks.
	c, r, srv := webSocket(t, websocketEcho(t))
	frame := "\x82\x7e\x01\x00" + string(make([]byte, 256))
	io.WriteString(c, frame+frame[:100]) // one and a part
	buf := make([]byte, len(frame)+100)
	if _, err := io.ReadFull(r, buf); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(context.Background()) }()
	io.WriteString(c, frame[100:]+frame) // the rest, and another
	rest := make([]byte, len(frame)-100)
	if _, err := io.ReadFull(r, rest); err != nil || string(rest) != frame[100:] {
		t.Fatalf("%q, %v", rest, err)
	}
	// Whole frames may come before the farewell, nothing after it.
	got := make([]byte, 4)
	for {
		if _, err := io.ReadFull(r, got); err != nil {
			t.Fatal(err)
		}
		if string(got) == "\x88\x02\x03\xe9" {
			break
		}
		if string(got) != frame[:4] {
			t.Fatalf("%q between two frames", got)
		}
		if _, err := r.Discard(len(frame) - 4); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(c, frame)
	c.(*net.TCPConn).CloseWrite() // the client has had enough
	if b, _ := io.ReadAll(r); len(b) != 0 {
		t.Errorf("%q after the farewell", b)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAWebSocketThatStaysIsCutOffByClose(t *testing.T) {
	c, r, srv := webSocket(t, websocketEcho(t))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if b, _ := io.ReadAll(r); string(b) != "\x88\x02\x03\xe9" {
		t.Errorf("got %q", b)
	}
	c.Close()
}
