package quota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
)

// Config describes one quota service. Zero values but those of Name and Matcher
// are usable.
type Config struct {
	// Name tells services of one node apart: each carves its own part of
	// a class. It labels metrics. Renew cannot change it.
	Name string
	// Matcher says which class a bucket id belongs to.
	Matcher *envoy.Matcher
	// OnUnknown says what happens to a bucket id that belongs to no class, or to
	// one that this node does not have: gate.UnknownAllow lets it pass, anything
	// else refuses it.
	OnUnknown gate.Unknown
	// Shadow counts, and lets everything pass.
	Shadow bool
	// TTL is how long an assignment lasts unless renewed: whole seconds, since
	// Envoy drops the rest; 1 s to TTLMax. 0 means 2 s. Raising it makes
	// assignments outlive longer stalls of this node, and capacity move more
	// slowly. Where the share rests on leases that end sooner, assignments last
	// 1 s.
	TTL time.Duration
	// Transit is within how long of its sending an assignment is applied by
	// Envoy, and within how long of its end it is expired: at most a quarter of
	// TTL. 0 means 250 ms. Raising it tolerates slower networks and busier
	// Envoys, and keeps capacity that moves idle for as much longer.
	Transit time.Duration
	// Idle is after how long without a request a bucket is abandoned; Envoy
	// reports it again with its next request. 0 means 5 min.
	Idle time.Duration
	// Streams, Buckets and AllBuckets bound the streams, the buckets of one and
	// those of all together; 0 means 1024, 1024 and 16384. A bucket weighs about
	// 1 kB and its id.
	Streams, Buckets, AllBuckets int
}

// TTLMax is the longest time to live.
const TTLMax = 10 * time.Second

func (c Config) withDefaults() Config {
	c.TTL = or(c.TTL, 2*time.Second)
	c.Transit = or(c.Transit, 250*time.Millisecond)
	c.Idle = or(c.Idle, 5*time.Minute)
	c.Streams, c.Buckets, c.AllBuckets = or(c.Streams, 1024), or(c.Buckets, 1024), or(c.AllBuckets, 1<<14)
	return c
}

func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// Validate returns every fault of the configuration that does not depend on the
// limiters.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Matcher == nil {
		errs = append(errs, errors.New("matcher: missing"))
	}
	if c.TTL < time.Second || c.TTL > TTLMax || c.TTL%time.Second != 0 {
		errs = append(errs, fmt.Errorf("ttl: %v: want whole seconds, 1s to %v", c.TTL, TTLMax))
	}
	if c.Transit < 10*time.Millisecond || c.Transit > c.TTL/4 {
		errs = append(errs, fmt.Errorf("transit: %v: want 10ms to a quarter of ttl", c.Transit))
	}
	if c.Idle < time.Second || c.Streams < 0 || c.Buckets < 0 || c.AllBuckets < 0 {
		errs = append(errs, errors.New("idle, streams or buckets: out of range"))
	}
	return errors.Join(errs...)
}

// Hold is for how long after its sending an assignment may be spent, at most. A
// node keeps its base out of use for as long after a start, for what a former
// life assigned, and it must be within the term of leases, so that a dead node's
// Envoys are done before others may take over.
func (c Config) Hold() time.Duration {
	c = c.withDefaults()
	t := timing{int64(c.TTL), int64(c.Transit)}
	return time.Duration(t.hold(t.ttl) + t.grid())
}

// Deps are what a service asks of the outside.
type Deps struct {
	Limits enforce.Limits
	// Now is the lease clock's reading.
	Now func() int64
	// Log gets what happens to streams; nil discards.
	Log *slog.Logger
}

// Service is the door. It implements envoy.Part.
type Service struct {
	pb.UnimplementedRateLimitQuotaServiceServer
	deps Deps

	mu      sync.Mutex
	planner *planner
	outs    map[int64]*outlet // by stream
	lastID  int64
	kick    chan struct{} // capacity 1: there is something to plan
}

// outlet is the way to one data plane.
type outlet struct {
	batches chan batch
	gone    chan struct{} // closed when the stream is to be cut off
	cut     sync.Once
}

func (o *outlet) close() { o.cut.Do(func() { close(o.gone) }) }

// batch is one response, and the instant by which it must have left.
type batch struct {
	response *pb.RateLimitQuotaResponse
	leaveBy  int64
}

const (
	turnEvery   = 50 * time.Millisecond
	batchesMax  = 8 // that wait for one stream; one that is slower is cut off
	reportsEach = 1 << 14
)

// New returns a service. Run must be running for it to assign anything.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("quota %q: %w", cfg.Name, err)
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{
		deps: deps, planner: newPlanner(cfg.withDefaults(), deps.Limits),
		outs: map[int64]*outlet{}, kick: make(chan struct{}, 1),
	}, nil
}

// Renew puts another configuration or other limiters in force: call it whenever
// limiters were replaced. Streams go on, and what was assigned runs out as it
// would have; a bucket that now belongs elsewhere is abandoned, and reported anew
// by Envoy. An error changes nothing.
func (s *Service) Renew(cfg Config, limits enforce.Limits) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("quota %q: %w", cfg.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg.Name = s.planner.cfg.Name
	s.planner.renew(s.deps.Now(), cfg.withDefaults(), limits)
	s.wake()
	return nil
}

// Register implements envoy.Part.
func (s *Service) Register(r grpc.ServiceRegistrar) { pb.RegisterRateLimitQuotaServiceServer(r, s) }

func (s *Service) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Run plans and sends until ctx ends, and returns nil then. What is assigned by
// then runs out: see Drain.
func (s *Service) Run(ctx context.Context) error {
	timer := time.NewTimer(turnEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if s.turn() {
			timer.Reset(turnEvery)
			continue
		}
		select { // nobody is there: no need to wake up
		case <-ctx.Done():
			return nil
		case <-s.kick:
			timer.Reset(0)
		}
	}
}

// turn reports whether there is more to do without news.
func (s *Service) turn() (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.kick:
	default:
	}
	now := s.deps.Now()
	actions := s.planner.turn(now)
	leaveBy := now + s.planner.t.transit/2
	for i, j := 0, 0; i < len(actions); i = j {
		for j < len(actions) && actions[j].stream == actions[i].stream && actions[j].order == actions[i].order {
			j++
		}
		o := s.outs[actions[i].stream.id]
		if o == nil {
			continue
		}
		select {
		case o.batches <- batch{respond(actions[i:j]), leaveBy}:
		default:
			s.planner.seen.late++
			o.close()
		}
	}
	return !s.planner.idle(now)
}

func respond(actions []action) *pb.RateLimitQuotaResponse {
	r := &pb.RateLimitQuotaResponse{BucketAction: make([]*pb.RateLimitQuotaResponse_BucketAction, len(actions))}
	for i, a := range actions {
		r.BucketAction[i] = a.proto()
	}
	return r
}

func (a *action) proto() *pb.RateLimitQuotaResponse_BucketAction {
	out := &pb.RateLimitQuotaResponse_BucketAction{BucketId: a.id}
	if a.verb == abandon {
		out.BucketAction = &pb.RateLimitQuotaResponse_BucketAction_AbandonAction_{AbandonAction: &pb.RateLimitQuotaResponse_BucketAction_AbandonAction{}}
		return out
	}
	strategy := a.grant.strategy()
	if a.verb == allow {
		strategy = blanket(typev3.RateLimitStrategy_ALLOW_ALL)
	}
	out.BucketAction = &pb.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
		QuotaAssignmentAction: &pb.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
			AssignmentTimeToLive: durationpb.New(time.Duration(a.ttl)), RateLimitStrategy: strategy,
		},
	}
	return out
}

// Drain assigns nothing any more and returns when no Envoy can be spending, at
// most TTL and Transit later, or with ctx's error; streams are ended then, so that
// a server's shutdown need not wait for them. Run must be running.
func (s *Service) Drain(ctx context.Context) error {
	defer s.hangUp()
	s.mu.Lock()
	s.planner.stopped = true
	s.wake()
	s.mu.Unlock()
	ticker := time.NewTicker(turnEvery)
	defer ticker.Stop()
	for {
		s.mu.Lock()
		rest := s.planner.outstanding(s.deps.Now())
		s.mu.Unlock()
		if rest == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// hangUp ends all streams.
func (s *Service) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.outs {
		o.close()
	}
}

// cutOff says why a stream was ended.
func (s *Service) cutOff() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planner.stopped {
		return status.Error(codes.Unavailable, "shutting down")
	}
	return status.Error(codes.Unavailable, "assignments were not taken in time")
}

// StreamRateLimitQuotas serves one data plane.
func (s *Service) StreamRateLimitQuotas(stream grpc.BidiStreamingServer[pb.RateLimitQuotaUsageReports, pb.RateLimitQuotaResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return ended(err)
	}
	id, o := s.open(first)
	if o == nil {
		return status.Error(codes.ResourceExhausted, "too many quota streams, or shutting down")
	}
	defer s.close(id)
	reading := make(chan error, 1)
	go func() { // ends with the stream's context, which ends with this call
		for {
			m, err := stream.Recv()
			if err != nil {
				reading <- err
				return
			}
			s.report(id, m)
		}
	}()
	for {
		select {
		case err := <-reading:
			return ended(err)
		case <-o.gone:
			return s.cutOff()
		case b := <-o.batches:
			if s.deps.Now() > b.leaveBy {
				return status.Error(codes.Unavailable, "assignments were not taken in time")
			}
			if err := stream.Send(b.response); err != nil {
				return err
			}
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *Service) open(first *pb.RateLimitQuotaUsageReports) (int64, *outlet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	if !s.planner.open(s.lastID, first.GetDomain()) {
		return 0, nil
	}
	o := &outlet{batches: make(chan batch, batchesMax), gone: make(chan struct{})}
	s.outs[s.lastID] = o
	s.take(s.lastID, first)
	return s.lastID, o
}

func (s *Service) report(id int64, m *pb.RateLimitQuotaUsageReports) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(id, m)
}

// take hands reports on, with s.mu held.
func (s *Service) take(id int64, m *pb.RateLimitQuotaUsageReports) {
	now := s.deps.Now()
	for i, u := range m.GetBucketQuotaUsages() {
		if i < reportsEach {
			s.planner.report(now, id, u)
		}
	}
	s.wake()
}

func (s *Service) close(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.outs, id)
	s.planner.close(s.deps.Now(), id)
	s.wake()
}
