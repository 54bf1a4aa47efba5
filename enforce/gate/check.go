package gate

import (
	"net/http"
	"net/url"
	"strings"
)

// serveCheck answers a forward-auth request: 200 to let the original request
// through, the configured refusal status otherwise.
func (g *Gate) serveCheck(w http.ResponseWriter, r *http.Request) {
	f, trusted := g.facts(r)
	if trusted {
		if !original(&f, r.Header) {
			g.tally.forged.Add(1)
			problem(w, http.StatusForbidden, "the request is described twice, or badly")
			return
		}
	}
	d := g.decide(&f)
	if !d.verdict.OK {
		g.refuse(w, d, g.cfg.Check.RefusalStatus)
		return
	}
	h := w.Header()
	if !g.cfg.QuietAdmitted {
		g.quota(h, d, -1)
	}
	g.debug(h, d)
	h["Content-Length"] = []string{"0"}
	w.WriteHeader(http.StatusOK) // not 204: Envoy's ext_authz wants exactly 200
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
