package quota

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
)

// fleet is a node and its Envoys in virtual time, with a network between them
// that keeps the order of each direction and delays as the service allows for.
type fleet struct {
	t       testing.TB
	rng     *rand.Rand
	now     int64
	limiter *enforce.Limiter
	planner *planner
	envoys  []*member
	lastID  int64

	transit int64 // of assignments, at most
	loss    float64
	share   allocator.Rate
	lease   int64          // how long the part above base is promised; 0 for ever
	base    allocator.Rate // with lease: what is promised for ever

	steps    int
	admitted float64 // cost, all doors
	least    float64 // of admitted minus the integral of the share, so far
	integral float64
	worst    float64 // admitted in any window minus the integral there
	peak     float64 // of the sum over the share
	local    float64 // requests/s at the node's own door
}

type member struct {
	sim      *envoySim
	id       *pb.BucketId
	rate     float64
	interval int64
	due      int64
	stream   int64 // 0: none
	down     int64 // until when no stream can be opened
	in, out  []packet
	served   float64
	told     uint64 // requests in reports that arrived
}

type packet struct {
	at      int64
	stream  int64
	reply   *pb.RateLimitQuotaResponse
	reports *pb.RateLimitQuotaUsageReports
}

type onlyLimits struct{ l *enforce.Limiter }

func (o onlyLimits) Limiter(budget, class string) (*enforce.Limiter, int, bool) {
	k, ok := map[string]int{"high": 0, "low": 1}[class]
	return o.l, k, ok && budget == "origin"
}

func matcher(t testing.TB, cost int64) *envoy.Matcher {
	m, err := envoy.NewMatcher(envoy.Config{
		OnUnknown: gate.UnknownDeny,
		Domains: []envoy.Domain{{
			Name: "edge", Budget: "origin", Rules: []envoy.Rule{
				{Match: map[string]string{"tier": "high"}, Class: "high", Cost: cost},
				{Match: map[string]string{"tier": "low"}, Class: "low", Cost: cost},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newFleet(t testing.TB, seed uint64, n int, share allocator.Rate) *fleet {
	f := &fleet{
		t: t, rng: rand.New(rand.NewPCG(seed, 5)), now: 10 * sec, share: share,
		limiter: enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, 10*sec),
	}
	cfg := Config{Name: "test", Matcher: matcher(t, 1)}.withDefaults()
	f.planner = newPlanner(cfg, onlyLimits{f.limiter})
	f.transit = f.planner.t.transit
	for i := range n {
		f.envoys = append(f.envoys, &member{
			sim: newEnvoySim("edge"), id: &pb.BucketId{Bucket: map[string]string{"tier": "high", "name": fmt.Sprint(i % 3)}},
			interval: 200*ms + f.rng.Int64N(800*ms), due: math.MaxInt64,
		})
	}
	f.limiter.Carvable(f.now, 0, "", f.now) // as an enabled door does
	f.schedule()
	return f
}

// schedule puts the share in force as the core does: what is carved stays.
func (f *fleet) schedule() {
	carved := f.limiter.Carved(f.now, nil)
	total := max(f.share, carved)
	entitled := []allocator.Rate{f.share, 0}
	steps := []enforce.Step{{Until: math.MaxInt64, Total: total, Classes: []allocator.Rate{total, 0}, Carvable: entitled}}
	if f.lease > 0 && f.base < f.share {
		steps = []enforce.Step{
			{Until: f.now + f.lease, Total: total, Classes: []allocator.Rate{total, 0}, Carvable: entitled},
			{Until: math.MaxInt64, Total: f.base, Classes: []allocator.Rate{f.base, 0}},
		}
	}
	f.limiter.SetSchedule(f.now, steps)
	f.share = min(f.share, total)
}

// inForce is what the whole node may admit now.
func (f *fleet) inForce() float64 {
	var own [2]allocator.Rate
	total := f.limiter.Share(f.now, own[:]) + f.limiter.Carved(f.now, nil)
	return float64(total) / 1e6
}

const stepNS = 10 * ms

// step advances by 10 ms.
func (f *fleet) step() {
	f.steps++
	f.now += stepNS
	if f.steps%20 == 0 {
		f.schedule()
	}
	for _, m := range f.envoys {
		f.deliver(m)
		f.traffic(m)
	}
	for n := f.poisson(f.local * 0.01); n > 0; n-- {
		if f.limiter.Decide(f.now, 0, 1).OK {
			f.admitted++
		}
	}
	if f.steps%5 == 0 {
		f.turn()
	}
	f.check()
}

func (f *fleet) turn() {
	for _, a := range f.planner.turn(f.now) {
		for _, m := range f.envoys {
			if m.stream == a.stream.id {
				at := f.now + f.rng.Int64N(f.transit)
				if len(m.in) > 0 {
					at = max(at, m.in[len(m.in)-1].at)
				}
				m.in = append(m.in, packet{at: at, stream: m.stream, reply: respond([]action{a})})
			}
		}
	}
}

func (f *fleet) deliver(m *member) {
	for len(m.in) > 0 && m.in[0].at <= f.now {
		if f.rng.Float64() >= f.loss { // its loss is that of the stream with all that follows
			m.sim.apply(f.now, m.in[0].reply)
			m.in = m.in[1:]
			continue
		}
		f.cut(m)
	}
	for len(m.out) > 0 && m.out[0].at <= f.now {
		for _, u := range m.out[0].reports.BucketQuotaUsages {
			f.planner.report(f.now, m.out[0].stream, u)
			if f.planner.streams[m.out[0].stream] != nil {
				m.told += u.NumRequestsAllowed + u.NumRequestsDenied
			}
		}
		m.out = m.out[1:]
	}
}

// cut loses a stream and all that is on its way; the node learns of it at once or
// never (silence).
func (f *fleet) cut(m *member) {
	if m.stream != 0 && f.rng.IntN(2) == 0 {
		f.planner.close(f.now, m.stream)
	}
	m.in, m.out, m.stream = nil, nil, 0
	m.down = f.now + f.rng.Int64N(sec)
}

func (f *fleet) traffic(m *member) {
	for n := f.poisson(m.rate * 0.01); n > 0; n-- {
		ok, first := m.sim.request(f.now, m.id)
		if ok {
			f.admitted++
			m.served++
		}
		if first {
			key, _, _ := identify(m.id)
			f.send(m, m.sim.report(f.now, key))
			if m.due == math.MaxInt64 {
				m.due = f.now + m.interval
			}
		}
	}
	if f.now >= m.due {
		m.due += m.interval
		f.send(m, m.sim.report(f.now, ""))
	}
}

func (f *fleet) send(m *member, r *pb.RateLimitQuotaUsageReports) {
	if m.stream == 0 {
		if f.now < m.down {
			return // counts are lost
		}
		f.lastID++
		if !f.planner.open(f.lastID, m.sim.domain) {
			return
		}
		m.stream = f.lastID
	}
	m.out = append(m.out, packet{at: f.now + f.rng.Int64N(100*ms), stream: m.stream, reports: r})
	slices.SortStableFunc(m.out, func(a, b packet) int { return int(a.at - b.at) })
}

func (f *fleet) poisson(mean float64) (n int) {
	for p := f.rng.ExpFloat64(); p < mean; p += f.rng.ExpFloat64() {
		n++
	}
	return n
}

func (f *fleet) enforced() (sum float64) {
	for _, m := range f.envoys {
		for _, key := range slices.Sorted(maps.Keys(m.sim.buckets)) {
			sum += m.sim.buckets[key].enforced(f.now)
		}
	}
	return sum
}

// check asserts the bound: what the Envoys enforce and what the node's own
// buckets do add up to no more than the node's total, and the requests admitted
// in any window to its integral and the burst.
func (f *fleet) check() {
	f.t.Helper()
	var own [2]allocator.Rate
	mine := f.limiter.Share(f.now, own[:])
	may := f.inForce()
	if sum := f.enforced() + float64(mine)/1e6; sum > may+1e-6 {
		f.t.Fatalf("at %v: Envoys and node enforce %.3f of %.3f", time.Duration(f.now), sum, may)
	}
	if may > 0 {
		f.peak = max(f.peak, f.enforced()/may)
	}
	f.integral += may * 0.01
	x := f.admitted - f.integral
	f.least = min(f.least, x)
	f.worst = max(f.worst, x-f.least)
}

func (f *fleet) run(d time.Duration) {
	f.t.Helper()
	for end := f.now + int64(d); f.now < end; {
		f.step()
	}
}

func TestASaturatedFleetGetsTheWholeShareAndNeverMore(t *testing.T) {
	f := newFleet(t, 1, 50, 10_000*allocator.Unit)
	for i, m := range f.envoys {
		m.rate = 100 + 20*float64(i)
	}
	f.run(20 * time.Second)
	if got := f.enforced(); got < 9900 || got > 10_000 {
		t.Errorf("the fleet enforces %.1f of 10000", got)
	}
	before := f.admitted
	f.run(5 * time.Second)
	if got := (f.admitted - before) / 5; got < 9700 {
		t.Errorf("the fleet serves %.1f/s of 10000", got)
	}
	if f.worst > 10_000/4+50 {
		t.Errorf("%.0f above the share in a window, burst 10000", f.worst)
	}
}

func TestAFleetNeverExceedsAShareThatMovesUnderFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n, changes := 8, 30
			if seed == 0 {
				n, changes = 50, 12
			}
			f := newFleet(t, seed, n, 2000*allocator.Unit)
			f.loss = []float64{0, 0.001, 0.01}[seed%3]
			if seed%2 == 1 {
				f.lease, f.base = int64(2500*time.Millisecond), 500*allocator.Unit
			}
			most := allocator.Rate(0)
			for range changes {
				for _, m := range f.envoys {
					if f.rng.IntN(3) == 0 {
						m.rate = f.rng.Float64() * 400
					}
					if f.rng.IntN(20) == 0 {
						m.rate = 0
					}
				}
				f.local = f.rng.Float64() * 500 * float64(f.rng.IntN(2))
				f.share = allocator.Rate(f.rng.Int64N(3000)) * allocator.Unit
				most = max(most, f.share)
				f.run(time.Duration(500+f.rng.IntN(3000)) * time.Millisecond)
			}
			// The bound is the whole burst; an assignment's bucket is an eighth of it.
			if limit := float64(most/allocator.Unit)/4 + float64(n); f.worst > limit {
				t.Errorf("%.0f above the share in a window, a quarter of the burst and one request each are %.0f", f.worst, limit)
			}
			if f.limiter.CarveShort() > 0 {
				t.Errorf("%d schedules below what was carved", f.limiter.CarveShort())
			}
			t.Logf("worst %.0f of %v peak %.4f mean %.4f", f.worst, most, f.peak, f.admitted/f.integral)
		})
	}
}
