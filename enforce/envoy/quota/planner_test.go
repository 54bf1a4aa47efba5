package quota

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/gate"
)

// until runs until ok and returns how long that took.
func (f *fleet) until(limit time.Duration, what string, ok func() bool) time.Duration {
	f.t.Helper()
	start := f.now
	for f.now-start < int64(limit) {
		if ok() {
			return time.Duration(f.now - start)
		}
		f.step()
	}
	f.t.Fatalf("not within %v: %s", limit, what)
	return 0
}

// rate is what one Envoy enforces over all its buckets.
func (f *fleet) rate(m *member) (sum float64) {
	for _, b := range m.sim.buckets {
		sum += b.enforced(f.now)
	}
	return sum
}

func TestANewEnvoyIsAssignedWithinHalfASecond(t *testing.T) {
	f := newFleet(t, 2, 1, 1000*allocator.Unit)
	f.envoys[0].rate = 200
	f.until(time.Second, "its first request", func() bool { return len(f.envoys[0].sim.buckets) > 0 })
	took := f.until(500*time.Millisecond, "its first assignment", func() bool { return f.rate(f.envoys[0]) > 0 })
	t.Logf("first assignment %v after the first request", took)
}

func TestCapacityFollowsDemandWithinATimeToLiveAndASecondOrSo(t *testing.T) {
	f := newFleet(t, 3, 2, 1000*allocator.Unit)
	a, b := f.envoys[0], f.envoys[1]
	a.rate, b.rate = 2000, 50
	f.run(10 * time.Second)
	if got := f.rate(a); got < 900 {
		t.Fatalf("the busy Envoy has %.0f of 1000", got)
	}
	a.rate, b.rate = 50, 2000
	took := f.until(5*time.Second, "the other one has most", func() bool { return f.rate(b) > 800 })
	t.Logf("moved in %v", took)
}

func TestTheNodesOwnDoorsAreAPartyOfTheSplit(t *testing.T) {
	f := newFleet(t, 4, 3, 1000*allocator.Unit)
	for _, m := range f.envoys {
		m.rate = 1000
	}
	f.local = 1000
	f.run(15 * time.Second)
	var own [2]allocator.Rate
	f.limiter.Share(f.now, own[:])
	if got := float64(own[0]) / 1e6; got < 200 || got > 300 {
		t.Errorf("the own doors have %.0f of 1000, a quarter is theirs", got)
	}
	f.local = 0
	f.run(25 * time.Second)
	if got := f.enforced(); got < 960 {
		t.Errorf("the Envoys have %.0f of 1000 though nobody else asks", got)
	}
}

func TestWhatEnvoysReportIsTheDemandOfTheClassOnce(t *testing.T) {
	f := newFleet(t, 5, 4, 500*allocator.Unit)
	f.loss = 0.1
	for _, m := range f.envoys {
		m.rate = 300
	}
	f.run(20 * time.Second)
	var c [2]enforce.Counts
	f.limiter.Counts(c[:])
	f.planner.turn(f.now + 10*sec)
	f.limiter.Counts(c[:])
	var told uint64
	for _, m := range f.envoys {
		told += m.told
	}
	if uint64(c[0].Offered) != told {
		t.Errorf("%d counted, %d reported", c[0].Offered, told)
	}
	if f.lastID < 5 {
		t.Error("no stream was lost: the test does not test")
	}
}

func TestReconnectedEnvoysAreNewOnesUntilTheFormerAssignmentIsOver(t *testing.T) {
	f := newFleet(t, 6, 1, 1000*allocator.Unit)
	m := f.envoys[0]
	m.rate = 2000
	f.run(10 * time.Second)
	f.planner.close(f.now, m.stream)
	m.in, m.out, m.stream, m.down = nil, nil, 0, 0
	gap, worst := 0, 0
	for range 500 {
		f.step()
		if gap++; f.rate(m) > 0 {
			gap = 0
		}
		worst = max(worst, gap)
	}
	t.Logf("without an assignment for %d ms", worst*10)
	if worst > 80 {
		t.Errorf("without an assignment for %d ms", worst*10)
	}
	if got := f.rate(m); got < 900 {
		t.Errorf("it has %.0f of 1000 again", got)
	}
}

func TestASilentEnvoyIsNotRenewed(t *testing.T) {
	f := newFleet(t, 7, 2, 1000*allocator.Unit)
	for _, m := range f.envoys {
		m.rate = 2000
	}
	f.run(10 * time.Second)
	f.envoys[0].rate, f.envoys[0].due = 0, math.MaxInt64 // stopped; the stream stands
	f.run(9 * time.Second)
	if got := f.rate(f.envoys[1]); got < 900 {
		t.Errorf("the other one has %.0f of 1000", got)
	}
}

// single is a planner with one stream.
func single(t *testing.T, cfg Config, rates ...int64) (*planner, *enforce.Limiter) {
	t.Helper()
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, sec)
	steps := []enforce.Step{{Until: math.MaxInt64, Classes: make([]allocator.Rate, 2)}}
	for k, r := range rates {
		steps[0].Classes[k] = allocator.Rate(r) * allocator.Unit
		steps[0].Total += steps[0].Classes[k]
	}
	l.SetSchedule(sec, steps)
	cfg.Name = "test"
	if cfg.Matcher == nil {
		cfg.Matcher = matcher(t, 1)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	p := newPlanner(cfg.withDefaults(), onlyLimits{l})
	p.open(1, "edge")
	return p, l
}

func usage(id map[string]string, allowed, denied uint64) *pb.RateLimitQuotaUsageReports_BucketQuotaUsage {
	return &pb.RateLimitQuotaUsageReports_BucketQuotaUsage{
		BucketId: &pb.BucketId{Bucket: id}, NumRequestsAllowed: allowed, NumRequestsDenied: denied,
		TimeElapsed: durationpb.New(time.Second),
	}
}

var high = map[string]string{"tier": "high"}

// turns runs turns of 50 ms, with a report of each bucket every 500 ms, and
// returns all actions.
func turns(p *planner, from, to int64, ids ...map[string]string) (all []action) {
	for now := from; now < to; now += 50 * ms {
		if (now-from)%(500*ms) == 0 {
			for _, id := range ids {
				p.report(now, 1, usage(id, 0, 500))
			}
		}
		all = append(all, slices.Clone(p.turn(now))...)
	}
	return all
}

func TestUnknownBucketsGoTheWayOfOnUnknown(t *testing.T) {
	for _, c := range []struct {
		on   gate.Unknown
		want verb
	}{{gate.UnknownDeny, deny}, {gate.UnknownAllow, allow}, {gate.UnknownDefault, deny}} {
		p, _ := single(t, Config{OnUnknown: c.on}, 100)
		got := turns(p, sec, 2*sec, map[string]string{"what": "ever"})
		if len(got) != 2 || got[0].verb != c.want || p.seen.unknown != 1 {
			t.Errorf("on_unknown %v: %+v, %d unknown", c.on, got, p.seen.unknown)
		}
	}
}

func TestShadowModeLetsEverythingPassAndCounts(t *testing.T) {
	p, l := single(t, Config{Shadow: true}, 100)
	for _, a := range turns(p, sec, 5*sec, high) {
		if a.verb != allow {
			t.Fatalf("%+v", a)
		}
	}
	var c [1]enforce.Counts
	if l.Counts(c[:]); c[0].Offered == 0 || l.Carved(5*sec, nil) != 0 {
		t.Errorf("%d counted, %d carved", c[0].Offered, l.Carved(5*sec, nil))
	}
}

func TestAClassWithoutAShareIsRefused(t *testing.T) {
	p, _ := single(t, Config{}, 0, 100)
	got := turns(p, sec, 2*sec, high)
	if len(got) == 0 || got[0].verb != deny {
		t.Errorf("%+v", got)
	}
}

func TestAnIdleBucketIsAbandonedAndItsShareIsFreeAfterwards(t *testing.T) {
	p, l := single(t, Config{Idle: 10 * time.Second}, 100)
	turns(p, sec, 3*sec, high)
	for now := 3 * sec; now < 20*sec; now += 50 * ms {
		if now%sec == 0 {
			p.report(now, 1, usage(high, 0, 0))
		}
		for _, a := range p.turn(now) {
			if a.verb == abandon {
				if now < 12*sec {
					t.Fatalf("abandoned at %v", time.Duration(now))
				}
				if p.buckets != 0 {
					t.Fatal("still there")
				}
				for end := now; end < now+3*sec; end += 50 * ms {
					p.turn(end)
				}
				if l.Carved(now+3*sec, nil) != 0 {
					t.Error("still carved")
				}
				return
			}
		}
	}
	t.Error("never abandoned")
}

func TestARenewalMovesBucketsAndAbandonsThoseThatAreGone(t *testing.T) {
	p, l := single(t, Config{}, 100, 50)
	turns(p, sec, 3*sec, high, map[string]string{"tier": "low"})
	held := l.Carved(3*sec, nil)
	if held == 0 {
		t.Fatal("nothing carved")
	}
	p.renew(3*sec, p.cfg, noLow{onlyLimits{l}})
	got := p.turn(3 * sec)
	n := 0
	for _, a := range got {
		if a.verb == abandon {
			n++
			if a.id.Bucket["tier"] != "low" {
				t.Errorf("abandoned %v", a.id)
			}
		}
	}
	if n != 1 || len(p.pots) != 1 {
		t.Errorf("%d abandoned, %d pots", n, len(p.pots))
	}
	if got := l.Carved(3*sec, nil); got != held {
		t.Errorf("%d carved, what was assigned of %d still runs", got, held)
	}
	for _, a := range turns(p, 3*sec+50*ms, 4*sec, map[string]string{"tier": "low"}) {
		if a.id.Bucket["tier"] == "low" && a.verb != deny {
			t.Errorf("of a class that is gone: %+v", a)
		}
	}
}

// noLow has no class low.
type noLow struct{ onlyLimits }

func (n noLow) Limiter(budget, class string) (*enforce.Limiter, int, bool) {
	if class == "low" {
		return nil, 0, false
	}
	return n.onlyLimits.Limiter(budget, class)
}

func TestADrainedPlannerAssignsNothingMoreAndRunsOut(t *testing.T) {
	p, l := single(t, Config{}, 100)
	turns(p, sec, 3*sec, high)
	p.stopped = true
	if got := turns(p, 3*sec, 6*sec, high); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if p.outstanding(6*sec) != 0 || l.Carved(6*sec, nil) != 0 {
		t.Error("still outstanding")
	}
	if p.open(2, "edge") {
		t.Error("a new stream was taken")
	}
}

func TestAHostileClientGrowsNothingBeyondTheBounds(t *testing.T) {
	p, l := single(t, Config{Streams: 4, Buckets: 50, AllBuckets: 80}, 100)
	for i := range int64(10) {
		p.open(i, "edge")
	}
	if len(p.streams) != 4 {
		t.Errorf("%d streams", len(p.streams))
	}
	now := sec
	for i := range 2000 {
		now += ms
		p.report(now, int64(i%6), usage(map[string]string{"tier": "high", "n": fmt.Sprint(i)}, math.MaxUint64, math.MaxUint64))
		if i%50 == 0 {
			p.turn(now)
		}
	}
	for _, id := range []map[string]string{nil, {}, {"k": strings.Repeat("x", idBytesMax)}} {
		before := p.buckets
		if p.report(now, 1, usage(id, 1, 1)); p.buckets != before {
			t.Errorf("took a bucket id of %d pairs", len(id))
		}
	}
	if p.buckets != 80 {
		t.Errorf("%d buckets", p.buckets)
	}
	for _, st := range p.streams {
		if len(st.subs) > 50 {
			t.Errorf("%d buckets of one stream", len(st.subs))
		}
	}
	if got := l.Carved(now, nil); got > 100*allocator.Unit {
		t.Errorf("%d carved of 100/s", got)
	}
	if p.seen.refused == 0 {
		t.Error("nothing was counted")
	}
}

func TestElapsedTimesBeyondBelief(t *testing.T) {
	p, _ := single(t, Config{}, 100)
	for i, e := range []*durationpb.Duration{nil, {Seconds: -5}, {Seconds: math.MaxInt64}, {Seconds: math.MinInt64, Nanos: math.MinInt32}, {Nanos: -1}, {}} {
		u := usage(map[string]string{"tier": "high", "n": fmt.Sprint(i)}, 100, 0)
		u.TimeElapsed = e
		p.report(sec, 1, u)
	}
	for _, s := range p.streams[1].subs {
		if s.meter.demand < allocator.Unit || s.meter.demand > 100*allocator.Unit {
			t.Errorf("demand %d of 100 requests in a bounded time", s.meter.demand)
		}
	}
}

func TestCostsMakeAssignmentsSmaller(t *testing.T) {
	p, l := single(t, Config{Matcher: matcher(t, 4)}, 1000)
	var g grant
	for _, a := range turns(p, sec, 20*sec, high) {
		if a.verb == assign {
			g = a.grant
		}
	}
	if got := g.rate(1); got > 250*allocator.Unit || got < 240*allocator.Unit {
		t.Errorf("%d requests/s of 1000 units/s at cost 4", got)
	}
	if got := l.Carved(20*sec, nil); got < 960*allocator.Unit {
		t.Errorf("%d carved", got)
	}
}

func TestASlowRateIsAssignedWhenItsTokenIsSavedUp(t *testing.T) {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, sec)
	l.SetSchedule(sec, []enforce.Step{{Until: math.MaxInt64, Total: 300_000, Classes: []allocator.Rate{300_000, 0}}})
	p := newPlanner(Config{Name: "test", Matcher: matcher(t, 1)}.withDefaults(), onlyLimits{l})
	p.open(1, "edge")
	var at int64
	for now := sec; now < 20*sec && at == 0; now += 50 * ms {
		if now%(500*ms) == 0 {
			p.report(now, 1, usage(high, 0, 5))
		}
		for _, a := range p.turn(now) {
			if a.verb == assign {
				at = now
				if a.grant.tokens != 1 || a.grant.rate(1) > 300_000 || a.grant.rate(1) < 200_000 {
					t.Errorf("%+v", a.grant)
				}
			}
		}
	}
	if at < 4*sec || at > 9*sec {
		t.Errorf("assigned at %v", time.Duration(at))
	}
}

func TestWhereOnlyLeasesAreSureAssignmentsAreShort(t *testing.T) {
	f := newFleet(t, 8, 3, 3000*allocator.Unit)
	f.lease, f.base = int64(1500*time.Millisecond), 300*allocator.Unit
	for _, m := range f.envoys {
		m.rate = 2000
	}
	f.run(12 * time.Second)
	if got := f.enforced(); got < 2500 {
		t.Errorf("the Envoys have %.0f of 3000, of which 2700 end in 1.5 s", got)
	}
}

func TestActionsAreWhatTheProtocolSays(t *testing.T) {
	id := &pb.BucketId{Bucket: high}
	a := action{id: id, verb: assign, grant: grant{5, 3, 10}, ttl: 2 * sec}
	q := a.proto().GetQuotaAssignmentAction()
	tb := q.RateLimitStrategy.GetTokenBucket()
	if q.AssignmentTimeToLive.Seconds != 2 || tb.MaxTokens != 5 || tb.TokensPerFill.Value != 3 || tb.FillInterval.Seconds != 10 {
		t.Errorf("%v", q)
	}
	a.verb = allow
	if s := a.proto().GetQuotaAssignmentAction().RateLimitStrategy; s.GetBlanketRule() != typev3.RateLimitStrategy_ALLOW_ALL || s.GetTokenBucket() != nil {
		t.Errorf("%v", s)
	}
	a.verb, a.grant = deny, grant{}
	if s := a.proto().GetQuotaAssignmentAction().RateLimitStrategy; s.GetBlanketRule() != typev3.RateLimitStrategy_DENY_ALL {
		t.Errorf("%v", s)
	}
	a.verb = abandon
	if a.proto().GetAbandonAction() == nil {
		t.Error("no abandon action")
	}
}
