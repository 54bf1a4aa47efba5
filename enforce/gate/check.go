package gate

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// serveCheck answers a forward-auth request: 200 to let the original request
// through, the configured refusal status otherwise.
//
// No answer has a body. nginx and Caddy, which want status and fields only, close
// their connection to us after an answer with one, and would open a new connection
// for every request of their clients; the client gets the proxy's body, not ours.
// Fields that nobody asked for are left out: an answer without any costs
// net/http one map less to make and two less to copy.
func (g *Gate) serveCheck(w http.ResponseWriter, r *http.Request) {
	f, trusted := g.identify(r)
	if !trusted {
		f.locate(r)
	} else if !f.describe(r) {
		g.tally.forged.Add(1)
		g.refuseCheck(w, http.StatusForbidden)
		return
	}
	d := g.decide(&f)
	switch {
	case d.fault != "":
		g.refuseCheck(w, http.StatusBadRequest)
		return
	case d.to == nil && !d.verdict.OK:
		g.debug(w.Header(), d)
		g.refuseCheck(w, http.StatusForbidden) // no rule names it: not to be retried
		return
	case !d.verdict.OK:
		d.to.words.Deny(w.Header(), g.refusal(d))
		g.debug(w.Header(), d)
		g.refuseCheck(w, http.StatusTooManyRequests)
		return
	}
	if g.cfg.Check.AdmittedFields {
		g.quota(w.Header(), d)
	}
	if g.cfg.Debug {
		g.debug(w.Header(), d)
	}
	w.WriteHeader(http.StatusOK) // as cheap as 204, and no proxy minds
}

// refuseCheck says no, in the one status that the proxy understands; another field
// then carries the status that its client should get. So a refusal without that
// field is the proxy's own, and Subak did not answer.
func (g *Gate) refuseCheck(w http.ResponseWriter, status int) {
	h := w.Header()
	if g.cfg.Check.RefusalStatus != http.StatusTooManyRequests {
		h[statusField] = []string{strconv.Itoa(status)}
		status = g.cfg.Check.RefusalStatus
	}
	h["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(status)
}

// describe reads the request that a check asks about. nginx sets one family of
// fields, Traefik and Caddy the other; whichever the proxy does not set it passes
// on from the client, so a request with both is forged, and not ok. Without either
// the check request stands for itself.
func (f *facts) describe(r *http.Request) (ok bool) {
	uri, fwd := r.Header["X-Original-Uri"], r.Header["X-Forwarded-Uri"]
	method, host := r.Header["X-Original-Method"], r.Host
	switch {
	case len(uri) > 0 && len(fwd) > 0, len(uri) > 1, len(fwd) > 1:
		return false
	case len(fwd) > 0:
		if len(method) > 0 {
			return false
		}
		uri, method = fwd, r.Header["X-Forwarded-Method"]
		if h := r.Header["X-Forwarded-Host"]; len(h) > 0 {
			host = h[len(h)-1]
		}
	case len(uri) == 0:
		f.locate(r)
		return true
	}
	if len(method) > 1 {
		return false
	}
	if len(method) == 1 {
		f.method = method[0]
	}
	f.setTarget(uri[0], host)
	return true
}

// setTarget takes the target, a path or a URL, and host of the described request.
// It is judged as the same request sent to this listener would be.
func (f *facts) setTarget(uri, host string) {
	var ok bool
	if f.to.host, f.to.bare, ok = normalHost(host); !ok {
		f.fault = "the host is malformed"
		return
	}
	path, query, _ := strings.Cut(uri, "?")
	if path == "" || path[0] != '/' {
		u, err := url.Parse(uri)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			f.fault = "the request target is neither a path nor a URL"
			return
		}
		if path = u.EscapedPath(); path == "" {
			path = "/"
		}
	}
	if strings.IndexByte(query, '#') >= 0 {
		f.fault = "the request target has a fragment"
		return
	}
	f.fault = f.to.setPath(path)
	f.uri, f.host, f.path, f.also = uri, f.to.bare, f.to.text, f.to.also
}
