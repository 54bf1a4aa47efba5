package grpclimit_test

import (
	"context"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/limit"
	"subak/enforce/limit/grpclimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is set by hand.
type clock struct{ at atomic.Int64 }

func (c *clock) now() int64 { return c.at.Load() }

type limits struct{ l *enforce.Limiter }

func (x limits) Limiter(budget, class string) (*enforce.Limiter, int, bool) {
	return x.l, 0, budget == "origin" && class == "rpc"
}

// newClass has a bucket of 10 that is full and refills at 10/s of the clock.
func newClass(t *testing.T) (*limit.Class, *clock, *limit.Set) {
	t.Helper()
	c := &clock{}
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 1}, 0)
	r := 10 * allocator.Unit
	l.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r}}})
	c.at.Store(int64(1001 * time.Millisecond)) // credit rounds down
	s := limit.NewSet(limit.Config{Limits: limits{l}, Now: c.now})
	class, err := s.Class("origin", "rpc")
	if err != nil {
		t.Fatal(err)
	}
	return class, c, s
}

// service answers checks, and echoes a stream's messages.
type service struct {
	healthpb.UnimplementedHealthServer
	reflectpb.UnimplementedServerReflectionServer
	calls atomic.Int64
}

func (s *service) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	s.calls.Add(1)
	return &healthpb.HealthCheckResponse{}, nil
}

func (s *service) ServerReflectionInfo(stream reflectpb.ServerReflection_ServerReflectionInfoServer) error {
	s.calls.Add(1)
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		if err := stream.Send(&reflectpb.ServerReflectionResponse{}); err != nil {
			return err
		}
	}
}

// dial serves over memory and connects.
func dial(t *testing.T, server []grpc.ServerOption, client ...grpc.DialOption) (*grpc.ClientConn, *service) {
	t.Helper()
	srv, svc, wire := grpc.NewServer(server...), &service{}, bufconn.Listen(1<<16)
	healthpb.RegisterHealthServer(srv, svc)
	reflectpb.RegisterServerReflectionServer(srv, svc)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(wire) }()
	client = append(client, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:memory", client...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return conn, svc
}

func check(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// details returns what a refusal carries.
func details(t *testing.T, err error) (retry *errdetails.RetryInfo, quota *errdetails.QuotaFailure) {
	t.Helper()
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.ResourceExhausted {
		t.Fatalf("%v, want RESOURCE_EXHAUSTED", err)
	}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			quota = d
		}
	}
	return retry, quota
}

func TestARefusedCallSaysWhenToComeAgain(t *testing.T) {
	class, clock, _ := newClass(t)
	conn, svc := dial(t, []grpc.ServerOption{grpc.UnaryInterceptor(grpclimit.Config{Class: class}.UnaryServer())})
	for range 10 {
		if err := check(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	}
	retry, quota := details(t, check(t.Context(), conn))
	if retry == nil || retry.RetryDelay.AsDuration().Round(time.Millisecond) != 100*time.Millisecond {
		t.Errorf("retry info %v, want 100ms", retry)
	}
	if quota == nil || quota.Violations[0].Subject != "origin/rpc" {
		t.Errorf("quota failure %v, want origin/rpc", quota)
	}
	if n := svc.calls.Load(); n != 10 {
		t.Errorf("the handler saw %d calls, want 10", n)
	}
	clock.at.Add(int64(retry.RetryDelay.AsDuration()))
	if err := check(t.Context(), conn); err != nil {
		t.Errorf("after the delay that it was told: %v", err)
	}
}

func TestACostThatCannotBePaidHasNoRetryInfo(t *testing.T) {
	class, _, set := newClass(t)
	cfg := grpclimit.Config{Class: class, Classify: func(_ context.Context, method string) (*limit.Class, limit.Call) {
		if method != "/grpc.health.v1.Health/Check" {
			t.Errorf("method %q", method)
		}
		return nil, limit.Call{Cost: 11}
	}}
	conn, _ := dial(t, []grpc.ServerOption{grpc.UnaryInterceptor(cfg.UnaryServer())})
	if retry, quota := details(t, check(t.Context(), conn)); retry != nil || quota == nil {
		t.Errorf("retry info %v, quota failure %v", retry, quota)
	}
	set.Renew(limits{})
	if retry, _ := details(t, check(t.Context(), conn)); retry != nil {
		t.Errorf("a class that is gone: retry info %v", retry)
	}
}

func TestACallThatNobodyKnowsWhatToDoWithIsDenied(t *testing.T) {
	conn, svc := dial(t, []grpc.ServerOption{grpc.UnaryInterceptor(grpclimit.Config{}.UnaryServer())})
	if err := check(t.Context(), conn); status.Code(err) != codes.PermissionDenied || svc.calls.Load() != 0 {
		t.Errorf("%v after %d calls", err, svc.calls.Load())
	}
}

func TestStreamsArePaidWhenTheyOpenOrByMessage(t *testing.T) {
	for messages, want := range map[bool]int{false: 25, true: 10} {
		class, _, _ := newClass(t)
		conn, svc := dial(t, []grpc.ServerOption{grpc.StreamInterceptor(grpclimit.Config{Class: class, Messages: messages}.StreamServer())})
		stream, err := reflectpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		answered := 0
		for range 25 {
			err := stream.Send(&reflectpb.ServerReflectionRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			if err != nil {
				details(t, err)
				break
			}
			answered++
		}
		if answered != want {
			t.Errorf("by message %v: %d of 25 answered, want %d", messages, answered, want)
		}
		if messages {
			continue
		}
		for range 9 {
			class.Allow()
		}
		refused, err := reflectpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err == nil {
			_, err = refused.Recv()
		}
		details(t, err)
		if n := svc.calls.Load(); n != 1 {
			t.Errorf("the handler saw %d streams, want 1", n)
		}
	}
}

func TestAClientWaitsForItsTokensOrFailsAtOnce(t *testing.T) {
	class, clock, _ := newClass(t)
	waits, refuses := grpclimit.Config{Class: class}, grpclimit.Config{Class: class, Refuse: true}
	patient, _ := dial(t, nil, grpc.WithUnaryInterceptor(waits.UnaryClient()), grpc.WithStreamInterceptor(waits.StreamClient()))
	hasty, svc := dial(t, nil, grpc.WithUnaryInterceptor(refuses.UnaryClient()), grpc.WithStreamInterceptor(refuses.StreamClient()))
	for range 10 {
		if err := check(t.Context(), hasty); err != nil {
			t.Fatal(err)
		}
	}
	details(t, check(t.Context(), hasty))
	_, err := reflectpb.NewServerReflectionClient(hasty).ServerReflectionInfo(t.Context())
	details(t, err)
	if n := svc.calls.Load(); n != 10 {
		t.Errorf("%d calls were sent, want 10", n)
	}

	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	details(t, check(soon, patient)) // known at once: it does not wait for its deadline
	if soon.Err() != nil {
		t.Error("the error came at the deadline")
	}
	served := make(chan error, 1)
	go func() { served <- check(t.Context(), patient) }()
	for class.Reserve(1).OK() { // never: the bucket is empty and the clock stands
		t.Error("a token out of nothing")
	}
	clock.at.Add(int64(200 * time.Millisecond))
	if err := <-served; err != nil {
		t.Errorf("a call that waits: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := check(gone, patient); status.Code(err) != codes.Canceled {
		t.Errorf("%v, want CANCELED", err)
	}
}
