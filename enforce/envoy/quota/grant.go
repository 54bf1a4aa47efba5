package quota

import (
	"math"
	"math/bits"
	"time"

	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"subak/allocator"
)

// grant is a token bucket as Envoy can enforce it: whole tokens per whole
// seconds. The zero grant is no rate: everything is refused.
type grant struct {
	tokens  uint32 // at most; also what a new bucket begins with
	fill    uint32 // tokens for each interval
	seconds uint32 // the interval
}

const (
	secondsMax = 86_400 // of a fill interval: one request a day is the least rate
	tries      = 32     // of intervals in seconds, or of tokens where they are longer
	nearEnough = 2048   // a part of the rate that is not worth a longer interval
	unit       = int64(allocator.Unit)
)

// express returns the largest rate that Envoy can enforce and that is at most
// rate, for requests that cost units each. Its bucket is empty.
func express(rate allocator.Rate, cost int64) (g grant) {
	micro := int64(rate) / cost // micro-requests per second
	if micro <= 0 {
		return grant{}
	}
	near := func() bool {
		return g.fill > 0 && micro-int64(g.fill)*unit/int64(g.seconds) <= micro/nearEnough
	}
	try := func(n, s int64) {
		if n > 0 && s <= secondsMax && (g.fill == 0 || n*int64(g.seconds) > int64(g.fill)*s) {
			g = grant{fill: uint32(n), seconds: uint32(s)}
		}
	}
	for i := int64(1); i <= tries && !near(); i++ {
		if micro >= unit {
			try(int64(min(uint64(micro)*uint64(i)/uint64(unit), math.MaxUint32)), i)
		} else {
			try(i, (i*unit+micro-1)/micro)
		}
	}
	return g
}

// rate returns what the grant lets through, in units, rounded up.
func (g grant) rate(cost int64) allocator.Rate {
	if g.fill == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(g.fill)*uint64(unit), uint64(cost))
	lo, carry := bits.Add64(lo, uint64(g.seconds)-1, 0)
	hi += carry
	if hi >= uint64(g.seconds) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(g.seconds))
	return allocator.Rate(min(q, math.MaxInt64))
}

// usual returns the tokens that a bucket of this rate should hold: one eighth of
// the burst, at least one.
func usual(rate allocator.Rate, cost int64, burst time.Duration) uint32 {
	t := earned(rate, int64(burst)/burstParts) / (cost * unit)
	return uint32(min(max(t, 1), math.MaxUint32))
}

// burstParts of a budget's burst: one is an assignment's bucket. The others leave
// room for a bucket that is replaced while it is full, more than once.
const burstParts = 8

// earned returns what a rate comes to in some nanoseconds, in micro-units,
// rounded down and at most 2^62.
func earned(rate allocator.Rate, ns int64) int64 {
	if rate <= 0 || ns <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(rate), uint64(ns))
	if hi >= uint64(time.Second) {
		return 1 << 62
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return int64(min(q, 1<<62))
}

// strategy is the grant as Envoy is told it. Envoy takes two buckets for the same
// that differ in the seconds of the interval only, and would go on with the old
// one; it compares the nanoseconds, which it ignores otherwise. So they repeat the
// seconds: a billionth of the rate.
func (g grant) strategy() *typev3.RateLimitStrategy {
	if g.fill == 0 || g.tokens == 0 {
		return blanket(typev3.RateLimitStrategy_DENY_ALL)
	}
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_TokenBucket{TokenBucket: &typev3.TokenBucket{
		MaxTokens:     g.tokens,
		TokensPerFill: wrapperspb.UInt32(g.fill),
		FillInterval:  &durationpb.Duration{Seconds: int64(g.seconds), Nanos: int32(g.seconds)},
	}}}
}

func blanket(rule typev3.RateLimitStrategy_BlanketRule) *typev3.RateLimitStrategy {
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_BlanketRule_{BlanketRule: rule}}
}
