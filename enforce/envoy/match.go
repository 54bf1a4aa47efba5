package envoy

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"subak/enforce"
	"subak/enforce/gate"
	"subak/enforce/glob"
)

// Pair is one entry of a descriptor, or of an RLQS bucket id.
type Pair struct{ Key, Value string }

// Matcher is a compiled configuration: it says what a descriptor is charged to.
// It is immutable, and knows names only, not limiters.
type Matcher struct {
	domains  map[string]*domain
	fallback *Target // nil: OnUnknown charges nothing
	targets  []*Target
}

type domain struct {
	rules []rule
	class *Target // nil: what no rule matches goes the way of OnUnknown
}

type rule struct {
	match []keyGlob // by key
	to    *Target
}

type keyGlob struct {
	key  string
	want glob.Pattern
}

// NewMatcher compiles a configuration. It returns every fault.
func NewMatcher(cfg Config) (*Matcher, error) {
	m := &Matcher{domains: map[string]*domain{}}
	errs := []error{cfg.validate()}
	for i, d := range cfg.Domains {
		if _, twice := m.domains[d.Name]; twice || d.Name == "" {
			errs = append(errs, fmt.Errorf("domains[%d].name: %q is empty or there twice", i, d.Name))
		}
		c, err := m.compile(d)
		if err != nil {
			errs = append(errs, fmt.Errorf("domains[%d] (%q): %w", i, d.Name, err))
		}
		m.domains[d.Name] = c
	}
	if cfg.OnUnknown == gate.UnknownDefault {
		var err error
		if m.fallback, err = m.target(cfg.Default); err != nil {
			errs = append(errs, fmt.Errorf("default: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Matcher) compile(d Domain) (*domain, error) {
	var errs []error
	c := &domain{}
	if d.Class != "" {
		t, err := m.target(Target{Budget: d.Budget, Class: d.Class})
		errs = append(errs, err)
		c.class = t
	}
	for i, r := range d.Rules {
		if r.Budget == "" {
			r.Budget = d.Budget
		}
		if r.Class == "" {
			r.Class = d.Class
		}
		t, err := m.target(Target{Budget: r.Budget, Class: r.Class, Cost: r.Cost, Tenant: r.Tenant})
		if err != nil {
			errs = append(errs, fmt.Errorf("rules[%d]: %w", i, err))
			continue
		}
		n := rule{to: t}
		for _, key := range slices.Sorted(maps.Keys(r.Match)) {
			n.match = append(n.match, keyGlob{key, glob.New(r.Match[key])})
		}
		c.rules = append(c.rules, n)
	}
	return c, errors.Join(errs...)
}

// target finds or makes a target.
func (m *Matcher) target(t Target) (*Target, error) {
	if t.Cost == 0 {
		t.Cost = 1
	}
	t.at = len(m.targets)
	if t.Budget == "" || t.Class == "" {
		return nil, fmt.Errorf("budget %q, class %q: want both", t.Budget, t.Class)
	}
	if t.Cost < 1 || t.Cost > enforce.MaxCost {
		return nil, fmt.Errorf("cost: %d: want 1..%d", t.Cost, int64(enforce.MaxCost))
	}
	for _, have := range m.targets {
		if same := *have; same.Budget == t.Budget && same.Class == t.Class && same.Cost == t.Cost && same.Tenant == t.Tenant {
			return have, nil
		}
	}
	m.targets = append(m.targets, &t)
	return &t, nil
}

// Targets returns every target that Find can return.
func (m *Matcher) Targets() []*Target { return m.targets }

// Find returns what a descriptor is charged to, nil for nothing: then OnUnknown
// says whether it passes. known is false where neither a rule nor the whole of
// a domain without rules is meant for it; that is to be counted (lesson O26).
func (m *Matcher) Find(domain string, pairs []Pair) (t *Target, known bool) {
	d := m.domains[domain]
	if d == nil {
		return m.fallback, false
	}
	for i := range d.rules {
		if d.rules[i].matches(pairs) {
			return d.rules[i].to, true
		}
	}
	if d.class != nil {
		return d.class, len(d.rules) == 0
	}
	return m.fallback, false
}

func (r *rule) matches(pairs []Pair) bool {
	for i := range r.match {
		if !r.match[i].matches(pairs) {
			return false
		}
	}
	return true
}

func (k *keyGlob) matches(pairs []Pair) bool {
	found := false
	for i := range pairs {
		if pairs[i].Key != k.key {
			continue
		}
		if !k.want.Matches(pairs[i].Value) {
			return false
		}
		found = true
	}
	return found
}
