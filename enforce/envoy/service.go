package envoy

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"subak/enforce"
	"subak/enforce/answer"
	"subak/enforce/gate"
	"subak/enforce/keyed"
)

// Service answers rate limit calls by the rules of one configuration.
type Service struct {
	cfg     Config
	deps    Deps
	seed    maphash.Seed // of the clients' hashes
	matcher *Matcher
	places  []place // by Target.at
	classes []*class
	tally   *tally
}

// place is a target as this service charges it; class is nil where the limiters
// do not have it.
type place struct {
	class  *class
	cost   int64
	tenant string
}

// class is one class of one budget, as this service uses it.
type class struct {
	budget, name string
	label        string // budget/name
	limiter      *enforce.Limiter
	index        int
	policy       string // its name as a structured string, quotes included
	document     []byte
	counts       *counts
}

// counts are descriptors judged, by reason.
type counts [enforce.Reasons]atomic.Int64

// tally is what a service counts; its successors go on with it.
type tally struct {
	admitted, refused, shadowed            atomic.Int64 // calls
	unknownDomain, unknownDescriptor, bare atomic.Int64
	limits, negative                       atomic.Int64 // ignored
	peeks                                  atomic.Int64
	malformed, oversized, panics           atomic.Int64
	// decisions by budget and class: for the owner of the newest service, at its
	// making.
	decisions map[[2]string]*counts
}

// New compiles a configuration against the limiters. It returns every fault.
func New(cfg Config, deps Deps) (*Service, error) {
	if deps.Hash == nil {
		seed := maphash.MakeSeed()
		deps.Hash = func(name string) uint64 { return keyed.Hash(seed, name) }
	}
	return compile(cfg, deps, maphash.MakeSeed(), &tally{decisions: map[[2]string]*counts{}})
}

// Renew returns a service for another configuration or other limiters that goes on
// counting where s stands. s still answers the calls that it has. Two renewals
// must not run at once.
func (s *Service) Renew(cfg Config, limits enforce.Limits) (*Service, error) {
	deps := s.deps
	deps.Limits = limits
	return compile(cfg, deps, s.seed, s.tally)
}

func compile(cfg Config, deps Deps, seed maphash.Seed, t *tally) (*Service, error) {
	m, err := NewMatcher(cfg)
	if err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, deps: deps, seed: seed, matcher: m, tally: t}
	var errs []error
	for _, to := range m.Targets() {
		c, err := s.class(to)
		errs = append(errs, err)
		s.places = append(s.places, place{c, to.Cost, to.Tenant})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// class finds or makes the class of a target; nil where it is missing, and that
// is no fault.
func (s *Service) class(to *Target) (*class, error) {
	for _, have := range s.classes {
		if have.budget == to.Budget && have.name == to.Class {
			return have, nil
		}
	}
	lim, k, ok := s.deps.Limits.Limiter(to.Budget, to.Class)
	if !ok || lim == nil {
		if s.deps.Missing == nil {
			return nil, fmt.Errorf("no class %q in budget %q", to.Class, to.Budget)
		}
		s.deps.Missing(*to)
		return nil, nil
	}
	words := answer.NewClass(to.Budget, to.Class)
	key := [2]string{to.Budget, to.Class}
	n := s.tally.decisions[key]
	if n == nil {
		n = &counts{}
		s.tally.decisions[key] = n
	}
	c := &class{
		budget: to.Budget, name: to.Class, label: to.Budget + "/" + to.Class,
		limiter: lim, index: k, policy: words.Policy(), document: words.Document(), counts: n,
	}
	s.classes = append(s.classes, c)
	return c, nil
}

// ShouldRateLimit judges one call, all of its descriptors or none. It never
// fails: an Envoy that fails open would let the request pass (lesson O26).
func (s *Service) ShouldRateLimit(_ context.Context, r *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	var c call
	var err error
	if c.raw, err = (proto.MarshalOptions{AllowPartial: true}).Marshal(r); err != nil {
		return nil, err
	}
	if err := c.decode(); err != nil {
		return nil, err
	}
	s.answer(&c)
	res := &ratelimitv3.RateLimitResponse{}
	return res, proto.Unmarshal(c.out, res)
}

// unknown counts a descriptor that the configuration does not name.
func (s *Service) unknown(domain string) {
	if s.matcher.domains[domain] == nil {
		s.tally.unknownDomain.Add(1)
	} else {
		s.tally.unknownDescriptor.Add(1)
	}
}

// passesUncharged says whether a descriptor passes that is charged to nothing.
func (s *Service) passesUncharged() bool { return s.cfg.OnUnknown == gate.UnknownAllow }
