package config

import (
	"cmp"
	"fmt"
	"time"
)

const (
	maxDomains   = 1000
	maxTextBytes = 256 // of a domain's name, a descriptor's key or a pattern
	minTTL       = time.Second
	maxTTL       = 10 * time.Second
)

func (k *checker) envoys() {
	es := k.c.Envoy
	k.unique("envoy", len(es), func(i int) string { return es[i].Name })
	listeners := map[string]int{}
	for i := range k.c.Listeners {
		listeners[k.c.Listeners[i].Name] = i
	}
	for i := range es {
		path := fmt.Sprintf("envoy[%d]", i)
		if j, again := listeners[es[i].Name]; again && es[i].Name != "" {
			k.Fault(path+".name", fmt.Sprintf("%q is the name of listeners[%d] too", es[i].Name, j), "give each door its own name")
		}
		k.envoy(path, &es[i])
	}
}

func (k *checker) envoy(path string, e *Envoy) {
	if !k.Given(path + ".listen") {
		k.Fault(path+".listen", "is missing", "write an IP address and a port, such as 127.0.0.1:8081, or unix:/run/subak/envoy.sock")
	}
	k.tls(path+".tls", &e.TLS)
	k.onUnknown(path, e.OnUnknown, &e.Default)
	if !e.RLS && !e.Quota.Enabled {
		k.Fault(path, "serves nothing: rls is false and quota is not enabled", "enable one of them, or remove the door")
	}
	switch ttl, term := e.Quota.TTL, k.c.Gossip.Term; {
	case !e.Quota.Enabled && !k.Given(path+".quota.ttl"), k.Bad("gossip.term"):
	case ttl < minTTL || ttl > maxTTL || ttl%time.Second != 0:
		k.Fault(path+".quota.ttl", fmt.Sprintf("%v is not whole seconds between %v and %v", ttl, minTTL, maxTTL), "write 2s: Envoy knows no fractions")
	case ttl > term:
		k.Fault(path+".quota.ttl", fmt.Sprintf("%v is longer than gossip.term, %v", ttl, term), fmt.Sprintf("write %v, or raise gossip.term", min(2*time.Second, max(minTTL, term.Truncate(time.Second)))))
	}
	if e.ClientKey != "" {
		k.text(path+".client_key", e.ClientKey, "write a key of the descriptors, such as remote_address")
	}
	k.jitter(path+".retry_jitter", e.RetryJitter)
	k.domains(path+".domains", e.Domains)
}

func (k *checker) domains(path string, ds []Domain) {
	if len(ds) > maxDomains {
		k.Fault(path, fmt.Sprintf("lists more than %d domains", maxDomains), "list fewer")
		return
	}
	first := map[string]int{}
	for i := range ds {
		at, d := fmt.Sprintf("%s[%d]", path, i), &ds[i]
		if j, again := first[d.Name]; again {
			k.Fault(at+".name", fmt.Sprintf("%q is the name of domains[%d] too", d.Name, j), "put the rules of a domain into one entry")
		} else if k.text(at+".name", d.Name, "write the domain of the Envoys' rate limit configuration") {
			first[d.Name] = i
		}
		k.domain(at, d)
	}
}

func (k *checker) domain(path string, d *Domain) {
	switch {
	case d.Class != "":
		k.target(path, d.Budget, d.Class)
	case d.Budget != "":
		k.known(path+".budget", "budget", d.Budget, k.c.budgetNames())
	}
	for i := range d.Rules {
		k.descriptorRule(fmt.Sprintf("%s.rules[%d]", path, i), d, &d.Rules[i])
	}
}

func (k *checker) descriptorRule(path string, d *Domain, r *DescriptorRule) {
	if len(r.Match) == 0 {
		k.Fault(path+".match", "matches every descriptor", "write keys and patterns; use the domain's class for the rest")
	}
	for key, pattern := range r.Match {
		at := path + ".match"
		if k.text(at, key, "write keys of the descriptors, such as path or remote_address") && len(pattern) > maxTextBytes {
			k.Fault(at, fmt.Sprintf("the pattern of %s is longer than %d bytes", key, maxTextBytes), "write a shorter one")
		}
	}
	budget, class := cmp.Or(r.Budget, d.Budget), cmp.Or(r.Class, d.Class)
	asDomain := r.Budget == "" && r.Class == "" && d.Class != ""
	unknown := r.Budget == "" && d.Budget != "" && k.c.budget(d.Budget) == nil
	if !asDomain && !unknown { // those are faults of the domain, if any
		k.target(path, budget, class)
	}
	if r.Cost <= 0 || r.Cost > maxCost {
		k.Fault(path+".cost", fmt.Sprintf("%d is not between 1 and 1,000,000,000", r.Cost), "write a whole number from 1")
	}
	if r.Tenant != "" {
		k.text(path+".tenant", r.Tenant, "write a key of the descriptors, such as remote_address")
	}
}

// text checks a name that is not ours to spell.
func (k *checker) text(path, s, mend string) bool {
	switch {
	case s == "":
		k.Fault(path, "is missing", mend)
	case len(s) > maxTextBytes:
		k.Fault(path, fmt.Sprintf("is longer than %d bytes", maxTextBytes), mend)
	default:
		return true
	}
	return false
}
