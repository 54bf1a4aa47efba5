package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// Part is a gRPC service that a Server offers. A part with long streams ends them
// when the server's Shutdown begins, or they are cut off when it ends.
type Part interface {
	Register(grpc.ServiceRegistrar)
}

// ServerConfig describes a gRPC server for Envoys. Zero values are safe defaults.
type ServerConfig struct {
	// TLS, if set, is spoken on every connection; nothing else is. For mTLS it
	// demands client certificates, for certificates that change it has
	// GetConfigForClient.
	TLS *tls.Config
	// Ready is the node's readiness, and why where it is not ready. nil means
	// always ready.
	Ready func() (bool, string)
	// MessageBytes is the largest message accepted; 0 means 1 MiB. A call above it
	// fails, and where the Envoy fails open the request passes: it must be out of
	// the reach of clients, whose request heads Envoy bounds to 60 KiB.
	MessageBytes int
	// Streams is the number of calls in flight on one connection; more wait at
	// the client. 0 means 1024.
	Streams int
	// Connections is the number of connections; more wait to be accepted. 0
	// means 4096.
	Connections int
	// IdleTimeout closes a connection without calls; 0 means never: an Envoy
	// keeps one for its life.
	IdleTimeout time.Duration
	// Log gets panics of calls, with their stack; nil discards.
	Log *slog.Logger
}

const (
	handshakeMax = 10 * time.Second // TLS and HTTP/2, before a connection counts
	pingAfter    = 30 * time.Second // of silence, to find dead peers
	pingTimeout  = 10 * time.Second
	pingMin      = 5 * time.Second // between a client's pings
	headBytes    = 16 << 10
)

// Server is a gRPC server with health and reflection. Health agrees with Ready,
// for the whole ("") and for every part by name.
type Server struct {
	grpc   *grpc.Server
	health *health
	conns  int
}

// NewServer returns a server that offers parts; it listens to nothing yet.
func NewServer(cfg ServerConfig, parts ...Part) *Server {
	s := &Server{grpc: grpc.NewServer(cfg.options()...), conns: orElse(cfg.Connections, 4096)}
	for _, p := range parts {
		p.Register(s.grpc)
	}
	s.health = newHealth(cfg.Ready, s.grpc.GetServiceInfo())
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s
}

func (c ServerConfig) options() []grpc.ServerOption {
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(orElse(c.MessageBytes, 1<<20)),
		grpc.MaxConcurrentStreams(uint32(orElse(c.Streams, 1024))),
		grpc.MaxHeaderListSize(headBytes),
		grpc.ConnectionTimeout(handshakeMax),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingMin, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: c.IdleTimeout, Time: pingAfter, Timeout: pingTimeout}),
		grpc.UnaryInterceptor(c.rescueUnary),
		grpc.StreamInterceptor(c.rescueStream),
	}
	if c.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(c.TLS)))
	}
	return opts
}

func (c ServerConfig) rescueUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, recovered(c.Log, p)
		}
	}()
	return next(ctx, req)
}

func (c ServerConfig) rescueStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = recovered(c.Log, p)
		}
	}()
	return next(srv, ss)
}

func orElse(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Listen opens "IP:PORT" or "unix:PATH". A socket file that nobody serves any more
// is replaced; a new one is for its owner and group.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return lc.Listen(ctx, "tcp", address)
	}
	l, err := lc.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(ctx, path) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("replace the socket of before: %w", err)
		}
		l, err = lc.Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// abandoned says whether path is a socket that nobody listens on.
func abandoned(ctx context.Context, path string) bool {
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close() // somebody listens
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Serve accepts connections until Shutdown or Close, and returns nil then.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(netutil.LimitListener(l, s.conns))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Shutdown reports not ready, takes no new connections and calls and waits for
// those under way until ctx ends; what is left then is cut off, and it returns
// ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.health.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		go s.grpc.Stop() // both end with the last handler, which may take longer
		return ctx.Err()
	}
}

// Close cuts everything off.
func (s *Server) Close() {
	s.health.close()
	s.grpc.Stop()
}
