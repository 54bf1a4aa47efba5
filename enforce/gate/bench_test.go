package gate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"subak/enforce/gate"
)

// stub answers without a network.
type stub struct{}

func (stub) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), ContentLength: 0,
	}, nil
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkGate is the whole handler without a network. "check" shows what
// classification and decision cost; "proxy" is mostly httputil.ReverseProxy;
// "refused" is what a flood costs.
func BenchmarkGate(b *testing.B) {
	for _, tc := range []struct {
		name  string
		quiet bool
		path  string
		low   int64
	}{
		{"proxy", false, "/api/x?y=1", 1e9},
		{"proxy-quiet", true, "/api/x?y=1", 1e9},
		{"check", false, "/v1/check", 1e9},
		{"check-quiet", true, "/v1/check", 1e9},
		{"refused", false, "/api/x?y=1", 0},
	} {
		b.Run(tc.name, func(b *testing.B) {
			w := newWorld(b, 10, tc.low)
			deps := w.deps()
			deps.Transport = stub{}
			g, err := gate.New(gate.Config{
				Backends: to(mustURL("http://backend")), Check: gate.Check{Enabled: true, AdmittedFields: !tc.quiet}, QuietAdmitted: tc.quiet,
				Default: gate.Target{Budget: "origin", Class: "low"},
				Rules: []gate.Rule{
					{Match: gate.Match{Methods: []string{"POST"}, Path: "/api/*"}, Target: gate.Target{Budget: "origin", Class: "high"}},
					{Match: gate.Match{Host: "*.example.com", Headers: map[string]string{"X-Verified": "1"}}, Target: gate.Target{Budget: "origin", Class: "high"}},
					{Match: gate.Match{Network: prefixes("10.0.0.0/8")}, Target: gate.Target{Budget: "origin", Class: "high"}},
				},
			}, deps)
			if err != nil {
				b.Fatal(err)
			}
			r := httptest.NewRequest("GET", tc.path, nil)
			rw := &discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(rw.header)
				g.ServeHTTP(rw, r)
			}
		})
	}
}
