package envoy_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
)

// TestMain also plays the servers that the benchmark measures: each is a process
// of its own, so that its CPU time is its own.
func TestMain(m *testing.M) {
	switch os.Getenv("ENVOY_TEST_SERVER") {
	case "":
		goleak.VerifyTestMain(m)
	case "bare":
		s := grpc.NewServer()
		ratelimitv3.RegisterRateLimitServiceServer(s, bare{})
		serveForever(s.Serve)
	case "door":
		s, err := envoy.New(benchConfig(), benchDeps())
		if err != nil {
			panic(err)
		}
		serveForever(envoy.NewServer(envoy.ServerConfig{}, envoy.NewDoor(s)).Serve)
	}
}

// bare answers OK to everything: the floor.
type bare struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
}

func (bare) ShouldRateLimit(context.Context, *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}, nil
}

func serveForever(serve func(net.Listener) error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(serve(l))
}

func benchConfig() envoy.Config {
	return envoy.Config{
		Name: "bench", Default: envoy.Target{Budget: "origin", Class: "low"},
		Domains: []envoy.Domain{{
			Name: "edge", Budget: "origin", Class: "low",
			Rules: []envoy.Rule{
				{Match: map[string]string{"path": "/pay*"}, Class: "high", Cost: 5},
				{Match: map[string]string{"path": "/api/*", "remote_address": "*"}, Class: "high", Tenant: "remote_address"},
			},
		}},
	}
}

func benchDeps() envoy.Deps {
	lim := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, 0)
	r := allocator.Rate(1e9) * allocator.Unit
	lim.SetSchedule(0, []enforce.Step{{Until: math.MaxInt64, Total: 2 * r, Classes: []allocator.Rate{r, r}}})
	start := time.Now()
	return envoy.Deps{
		Limits: gate.Budgets{{Name: "origin", Classes: []string{"high", "low"}, Limiter: lim}},
		Now:    func() int64 { return int64(time.Since(start)) },
	}
}
