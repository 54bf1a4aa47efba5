package gate

import (
	"net/http"
	"net/url"
	"strings"
)

// serveCheck answers a forward-auth request: 200 to let the original request
// through, the configured refusal status otherwise.
//
// No answer has a body. nginx, which wants the status and the fields only, closes
// its connection to us after an answer with one, and would open a new connection
// for every request of its clients; the client gets the proxy's body, not ours.
// Fields that nobody asked for are left out: an answer without any costs
// net/http one map less to make and two less to copy.
func (g *Gate) serveCheck(w http.ResponseWriter, r *http.Request) {
	f, trusted := g.facts(r)
	if trusted && !original(&f, r.Header) {
		g.tally.forged.Add(1)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	d := g.decide(&f)
	if !d.verdict.OK {
		g.refuseCheck(w, d)
		return
	}
	if g.cfg.Check.AdmittedFields {
		g.quota(w.Header(), d, -1)
	}
	if g.cfg.Debug {
		g.debug(w.Header(), d)
	}
	w.WriteHeader(http.StatusOK) // not 204: Envoy's ext_authz wants exactly 200
}

// refuseCheck says no. Where the proxy needs another status than 429, a field
// carries the one that its client should get; a request that no rule names is
// not to be retried and gets the plain 403 that it would get from the proxy.
func (g *Gate) refuseCheck(w http.ResponseWriter, d decision) {
	h := w.Header()
	if d.to == nil {
		g.debug(h, d)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	g.refusalFields(h, d)
	if g.cfg.Check.RefusalStatus != http.StatusTooManyRequests {
		h[statusField] = []string{"429"}
	}
	h["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(g.cfg.Check.RefusalStatus)
}

// original replaces the check request's own line by that of the request it asks
// about. nginx sets one family of fields, Traefik and Caddy the other; whichever
// the proxy does not set it passes on from the client, so a request with both
// is forged. Without either the check request stands for itself.
func original(f *facts, h http.Header) bool {
	uri, fwd := h["X-Original-Uri"], h["X-Forwarded-Uri"]
	method := h["X-Original-Method"]
	switch {
	case len(uri) > 0 && len(fwd) > 0, len(uri) > 1, len(fwd) > 1:
		return false
	case len(fwd) > 0:
		if len(method) > 0 {
			return false
		}
		uri, method = fwd, h["X-Forwarded-Method"]
		if host := h["X-Forwarded-Host"]; len(host) > 0 {
			f.host = bareHost(host[len(host)-1])
		}
	case len(uri) == 0:
		return true
	}
	if len(method) > 1 {
		return false
	}
	if len(method) == 1 {
		f.method = method[0]
	}
	return f.setURI(uri[0])
}

// setURI takes a request target, in origin or absolute form.
func (f *facts) setURI(uri string) bool {
	if p, ok := plainPath(uri); ok {
		f.uri, f.path = uri, cleanPath(p)
		return true
	}
	if !strings.HasPrefix(uri, "/") && !strings.Contains(uri, "://") {
		return false
	}
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return false
	}
	f.uri, f.path = uri, cleanPath(u.Path)
	return true
}

// plainPath returns the path of a target in origin form that has no escapes,
// which is nearly every one: the same as [url.ParseRequestURI], at a twentieth of
// its cost.
func plainPath(uri string) (string, bool) {
	if uri == "" || uri[0] != '/' {
		return "", false
	}
	end := len(uri)
	for i := range len(uri) {
		switch c := uri[i]; {
		case c < ' ' || c == 0x7f:
			return "", false
		case c == '?':
			end = min(end, i)
		case c == '%' && i < end:
			return "", false
		}
	}
	return uri[:end], true
}
