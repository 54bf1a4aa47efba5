package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// scope is what a route asks of its caller.
type scope uint8

const (
	probe  scope = iota // anyone, by any host name: health checks
	public              // anyone: the dashboard's files, which hold no data
	read                // either token
	write               // the full token, and never another web site
)

// refusal is why a request was turned away; the reason is a metric label.
type refusal struct {
	status int
	reason string // of a small fixed set
	text   string
}

// guard decides whether a request may reach its route.
type guard struct {
	token, readToken [sha256.Size]byte // of the tokens; meaningless when open
	hasRead          bool
	open             bool // no token is configured
	socket           bool // a unix socket: no browser gets there by a name
	dotless          bool // accept names without a dot (Insecure: service names)
	hosts            map[string]bool
	origin           *http.CrossOriginProtection
	metrics          *metrics
}

func newGuard(cfg *Config, addr address, m *metrics) guard {
	g := guard{
		token:     sha256.Sum256([]byte(cfg.Token)),
		readToken: sha256.Sum256([]byte(cfg.ReadToken)),
		hasRead:   cfg.ReadToken != "",
		open:      cfg.Token == "",
		socket:    addr.path != "",
		dotless:   cfg.Insecure,
		hosts:     map[string]bool{"localhost": true},
		origin:    http.NewCrossOriginProtection(),
		metrics:   m,
	}
	for _, h := range append([]string{addr.host}, cfg.Hosts...) {
		if h != "" {
			g.hosts[canonicalHost(h)] = true
		}
	}
	return g
}

// check returns nil when the request may go on to a route of the given scope.
func (g *guard) check(r *http.Request, s scope) *refusal {
	if s == probe {
		return nil
	}
	if g.open && !g.socket && !g.hostAllowed(r.Host) {
		return &refusal{http.StatusMisdirectedRequest, "host",
			"this host name is not one of the server's: use its IP address or localhost, or add the name to the admin hosts"}
	}
	if s == public {
		return nil
	}
	if g.foreign(r) {
		return &refusal{http.StatusForbidden, "origin", "requests made by another web site are refused"}
	}
	return g.authorize(r, s)
}

// authorize compares the bearer token, in constant time and whatever its
// length, with those configured.
func (g *guard) authorize(r *http.Request, s scope) *refusal {
	if g.open {
		return nil
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(given)))
	bearer := strings.EqualFold(scheme, "Bearer")
	full := subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
	reader := subtle.ConstantTimeCompare(sum[:], g.readToken[:]) == 1 && g.hasRead
	switch {
	case bearer && full, bearer && reader && s == read:
		return nil
	case bearer && reader:
		return &refusal{http.StatusForbidden, "scope", "this token may read only"}
	default:
		return &refusal{http.StatusUnauthorized, "token", "a valid token is needed: send Authorization: Bearer TOKEN"}
	}
}

// foreign says whether a browser made the request for a page of another
// origin. A person who follows a link to a page or figure is no such request.
func (g *guard) foreign(r *http.Request) bool {
	if g.origin.Check(r) != nil {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	return false
}

// hostAllowed says whether a Host header names this server beyond doubt. A page
// that rebinds its own DNS name to our address sends that name, so a name must
// be known; an IP address cannot be rebound.
func (g *guard) hostAllowed(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = canonicalHost(name)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	if g.hosts[name] || strings.HasSuffix(name, ".localhost") {
		return true
	}
	return g.dotless && name != "" && !strings.Contains(name, ".")
}

// canonicalHost is the lower-case name without brackets and closing dot.
func canonicalHost(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// policy is the Content-Security-Policy of every response: our own files and
// nothing else. Styles are set on elements by script only, which it permits.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// setSecurityHeaders are those of every response.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
