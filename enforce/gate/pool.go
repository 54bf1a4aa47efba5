package gate

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxWeight = 1_000_000
	slotsMax  = 4096 // entries of the round-robin table at most
)

// pool spreads admitted requests over the backends.
type pool struct {
	gate     *Gate
	log      *slog.Logger
	backends []*backend
	table    []uint16 // smooth weighted round robin, one period
	turn     atomic.Uint64
	buffers  sync.Pool // of *[]byte, bufferBytes long
}

// bufferBytes is the size of a copy buffer, and so of the largest single write of
// a body: what a client has WriteStall for.
const bufferBytes = 32 << 10

// backend is one upstream.
type backend struct {
	name      string // host, for labels
	scheme    string
	host      string
	base      string // path prefix, escaped, without a slash at its end
	query     string // of the configured URL, sent before the client's
	transport http.RoundTripper
	close     func()
	health    health
	failures  *atomic.Int64
}

func newPool(g *Gate) *pool {
	p := &pool{gate: g, log: g.deps.Log}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	weights := make([]int, len(g.cfg.Backends))
	for i, b := range g.cfg.Backends {
		weights[i] = max(b.Weight, 1)
		p.backends = append(p.backends, p.newBackend(b))
	}
	p.table = roundRobin(weights)
	return p
}

func (p *pool) newBackend(cfg Backend) *backend {
	b := &backend{
		name: cfg.URL.Host, scheme: cfg.URL.Scheme, host: cfg.URL.Host,
		base: strings.TrimSuffix(cfg.URL.EscapedPath(), "/"), query: cfg.URL.RawQuery,
		close: func() {}, failures: entry(p.gate.tally.failures, cfg.URL.Host),
	}
	h2c := b.scheme == "h2c"
	if h2c {
		b.scheme = "http"
	}
	if b.transport = p.gate.deps.Transport; b.transport == nil {
		t := newTransport(p.gate.cfg.ResponseTimeout, h2c)
		b.transport, b.close = t, t.CloseIdleConnections
	}
	return b
}

// newTransport is tuned for a proxy: no environment proxies, many idle
// connections, bodies passed on as they are.
func newTransport(response time.Duration, h2c bool) *http.Transport {
	if response == 0 {
		response = time.Minute
	}
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: max(response, 0),
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
	}
	if h2c {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

// pick returns the next backend in turn that is not out, other than not; when
// all are out, the one whose turn it is: a request is the only probe there is.
func (p *pool) pick(not *backend) *backend {
	if len(p.backends) == 1 {
		return p.backends[0]
	}
	now := p.gate.deps.Now()
	turn := p.turn.Add(1) - 1
	n := uint64(len(p.table))
	last := p.backends[p.table[turn%n]]
	for i := range n {
		b := p.backends[p.table[(turn+i)%n]]
		if b == not {
			continue
		}
		if last == not {
			last = b
		}
		if b.health.admits(now) {
			return b
		}
	}
	return last
}

func (p *pool) close() {
	for _, b := range p.backends {
		b.close()
	}
}

// roundRobin lays out one period of smooth weighted round robin: each step
// everyone gains its weight, the richest is chosen and pays the total.
func roundRobin(weights []int) []uint16 {
	g, total := 0, 0
	for _, w := range weights {
		for a := w; a != 0; {
			g, a = a, g%a
		}
		total += w
	}
	scaled := make([]int, len(weights))
	n := 0
	for i, w := range weights {
		if scaled[i] = w / g; total/g > slotsMax {
			scaled[i] = max(1, int(int64(w)*slotsMax/int64(total)))
		}
		n += scaled[i]
	}
	table := make([]uint16, n)
	have := make([]int, len(weights))
	for s := range table {
		best := 0
		for i := range have {
			have[i] += scaled[i]
			if have[i] > have[best] {
				best = i
			}
		}
		have[best] -= n
		table[s] = uint16(best)
	}
	return table
}

func (p *pool) buffer() *[]byte {
	if b, ok := p.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, bufferBytes)
	return &b
}
