// Package quota is the door for Envoy's rate limit quota service, version 3
// (envoy.service.rate_limit_quota.v3).
package quota

import (
	"context"
	"log/slog"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"

	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
)

// Config describes one quota service.
type Config struct {
	Name      string
	Matcher   *envoy.Matcher
	OnUnknown gate.Unknown
	Shadow    bool
	TTL       time.Duration
	Transit   time.Duration
	Idle      time.Duration
	Streams   int
	Buckets   int
}

// Deps are what a service asks of the outside.
type Deps struct {
	Limits  enforce.Limits
	Missing func(envoy.Target)
	Now     func() int64
	Log     *slog.Logger
}

// Service implements envoy.Part.
type Service struct {
	pb.UnimplementedRateLimitQuotaServiceServer
}

// New returns a service; Run must be running for it to assign anything.
func New(cfg Config, deps Deps) (*Service, error) { return &Service{}, nil }

// Renew puts another configuration or other limiters in force. Streams go on.
// An error changes nothing.
func (s *Service) Renew(cfg Config, limits enforce.Limits) error { return nil }

// Register implements envoy.Part.
func (s *Service) Register(r grpc.ServiceRegistrar) { pb.RegisterRateLimitQuotaServiceServer(r, s) }

// Run assigns until ctx ends; then it assigns nothing more and returns nil.
func (s *Service) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Drain assigns nothing more and returns when no Envoy can be spending any more,
// or with ctx's error.
func (s *Service) Drain(ctx context.Context) error { return nil }
