package envoy

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/gate"
)

// boundedService tells tenants and clients apart by remote_address.
func boundedService(t testing.TB, change func(*Config)) *Service {
	lim := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2, Tenants: []enforce.TenantConfig{{Rate: 50 * allocator.Unit, Keys: 10_000}, {}}}, 0)
	r := 1e9 * allocator.Unit
	lim.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: 2 * r, Classes: []allocator.Rate{r, r}}})
	now := int64(time.Second)
	cfg := Config{
		Name: "envoys", Client: "remote_address", Default: Target{Budget: "b", Class: "low"},
		Domains: []Domain{{Name: "edge", Budget: "b", Class: "low", Rules: []Rule{
			{Match: map[string]string{"remote_address": "*"}, Class: "high", Tenant: "remote_address"},
		}}},
	}
	change(&cfg)
	s, err := New(cfg, Deps{
		Limits: gate.Budgets{{Name: "b", Classes: []string{"high", "low"}, Limiter: lim}},
		Now:    func() int64 { now += 1000; return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func series(t testing.TB, s *Service) (n int) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(func() []*Service { return []*Service{s} }))
	fs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		n += len(f.GetMetric())
	}
	return n
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // the first one only empties the pools into their victims
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Lesson O27. The cap: the tenants' table (about 48 bytes a key, full before the
// first reading) and the marks of refused clients (8 bytes each, 128 KiB), and
// nothing per value.
func TestAMillionDescriptorValuesLeaveNoTraceInMemoryOrMetrics(t *testing.T) {
	s := boundedService(t, func(c *Config) { c.QuietStatus, c.Headers = true, gate.HeadersOff }) // a fourth of the time
	raw, err := proto.Marshal(&ratelimitv3.RateLimitRequest{Domain: "edge", Descriptors: []*ratelimitcommon.RateLimitDescriptor{{
		Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{{Key: "remote_address", Value: "0000000"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	c := &call{}
	c.raw = raw
	digits := raw[len(raw)-7:]
	send := func(i int) {
		for k := 6; k >= 0; k-- {
			digits[k] = byte('0' + i%10)
			i /= 10
		}
		if err := c.decode(); err != nil {
			t.Fatal(err)
		}
		s.answer(c)
	}
	for i := range 20_000 {
		send(i)
	}
	lines, before := series(t, s), heap()
	for i := range values {
		send(i)
	}
	if got := series(t, s); got != lines {
		t.Errorf("%d series, %d before", got, lines)
	}
	if after := heap(); after > before+256<<10 {
		t.Errorf("the heap holds %d bytes, %d before", after, before)
	}
	if n := s.tally.admitted.Load(); n < values/2 {
		t.Errorf("%d admitted: the values were no new tenants", n)
	}
	runtime.KeepAlive(s)
}

func TestACallAllocatesNothing(t *testing.T) {
	s := boundedService(t, func(*Config) {})
	for _, n := range []int{1, 5} {
		r := &ratelimitv3.RateLimitRequest{Domain: "edge"}
		for i := range n {
			r.Descriptors = append(r.Descriptors, &ratelimitcommon.RateLimitDescriptor{Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{
				{Key: "remote_address", Value: fmt.Sprint("192.0.2.", i)}, {Key: "path", Value: "/"},
			}})
		}
		raw, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		c := &call{}
		c.raw = raw
		if got := testing.AllocsPerRun(500, func() {
			if err := c.decode(); err != nil {
				t.Fatal(err)
			}
			s.answer(c)
		}); got != 0 {
			t.Errorf("%d descriptors: %v allocations, admitted and refused", n, got)
		}
	}
	if s.tally.admitted.Load() == 0 || s.tally.refused.Load() == 0 {
		t.Error("not both admitted and refused")
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprint(n, " descriptors"), func(b *testing.B) {
			s := boundedService(b, func(*Config) {})
			r := &ratelimitv3.RateLimitRequest{Domain: "edge"}
			for range n {
				r.Descriptors = append(r.Descriptors, &ratelimitcommon.RateLimitDescriptor{Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{
					{Key: "path", Value: "/api/v1/items/42"}, {Key: "user", Value: "7"},
				}})
			}
			raw, err := proto.Marshal(r)
			if err != nil {
				b.Fatal(err)
			}
			c := &call{}
			c.raw = raw
			b.ReportAllocs()
			for b.Loop() {
				if err := c.decode(); err != nil {
					b.Fatal(err)
				}
				s.answer(c)
			}
		})
	}
}
