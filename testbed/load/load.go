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
//	Offered = Admitted + Refused + Overflow + sum of Errors
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
	Rates []float64
	// Conns is the number of connections (default 16): the most requests under
	// way at once. Raising it costs a socket and some 10 kB each.
	Conns int
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
	// Dial opens connections (default: net.Dialer).
	Dial Dialer
}

const clientsMax = 1 << 24

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
		if len(s.Rates) != len(c.Phases) {
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
}

// stream is one Stream at work: a dispatcher, a queue and workers.
type stream struct {
	cfg   *Config
	plan  *schedule
	conns []*conn
	queue chan arrival
	start time.Time // set before the workers start

	mu  sync.Mutex // guards sum
	sum tally
}

// New prepares a run.
func New(cfg Config) (*Generator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	g := &Generator{cfg: cfg}
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
		for range s.Conns {
			c, err := newConn(s, cfg.Dial, cfg.Timeout)
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
	start := time.Now()
	var wg sync.WaitGroup
	for _, s := range g.streams {
		s.start = start
		wg.Go(func() { s.dispatch(ctx) })
		for _, c := range s.conns {
			wg.Go(func() { s.work(ctx, c) })
		}
	}
	wg.Wait()
	return ctx.Err()
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
	s.mu.Lock()
	s.sum.offered(a)
	s.mu.Unlock()
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
	for a := range s.queue {
		late := time.Since(s.start)-a.at > s.cfg.Late
		status, err := c.do(ctx, a.client)
		took := time.Since(s.start) - a.at
		s.mu.Lock()
		s.sum.answered(a, late, took, status, err)
		s.mu.Unlock()
	}
}
