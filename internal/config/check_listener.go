package config

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"subak/internal/strict"
)

const (
	maxHops          = 16
	maxJitter        = time.Minute
	maxResponse      = 24 * time.Hour
	maxBackendWeight = 1_000_000
	maxCost          = 1_000_000_000
)

func (k *checker) listeners() {
	ls := k.c.Listeners
	k.unique("listeners", len(ls), func(i int) string { return ls[i].Name })
	for i := range ls {
		k.listener(fmt.Sprintf("listeners[%d]", i), &ls[i])
	}
}

func (k *checker) listener(path string, l *Listener) {
	if !k.Given(path + ".listen") {
		k.Fault(path+".listen", "is missing", "write an IP address and a port, such as 0.0.0.0:8080")
	}
	if l.TrustedHops < 0 || l.TrustedHops > maxHops {
		k.Fault(path+".trusted_hops", fmt.Sprintf("%d is not between 0 and %d", l.TrustedHops, maxHops), "write how many of your own proxies stand in front")
	}
	for i := range l.Backends {
		k.backend(fmt.Sprintf("%s.backends[%d]", path, i), &l.Backends[i])
	}
	k.masked(path+".trusted_peers", l.TrustedPeers)
	k.jitter(path+".retry_jitter", l.RetryJitter)
	if l.ResponseTimeout <= 0 || l.ResponseTimeout > maxResponse {
		k.Fault(path+".response_timeout", fmt.Sprintf("%v is not between 1ns and %v", l.ResponseTimeout, maxResponse), "write 60s")
	}
	k.checkDoor(path, l)
	k.onUnknown(path, l.OnUnknown, &l.Default)
	k.tls(path+".tls", &l.TLS)
	k.limits(path+".limits", &l.Limits)
	k.retry(path+".retry", &l.Retry)
	k.tenant(path+".tenant", l.Tenant)
	k.egress(path+".egress", l.Egress)
	for i := range l.Rules {
		k.rule(fmt.Sprintf("%s.rules[%d]", path, i), &l.Rules[i])
	}
}

func (k *checker) backend(path string, b *Backend) {
	u, err := url.Parse(b.URL)
	switch {
	case b.URL == "":
		k.Fault(path+".url", "is missing", "write http://HOST:PORT or https://HOST:PORT")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c" || u.Hostname() == "":
		k.Fault(path+".url", fmt.Sprintf("%q is no HTTP URL", b.URL), "write http://HOST:PORT or https://HOST:PORT")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/":
		k.Fault(path+".url", "has more than scheme, host and port", fmt.Sprintf("write %s://%s", u.Scheme, u.Host))
	}
	if b.Weight <= 0 || b.Weight > maxBackendWeight {
		k.Fault(path+".weight", fmt.Sprintf("%d is not between 1 and 1,000,000", b.Weight), "write a whole number from 1; remove a backend that shall get nothing")
	}
}

// checkDoor settles whether checks are answered, which by default they are when
// the listener has nothing else to do.
func (k *checker) checkDoor(path string, l *Listener) {
	if len(l.Backends) == 0 && !k.Given(path+".check.enabled") {
		l.Check.Enabled = true
	}
	if len(l.Backends) == 0 && !l.Check.Enabled && !k.Bad(path+".backends") {
		k.Fault(path+".check.enabled", "is false and there are no backends: the listener would do nothing", "list backends, or enable the check")
	}
	if !strings.HasPrefix(l.Check.Path, "/") || strings.ContainsAny(l.Check.Path, "*?# ") {
		k.Fault(path+".check.path", fmt.Sprintf("%q is no path", l.Check.Path), "write /v1/check")
	}
	if s := l.Check.RefusalStatus; s < 400 || s > 499 {
		k.Fault(path+".check.refusal_status", fmt.Sprintf("%d is not between 400 and 499", s), "write 403 for nginx, 429 for Traefik and Caddy")
	}
}

func (k *checker) jitter(path string, d time.Duration) {
	if d < 0 || d > maxJitter {
		k.Fault(path, fmt.Sprintf("%v is not between 0s and %v", d, maxJitter), "write 0s for none, or a few seconds")
	}
}

// onUnknown checks where a door sends what none of its rules matches.
func (k *checker) onUnknown(path string, choice OnUnknown, t *Target) {
	given := *t != Target{} || k.Given(path+".default")
	switch {
	case given:
		k.target(path+".default", t.Budget, t.Class)
	case choice == ToDefault:
		k.Fault(path+".default", "is missing", "write default: {budget: ..., class: ...}, or on_unknown: deny")
	}
}

// target checks a reference to a class.
func (k *checker) target(path, budget, class string) {
	if k.known(path+".budget", "budget", budget, k.c.budgetNames()) {
		k.known(path+".class", "class", class, k.c.budget(budget).classNames())
	}
}

func (c *Config) budgetNames() []string {
	names := make([]string, len(c.Budgets))
	for i := range c.Budgets {
		names[i] = c.Budgets[i].Name
	}
	return names
}

func (k *checker) rule(path string, r *ClassRule) {
	k.target(path, r.Budget, r.Class)
	if r.Cost <= 0 || r.Cost > maxCost {
		k.Fault(path+".cost", fmt.Sprintf("%d is not between 1 and 1,000,000,000", r.Cost), "write a whole number from 1")
	}
	k.match(path+".match", &r.Match)
	k.tenant(path+".tenant", r.Tenant)
	k.egress(path+".egress", r.Egress)
}

func (k *checker) match(path string, m *Match) {
	if len(m.Method)+len(m.Path)+len(m.Host)+len(m.Header)+len(m.Network) == 0 {
		k.Fault(path, "matches every request", "write method, path, host, header or network; use the listener's default for the rest")
	}
	for i, method := range m.Method {
		if !httpguts.ValidHeaderFieldName(method) || method != strings.ToUpper(method) {
			k.Fault(fmt.Sprintf("%s.method[%d]", path, i), fmt.Sprintf("%q is no HTTP method", method), "write it in capitals, such as GET or POST")
		}
	}
	if m.Path != "" && !strings.HasPrefix(m.Path, "/") && !strings.HasPrefix(m.Path, "*") {
		k.Fault(path+".path", fmt.Sprintf("%q can match no path", m.Path), fmt.Sprintf("write /%s or */%s", m.Path, m.Path))
	}
	if strings.ContainsAny(m.Host, "/: ") {
		k.Fault(path+".host", fmt.Sprintf("%q is no host name", m.Host), "write the name only, without scheme and port, such as *.example.com")
	}
	k.headers(path+".header", m.Header)
	k.masked(path+".network", m.Network)
}

// masked refuses networks whose address names a host in them: one of the two is
// a slip.
func (k *checker) masked(path string, networks []netip.Prefix) {
	for i, p := range networks {
		if p.IsValid() && p != p.Masked() {
			k.Fault(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%v has bits set behind its length", p), fmt.Sprintf("write %v", p.Masked()))
		}
	}
}

func (k *checker) headers(path string, header map[string]string) {
	first := map[string]string{}
	for name, value := range header {
		canonical := http.CanonicalHeaderKey(name)
		other, again := first[canonical]
		first[canonical] = name
		switch at := strict.Join(path, name); {
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			k.Fault(at, "is no HTTP header", "write NAME: VALUE, such as X-Verified: \"1\"")
		case again:
			k.Fault(path, fmt.Sprintf("%s and %s are the same header", min(name, other), max(name, other)), "keep one of them")
		}
	}
}
