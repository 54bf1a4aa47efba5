// Package web is the admin interface of one node: a small HTTP API, metrics,
// probes, profiles, and the dashboard, which is embedded and needs no network.
//
// Model. The node (a Backend) is asked for a snapshot twice a second, or while nobody
// looks for sums once, by one goroutine, the hub. The hub keeps five to ten minutes of
// each budget's sums and hands every snapshot to the open event streams. All other
// routes ask the Backend when they are called.
//
// Safety rules (lesson O28). The listener is loopback or a unix socket unless a
// token is configured or the operator says Insecure in so many words. With a
// token every route needs it in an Authorization header, but for the probes and
// the dashboard's static files, which hold no data. Without one, a request must
// name the server by a host that an attacker's DNS cannot own. Requests that
// another web site makes through a browser are refused.
//
// Bounds. Connections, header and body bytes, event streams, budgets in the
// history and the length of a profile are bounded by the constants below; a
// stream that does not keep up is closed and counted.
//
// Concurrency. A Server's methods may be called from any goroutine; Run once.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"

	"subak/internal/api"
)

// DefaultListen is the admin address when none is configured.
const DefaultListen = "127.0.0.1:7947"

// The bounds of the server.
const (
	connectionsMax    = 256              // open at once; more wait in the kernel's queue
	headerBytesMax    = 16 << 10         // request line and headers
	bodyBytesMax      = 4 << 10          // of a route that reads none: room for a stray one
	changeBytesMax    = 4 << 20          // of a change: a file of 1 MiB in JSON, every byte escaped
	nameBytesMax      = 256              // of a budget, class or node in a query
	streamsMax        = 32               // event streams open at once
	streamQueue       = 4                // snapshots a stream may lag before it is closed
	headerTimeout     = 5 * time.Second  // for the request's headers
	readTimeout       = 10 * time.Second // for the whole request; the server lifts it once that is read
	writeTimeout      = 15 * time.Second // for a response; streams and profiles extend it
	idleTimeout       = 60 * time.Second // of a kept-alive connection
	shutdownTimeout   = 3 * time.Second  // for open requests once Run's context ends
	profileSecondsMax = 60               // of a CPU profile or trace
)

// ErrNotFound is wrapped by a Backend's Explain for a budget, class or node
// that does not exist; the route answers 404 rather than 500.
var ErrNotFound = errors.New("not found")

// Errors of a Backend's Change, Progress and EndTrial by what the caller can do:
// mend what was sent (400), or look at the state of the cluster and decide anew
// (409).
var (
	ErrInvalid  = errors.New("invalid change")
	ErrConflict = errors.New("change refused")
)

// Backend is the node as the admin interface sees it. Methods are called from
// many goroutines at once and must not block for long.
type Backend interface {
	// Status is a snapshot that the caller may keep; while somebody looks at the
	// dashboard it is asked for twice a second.
	Status() api.Status
	// Sums is the part of Status that the history keeps; it is asked for twice
	// a second for as long as the node runs, so it has to be cheap.
	Sums() []api.Sum
	// Shares is what is enforced at this instant; it waits for nothing and may be
	// asked for a hundred times a second.
	Shares() api.Shares
	// Explain says why one cell has its target; node "" means this node.
	Explain(budget, class, node string) (api.Explanation, error)
	// Freeze turns the kill switch on or off. The new state has to show in
	// Status soon, not at once.
	Freeze(on bool) error
	// Change puts new nodes or budgets in force in the whole cluster, or says
	// what it would do. It returns once the change is made, not in force.
	Change(api.ChangeRequest) (api.Change, error)
	// Progress says how far an epoch has come, by VERSION-HASH; "" is the newest.
	Progress(epoch string) (api.Change, error)
	// EndTrial ends the trial of a canary: the change goes on, or is taken back.
	EndTrial(promote bool) (api.Change, error)
	// Reach tries the ways to and from this node; it takes up to eleven seconds.
	Reach(ctx context.Context) (api.Reach, error)
	// Ready says whether the node should get traffic, and on what that rests.
	Ready() (ok bool, reason string)
	// Healthy says whether the process works; it is false only where a restart
	// would help.
	Healthy() (ok bool, reason string)
}

// Config says where the admin interface listens and whom it trusts.
type Config struct {
	// Listen is host:port, or unix:/path of a socket. "" means DefaultListen.
	// Port 0 picks a free one; see Server.Addr.
	Listen string
	// Token is the bearer token of all routes. "" means none, which is accepted
	// on a loopback address and a unix socket only.
	Token string
	// ReadToken, if set, is a second token that reads but cannot freeze,
	// unfreeze or take profiles. It needs Token to be set.
	ReadToken string
	// Insecure accepts a non-loopback address without a token: whoever reaches
	// the port can then freeze the node.
	Insecure bool
	// Hosts are further names by which browsers and scrapers may reach a server
	// without a token, besides IP addresses, localhost and the name in Listen.
	Hosts []string
	// Gatherer is what /metrics shows; nil means no /metrics.
	Gatherer prometheus.Gatherer
	// Registerer takes the server's own metrics; nil means they are not shown.
	Registerer prometheus.Registerer
	// Log gets what an operator should know; nil discards.
	Log *slog.Logger
	// SampleEvery is the time between snapshots; 0 means 500 ms, and no less
	// than 50 ms is accepted. Halving it halves the span of the history.
	SampleEvery time.Duration
}

// Validate returns all faults that do not need the network to be found.
func (c *Config) Validate() error {
	var faults []error
	if c.ReadToken != "" && c.Token == "" {
		faults = append(faults, errors.New("admin: a read token without a token: set the token too, or drop the read token"))
	}
	if c.ReadToken != "" && c.ReadToken == c.Token {
		faults = append(faults, errors.New("admin: the read token equals the token: make them differ"))
	}
	if c.SampleEvery != 0 && c.SampleEvery < 50*time.Millisecond {
		faults = append(faults, fmt.Errorf("admin: sample interval %v: use 50ms or more", c.SampleEvery))
	}
	return errors.Join(faults...)
}

// Server is the admin interface, listening since New and serving during Run.
type Server struct {
	cfg      Config
	backend  Backend
	log      *slog.Logger
	listener net.Listener
	address  address
	guard    guard
	metrics  metrics
	hub      *hub
	http     *http.Server
}

// New validates the config, binds the address and returns the server. It fails
// on an address that is open to others without a token.
func New(cfg Config, b Backend) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.SampleEvery == 0 {
		cfg.SampleEvery = 500 * time.Millisecond
	}
	addr, err := parseListen(cfg.Listen)
	if err != nil {
		return nil, err
	}
	if err := cfg.allow(addr); err != nil {
		return nil, err
	}
	listener, err := addr.listen()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, backend: b, log: cfg.Log, listener: listener, address: addr, metrics: newMetrics()}
	if err := s.metrics.register(cfg.Registerer); err != nil {
		listener.Close()
		return nil, fmt.Errorf("admin: register metrics: %w", err)
	}
	s.guard = newGuard(&s.cfg, addr, &s.metrics)
	s.hub = newHub(b, cfg.SampleEvery, &s.metrics)
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// allow refuses an address that others reach without a token, and warns of what
// the operator chose to expose.
func (c *Config) allow(addr address) error {
	switch {
	case !addr.exposed():
	case c.Token != "":
		c.Log.Warn("the admin token travels unencrypted: put TLS in front of the admin address", "address", addr.String())
	case c.Insecure:
		c.Log.Warn("the admin interface is open to everyone who reaches it", "address", addr.String())
	default:
		return fmt.Errorf("admin: %s can be reached by other machines and there is no token: "+
			"set admin.token_file, or listen on 127.0.0.1 or unix:/path, or set admin.insecure: true", addr)
	}
	return nil
}

// Addr is where the server listens: host:port with the port in use, or
// unix:/path.
func (s *Server) Addr() string {
	if s.address.path != "" {
		return s.address.String()
	}
	return s.listener.Addr().String()
}

// Close gives up the address of a server that was never run. After Run it does
// nothing.
func (s *Server) Close() error {
	err := s.http.Close()
	if lerr := s.listener.Close(); lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = errors.Join(err, lerr)
	}
	return err
}

// Run serves until ctx ends, then closes the event streams, waits a bounded
// time for open requests and gives up the address. It returns nil after an
// orderly end.
func (s *Server) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Requests see the end of ctx through their own context: streams and
	// profiles must not hold up the shutdown.
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }

	var running sync.WaitGroup
	running.Go(func() { s.hub.run(ctx) })
	served := make(chan error, 1)
	running.Go(func() { served <- s.http.Serve(netutil.LimitListener(s.listener, connectionsMax)) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
		err = fmt.Errorf("admin: serve %s: %w", s.Addr(), err)
	}
	stop()
	s.shutdown()
	running.Wait()
	return err
}

// shutdown ends the HTTP server, by force when open requests take too long.
func (s *Server) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("admin requests were cut off at shutdown", "error", err)
		s.http.Close()
	}
}
