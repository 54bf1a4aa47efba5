package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"subak/enforce/tlsfiles"
)

// Server serves one listener: HTTP/1.1, HTTP/2 over TLS and HTTP/2 in clear text
// with prior knowledge. It holds clients to the listener's Limits, and refuses
// HTTP/1 whose framing is ambiguous before anything reads it.
type Server struct {
	http   *http.Server
	name   string
	limits Limits
	files  *tlsfiles.Files // nil without TLS
	log    *slog.Logger
	begin  time.Time
	// unwatched says that no handler waits for anything, so that none need hear that
	// its client is gone.
	unwatched bool

	open, refused, misframed, handshakes atomic.Int64

	stop     context.CancelFunc // ends what Serve started
	stopped  context.Context
	drain    sync.Once
	draining chan struct{} // closed when Shutdown begins

	mu     sync.Mutex
	away   map[*guarded]struct{} // hijacked connections, guarded by mu
	none   chan struct{}         // closed when away gets empty, if not nil; guarded by mu
	closed bool                  // guarded by mu
}

// NewServer returns a server for h within cfg's Limits and with its TLS, the
// files of which it reads. Of cfg it uses nothing else but the name, and whether checks
// are all that it answers: then it does not watch for clients that leave before their
// answer. A nil log discards.
func NewServer(cfg Config, h http.Handler, log *slog.Logger) (*Server, error) {
	if err := cfg.Limits.validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	lim := cfg.Limits.filled()
	s := &Server{
		name: cfg.Name, limits: lim, log: log, begin: time.Now(), unwatched: cfg.Check.Enabled && len(cfg.Backends) == 0,
		draining: make(chan struct{}), away: map[*guarded]struct{}{},
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: lim.HeaderTimeout,
		IdleTimeout:       lim.IdleTimeout,
		MaxHeaderBytes:    lim.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols:         new(http.Protocols),
		ConnState:         s.follow,
		ConnContext:       func(ctx context.Context, _ net.Conn) context.Context { return context.WithValue(ctx, serverKey{}, s) },
	}
	// A peer that is gone without a word is found out while its streams wait.
	s.http.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(cfg.TLS == nil)
	if cfg.TLS != nil {
		files, err := tlsfiles.Open(*cfg.TLS, "h2", "http/1.1")
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		s.files = files
	}
	return s, nil
}

// serverKey finds the Server in the context of its requests.
type serverKey struct{}

// Serve accepts from ln until Shutdown or Close, and then returns
// http.ErrServerClosed. It may be called once.
func (s *Server) Serve(ln net.Listener) error {
	in := &intake{Listener: ln, server: s, keeper: patience{begin: s.begin}}
	if s.files != nil {
		in.ready = make(chan accepted)
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(in.shakeHands)
		running.Go(func() { s.files.Watch(s.stopped, s.log) })
	}
	defer s.stop()
	return s.http.Serve(in)
}

// Shutdown accepts nothing more and tells clients: HTTP/1.1 by Connection:
// close, HTTP/2 by GOAWAY, WebSockets by a close frame (1001, going away). It
// waits until ctx ends for what is under way, then returns ctx's error and
// leaves the rest to Close.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain.Do(func() { close(s.draining) })
	s.stop()
	return errors.Join(s.http.Shutdown(ctx), s.wait(ctx))
}

// Close cuts everything off.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.mu.Lock()
	s.closed = true
	var left []*guarded
	for c := range s.away {
		left = append(left, c)
	}
	s.mu.Unlock()
	for _, c := range left {
		err = errors.Join(err, c.Close())
	}
	return err
}

// ReloadTLS looks at the certificate's files now, not only at the next poll. On an
// error the ones of before stay in force. Without TLS it does nothing.
func (s *Server) ReloadTLS() error {
	if s.files == nil {
		return nil
	}
	_, err := s.files.Reload()
	return err
}

// follow keeps an eye on connections that net/http gives away.
func (s *Server) follow(c net.Conn, state http.ConnState) {
	if state != http.StateHijacked {
		return
	}
	g, ok := c.(*guarded)
	if t, isTLS := c.(*guardedTLS); isTLS {
		g, ok = &t.guarded, true
	}
	if !ok {
		return
	}
	g.hijacked.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[g] = struct{}{}
	if s.closed {
		_ = g.Conn.Close()
	}
}

func (s *Server) forget(g *guarded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.away, g)
	if len(s.away) == 0 && s.none != nil {
		close(s.none)
		s.none = nil
	}
}

// wait waits for hijacked connections.
func (s *Server) wait(ctx context.Context) error {
	s.mu.Lock()
	if len(s.away) == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.none == nil {
		s.none = make(chan struct{})
	}
	none := s.none
	s.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) debug(msg string, args ...any) {
	if s.log.Enabled(context.Background(), slog.LevelDebug) {
		s.log.Debug(msg, append(args, "listener", s.name)...)
	}
}
