package quota

import (
	"math"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/protobuf/proto"

	"subak/allocator"
	"subak/enforce"
)

// FuzzReports feeds whatever parses as usage reports, between turns, to a planner
// with small bounds: it stays within them and never hands out more than there is.
func FuzzReports(f *testing.F) {
	seed := func(m *pb.RateLimitQuotaUsageReports) {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(50), uint8(3))
	}
	seed(&pb.RateLimitQuotaUsageReports{Domain: "edge", BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{
		usage(high, 10, 20), usage(map[string]string{"tier": "low", "x": "y"}, math.MaxUint64, 1), usage(nil, 1, 1), {},
	}})
	seed(&pb.RateLimitQuotaUsageReports{})
	m := matcher(f, 3)
	f.Fuzz(func(t *testing.T, data []byte, gap uint16, turns uint8) {
		var r pb.RateLimitQuotaUsageReports
		if proto.Unmarshal(data, &r) != nil {
			return
		}
		l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, sec)
		l.SetSchedule(sec, []enforce.Step{{Until: math.MaxInt64, Total: 100 * allocator.Unit, Classes: []allocator.Rate{60 * allocator.Unit, 40 * allocator.Unit}}})
		p := newPlanner(Config{Name: "test", Matcher: m, Streams: 2, Buckets: 8, AllBuckets: 12}.withDefaults(), onlyLimits{l})
		now := sec
		for i := range int64(1 + turns%16) {
			p.open(i%3, r.GetDomain())
			for _, u := range r.GetBucketQuotaUsages() {
				p.report(now, i%3, u)
			}
			for _, a := range p.turn(now) {
				_ = a.proto()
			}
			if p.buckets > 12 || len(p.streams) > 2 || len(p.pots) > 2 {
				t.Fatalf("%d buckets of %d streams in %d pots", p.buckets, len(p.streams), len(p.pots))
			}
			var own [2]allocator.Rate
			if sum := l.Share(now, own[:]) + p.outstanding(now); sum > 100*allocator.Unit {
				t.Fatalf("%d handed out of 100/s", sum)
			}
			now += int64(gap) * ms
		}
		p.close(now, 0)
		p.close(now, 1)
		p.close(now, 2)
		if p.buckets != 0 || len(p.streams) != 0 {
			t.Fatalf("%d buckets and %d streams left", p.buckets, len(p.streams))
		}
	})
}
