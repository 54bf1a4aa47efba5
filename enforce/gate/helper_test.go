package gate_test

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/gate"
)

// world is one budget "origin" with classes high and low, and a clock that
// stands still unless a test moves it.
type world struct {
	t      testing.TB
	lim    *enforce.Limiter
	now    atomic.Int64
	limits gate.Budgets
}

// newWorld fills both classes' buckets: perSecond units each, at that rate.
func newWorld(t testing.TB, high, low int64) *world {
	w := &world{t: t, lim: enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, 0)}
	h, l := allocator.Rate(high)*allocator.Unit, allocator.Rate(low)*allocator.Unit
	w.lim.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: h + l, Classes: []allocator.Rate{h, l}}})
	w.now.Store(int64(100 * time.Second))
	w.limits = gate.Budgets{{Name: "origin", Classes: []string{"high", "low"}, Limiter: w.lim}}
	return w
}

func (w *world) deps() gate.Deps {
	return gate.Deps{Limits: w.limits, Now: w.now.Load}
}

// gate completes a configuration with a default class and returns its handler.
func (w *world) gate(cfg gate.Config) *gate.Gate {
	w.t.Helper()
	if cfg.Name == "" {
		cfg.Name = "edge"
	}
	if cfg.Default.Budget == "" {
		cfg.Default = gate.Target{Budget: "origin", Class: "low"}
	}
	g, err := gate.New(cfg, w.deps())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(g.Close)
	return g
}

func collector(g *gate.Gate) prometheus.Collector {
	return gate.NewCollector(func() []*gate.Gate { return []*gate.Gate{g} })
}

// serve runs a handler on real TCP and returns its URL.
func serve(t testing.TB, h http.Handler) *url.URL {
	t.Helper()
	srv, err := gate.NewServer(gate.Config{}, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })
	return &url.URL{Scheme: "http", Host: ln.Addr().String()}
}

func to(urls ...*url.URL) (bs []gate.Backend) {
	for _, u := range urls {
		bs = append(bs, gate.Backend{URL: u})
	}
	return bs
}

// echo answers with what it got, as JSON.
type echoed struct {
	Host, Method, URI string
	Header            http.Header
}

func echo(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(echoed{r.Host, r.Method, r.RequestURI, r.Header})
}

type answer struct {
	*http.Response
	body string
}

// send makes one request; header lines are "Name: value", and Host is Host.
func send(t testing.TB, method string, u *url.URL, path string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequest(method, u.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Add(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, string(b)}
}

func (a answer) echoed(t testing.TB) (e echoed) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return e
}

func wantStatus(t testing.TB, a answer, want int) {
	t.Helper()
	if a.StatusCode != want {
		t.Fatalf("status %d, want %d: %s", a.StatusCode, want, a.body)
	}
}

func wantHeader(t testing.TB, a answer, name, want string) {
	t.Helper()
	if got := strings.Join(a.Header.Values(name), ", "); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// counts returns a class's figures.
func (w *world) counts(class int) enforce.Counts {
	dst := make([]enforce.Counts, 2)
	w.lim.Counts(dst)
	return dst[class]
}

// metric sums the series of one name whose labels include all of want
// ("name=value"), or fails where there is none.
func metric(t testing.TB, c prometheus.Collector, name string, want ...string) (sum float64) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	fams, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range fams {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			have := map[string]bool{}
			for _, l := range m.GetLabel() {
				have[l.GetName()+"="+l.GetValue()] = true
			}
			all := true
			for _, l := range want {
				all = all && have[l]
			}
			if all {
				found = true
				sum += m.GetCounter().GetValue()
			}
		}
	}
	if !found {
		t.Fatalf("no series %s %v", name, want)
	}
	return sum
}

func prefixes(ss ...string) (ps []netip.Prefix) {
	for _, s := range ss {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

// raw opens a connection and sends text; CRLFs are made from newlines.
func raw(t testing.TB, u *url.URL, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// setMicro gives class low a rate in micro-units per second.
func setMicro(w *world, low allocator.Rate) {
	w.lim.SetSchedule(w.now.Load(), []enforce.Step{{
		Until: math.MaxInt64, Total: 2 * low, Classes: []allocator.Rate{low, low},
	}})
}

// shadow replaces the limiter by one in shadow mode that has no share.
func shadow(w *world) {
	w.lim = enforce.NewLimiter(enforce.LimiterConfig{Classes: 2, Shadow: true}, 0)
	w.limits[0].Limiter = w.lim
}
