package gate

import (
	"bytes"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// A request's target is brought to one normal form, and that form is what the
// rules see and what the backend gets: no request is judged by one path and
// served by another. The normal form of a path has
//
//   - no empty segment and no dot segment: they are resolved, %2e included;
//   - no escape of a letter, digit, or one of -._~, and upper-case digits in
//     every other escape; what must be escaped is;
//   - nothing above the root, no control character, escaped or not, no
//     backslash, no fragment: such a target is refused.
//
// What is left open is what servers differ in: whether %2F and %5C separate
// segments, and whether a ;parameter belongs to its segment. Such a path is
// forwarded as it is, if all of these readings lead to the same rule, and is
// refused if not, or if one of them would have a dot segment.

const (
	// The bytes that stand for themselves in every reading of a path, one bit
	// each: letters, digits and -._~!$&'()*+,=:@/ .
	plainLow  = uint64(0x27ffffd200000000) // bytes 0 to 63
	plainHigh = uint64(0x47fffffe87ffffff) // bytes 64 to 127

	upperHex = "0123456789ABCDEF"
)

func plain(c byte) bool {
	switch {
	case c < 64:
		return plainLow>>c&1 != 0
	case c < 128:
		return plainHigh>>(c-64)&1 != 0
	}
	return false
}

func unreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// address is where a request wants to go, in normal form.
type address struct {
	path string   // escaped, as it is forwarded
	text string   // the same decoded, but for %2F and %5C: what rules match
	also []string // other readings, decoded; nearly always none
	host string   // as it is forwarded, with its port
	bare string   // without
}

// addressOf reads a request's target and host. fault, if not empty, says why it
// cannot have a normal form.
func addressOf(r *http.Request) (a address, fault string) {
	raw, query, _ := strings.Cut(r.RequestURI, "?")
	if raw == "" || raw[0] != '/' {
		switch u := r.URL; {
		case u.Opaque != "" || u.User != nil:
			return a, "the request target is neither a path nor a URL"
		case u.Host != "" && u.Scheme != "http" && u.Scheme != "https":
			return a, "the request target is of another scheme"
		case u.Host == "" && r.RequestURI != "":
			return a, "the request target is no path"
		}
		if raw = r.URL.EscapedPath(); raw == "" {
			raw = "/"
		}
		query = r.URL.RawQuery
	}
	if strings.IndexByte(query, '#') >= 0 {
		return a, "the request target has a fragment"
	}
	var ok bool
	if a.host, a.bare, ok = normalHost(r.Host); !ok {
		return a, "the host is malformed"
	}
	if h := r.Header["Host"]; len(h) > 0 { // only HTTP/2 lets one through, beside :authority
		if len(h) > 1 || !strings.EqualFold(h[0], r.Host) {
			return a, "the host is given twice"
		}
	}
	fault = a.setPath(raw)
	return a, fault
}

// setPath takes an escaped path.
func (a *address) setPath(raw string) (fault string) {
	if isNormal(raw) {
		a.path, a.text = raw, raw
		return ""
	}
	a.path, fault = normalPath(raw)
	if fault != "" {
		return fault
	}
	a.text, _ = reading(a.path, 0)
	a.also, fault = readings(a.path, a.text)
	return fault
}

// isNormal reports whether a path is in normal form and means what it says.
func isNormal(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := range len(p) {
		c := p[i]
		if !plain(c) {
			return false
		}
		if c == '/' && i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.') {
			return false // .well-known takes the long way, and passes
		}
	}
	return true
}

// normalPath brings an escaped path to normal form.
func normalPath(raw string) (normal, fault string) {
	p, fault := normalEscapes(raw)
	if fault != "" {
		return "", fault
	}
	if p == "" || p[0] != '/' {
		return "", "the path does not begin with a slash"
	}
	out := make([]byte, 0, len(p))
	for rest, more := p[1:], true; more; {
		var seg string
		seg, rest, more = strings.Cut(rest, "/")
		switch seg {
		case "", ".":
		case "..":
			if len(out) == 0 {
				return "", "the path leaves the root"
			}
			out = out[:bytes.LastIndexByte(out, '/')]
		default:
			out = append(append(out, '/'), seg...)
			continue
		}
		if !more {
			out = append(out, '/')
		}
	}
	return string(out), ""
}

// normalEscapes escapes what must be, and nothing that need not be.
func normalEscapes(raw string) (p, fault string) {
	out := make([]byte, 0, len(raw)+8)
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		escaped := c == '%'
		if escaped {
			if i+2 >= len(raw) || unhex(raw[i+1]) > 15 || unhex(raw[i+2]) > 15 {
				return "", "the path has a malformed escape"
			}
			c = unhex(raw[i+1])<<4 | unhex(raw[i+2])
			i += 2
		}
		switch {
		case c < 0x20 || c == 0x7f:
			return "", "the path has a control character"
		case !escaped && (c == '\\' || c == '#'):
			return "", "the path has a backslash or a fragment"
		case escaped && unreserved(c), !escaped && (plain(c) || c == ';'):
			out = append(out, c)
		default:
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(out), ""
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

// What a server may make of a path.
const (
	slashes     = 1 << iota // %2F separates segments
	backslashes             // so does %5C
	params                  // ;parameters are cut off
	allReadings
)

// readings returns what other servers may read in a normal path, text excepted.
func readings(p, text string) (also []string, fault string) {
	open := 0
	if strings.Contains(p, "%2F") {
		open |= slashes
	}
	if strings.Contains(p, "%5C") {
		open |= backslashes
	}
	if strings.Contains(p, ";") {
		open |= params
	}
	for how := 1; how < allReadings; how++ {
		if how&^open != 0 {
			continue
		}
		t, ok := reading(p, how)
		if !ok {
			return nil, "the path hides a dot segment"
		}
		if t != text {
			also = append(also, t)
		}
	}
	return also, ""
}

// reading decodes a normal path in one of the ways; not ok when that brings up
// a dot segment. Empty segments are merged.
func reading(p string, how int) (text string, ok bool) {
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c == ';' && how&params != 0 {
			end := strings.IndexByte(p[i:], '/')
			if end < 0 {
				break
			}
			i += end
			c = '/'
		}
		if c == '%' {
			v := unhex(p[i+1])<<4 | unhex(p[i+2])
			switch {
			case v == '/' && how&slashes != 0, v == '\\' && how&backslashes != 0:
				c = '/'
			case v == '/' || v == '\\':
				out = append(out, '%', p[i+1])
				c = p[i+2]
			default:
				c = v
			}
			i += 2
		}
		if c == '/' && len(out) > 0 && out[len(out)-1] == '/' {
			continue
		}
		out = append(out, c)
	}
	text = string(out)
	dots := strings.Contains(text, "/./") || strings.Contains(text, "/../") ||
		strings.HasSuffix(text, "/.") || strings.HasSuffix(text, "/..")
	return text, !dots
}

// normalHost brings a Host to lower case, without a trailing dot, and with its
// port if it has one; bare is the same without.
func normalHost(h string) (host, bare string, ok bool) {
	name, port := h, ""
	at := strings.LastIndexByte(h, ':')
	if at >= 0 && strings.IndexByte(h[at:], ']') < 0 {
		name = h[:at]
		if port = h[at+1:]; port != "" {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || port[0] == '+' {
				return "", "", false
			}
			if port[0] == '0' {
				port = strconv.FormatUint(n, 10)
			}
		}
	}
	if bare, ok = normalName(name); !ok || bare == "" && h != "" {
		return "", "", false
	}
	switch {
	case port == "":
		return bare, bare, true
	case len(bare)+1+len(port) == len(h) && strings.HasPrefix(h, bare) && strings.HasSuffix(h, port):
		return h, bare, true
	}
	return bare + ":" + port, bare, true
}

func normalName(name string) (string, bool) {
	if strings.HasPrefix(name, "[") {
		a, err := netip.ParseAddr(strings.TrimSuffix(name[1:], "]"))
		if err != nil || !a.Is6() || a.Zone() != "" || name[len(name)-1] != ']' {
			return "", false
		}
		return strings.ToLower(name), true
	}
	name = strings.TrimSuffix(name, ".")
	upper := false
	for i := range len(name) {
		c := name[i]
		upper = upper || 'A' <= c && c <= 'Z'
		if c == '.' && (i == 0 || name[i-1] == '.') || !unreserved(c) || c == '~' {
			return "", false
		}
	}
	if upper {
		name = strings.ToLower(name)
	}
	return name, true
}
