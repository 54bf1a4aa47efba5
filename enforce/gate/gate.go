package gate

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"sync/atomic"
	"time"

	"subak/enforce"
	"subak/enforce/answer"
)

// Gate is the handler of one listener.
type Gate struct {
	cfg      Config
	limits   Limits // without zeros
	retries  int
	deps     Deps
	seed     maphash.Seed
	rules    []rule
	fallback charge // for requests that no rule matches; to is nil without one
	targets  []*target
	pacers   []*pacer
	judged   []string // canonical names of the fields that rules and tenants read
	pool     *pool    // nil without backends
	tally    *tally
}

// counts are decisions by reason.
type counts [enforce.Reasons]atomic.Int64

// tally is what a gate counts; its successors go on with it.
type tally struct {
	unknown atomic.Int64
	gone    atomic.Int64 // clients that left before their answer
	forged  atomic.Int64 // check requests that contradict themselves
	// malformed are requests without a normal form, or with more than one meaning.
	malformed atomic.Int64
	inFlight  atomic.Int64
	shed      atomic.Int64 // requests beyond Limits.InFlight
	retried   atomic.Int64 // attempts after the first
	badBodies atomic.Int64 // bodies too large, too slow or malformed
	// responses that ended too early, by who ended them.
	cutByClient, cutByBackend, cutByEgress atomic.Int64
	paced                                  atomic.Int64 // waits for egress
	// decisions by budget and class, failures by backend: for the owner of the
	// newest gate, at its making.
	decisions map[[2]string]*counts
	failures  map[string]*atomic.Int64
}

// entry returns the counter of key, making it on first use.
func entry[K comparable, C any](m map[K]*C, key K) *C {
	c := m[key]
	if c == nil {
		c = new(C)
		m[key] = c
	}
	return c
}

// target is one class of one budget, as this listener uses it.
type target struct {
	budget, class string
	limiter       *enforce.Limiter
	index         int
	words         *answer.Class
	counts        *counts
}

// New compiles a configuration against the limiters. It returns every fault.
func New(cfg Config, deps Deps) (*Gate, error) {
	return compileGate(cfg, deps, &tally{decisions: map[[2]string]*counts{}, failures: map[string]*atomic.Int64{}})
}

// Renew returns a gate for another configuration or other limiters that goes on
// counting where g stands. g still serves the requests that it has; close it
// when it gets no new ones. Two renewals must not run at once.
func (g *Gate) Renew(cfg Config, limits enforce.Limits) (*Gate, error) {
	deps := g.deps
	deps.Limits = limits
	return compileGate(cfg, deps, g.tally)
}

func compileGate(cfg Config, deps Deps, t *tally) (*Gate, error) {
	if cfg.Check.Path == "" {
		cfg.Check.Path = "/v1/check"
	}
	if cfg.Check.RefusalStatus == 0 {
		cfg.Check.RefusalStatus = http.StatusTooManyRequests
	}
	g := &Gate{cfg: cfg, limits: cfg.Limits.filled(), retries: cfg.Retry.more(), deps: deps, seed: maphash.MakeSeed(), tally: t}
	if g.deps.Hash == nil {
		g.deps.Hash = hashOf(g.seed)
	}
	errs := []error{cfg.Validate()}
	for i, r := range cfg.Rules {
		c, err := g.charge(r.Target, r.Egress, r.Tenant)
		if err != nil {
			errs = append(errs, fmt.Errorf("rules[%d]: %w", i, err))
			continue
		}
		g.rules = append(g.rules, compile(r.Match, c))
		for name := range r.Match.Headers {
			g.judged = append(g.judged, http.CanonicalHeaderKey(name))
		}
		g.judged = append(g.judged, http.CanonicalHeaderKey(r.Tenant.Header))
	}
	g.judged = append(g.judged, http.CanonicalHeaderKey(cfg.Tenant.Header))
	if cfg.OnUnknown == UnknownDefault {
		c, err := g.charge(cfg.Default, Target{}, TenantSource{})
		if err != nil {
			errs = append(errs, fmt.Errorf("default: %w", err))
		}
		g.fallback = c
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(cfg.Backends) > 0 {
		g.pool = newPool(g)
	}
	return g, nil
}

// charge makes what a rule charges: a target, and a pacer of the rule's egress or
// the listener's, and whose it is. Where a budget is missing, it is all missing.
func (g *Gate) charge(t, egress Target, tenant TenantSource) (charge, error) {
	to, err := g.target(t)
	if to == nil {
		return charge{}, err
	}
	if tenant == (TenantSource{}) {
		tenant = g.cfg.Tenant
	}
	c := charge{to: to, cost: max(t.Cost, 1), tenant: tenant.canonical()}
	if egress.Budget == "" {
		egress = g.cfg.Egress
	}
	if egress.Budget != "" {
		paced, err := g.target(egress)
		if paced == nil {
			return charge{}, err
		}
		c.egress = g.pacer(paced)
	}
	return c, nil
}

// target finds or makes the target of a budget and class; nil if it is missing.
func (g *Gate) target(t Target) (*target, error) {
	for _, have := range g.targets {
		if have.budget == t.Budget && have.class == t.Class {
			return have, nil
		}
	}
	lim, k, ok := g.deps.Limits.Limiter(t.Budget, t.Class)
	if !ok && g.deps.Missing != nil {
		g.deps.Missing(t)
		return nil, nil
	}
	if !ok || lim == nil {
		return nil, fmt.Errorf("no class %q in budget %q", t.Class, t.Budget)
	}
	nt := &target{
		budget: t.Budget, class: t.Class, limiter: lim, index: k,
		words: answer.NewClass(t.Budget, t.Class), counts: entry(g.tally.decisions, [2]string{t.Budget, t.Class}),
	}
	g.targets = append(g.targets, nt)
	return nt, nil
}

// decision is the outcome for one request. to is nil when nothing was charged:
// unknown and allowed, or unknown and denied.
type decision struct {
	charge
	request enforce.Request
	verdict enforce.Verdict
	now     int64
	fault   string // why the request was not judged at all
}

// decide classifies and charges. It allocates nothing.
func (g *Gate) decide(f *facts) decision {
	c, ok := g.find(f)
	if f.fault == "" && !ok {
		f.fault = "the path means different things to different servers"
	}
	if f.fault != "" {
		g.tally.malformed.Add(1)
		return decision{fault: f.fault}
	}
	if c.to == nil {
		return decision{verdict: enforce.Verdict{OK: g.cfg.OnUnknown == UnknownAllow, From: -1}}
	}
	now := g.deps.Now()
	r := enforce.Request{Class: c.to.index, Cost: c.cost, Tenant: g.tenantKey(f, c.tenant), Client: g.retryKey(f)}
	v := c.to.limiter.DecideRequest(now, r)
	c.to.counts[v.Reason].Add(1)
	return decision{charge: c, request: r, verdict: v, now: now}
}

// ServeHTTP judges and then forwards or refuses one request.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.cfg.Check.Enabled && r.URL.Path == g.cfg.Check.Path {
		g.serveCheck(w, r)
		return
	}
	if g.pool == nil {
		answer.Problem(w, http.StatusNotFound, "this listener only serves "+g.cfg.Check.Path)
		return
	}
	if r.Method == http.MethodConnect {
		answer.Problem(w, http.StatusMethodNotAllowed, "tunnels are not forwarded")
		return
	}
	defer g.tally.inFlight.Add(-1)
	if n := g.tally.inFlight.Add(1); g.limits.InFlight > 0 && n > int64(g.limits.InFlight) {
		g.unread(w, r)
		g.shed(w)
		return
	}
	if r.ContentLength > g.limits.BodyBytes && g.limits.BodyBytes > 0 {
		g.tally.badBodies.Add(1)
		g.unread(w, r)
		w.Header()["Connection"] = []string{"close"}
		answer.Problem(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return
	}
	f, trusted := g.facts(r)
	d := g.decide(&f)
	if !d.verdict.OK {
		g.unread(w, r)
		g.refuse(w, d)
		return
	}
	g.pool.forward(w, r, &f, d, trusted)
}

// shed answers a request for which there is no room: the process is overloaded,
// which is not the client's doing, so it is no 429, and nothing is charged.
func (g *Gate) shed(w http.ResponseWriter) {
	g.tally.shed.Add(1)
	w.Header()["Retry-After"] = []string{"1"}
	answer.Problem(w, http.StatusServiceUnavailable, "too many requests are being served")
}

// unread bounds the time that net/http will wait for a body that nobody wants: it
// reads some of it, to use the connection again.
func (g *Gate) unread(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && g.limits.BodyStall > 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.limits.BodyStall))
	}
}

// Close drops idle backend connections.
func (g *Gate) Close() {
	if g.pool != nil {
		g.pool.close()
	}
}
