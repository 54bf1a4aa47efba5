package gate

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// prepare makes the outgoing request, all but the backend's address.
func (x *exchange) prepare(f *facts, trusted bool) {
	r := x.in
	out := r.WithContext(x.context())
	out.Header = x.header(f, trusted)
	out.Host = f.to.host
	out.RequestURI, out.Pattern, out.TransferEncoding, out.Close = "", "", nil, false
	out.Body, out.Trailer = nil, nil
	if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
		x.body.init(x)
		out.Body = &x.body
		if len(r.Trailer) > 0 {
			out.Trailer = x.body.trailers(x.pool.gate, r.Trailer)
		}
	}
	x.out = out
}

// target points the outgoing request to a backend. The path goes out byte by byte
// as it was matched.
func (x *exchange) target(b *backend, f *facts) {
	x.url.Scheme, x.url.Host = b.scheme, b.host
	x.url.Opaque = b.base + f.to.path
	x.url.RawQuery, x.url.ForceQuery = x.in.URL.RawQuery, x.in.URL.ForceQuery
	if b.query != "" {
		x.url.RawQuery = strings.TrimSuffix(b.query+"&"+x.url.RawQuery, "&")
	}
	x.out.URL = &x.url
}

// header returns the fields that are forwarded: all that are end to end, with
// this hop's word on where the request came from. What other hops said counts
// only from a trusted one. The map is the incoming request's own: a copy would
// cost more than all the rest of this file, and nobody reads it after the gate.
func (x *exchange) header(f *facts, trusted bool) http.Header {
	h := f.header
	te, prior, up := h["Te"], h["X-Forwarded-For"], h["Upgrade"]
	told := [...][]string{1: h["X-Forwarded-Host"], 2: h["X-Forwarded-Proto"]}
	isSocket := websocket(x.in)
	for name := range h {
		if hopByHop(name) || strings.IndexByte(name, '_') >= 0 && x.pool.gate.twin(name) {
			delete(h, name)
		}
	}
	delete(h, "Forwarded")
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // or the transport adds its own
	}
	if len(te) > 0 && hasToken(te, "trailers") {
		h["Te"] = []string{"trailers"}
	}
	x.fields = [3]string{peerAddress(x.in.RemoteAddr), f.to.host, "http"}
	if x.in.TLS != nil {
		x.fields[2] = "https"
	}
	if trusted && len(prior) > 0 {
		x.fields[0] = strings.Join(prior, ", ") + ", " + x.fields[0]
	}
	for i, name := range [...]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		h[name] = x.fields[i : i+1 : i+1]
		if trusted && len(told[i]) > 0 {
			h[name] = told[i]
		}
	}
	// Upgrade: h2c would open a tunnel in which any number of requests pass
	// unseen; a WebSocket is one request.
	if isSocket {
		h["Connection"] = []string{"Upgrade"}
		h["Upgrade"] = up
	}
	return h
}

// websocket reports whether a request asks for one.
func websocket(r *http.Request) bool {
	up := r.Header["Upgrade"]
	return len(up) == 1 && r.ProtoMajor == 1 && strings.EqualFold(up[0], "websocket") && hasToken(r.Header["Connection"], "upgrade")
}

// peerAddress strips the port, and the brackets of IPv6.
func peerAddress(remote string) string {
	if at := strings.LastIndexByte(remote, ':'); at > 0 {
		remote = remote[:at]
	}
	return strings.Trim(remote, "[]")
}

// hopByHop reports whether a field is between two hops, whatever Connection says
// (RFC 9110, 7.6.1).
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// forwarding reports whether a field is one that hops tell each other the
// client's address with.
func forwarding(name string) bool {
	switch name {
	case "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto":
		return true
	}
	return false
}

// twin reports whether a name with underscores is read by many servers (CGI,
// WSGI) as one with dashes that this gate sets or judges by: a client could say
// by the one what it cannot say by the other.
func (g *Gate) twin(name string) bool {
	dashed := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return forwarding(dashed) || slices.Contains(g.judged, dashed)
}

// endToEnd returns h without the fields that its Connection field names, so that
// nothing is judged by what the backend will not see; h itself where, as nearly
// always, it names none.
func endToEnd(h http.Header) http.Header {
	lines := h["Connection"]
	if len(lines) == 0 {
		return h
	}
	copied := false
	for _, line := range lines {
		for token := range strings.SplitSeq(line, ",") {
			name := textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(token))
			if _, ok := h[name]; !ok || hopByHop(name) {
				continue
			}
			if !copied {
				h, copied = cloneMap(h), true
			}
			delete(h, name)
		}
	}
	return h
}

func cloneMap(h http.Header) http.Header {
	c := make(http.Header, len(h))
	for name, v := range h {
		c[name] = v
	}
	return c
}

// hasToken reports whether a comma-separated list has a token, case ignored and
// parameters cut off.
func hasToken(lines []string, want string) bool {
	for _, line := range lines {
		for token := range strings.SplitSeq(line, ",") {
			token, _, _ = strings.Cut(token, ";")
			if strings.EqualFold(strings.TrimSpace(token), want) {
				return true
			}
		}
	}
	return false
}
