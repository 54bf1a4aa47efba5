package gate

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"subak/allocator"
	"subak/enforce"
)

// wire writes what it is sent as a backend would read it, and answers 200.
type wire struct {
	sent bytes.Buffer
}

func (b *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Write(&b.sent); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
}

// FuzzRequestHead throws the bytes of a request at the way from the connection to
// the backend. Whatever they are, one of three must hold: the connection is given
// up, the request is refused, or the backend reads exactly one request, which the
// rules send to the very class that was charged.
func FuzzRequestHead(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET //admin/../x;y/%2e%2e/%2fz?q=/../# HTTP/1.1\r\nHost: A.example.:080\r\n\r\n",
		"POST http://u@h/%61dmin HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\nabc",
		"PUT /x%5cadmin HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1;e\r\na\r\n0\r\nX: y\r\n\r\n",
		"GET /admin%2fx HTTP/1.0\r\nConnection: X-Plan, upgrade\r\nX-Plan: gold\r\nX_Plan: gold\r\nUpgrade: websocket\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: secret.example\r\nX-Forwarded-For: 1.2.3.4\r\nTE: trailers\r\nExpect: 100-continue\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	lim := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, 0)
	rate := 1_000_000 * allocator.Unit
	lim.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: 2 * rate, Classes: []allocator.Rate{rate, rate}}})
	back := &wire{}
	now := int64(1e9)
	high := Target{Budget: "b", Class: "high"}
	g, err := New(Config{
		Name: "fuzz", Default: Target{Budget: "b", Class: "low"}, RetryBy: RetryOff,
		Backends: []Backend{{URL: mustParse("http://backend.example/base/")}},
		Rules: []Rule{
			{Match: Match{Path: "/admin*"}, Target: high},
			{Match: Match{Host: "secret.example"}, Target: high},
			{Match: Match{Headers: map[string]string{"X-Plan": "gold"}}, Target: high},
		},
	}, Deps{
		Limits: Budgets{{Name: "b", Classes: []string{"high", "low"}, Limiter: lim}},
		Now:    func() int64 { now += 1e9; return now }, Transport: back,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var fr framing
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data[:fr.check(data)])))
		if err != nil || fr.state == opaque {
			return
		}
		r.RemoteAddr = "192.0.2.1:1234"
		back.sent.Reset()
		before := admitted(lim)
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, r)
		charged := admitted(lim)
		charged[0], charged[1] = charged[0]-before[0], charged[1]-before[1]
		if rec.Code != 200 {
			return
		}
		in := bufio.NewReader(&back.sent)
		seen, err := http.ReadRequest(in)
		if err != nil {
			t.Fatalf("the backend cannot read %q: %v", back.sent.String(), err)
		}
		if _, err := io.Copy(io.Discard, seen.Body); err != nil {
			t.Fatalf("the backend cannot read the body: %v", err)
		}
		if n := in.Buffered() + back.sent.Len(); n != 0 {
			t.Fatalf("%d bytes after the request", n)
		}
		path, under := strings.CutPrefix(seen.RequestURI, "/base")
		if !under {
			t.Fatalf("the backend sees %q", seen.RequestURI)
		}
		seen.RequestURI, seen.RemoteAddr = path, r.RemoteAddr
		if r.Host == "" {
			seen.Host = ""
		}
		fs, _ := g.facts(seen)
		c, ok := g.find(&fs)
		if fs.fault != "" || !ok || charged[c.to.index] != 1 || charged[1-c.to.index] != 0 {
			t.Fatalf("%q is sent to class %d (%s), charged was %v", seen.RequestURI, c.to.index, fs.fault, charged)
		}
	})
}

func admitted(l *enforce.Limiter) [2]int64 {
	c := make([]enforce.Counts, 2)
	l.Counts(c)
	return [2]int64{c[0].Admitted, c[1].Admitted}
}

func mustParse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}
