package gate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxWeight = 1_000_000
	slotsMax  = 4096 // entries of the round-robin table at most

	// A backend that cannot be reached is skipped for skipMin, twice as long
	// after each further failure, up to skipMax; any answer ends it.
	skipMin = time.Second
	skipMax = 8 * time.Second

	// outageEvery keeps a backend that comes and goes to few lines of log.
	outageEvery = int64(10 * time.Second)
)

// pool spreads admitted requests over the backends.
type pool struct {
	gate     *Gate
	backends []*backend
	table    []uint16 // smooth weighted round robin, one period
	turn     atomic.Uint64
	buffers  buffers
}

// backend is one upstream and what is known of its health.
type backend struct {
	name     string // host, for labels
	target   *url.URL
	proxy    httputil.ReverseProxy
	close    func()
	skip     atomic.Int64 // not to be used before; lease clock
	inRow    atomic.Int64 // failures without an answer in between
	failures *atomic.Int64
	said     atomic.Int64 // when an outage was last logged; lease clock, 0 never
	down     atomic.Bool  // the outage that was logged goes on
}

func newPool(g *Gate) *pool {
	p := &pool{gate: g}
	weights := make([]int, len(g.cfg.Backends))
	for i, b := range g.cfg.Backends {
		weights[i] = max(b.Weight, 1)
		p.backends = append(p.backends, p.newBackend(b))
	}
	p.table = roundRobin(weights)
	return p
}

func (p *pool) newBackend(cfg Backend) *backend {
	target := *cfg.URL
	h2c := target.Scheme == "h2c"
	if h2c {
		target.Scheme = "http"
	}
	b := &backend{name: cfg.URL.Host, target: &target, close: func() {}, failures: entry(p.gate.tally.failures, cfg.URL.Host)}
	rt := p.gate.deps.Transport
	if rt == nil {
		t := newTransport(p.gate.cfg.ResponseTimeout, h2c)
		rt, b.close = t, t.CloseIdleConnections
	}
	log := p.gate.deps.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	b.proxy = httputil.ReverseProxy{
		Rewrite:    b.rewrite,
		Transport:  rt,
		BufferPool: &p.buffers,
		ErrorLog:   slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ModifyResponse: func(*http.Response) error {
			if b.inRow.Load() != 0 {
				b.inRow.Store(0)
				b.skip.Store(0)
			}
			if b.down.Load() && b.down.CompareAndSwap(true, false) {
				log.Info("backend answers again", "listener", p.gate.cfg.Name, "backend", b.name)
			}
			return nil
		},
		ErrorHandler: p.failed(b, log),
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
		MaxIdleConnsPerHost:   512,
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

// trustKey marks, in a request's context, that its forwarding fields are true.
type trustKey struct{}

// rewrite prepares the outgoing request. The proxy has stripped the forwarding
// fields; they come back only from a trusted hop, and this hop appends itself.
func (b *backend) rewrite(pr *httputil.ProxyRequest) {
	pr.SetURL(b.target)
	pr.Out.Host = pr.In.Host
	trusted := pr.In.Context().Value(trustKey{}) != nil
	if trusted {
		pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
	}
	pr.SetXForwarded()
	if trusted {
		for _, name := range [...]string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if v := pr.In.Header[name]; len(v) > 0 {
				pr.Out.Header[name] = v
			}
		}
	}
	// Upgrade: h2c would open a tunnel in which any number of requests pass
	// unseen; a WebSocket is one request.
	if up := pr.Out.Header.Get("Upgrade"); up != "" && !strings.EqualFold(up, "websocket") {
		pr.Out.Header.Del("Upgrade")
		pr.Out.Header.Del("Connection")
	}
}

// forward sends an admitted request to the backend whose turn it is.
func (p *pool) forward(w http.ResponseWriter, r *http.Request, d decision, trusted bool) {
	b := p.pick()
	if trusted {
		r = r.WithContext(context.WithValue(r.Context(), trustKey{}, true))
	}
	if d.to != nil && !p.gate.cfg.QuietAdmitted && p.gate.cfg.Headers != HeadersOff || p.gate.cfg.Debug {
		rw := &response{w, p.gate, d, false}
		if len(r.Header["Upgrade"]) > 0 {
			rw.done = true // the proxy writes a 101 past WriteHeader
			rw.add()
		}
		w = rw
	}
	b.proxy.ServeHTTP(w, r)
}

// response adds the quota fields to the final response, and not before: the
// proxy clears the fields after an informational one.
type response struct {
	http.ResponseWriter
	gate *Gate
	d    decision
	done bool
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if !w.done && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.done = true
		w.add()
	}
	w.ResponseWriter.WriteHeader(status)
}

// add keeps what the backend says of its own quotas: RateLimit is a list.
func (w *response) add() {
	h := w.Header()
	policy, limit := h["Ratelimit-Policy"], h["Ratelimit"]
	if !w.gate.cfg.QuietAdmitted {
		w.gate.quota(h, w.d, -1)
	}
	w.gate.debug(h, w.d)
	if w.gate.cfg.Headers == HeadersIETF && len(policy)+len(limit) > 0 && !w.gate.cfg.QuietAdmitted && w.d.to != nil {
		h["Ratelimit-Policy"] = append(h["Ratelimit-Policy"], policy...)
		h["Ratelimit"] = append(h["Ratelimit"], limit...)
	}
}

// Unwrap lets http.ResponseController reach flushing and hijacking.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pick returns the next backend that is not being skipped, or the one whose
// turn it is when all are: a request is the only probe there is.
func (p *pool) pick() *backend {
	if len(p.backends) == 1 {
		return p.backends[0]
	}
	now := p.gate.deps.Now()
	turn := p.turn.Add(1) - 1
	for i := range uint64(len(p.table)) {
		b := p.backends[p.table[(turn+i)%uint64(len(p.table))]]
		if b.skip.Load() <= now {
			return b
		}
	}
	return p.backends[p.table[turn%uint64(len(p.table))]]
}

// failed answers for a backend that did not.
func (p *pool) failed(b *backend, log *slog.Logger) func(http.ResponseWriter, *http.Request, error) {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() != nil {
			p.gate.tally.gone.Add(1)
			w.WriteHeader(http.StatusBadGateway) // nobody is there to read it
			return
		}
		b.failures.Add(1)
		log.Debug("backend failed", "listener", p.gate.cfg.Name, "backend", b.name, "err", err)
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			now := p.gate.deps.Now()
			wait := skipMin << min(b.inRow.Add(1)-1, 3)
			b.skip.Store(now + int64(min(wait, skipMax)))
			if b.outage(now) {
				log.Warn("backend cannot be reached", "listener", p.gate.cfg.Name, "backend", b.name, "err", err)
			}
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() && op == nil {
			problem(w, http.StatusGatewayTimeout, "the backend did not answer in time")
			return
		}
		problem(w, http.StatusBadGateway, "the backend could not be reached")
	}
}

// outage reports whether a failure at now begins an outage worth a line of log.
func (b *backend) outage(now int64) bool {
	last := b.said.Load()
	if b.down.Load() || last != 0 && now-last < outageEvery || !b.said.CompareAndSwap(last, now) {
		return false
	}
	b.down.Store(true)
	return true
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

// buffers lends the proxy its copy buffers.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if v, ok := b.pool.Get().(*[]byte); ok {
		return *v
	}
	return make([]byte, 32<<10)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
