package quota

import (
	"math"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	ms  = int64(1_000_000)
	sec = 1000 * ms
)

// envoySim behaves as the filter of Envoy does, faults of its own included: it
// keeps whole seconds only of a fill interval and of a time to live, takes two
// buckets for the same whose intervals differ in seconds alone, gives every other
// one its tokens at once, loses the counts of reports that could not be sent, and
// knows nothing of the node across streams.
type envoySim struct {
	domain  string
	buckets map[string]*bucketSim
}

type bucketSim struct {
	id              *pb.BucketId
	allowed, denied uint64
	reported        int64

	strategy *typev3.RateLimitStrategy // nil: no assignment
	expires  int64
	tokens   float64
	rate     float64
	at       int64
}

func newEnvoySim(domain string) *envoySim {
	return &envoySim{domain: domain, buckets: map[string]*bucketSim{}}
}

// request decides one request; first says that its bucket is new, which is
// reported at once. Without an assignment it is refused (DENY_ALL as
// no_assignment_behavior).
func (e *envoySim) request(now int64, id *pb.BucketId) (ok, first bool) {
	key, _, _ := identify(id)
	b := e.buckets[key]
	if b == nil {
		b = &bucketSim{id: id, reported: now}
		e.buckets[key] = b
		first = true
	}
	if ok = b.admit(now); ok {
		b.allowed++
	} else {
		b.denied++
	}
	return ok, first
}

func (b *bucketSim) expire(now int64) {
	if b.strategy != nil && now >= b.expires {
		b.strategy = nil
	}
}

func (b *bucketSim) admit(now int64) bool {
	b.expire(now)
	if b.strategy == nil {
		return false
	}
	if b.strategy.GetTokenBucket() == nil {
		return b.strategy.GetBlanketRule() == typev3.RateLimitStrategy_ALLOW_ALL
	}
	b.tokens = math.Min(b.tokens+b.rate*float64(now-b.at)/1e9, float64(b.strategy.GetTokenBucket().MaxTokens))
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// enforced is the rate that the bucket lets through now, in requests per second.
func (b *bucketSim) enforced(now int64) float64 {
	b.expire(now)
	switch {
	case b.strategy == nil:
		return 0
	case b.strategy.GetTokenBucket() == nil:
		if b.strategy.GetBlanketRule() == typev3.RateLimitStrategy_ALLOW_ALL {
			return math.Inf(1)
		}
		return 0
	}
	return b.rate
}

func (e *envoySim) apply(now int64, r *pb.RateLimitQuotaResponse) {
	for _, a := range r.BucketAction {
		key, _, _ := identify(a.BucketId)
		b := e.buckets[key]
		if b == nil {
			continue
		}
		if a.GetAbandonAction() != nil {
			delete(e.buckets, key)
			continue
		}
		b.expire(now)
		q := a.GetQuotaAssignmentAction()
		if tb := q.RateLimitStrategy.GetTokenBucket(); tb != nil && !sameToEnvoy(tb, b.strategy.GetTokenBucket()) {
			b.tokens, b.at = float64(tb.MaxTokens), now
			b.rate = float64(tb.TokensPerFill.GetValue()) / float64(tb.FillInterval.Seconds) // by 0: Inf, as there
		}
		b.strategy = proto.Clone(q.RateLimitStrategy).(*typev3.RateLimitStrategy)
		b.expires = now + q.AssignmentTimeToLive.Seconds*sec
	}
}

func sameToEnvoy(a, b *typev3.TokenBucket) bool {
	return b != nil && a.MaxTokens == b.MaxTokens && a.TokensPerFill.GetValue() == b.TokensPerFill.GetValue() &&
		a.FillInterval.GetNanos() == b.FillInterval.GetNanos()
}

// report reads the counts and begins anew, whether or not the result arrives.
func (e *envoySim) report(now int64, only string) *pb.RateLimitQuotaUsageReports {
	r := &pb.RateLimitQuotaUsageReports{Domain: e.domain}
	for key, b := range e.buckets {
		if only != "" && key != only {
			continue
		}
		r.BucketQuotaUsages = append(r.BucketQuotaUsages, &pb.RateLimitQuotaUsageReports_BucketQuotaUsage{
			BucketId: b.id, NumRequestsAllowed: b.allowed, NumRequestsDenied: b.denied,
			TimeElapsed: &durationpb.Duration{Seconds: (now - b.reported) / sec},
		})
		b.allowed, b.denied, b.reported = 0, 0, now
	}
	return r
}
