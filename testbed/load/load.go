// Package load is an open-loop HTTP load generator with honest timing.
//
// Model: every arrival of a run is fixed in advance by a seed ([Stream.Rates]
// gives requests/s in each phase). It is sent at its intended time by a bounded
// pool of connections, whether or not earlier ones were answered, and its
// latency counts from the intended time, so a slow server cannot hide behind a
// generator that waits for it (no coordinated omission). What the pool cannot
// take is counted, never dropped in silence.
//
// Invariant, for every stream and phase once [Generator.Run] has returned:
//
//	Offered = Admitted + Refused + Away + Overflow + sum of Errors
//
// Away are the arrivals of a stream whose target is known not to run (see
// [Generator.Away]): clients that a dead node's neighbours would have sent
// elsewhere. They are not sent, and nobody is blamed for them.
//
// An arrival belongs to the phase of its intended time, whenever it is answered.
// Memory is bounded by streams x phases and the length of the run.
//
// Times are time.Duration, rates requests/s. Only Run starts goroutines, and all
// have ended when it returns; Report may be called at any time from any one.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Phase is one part of a run.
type Phase struct {
	Name   string
	Length time.Duration // above 0
}

// Stream is one kind of request to one target.
type Stream struct {
	Name string
	// URL is requested by GET, http only. Path and Header carry the class.
	URL    string
	Header map[string]string
	// Clients is the number of distinct clients that the requests come from, up
	// to 2^24: each request names a random one in X-Forwarded-For, as behind a
	// proxy. 0 sends no such header: everything is one client.
	Clients  uint32
	Arrivals Arrivals
	// Rates is the offered rate in requests/s for each phase; 0 offers nothing.
	// With Every set it is the rate of each stretch of that length from the
	// start, whatever the phases, as a trace has it; after the last one nothing
	// is offered.
	Rates []float64
	Every time.Duration
	// Conns is the number of connections (default 16): the most requests under
	// way at once. Raising it costs a socket and some 10 kB each.
	Conns int
	// Dial opens this stream's connections (default: Config.Dial).
	Dial Dialer
}

// Config is one run. Its zero values stand for the defaults named.
type Config struct {
	Seed    uint64
	Phases  []Phase
	Streams []Stream
	// Timeout ends a request that has no answer (default 5 s); it counts from
	// when the request is sent.
	Timeout time.Duration
	// Queue is how many arrivals of a stream may wait for a free connection
	// (default 4096). Beyond it they overflow. Longer hides a stall for longer.
	Queue int
	// Late is how long after its intended time a request may be sent before it
	// counts as late (default 20 ms). Late ones are sent all the same.
	Late time.Duration
	// Bin is the resolution of the series (default 100 ms).
	Bin time.Duration
	// Dial opens connections of streams without a Dial (default: net.Dialer).
	Dial Dialer
}

const (
	clientsMax = 1 << 24
	ratesMax   = 1 << 20
)

// Validate reports all faults.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("load: "+format, args...)) }
	if len(c.Phases) == 0 || len(c.Streams) == 0 {
		fault("a run needs phases and streams")
	}
	for _, p := range c.Phases {
		if p.Length <= 0 {
			fault("phase %q: length %s is not above 0", p.Name, p.Length)
		}
	}
	if c.Timeout < 0 || c.Queue < 0 || c.Late < 0 || c.Bin < 0 {
		fault("timeout, queue, late and bin must not be negative")
	}
	for _, s := range c.Streams {
		if u, err := url.Parse(s.URL); err != nil || u.Scheme != "http" || u.Host == "" {
			fault("stream %q: %q is not an http URL", s.Name, s.URL)
		}
		if s.Every < 0 || s.Every > 0 && len(s.Rates) > ratesMax {
			fault("stream %q: %d rates each %s long: at most %d, of a length above 0", s.Name, len(s.Rates), s.Every, ratesMax)
		}
		if s.Every == 0 && len(s.Rates) != len(c.Phases) {
			fault("stream %q: %d rates for %d phases", s.Name, len(s.Rates), len(c.Phases))
		}
		for _, r := range s.Rates {
			if !(r >= 0 && r <= 1e6) { // also refuses NaN
				fault("stream %q: rate %g is outside 0..1e6", s.Name, r)
			}
		}
		if s.Clients > clientsMax || s.Conns < 0 {
			fault("stream %q: at most %d clients and no negative number of connections", s.Name, clientsMax)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	orDefault(&c.Timeout, 5*time.Second)
	orDefault(&c.Queue, 4096)
	orDefault(&c.Late, 20*time.Millisecond)
	orDefault(&c.Bin, 100*time.Millisecond)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
}

func orDefault[T int | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

// Generator is one run. Make it by [New], run it once.
type Generator struct {
	cfg     Config
	streams []*stream
	ends    []time.Duration
	started chan struct{} // closed once start is set
	start   time.Time
}

// stream is one Stream at work: a dispatcher, a queue and workers.
type stream struct {
	cfg   *Config
	plan  *schedule
	conns []*conn
	queue chan arrival
	start time.Time // set before the workers start
	away  atomic.Bool
	lives atomic.Int64 // how often the target went away: older connections are dead

	mu  sync.Mutex // guards sum
	sum tally
}

// New prepares a run.
func New(cfg Config) (*Generator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	g := &Generator{cfg: cfg, started: make(chan struct{})}
	var end time.Duration
	for _, p := range cfg.Phases {
		end += p.Length
		g.ends = append(g.ends, end)
	}
	for i, s := range cfg.Streams {
		st := &stream{
			cfg:   &g.cfg,
			plan:  newSchedule(cfg.Seed, i, s, g.ends),
			queue: make(chan arrival, cfg.Queue),
			sum:   newTally(s.Name, len(cfg.Phases), end, cfg.Bin),
		}
		orDefault(&s.Conns, 16)
		dial := s.Dial
		if dial == nil {
			dial = cfg.Dial
		}
		for range s.Conns {
			c, err := newConn(s, dial, cfg.Timeout)
			if err != nil {
				return nil, err
			}
			st.conns = append(st.conns, c)
		}
		g.streams = append(g.streams, st)
	}
	return g, nil
}

// Run offers the whole load from now on and returns when every request has been
// answered or has failed. Cancelling ctx ends it early: arrivals not yet due are
// not offered, requests under way count as errors of kind "cancelled". The only
// error is that of ctx.
func (g *Generator) Run(ctx context.Context) error {
	g.start = time.Now()
	close(g.started)
	var wg sync.WaitGroup
	for _, s := range g.streams {
		s.start = g.start
		wg.Go(func() { s.dispatch(ctx) })
		for _, c := range s.conns {
			wg.Go(func() { s.work(ctx, c) })
		}
	}
	wg.Wait()
	return ctx.Err()
}

// Started is closed when the run begins; from then on Start is its first instant.
func (g *Generator) Started() <-chan struct{} { return g.started }

// Start is the instant from which arrivals count. Valid after Started.
func (g *Generator) Start() time.Time { return g.start }

// Away says whether a stream's target is known not to run. While it is, due
// arrivals are not sent, and requests that fail, also those under way when it
// began, count as away rather than as errors. So say it before the target is
// killed, and take it back once it listens again.
func (g *Generator) Away(stream int, away bool) {
	s := g.streams[stream]
	if s.away.Swap(away) != away && away {
		s.lives.Add(1)
	}
}

// Report says what has happened so far, stream by stream.
func (g *Generator) Report() Report {
	r := Report{Bin: g.cfg.Bin}
	for _, p := range g.cfg.Phases {
		r.Phases = append(r.Phases, p.Name)
	}
	for _, s := range g.streams {
		s.mu.Lock()
		r.Streams = append(r.Streams, s.sum.report())
		s.mu.Unlock()
	}
	return r
}

// dispatch hands each arrival to the workers when it is due.
func (s *stream) dispatch(ctx context.Context) {
	defer close(s.queue)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		a, ok := s.plan.next()
		if !ok {
			return
		}
		if wait := time.Until(s.start.Add(a.at)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		} else if ctx.Err() != nil {
			return
		}
		s.offer(a)
	}
}

func (s *stream) offer(a arrival) {
	away := s.away.Load()
	s.mu.Lock()
	s.sum.offered(a)
	if away {
		s.sum.notSent(a)
	}
	s.mu.Unlock()
	if away {
		return
	}
	select {
	case s.queue <- a:
	default:
		s.mu.Lock()
		s.sum.overflow(a)
		s.mu.Unlock()
	}
}

// work sends arrivals over one connection until there are no more.
func (s *stream) work(ctx context.Context, c *conn) {
	stop := context.AfterFunc(ctx, c.abort)
	defer stop()
	defer c.drop()
	life := int64(0)
	for a := range s.queue {
		if now := s.lives.Load(); now != life {
			c.drop()
			life = now
		}
		if s.away.Load() {
			s.mu.Lock()
			s.sum.notSent(a)
			s.mu.Unlock()
			continue
		}
		late := time.Since(s.start)-a.at > s.cfg.Late
		status, err := c.do(ctx, a.client)
		took := time.Since(s.start) - a.at
		gone := err != nil && s.away.Load()
		s.mu.Lock()
		if gone {
			s.sum.notSent(a)
		} else {
			s.sum.answered(a, late, took, status, err)
		}
		s.mu.Unlock()
	}
}
