package gate_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"subak/enforce/gate"
)

func TestTrailersPassThroughBothWays(t *testing.T) {
	plain := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Back")
		fmt.Fprintf(w, "%s, %v", body, r.Trailer)
		w.Header().Set("X-Back", "yes")
		w.Header().Set(http.TrailerPrefix+"X-Late", "too")
	}))
	h2c := *plain
	h2c.Scheme = "h2c"
	for name, backend := range map[string]*url.URL{"HTTP/1.1": plain, "h2c": &h2c} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10, 10)
			u := serve(t, w.gate(gate.Config{
				Backends: to(backend),
				Rules:    []gate.Rule{{Match: gate.Match{Headers: map[string]string{"X-Verified": "1"}}, Target: gate.Target{Budget: "origin", Class: "high"}}},
			}))
			_, r := rawBytes(t, u, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n"+
				"Trailer: X-Sum, X-Verified, X_Verified, Authorization\r\n\r\n3\r\nabc\r\n0\r\n"+
				"X-Sum: 6\r\nX-Verified: 1\r\nX_Verified: 1\r\nAuthorization: me\r\nX-Unannounced: 1\r\n\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || string(body) != "abc, map[X-Sum:[6]]" {
				t.Errorf("backend got %q, %v", body, err)
			}
			if res.Trailer.Get("X-Back") != "yes" || res.Trailer.Get("X-Late") != "too" {
				t.Errorf("client got %v", res.Trailer)
			}
		})
	}
}

func TestHopByHopFieldsEndHereAndTheOthersPass(t *testing.T) {
	w := newWorld(t, 10, 10)
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header()["X-End"] = []string{"1", "2"}
		echo(w, r)
	}))
	u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
	_, r := rawBytes(t, u, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x-hop, Cookie\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nCookie: c\r\n"+
		"Proxy-Authorization: me\r\nProxy-Connection: x\r\nUpgrade: foo\r\nTE: gzip, trailers\r\nTrailer: X\r\nX-End: 1\r\nX-End: 2\r\n"+
		"X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX_Other: 1\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	e := answer{res, string(body)}.echoed(t)
	want := http.Header{
		"X-End": {"1", "2"}, "Te": {"trailers"}, "X_other": {"1"},
		"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Proto": {"http"},
	}
	if len(e.Header) != len(want) {
		t.Errorf("backend saw %v, want %v", e.Header, want)
	}
	for name, v := range want {
		if !slices.Equal(e.Header[name], v) {
			t.Errorf("backend saw %s: %q, want %q", name, e.Header[name], v)
		}
	}
	for _, name := range []string{"Connection", "X-Hop", "Keep-Alive", "Proxy-Authenticate"} {
		if v := res.Header.Values(name); len(v) > 0 {
			t.Errorf("client saw %s: %q", name, v)
		}
	}
	if !slices.Equal(res.Header["X-End"], []string{"1", "2"}) {
		t.Errorf("client saw %v", res.Header)
	}
}

// A client must not be judged by a field that it has this hop take away.
func TestAFieldThatConnectionNamesIsNotJudgedBy(t *testing.T) {
	w := newWorld(t, 10, 0)
	u := serve(t, w.gate(gate.Config{
		Backends: to(serve(t, http.HandlerFunc(echo))),
		Rules:    []gate.Rule{{Match: gate.Match{Headers: map[string]string{"X-Plan": "gold"}}, Target: gate.Target{Budget: "origin", Class: "high"}}},
	}))
	for conn, want := range map[string]int{"keep-alive": 200, "X-Plan": 429, "close, x-plan": 429} {
		_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\nX-Plan: gold\r\nConnection: "+conn+"\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != want {
			t.Errorf("Connection: %s: %v, %v; want %d", conn, res, err, want)
		}
	}
}

func TestHEADAndEmptyAnswersKeepTheirFields(t *testing.T) {
	w := newWorld(t, 10, 10)
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		switch r.URL.Path {
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header()["Content-Type"] = nil
			w.Header().Set("Content-Length", "5")
			if r.Method != "HEAD" {
				fmt.Fprint(w, "<html")
			}
		}
	}))
	u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
	// All on one connection: a wrong length would show in the next answer.
	c, r := rawBytes(t, u, "")
	for _, tc := range []struct {
		method, path, length, body string
		status                     int
	}{
		{"HEAD", "/", "5", "", 200}, {"GET", "/304", "", "", 304}, {"GET", "/204", "", "", 204}, {"GET", "/", "5", "<html", 200},
	} {
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\n\r\n", tc.method, tc.path)
		res, err := http.ReadResponse(r, &http.Request{Method: tc.method})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != tc.status || string(body) != tc.body || res.Header.Get("Content-Length") != tc.length || res.Header.Get("ETag") == "" {
			t.Errorf("%s %s: %d %v %q", tc.method, tc.path, res.StatusCode, res.Header, body)
		}
		if ct, guessed := res.Header["Content-Type"]; guessed {
			t.Errorf("%s %s: a Content-Type %q that the backend did not send", tc.method, tc.path, ct)
		}
	}
}

func TestExpectContinueReachesTheBackendAndTheBodyWaitsForIt(t *testing.T) {
	for _, accept := range []bool{true, false} {
		t.Run(fmt.Sprint(accept), func(t *testing.T) {
			w := newWorld(t, 10, 10)
			backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !accept {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				io.Copy(w, r.Body)
			}))
			u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
			c, r := rawBytes(t, u, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if !accept {
				if !strings.HasPrefix(line, "HTTP/1.1 403") {
					t.Errorf("got %q, want 403 and no 100", line)
				}
				return
			}
			if !strings.HasPrefix(line, "HTTP/1.1 100") {
				t.Fatalf("got %q, want 100", line)
			}
			r.ReadString('\n')
			io.WriteString(c, "abc")
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "abc" {
				t.Errorf("%d %q", res.StatusCode, body)
			}
		})
	}
}

func TestARefusedRequestIsNotAskedForItsBody(t *testing.T) {
	w := newWorld(t, 10, 0)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(echo)))}))
	_, r := rawBytes(t, u, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
	if line, _ := r.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 429") {
		t.Errorf("got %q, want 429", line)
	}
}

func TestInformationalAnswersPassWithTheirFields(t *testing.T) {
	w := newWorld(t, 10, 10)
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 2 {
			w.Header().Set("Link", fmt.Sprintf("</%d.css>; rel=preload", i))
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Del("Link")
		fmt.Fprint(w, "done")
	}))
	u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
	var links []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		links = append(links, fmt.Sprint(code, h["Link"]))
		return nil
	}}
	req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), "GET", u.String(), nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if want := []string{"103 [</0.css>; rel=preload]", "103 [</1.css>; rel=preload]"}; !slices.Equal(links, want) || res.Header.Get("Link") != "" {
		t.Errorf("%q, then %v", links, res.Header)
	}
}

func TestAnAnswerThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	for name, head := range map[string]string{"with a length": "Content-Length: 10", "in chunks": "Transfer-Encoding: chunked"} {
		t.Run(name, func(t *testing.T) {
			backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%s\r\n\r\n3\r\nabc\r\n", head)
					c.Close()
				}
			}))
			w := newWorld(t, 10, 10)
			g := w.gate(gate.Config{Backends: to(backend)})
			res, err := http.Get(serve(t, g).String())
			if err == nil {
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			if err == nil {
				t.Error("the client took a part for the whole")
			}
			if got := metric(t, collector(g), "budget_gate_responses_cut_total", "by=backend"); got != 1 {
				t.Errorf("%v cut, want 1", got)
			}
		})
	}
}

func TestABackendThatSwitchesProtocolsUnaskedIsA502(t *testing.T) {
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
			c.Close()
		}
	}))
	w := newWorld(t, 10, 10)
	u := serve(t, w.gate(gate.Config{Backends: to(backend)}))
	for _, ask := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		_, r := rawBytes(t, u, "GET / HTTP/1.1\r\nHost: a\r\n"+ask+"\r\n")
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 502 {
			t.Errorf("%q: %v, %v", ask, res, err)
		}
	}
}

func TestAPipelineIsJudgedRequestByRequest(t *testing.T) {
	var hits atomic.Int64
	w := newWorld(t, 10, 2)
	u := serve(t, w.gate(gate.Config{Backends: to(serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) })))}))
	c, r := rawBytes(t, u, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 4))
	var codes []int
	for range 4 {
		codes = append(codes, nextStatus(t, r))
	}
	c.Close()
	if !slices.Equal(codes, []int{200, 200, 429, 429}) || hits.Load() != 2 {
		t.Errorf("%v, %d hits", codes, hits.Load())
	}
}

func nextStatus(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	return res.StatusCode
}
