package gate

import (
	"hash/maphash"
	"net/http"
	"net/netip"

	"subak/enforce/keyed"
)

// canonical returns the source with its header in canonical form.
func (t TenantSource) canonical() TenantSource {
	t.Header = http.CanonicalHeaderKey(t.Header)
	return t
}

// tenantKey names the tenant of a request; 0 where requests of its rule have none.
// All who cannot be told apart are one tenant: those without the header or with
// several of it, those whose peer may not set it, and clients without an address.
func (g *Gate) tenantKey(f *facts, t TenantSource) uint64 {
	switch {
	case t.Client:
		return g.deps.Hash(tenantAddress(f.client))
	case t.Header == "Host":
		return g.deps.Hash(f.host)
	case t.Header == "":
		return 0
	}
	if values := f.header[t.Header]; f.vouched && len(values) == 1 {
		return g.deps.Hash(values[0])
	}
	return g.deps.Hash("")
}

// tenantAddress is the name of a client: its address, of IPv6 the first 64 bits,
// which is the least that a site gets.
func tenantAddress(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	if p, err := a.Prefix(64); a.Is6() && err == nil {
		a = p.Addr()
	}
	return a.String()
}

// hashOf returns a hash for a gate that is given none.
func hashOf(seed maphash.Seed) func(string) uint64 {
	return func(name string) uint64 { return keyed.Hash(seed, name) }
}
