package envoy_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
)

type (
	request    = ratelimitv3.RateLimitRequest
	response   = ratelimitv3.RateLimitResponse
	descriptor = ratelimitcommon.RateLimitDescriptor
)

const (
	codeOK   = ratelimitv3.RateLimitResponse_OK
	codeOver = ratelimitv3.RateLimitResponse_OVER_LIMIT
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
	return newWorldOf(t, enforce.LimiterConfig{Classes: 2}, high, low)
}

func newWorldOf(t testing.TB, cfg enforce.LimiterConfig, high, low int64) *world {
	w := &world{t: t, lim: enforce.NewLimiter(cfg, 0)}
	h, l := allocator.Rate(high)*allocator.Unit, allocator.Rate(low)*allocator.Unit
	w.lim.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: h + l, Classes: []allocator.Rate{h, l}}})
	w.now.Store(int64(100 * time.Second))
	w.limits = gate.Budgets{{Name: "origin", Classes: []string{"high", "low"}, Limiter: w.lim}}
	return w
}

func (w *world) deps() envoy.Deps { return envoy.Deps{Limits: w.limits, Now: w.now.Load} }

// rules charge class high to pay (five units) and vip, class low to the rest of
// the domain edge and to the unknown.
func rules() envoy.Config {
	return envoy.Config{
		Name: "envoys", Default: envoy.Target{Budget: "origin", Class: "low"},
		Domains: []envoy.Domain{{
			Name: "edge", Budget: "origin", Class: "low",
			Rules: []envoy.Rule{
				{Match: map[string]string{"path": "/pay*"}, Class: "high", Cost: 5},
				{Match: map[string]string{"user": "vip"}, Class: "high"},
			},
		}},
	}
}

func (w *world) service(cfg envoy.Config) *envoy.Service {
	w.t.Helper()
	s, err := envoy.New(cfg, w.deps())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// edge is a call of domain edge.
func edge(ds ...*descriptor) *request { return &request{Domain: "edge", Descriptors: ds} }

func pay() *descriptor { return describe(entry("path", "/pay/now")) }
func vip() *descriptor { return describe(entry("user", "vip")) }
func web() *descriptor { return describe(entry("path", "/")) }

// hits sets a descriptor's own hits.
func hits(d *descriptor, n uint64) *descriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func ask(t testing.TB, s *envoy.Service, r *request) *response {
	t.Helper()
	res, err := s.ShouldRateLimit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.GetStatuses()) != len(r.GetDescriptors()) {
		t.Fatalf("%d statuses for %d descriptors", len(res.GetStatuses()), len(r.GetDescriptors()))
	}
	return res
}

// signs are the call's and each descriptor's: + for OK, - for OVER_LIMIT.
func signs(res *response) string {
	text := []byte{sign(res.GetOverallCode()), ' '}
	for _, st := range res.GetStatuses() {
		text = append(text, sign(st.GetCode()))
	}
	return string(text)
}

func sign(c ratelimitv3.RateLimitResponse_Code) byte {
	switch c {
	case codeOK:
		return '+'
	case codeOver:
		return '-'
	}
	return '?'
}

func wantCodes(t testing.TB, res *response, want string) {
	t.Helper()
	if got := signs(res); got != want {
		t.Errorf("codes %q, want %q: %v", got, want, res)
	}
}

func header(res *response, name string) string {
	value := ""
	for _, h := range res.GetResponseHeadersToAdd() {
		if h.GetKey() == name {
			value += h.GetValue()
		}
	}
	return value
}

func wantHeaders(t testing.TB, res *response, want map[string]string) {
	t.Helper()
	for _, h := range res.GetResponseHeadersToAdd() {
		if _, ok := want[h.GetKey()]; !ok {
			t.Errorf("header %s: %q", h.GetKey(), h.GetValue())
		}
	}
	for name, value := range want {
		if got := header(res, name); got != value {
			t.Errorf("header %s: %q, want %q", name, got, value)
		}
	}
}

// left are the tokens of both classes.
func (w *world) left() [2]int64 {
	return [2]int64{w.lim.Quota(w.now.Load(), 0).Tokens, w.lim.Quota(w.now.Load(), 1).Tokens}
}

func (w *world) wantLeft(high, low int64) {
	w.t.Helper()
	if got, want := w.left(), [2]int64{high, low}; got != want {
		w.t.Errorf("tokens left %v, want %v", got, want)
	}
}

// metric sums the series of a name that have the given labels, "name=value".
func metric(t testing.TB, s *envoy.Service, name string, labels ...string) (sum float64) {
	t.Helper()
	found := false
	for _, f := range gather(t, s) {
		if f.GetName() != "budget_envoy_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			if hasLabels(m, labels) {
				found = true
				sum += m.GetCounter().GetValue()
			}
		}
	}
	if !found {
		t.Fatalf("no series %s%v", name, labels)
	}
	return sum
}

func gather(t testing.TB, s *envoy.Service) []*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(envoy.NewCollector(func() []*envoy.Service { return []*envoy.Service{s} }))
	fs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func hasLabels(m *dto.Metric, labels []string) bool {
	have := map[string]bool{}
	for _, l := range m.GetLabel() {
		have[l.GetName()+"="+l.GetValue()] = true
	}
	for _, l := range labels {
		if !have[l] {
			return false
		}
	}
	return true
}
