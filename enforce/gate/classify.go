package gate

import (
	"hash/maphash"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"subak/enforce/glob"
)

// facts is what a request is classified by. None of it is a client's bare claim
// beyond what the request line and its own fields say.
type facts struct {
	method, host, path, uri string
	also                    []string // what else path may mean to a server
	fault                   string   // why the request cannot be judged, if it cannot
	header                  http.Header
	vouched                 bool       // header comes from a peer that may set it
	client                  netip.Addr // invalid when unknown
	to                      address    // what is forwarded
}

// rule is a compiled Rule.
type rule struct {
	methods []string
	path    glob.Pattern
	host    glob.Pattern
	headers []headerGlob
	network []netip.Prefix
	charge  charge
}

type headerGlob struct {
	name string // canonical
	want glob.Pattern
}

// charge is a target with its cost, and what paces the body of the answer.
type charge struct {
	to     *target
	cost   int64
	egress *pacer // nil without
	tenant TenantSource
}

func compile(m Match, c charge) rule {
	r := rule{
		methods: m.Methods, path: glob.New(m.Path),
		host: glob.New(strings.ToLower(m.Host)), network: m.Network, charge: c,
	}
	for name, want := range m.Headers {
		r.headers = append(r.headers, headerGlob{http.CanonicalHeaderKey(name), glob.New(want)})
	}
	return r
}

// find returns what a request is charged to; to is nil where no rule matches and
// there is no default. Not ok when it depends on how a server reads the path.
func (g *Gate) find(f *facts) (c charge, ok bool) {
	c, known := g.match(f)
	for _, text := range f.also {
		other := *f
		other.path = text
		if o, _ := g.match(&other); o != c {
			return charge{}, false
		}
	}
	if !known {
		g.tally.unknown.Add(1)
	}
	return c, true
}

// match returns the charge of the first rule that matches, else the default.
func (g *Gate) match(f *facts) (c charge, known bool) {
	for i := range g.rules {
		if g.rules[i].matches(f) {
			if g.rules[i].charge.to == nil { // its budget is not in force
				break
			}
			return g.rules[i].charge, true
		}
	}
	return g.fallback, false
}

func (r *rule) matches(f *facts) bool {
	if len(r.methods) > 0 && !slices.Contains(r.methods, f.method) {
		return false
	}
	if !r.path.Matches(f.path) || !r.host.Matches(f.host) {
		return false
	}
	for i := range r.headers {
		if !r.headers[i].matches(f) {
			return false
		}
	}
	return len(r.network) == 0 || within(r.network, f.client)
}

// matches wants every value to match: a client must not be able to add
// a value beside the one a trusted proxy has set. From a peer outside
// TrustedPeers no value matches (lesson O26).
func (h *headerGlob) matches(f *facts) bool {
	if h.name == "Host" {
		return h.want.Matches(f.host)
	}
	if !f.vouched {
		return false
	}
	values := f.header[h.name]
	for _, v := range values {
		if !h.want.Matches(v) {
			return false
		}
	}
	return len(values) > 0
}

func within(nets []netip.Prefix, a netip.Addr) bool {
	for _, n := range nets {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// facts reads a request as it stands, and says whether the peer's forwarding
// fields are to be believed.
func (g *Gate) facts(r *http.Request) (facts, bool) {
	f, trusted := g.identify(r)
	f.locate(r)
	return f, trusted
}

// identify reads what a request says of who sends it, and facts' rest but where it
// wants to go.
func (g *Gate) identify(r *http.Request) (f facts, trusted bool) {
	f.method, f.header = r.Method, endToEnd(r.Header)
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		f.client = ap.Addr().Unmap().WithZone("")
	}
	f.vouched = len(g.cfg.TrustedPeers) == 0 || within(g.cfg.TrustedPeers, f.client)
	if !f.vouched || g.cfg.TrustedHops == 0 {
		return f, false
	}
	f.client = fromRight(r.Header["X-Forwarded-For"], g.cfg.TrustedHops, f.client)
	return f, true
}

// locate reads where a request wants to go.
func (f *facts) locate(r *http.Request) {
	f.uri = r.RequestURI
	f.to, f.fault = addressOf(r)
	f.host, f.path, f.also = f.to.bare, f.to.text, f.to.also
}

// fromRight walks a forwarding list from its trusted end and returns the entry
// hops from the right, or the furthest one before an entry that is missing or no
// address: beyond that nobody vouches for anything.
func fromRight(lines []string, hops int, peer netip.Addr) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		line := lines[i]
		for more := true; more; {
			var entry string
			if at := strings.LastIndexByte(line, ','); at >= 0 {
				entry, line = line[at+1:], line[:at]
			} else {
				entry, more = line, false
			}
			a, ok := parseHop(strings.TrimSpace(entry))
			if !ok || hops == 0 {
				return peer
			}
			peer = a
			hops--
		}
	}
	return peer
}

// parseHop reads an address with or without brackets and port.
func parseHop(s string) (netip.Addr, bool) {
	if len(s) == 0 || len(s) > 64 {
		return netip.Addr{}, false
	}
	if s[0] == '[' {
		if end := strings.IndexByte(s, ']'); end == len(s)-1 {
			s = s[1:end]
		}
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}

// retryKey hashes what makes a request the same one sent again; 0 when unknown.
// The seed is secret, so that nobody can aim at another client's slot.
func (g *Gate) retryKey(f *facts) uint64 {
	if g.cfg.RetryBy == RetryOff || !f.client.IsValid() {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(g.seed)
	a := f.client.As16()
	h.Write(a[:])
	if g.cfg.RetryBy == RetryByRequest {
		h.WriteString(f.method)
		h.WriteByte(0)
		h.WriteString(f.host)
		h.WriteByte(0)
		h.WriteString(f.uri)
	}
	return max(h.Sum64(), 1)
}
