package gate_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"subak/enforce/gate"
)

// witness is a backend that writes down the first line, the Host and the body of
// every request as its bytes were.
type witness struct {
	mu   sync.Mutex
	seen []string
}

func (w *witness) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

func (w *witness) serve(t testing.TB) *url.URL {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go w.connection(c)
		}
	}()
	return &url.URL{Scheme: "http", Host: ln.Addr().String()}
}

func (w *witness) connection(c net.Conn) {
	defer c.Close()
	// One request per connection: what follows it would have been smuggled.
	r := bufio.NewReader(c)
	first, err := r.ReadString('\n')
	if err != nil {
		return
	}
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(first), r)))
	if err != nil {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.seen = append(w.seen, strings.TrimSpace(first)+" | "+req.Host+" | "+string(body))
	w.mu.Unlock()
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// statuses reads answers until the connection ends.
func statuses(r *bufio.Reader) (codes []int) {
	for {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return codes
		}
		io.Copy(io.Discard, res.Body)
		codes = append(codes, res.StatusCode)
	}
}

// Rules on which a smuggler would want to get past: /admin is a class of its own
// without any capacity.
func guardedGate(t *testing.T) (*world, *witness, *url.URL) {
	w := newWorld(t, 0, 1000)
	b := &witness{}
	g := w.gate(gate.Config{
		Backends: to(b.serve(t)),
		Rules: []gate.Rule{
			{Match: gate.Match{Path: "/admin*"}, Target: gate.Target{Budget: "origin", Class: "high"}},
			{Match: gate.Match{Host: "secret.example"}, Target: gate.Target{Budget: "origin", Class: "high"}},
		},
	})
	return w, b, serve(t, g)
}

func TestWhatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	const smuggled = "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, text := range map[string]string{
		"CL and TE":                 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE and CL":                 "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 50\r\n\r\n0\r\n\r\n" + smuggled,
		"two CLs":                   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\n" + smuggled,
		"two equal CLs":             "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
		"a list of CLs":             "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
		"a signed CL":               "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
		"a blank before the colon":  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 35\r\n\r\n" + smuggled,
		"TE behind a vertical tab":  "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\vchunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE: xchunked":              "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"TE twice":                  "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n",
		"TE in HTTP/1.0":            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"bare LF in the head":       "GET / HTTP/1.1\nHost: a\n\n",
		"bare LF before a field":    "GET / HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"bare CR":                   "GET / HTTP/1.1\r\nHost: a\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n",
		"a folded field":            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
		"a blank first field":       "GET / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n",
		"NUL in a field":            "GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
		"two Hosts":                 "GET / HTTP/1.1\r\nHost: a\r\nHost: secret.example\r\n\r\n",
		"no Host":                   "GET / HTTP/1.1\r\nX: y\r\n\r\n",
		"a Host with a path":        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
		"a Host with a user":        "GET / HTTP/1.1\r\nHost: a@secret.example\r\n\r\n",
		"a Host with two ports":     "GET / HTTP/1.1\r\nHost: a:80:secret.example\r\n\r\n",
		"a Host list":               "GET / HTTP/1.1\r\nHost: a, secret.example\r\n\r\n",
		"an escaped Host":           "GET / HTTP/1.1\r\nHost: %61\r\n\r\n",
		"two blanks":                "GET  /admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"no version":                "GET /admin\r\nHost: a\r\n\r\n",
		"a tab for a blank":         "GET\t/admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"a control in the target":   "GET /a\x0badmin HTTP/1.1\r\nHost: a\r\n\r\n",
		"a fragment":                "GET /a#/../admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"a backslash":               "GET /a\\..\\admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"above the root":            "GET /../admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"an escaped NUL":            "GET /a%00/admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"an escaped line end":       "GET /a%0d%0aX:y HTTP/1.1\r\nHost: a\r\n\r\n",
		"a hidden dot segment":      "GET /a/..%2fadmin HTTP/1.1\r\nHost: a\r\n\r\n",
		"a dot segment with params": "GET /a/..;x/admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"/admin behind %2f":         "GET /%2fadmin HTTP/1.1\r\nHost: a\r\n\r\n",
		"/admin behind %5c":         "GET /%5cadmin HTTP/1.1\r\nHost: a\r\n\r\n",
		"/admin behind params":      "GET /;x/admin HTTP/1.1\r\nHost: a\r\n\r\n",
		"a URL with a user":         "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"another scheme":            "GET gopher://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"an authority":              "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
		"a star":                    "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w, b, u := guardedGate(t)
			c, r := rawBytes(t, u, text)
			c.(*net.TCPConn).CloseWrite()
			codes := statuses(r)
			if len(codes) != 1 || codes[0] != 400 && codes[0] != 501 {
				t.Errorf("answers %v, want one 400", codes)
			}
			if seen := b.all(); len(seen) > 0 {
				t.Errorf("the backend saw %q", seen)
			}
			if a := w.counts(1).Admitted; a != 0 {
				t.Errorf("%d charged", a)
			}
		})
	}
}

// A body whose chunks are wrong is found out after the head has been judged.
func TestABodyWithAmbiguousChunksDoesNotReachTheBackendAsAWhole(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, chunks := range map[string]string{
		"bare LF after a size":        "3\nabc\r\n0\r\n\r\n",
		"bare LF in an extension":     "3;x\nabc\r\n0\r\n\r\n",
		"a blank after a size":        "3 \r\nabc\r\n0\r\n\r\n",
		"a chunk longer than said":    "3\r\nabcdef\r\n0\r\n\r\n",
		"a size in 0x":                "0x3\r\nabc\r\n0\r\n\r\n",
		"Content-Length in a trailer": "3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n",
		"cut off":                     "3\r\nab",
	} {
		t.Run(name, func(t *testing.T) {
			_, b, u := guardedGate(t)
			c, r := rawBytes(t, u, head+chunks)
			if name == "cut off" {
				c.(*net.TCPConn).CloseWrite()
			}
			if codes := statuses(r); len(codes) != 1 || codes[0] != 400 {
				t.Errorf("answers %v, want 400", codes)
			}
			for _, s := range b.all() {
				if strings.HasSuffix(s, "| abc") {
					t.Errorf("the backend took %q for whole", s)
				}
			}
		})
	}
}

func TestTheBackendGetsWhatWasJudged(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"as it is":              {"GET /a/b?c=/../d HTTP/1.1\r\nHost: x.example:81\r\n\r\n", "GET /a/b?c=/../d HTTP/1.1 | x.example:81 | "},
		"dots and slashes":      {"GET //a/./b/../c//?q HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a/c/?q HTTP/1.1 | a | "},
		"escapes":               {"GET /%61%2e%7e%c3%a9|%2a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a.~%C3%A9%7C%2A HTTP/1.1 | a | "},
		"%2F where it is alike": {"GET /x%2fy HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x%2Fy HTTP/1.1 | a | "},
		"params likewise":       {"GET /x;v=1/y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x;v=1/y HTTP/1.1 | a | "},
		"an empty query":        {"GET /x? HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x? HTTP/1.1 | a | "},
		"a URL wins over Host":  {"GET http://a.example/x HTTP/1.1\r\nHost: secret.example\r\n\r\n", "GET /x HTTP/1.1 | a.example | "},
		"host in upper case":    {"GET /x HTTP/1.1\r\nHost: A.Example.:080\r\n\r\n", "GET /x HTTP/1.1 | a.example:80 | "},
		"a body":                {"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "POST /x HTTP/1.1 | a | abc"},
		"chunks and extensions": {"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "POST /x HTTP/1.1 | a | abc"},
	} {
		t.Run(name, func(t *testing.T) {
			_, b, u := guardedGate(t)
			_, r := rawBytes(t, u, tc.text)
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%v, %v", res, err)
			}
			if seen := b.all(); len(seen) != 1 || seen[0] != tc.want {
				t.Errorf("the backend saw %q, want %q", seen, tc.want)
			}
		})
	}
}

func TestEveryWayOfWritingAPathMeetsItsRule(t *testing.T) {
	for _, target := range []string{
		"/admin", "/admin/x", "//admin", "/./admin", "/x/../admin", "/%61dmin", "/%61%64%6d%69%6e", "/x/%2e%2e/admin",
		"/%2e/admin", "/admin%2fx", "/admin;x", "/admin%5cx", "http://b/admin", "http://secret.example/", "http://SECRET.example.:80/",
	} {
		t.Run(target, func(t *testing.T) {
			_, b, u := guardedGate(t)
			_, r := rawBytes(t, u, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != http.StatusTooManyRequests {
				t.Fatalf("%v, %v; want 429", res, err)
			}
			if seen := b.all(); len(seen) > 0 {
				t.Errorf("the backend saw %q", seen)
			}
		})
	}
}

// HTTP/2 has its own ways of saying two things.
func TestHTTP2RequestsWithTwoMeaningsAreRefused(t *testing.T) {
	for name, fields := range map[string][]string{
		"another host":     {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/", "host", "secret.example"},
		"a user":           {":method", "GET", ":scheme", "http", ":authority", "u@a", ":path", "/"},
		"a hidden dot":     {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/x/..%2fadmin"},
		"a line end":       {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/x%0d%0aX: y"},
		"no slash":         {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "admin"},
		"a field of HTTP1": {":method", "POST", ":scheme", "http", ":authority", "a", ":path", "/", "transfer-encoding", "chunked"},
		"a line in a field": {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/", "x",
			"y\r\ntransfer-encoding: chunked"},
		"two paths": {":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/", ":path", "/admin"},
	} {
		t.Run(name, func(t *testing.T) {
			_, b, u := guardedGate(t)
			if status := overHTTP2(t, u, fields); status != "" && status != "400" {
				t.Errorf("status %s, want 400 or a reset", status)
			}
			if seen := b.all(); len(seen) > 0 {
				t.Errorf("the backend saw %q", seen)
			}
		})
	}
	t.Run("one meaning", func(t *testing.T) {
		_, b, u := guardedGate(t)
		fields := []string{":method", "GET", ":scheme", "http", ":authority", "A.example", ":path", "//x"}
		if status := overHTTP2(t, u, fields); status != "200" || !slices.Equal(b.all(), []string{"GET /x HTTP/1.1 | a.example | "}) {
			t.Errorf("status %s, backend %q", status, b.all())
		}
	})
}

// overHTTP2 sends one request with the given fields and returns its status, or
// "" if the stream or the connection was reset.
func overHTTP2(t *testing.T, u *url.URL, fields []string) string {
	fr := framer(t, u)
	headers(t, fr, true, fields...)
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return ""
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			return f.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return ""
		}
	}
}

// rawBytes opens a connection and sends bytes as they are.
func rawBytes(t testing.TB, u *url.URL, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}
