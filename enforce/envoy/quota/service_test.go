package quota

import (
	"context"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"subak/allocator"
	"subak/enforce"
	"subak/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback is a service on a real socket, and a client to it.
type loopback struct {
	*Service
	limiter *enforce.Limiter
	client  pb.RateLimitQuotaServiceClient
	clock   *clock.Boot
}

func serve(t *testing.T, cfg Config) *loopback {
	t.Helper()
	clk := clock.NewBoot()
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, clk.Now())
	l.SetSchedule(clk.Now(), []enforce.Step{{Until: math.MaxInt64, Total: 1000 * allocator.Unit, Classes: []allocator.Rate{1000 * allocator.Unit, 0}}})
	cfg.Name, cfg.Matcher = "test", matcher(t, 1)
	s, err := New(cfg, Deps{Limits: onlyLimits{l}, Now: clk.Now})
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	s.Register(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	running.Go(func() { _ = s.Run(ctx) })
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		server.Stop()
		running.Wait()
	})
	return &loopback{s, l, pb.NewRateLimitQuotaServiceClient(conn), clk}
}

type clientStream = grpc.BidiStreamingClient[pb.RateLimitQuotaUsageReports, pb.RateLimitQuotaResponse]

func (l *loopback) open(t *testing.T) clientStream {
	t.Helper()
	stream, err := l.client.StreamRateLimitQuotas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// assignment receives until a token bucket comes.
func (l *loopback) assignment(t *testing.T, e *envoySim, stream clientStream) {
	t.Helper()
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		e.apply(l.clock.Now(), r)
		for _, b := range e.buckets {
			if b.strategy.GetTokenBucket() != nil {
				return
			}
		}
	}
}

func TestAnEnvoyGetsAssignmentsOverGRPC(t *testing.T) {
	l := serve(t, Config{})
	e, id := newEnvoySim("edge"), &pb.BucketId{Bucket: high}
	if ok, first := e.request(l.clock.Now(), id); ok || !first {
		t.Fatal("admitted without an assignment")
	}
	stream := l.open(t)
	if err := stream.Send(e.report(l.clock.Now(), "")); err != nil {
		t.Fatal(err)
	}
	l.assignment(t, e, stream)
	if ok, _ := e.request(l.clock.Now(), id); !ok {
		t.Error("refused with an assignment")
	}
	held := l.limiter.Carved(l.clock.Now(), nil)
	for _, b := range e.buckets {
		if got := b.enforced(l.clock.Now()); got <= 0 || got*1e6 > float64(held) {
			t.Errorf("it enforces %.1f/s, %d are carved out", got, held)
		}
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(func() []*Service { return []*Service{l.Service} }))
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 13 {
		t.Errorf("%d series, %v", n, err)
	}
	// The stream is lost; a new one is another data plane, and the former
	// assignment still counts.
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := stream.Recv(); err != nil {
			break
		}
	}
	again := l.open(t)
	e.request(l.clock.Now(), id)
	if err := again.Send(e.report(l.clock.Now(), "")); err != nil {
		t.Fatal(err)
	}
	l.assignment(t, e, again)
	if got := l.limiter.Carved(l.clock.Now(), nil); got > 1000*allocator.Unit {
		t.Errorf("%d carved of 1000/s", got)
	}
}

func TestDrainReturnsWhenNobodyCanBeSpending(t *testing.T) {
	l := serve(t, Config{TTL: time.Second, Transit: 20 * time.Millisecond})
	e := newEnvoySim("edge")
	e.request(l.clock.Now(), &pb.BucketId{Bucket: high})
	stream := l.open(t)
	if err := stream.Send(e.report(l.clock.Now(), "")); err != nil {
		t.Fatal(err)
	}
	l.assignment(t, e, stream)
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if l.Drain(short) == nil {
		t.Error("drained at once")
	}
	if err := l.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := l.clock.Now()
	for _, b := range e.buckets {
		if b.enforced(now) != 0 {
			t.Error("drained, and an Envoy still spends")
		}
	}
	late := l.open(t)
	if err := late.Send(&pb.RateLimitQuotaUsageReports{Domain: "edge"}); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a stream after that: %v", err)
	}
}

func TestRenewKeepsStreams(t *testing.T) {
	l := serve(t, Config{})
	e := newEnvoySim("edge")
	e.request(l.clock.Now(), &pb.BucketId{Bucket: high})
	stream := l.open(t)
	if err := stream.Send(e.report(l.clock.Now(), "")); err != nil {
		t.Fatal(err)
	}
	l.assignment(t, e, stream)
	cfg := l.planner.cfg
	cfg.TTL = 1500 * time.Millisecond
	if l.Renew(cfg, onlyLimits{l.limiter}) == nil {
		t.Error("a TTL of 1.5 s was accepted")
	}
	cfg.TTL = 3 * time.Second
	next := l.limiter.Succeed(l.clock.Now(), enforce.LimiterConfig{Classes: 2, Burst: 2 * time.Second}, []int{0, 1},
		[]enforce.Step{{Until: math.MaxInt64, Total: 500 * allocator.Unit, Classes: []allocator.Rate{500 * allocator.Unit, 0}}})
	if err := l.Renew(cfg, onlyLimits{next}); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if a := r.BucketAction[0].GetQuotaAssignmentAction(); a != nil && a.AssignmentTimeToLive.Seconds == 3 {
			break
		}
	}
	if next.Carved(l.clock.Now(), nil) == 0 {
		t.Error("nothing is carved out of the successor")
	}
}

func TestAStreamThatTakesNothingIsCutOff(t *testing.T) {
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, sec)
	l.SetSchedule(sec, []enforce.Step{{Until: math.MaxInt64, Total: allocator.Unit, Classes: []allocator.Rate{0, allocator.Unit}}})
	now := sec
	s, err := New(Config{Name: "test", Matcher: matcher(t, 1)}, Deps{Limits: onlyLimits{l}, Now: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	_, o := s.open(&pb.RateLimitQuotaUsageReports{Domain: "edge", BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{usage(high, 1, 1)}})
	for range 20 { // nobody takes from o
		now += 500 * ms
		s.report(1, &pb.RateLimitQuotaUsageReports{BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{usage(high, 1, 1)}})
		s.turn()
	}
	select {
	case <-o.gone:
	default:
		t.Error("still served")
	}
	if s.planner.seen.late == 0 {
		t.Error("not counted")
	}
}

func TestConfigsThatEnvoyCannotFollowAreRefused(t *testing.T) {
	good := Config{Name: "x", Matcher: matcher(t, 1)}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	if h := good.Hold(); h < 2270*time.Millisecond || h > 2400*time.Millisecond {
		t.Errorf("hold %v", h)
	}
	for name, change := range map[string]func(*Config){
		"no matcher": func(c *Config) { c.Matcher = nil }, "part of a second": func(c *Config) { c.TTL = 1500 * time.Millisecond },
		"too short": func(c *Config) { c.TTL = 200 * time.Millisecond }, "too long": func(c *Config) { c.TTL = 11 * time.Second },
		"transit": func(c *Config) { c.Transit = time.Second }, "idle": func(c *Config) { c.Idle = -1 }, "streams": func(c *Config) { c.Streams = -1 },
	} {
		c := good
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
