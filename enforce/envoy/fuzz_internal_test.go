package envoy

import (
	"testing"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/gate"
)

// fuzzService has every kind of rule, and every part of an answer on.
func fuzzService(t testing.TB) *Service {
	lim := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2, Tenants: []enforce.TenantConfig{{Share: 500_000, Keys: 64}, {}}}, 0)
	lim.SetSchedule(0, []enforce.Step{{Until: 1 << 62, Total: 3e6, Classes: []allocator.Rate{1e6, 2e6}}})
	now := int64(0)
	s, err := New(Config{
		Name: "fuzz", Metadata: true, Client: "remote_address", Default: Target{Budget: "b", Class: "low"},
		Domains: []Domain{
			{Name: "edge", Budget: "b", Class: "low", Rules: []Rule{
				{Match: map[string]string{"path": "/a*b", "remote_address": ""}, Class: "high", Cost: 7, Tenant: "remote_address"},
				{Match: map[string]string{"k": "v"}, Class: "high", Cost: enforce.MaxCost},
			}},
			{Name: "d", Budget: "b", Rules: []Rule{{Class: "high", Tenant: "k"}}},
		},
	}, Deps{
		Limits: gate.Budgets{{Name: "b", Classes: []string{"high", "low"}, Limiter: lim}},
		Now:    func() int64 { now += 1e8; return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// FuzzRequest gives the door any bytes for a call. What protobuf can read the
// door reads alike, and answers in a form that protobuf can read.
func FuzzRequest(f *testing.F) {
	for _, r := range seedRequests() {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b, 0x12, 0x80))
	}
	f.Add([]byte("\x0a\x04edge\x12\x0c\x0a\x0a\x0a\x04path\x12\x02\xff\xfe"))
	s := fuzzService(f)
	c := &call{}
	f.Fuzz(func(t *testing.T, b []byte) {
		c.raw = append(c.raw[:0], b...)
		err := c.decode()
		var want ratelimitv3.RateLimitRequest
		if proto.Unmarshal(b, &want) == nil {
			if err != nil {
				t.Fatalf("%x: %v, and protobuf reads %v", b, err, &want)
			}
			sameRequest(t, &c.request, &want)
		}
		if err != nil {
			return
		}
		checkAnswer(t, s, c)
	})
}

// checkAnswer answers a call and reads the answer as an Envoy would.
func checkAnswer(t *testing.T, s *Service, c *call) {
	n := c.count
	s.answer(c)
	var res ratelimitv3.RateLimitResponse
	if err := proto.Unmarshal(c.out, &res); err != nil {
		t.Fatalf("answer %x: %v", c.out, err)
	}
	if len(res.GetStatuses()) != n || len(res.ProtoReflect().GetUnknown()) > 0 {
		t.Fatalf("%d descriptors answered by %v", n, &res)
	}
	over := 0
	for _, st := range res.GetStatuses() {
		if st.GetCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT {
			over++
		}
	}
	want := ratelimitv3.RateLimitResponse_OK
	if over > 0 {
		want = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	if n > 0 && res.GetOverallCode() != want {
		t.Fatalf("the call and its descriptors disagree: %v", &res)
	}
}

// FuzzStrings gives the door hostile names, values and hits in well-formed calls.
func FuzzStrings(f *testing.F) {
	f.Add("edge", "path", "/a/b", uint64(1), byte(0))
	f.Add("edge", "k", "v", uint64(1<<63), byte(7))
	f.Add("d", "k", "\xff\x00\"\r\n", uint64(0), byte(5))
	f.Add("", "", "", uint64(3), byte(255))
	s := fuzzService(f)
	f.Fuzz(func(t *testing.T, domain, key, value string, hits uint64, shape byte) {
		c := &call{}
		c.domain, c.hits, c.count = domain, uint64(uint32(hits>>3)), int(shape%5)
		for i := range c.count {
			from := len(c.pairs)
			c.pairs = append(c.pairs, Pair{key, value}, Pair{"remote_address", value})
			c.descriptors = append(c.descriptors, descriptor{
				from: from, to: len(c.pairs) - int(shape>>6&1), hits: hits >> i,
				set: shape&8 != 0, negative: shape&16 != 0, limit: shape&32 != 0,
			})
		}
		checkAnswer(t, s, c)
	})
}

func seedRequests() []*ratelimitv3.RateLimitRequest {
	pair := func(key, value string) *ratelimitcommon.RateLimitDescriptor_Entry {
		return &ratelimitcommon.RateLimitDescriptor_Entry{Key: key, Value: value}
	}
	return []*ratelimitv3.RateLimitRequest{
		{},
		{Domain: "edge", HitsAddend: 3, Descriptors: []*ratelimitcommon.RateLimitDescriptor{
			{Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{pair("path", "/axb"), pair("remote_address", "192.0.2.1")}, HitsAddend: wrapperspb.UInt64(9)},
			{Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{pair("k", "v")}, IsNegativeHits: true},
		}},
		{Domain: "d", Descriptors: []*ratelimitcommon.RateLimitDescriptor{
			{Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{pair("k", "v")}, HitsAddend: wrapperspb.UInt64(0)},
			{Limit: &ratelimitcommon.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}}, {},
		}},
	}
}
