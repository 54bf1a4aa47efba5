package config

import (
	"net/netip"
	"time"
)

// Listener is one door for requests.
type Listener struct {
	// Name of the listener, shown in logs and metrics. Required, unique.
	Name string `yaml:"name"`
	// Listen is the IP address and port to accept on; port 0 takes a free one.
	// Required.
	Listen netip.AddrPort `yaml:"listen"`
	// Backends take the admitted requests. Default none: the listener only
	// answers checks for another proxy.
	Backends []Backend `yaml:"backends"`
	// Check is the forward-auth door for nginx, Traefik and Caddy.
	Check Check `yaml:"check"`
	// TrustedHops is how many proxies in front are believed about the client's
	// address and, at the check path, about the request that they ask for.
	// Default 0: the address of the connection counts, a check is judged as it
	// is, and what the client claims does not count. One too many lets clients
	// forge their address.
	TrustedHops int `yaml:"trusted_hops" default:"0"`
	// TrustedPeers are the networks of those proxies; from other peers no
	// forwarding header is read at all, and no rule on a header matches. Default
	// none: any peer.
	TrustedPeers []netip.Prefix `yaml:"trusted_peers,omitempty"`
	// Headers are the rate-limit fields of answers: ietf (RateLimit and
	// RateLimit-Policy), draft03 (the triple RateLimit-Limit, -Remaining,
	// -Reset), x (the same with X-) or off. Default ietf.
	Headers Headers `yaml:"headers" default:"ietf"`
	// RetryBy says which requests of refused clients are taken for retries and
	// do not count as demand again: request (same address, method and URL),
	// address (same address; also catches people behind one address) or off.
	// Default request.
	RetryBy RetryBy `yaml:"retry_by" default:"request"`
	// RetryJitter adds up to this much at random to Retry-After, so that refused
	// clients do not come back together. 0s to 1m. Default 0s: none.
	RetryJitter time.Duration `yaml:"retry_jitter" default:"0s"`
	// ResponseTimeout is how long a backend may take to start its answer; at
	// most 24h. Default 60s. Raising it lets a stuck backend hold more requests.
	ResponseTimeout time.Duration `yaml:"response_timeout" default:"60s"`
	// Debug adds X-Subak-Decision, the reason of each decision, to answers. It
	// tells clients how they are classified: not for the open internet. Default
	// false.
	Debug bool `yaml:"debug" default:"false"`
	// OnUnknown is what happens when no rule matches: default (the class
	// below), deny, or allow without any limit. Default default.
	OnUnknown OnUnknown `yaml:"on_unknown" default:"default"`
	// Default is where requests go that match no rule. Required unless
	// on_unknown is deny or allow.
	Default Target `yaml:"default,omitempty"`
	// Rules are tried in order; the first match decides. Default none.
	Rules []ClassRule `yaml:"rules"`
	// Tenant says whom a request is counted to in classes that bound their
	// tenants. Default none: they are not told apart.
	Tenant *TenantSource `yaml:"tenant,omitempty"`
	// Egress is a budget in bytes that the bodies of answers are paced by,
	// besides what requests are charged. Default none.
	Egress *Target `yaml:"egress,omitempty"`
	// TLS makes the listener speak HTTPS.
	TLS TLS `yaml:"tls,omitempty"`
	// Limits protect the listener from slow, large and too many requests.
	Limits Limits `yaml:"limits"`
	// Retry says when a request is sent to another backend.
	Retry Retry `yaml:"retry"`
}

// TLS is how a door proves who it is and whom it believes.
type TLS struct {
	// CertFile is a PEM file with the certificate and its chain. It is read
	// again when it changes, together with key_file, and on SIGHUP. Default
	// empty: no TLS.
	CertFile string `yaml:"cert_file"`
	// KeyFile is a PEM file with the private key. Default empty. Required with
	// cert_file.
	KeyFile string `yaml:"key_file"`
	// ClientCAFile is a PEM file with the authorities whose certificates
	// clients must show (mTLS). Default empty: clients show none.
	ClientCAFile string `yaml:"client_ca_file"`
	// MinVersion is the oldest version of TLS that is spoken, 1.2 or 1.3. Default
	// 1.2.
	MinVersion TLSVersion `yaml:"min_version" default:"1.2"`
}

// TLSVersion is tls.min_version.
type TLSVersion string

func (TLSVersion) Choices() []string { return []string{"1.2", "1.3"} }

// Limits protect a listener. For all of them 0 means no limit, where it is
// allowed.
type Limits struct {
	// HeaderBytes is the largest head of a request, request line and fields. 1KiB
	// to 16MiB. Default 64KiB. Raising it lets each connection hold that much.
	HeaderBytes Size `yaml:"header_bytes" default:"64KiB"`
	// BodyBytes is the largest body of a request; larger ones get a 413. Default
	// 0B: any, as it is passed on while it comes.
	BodyBytes Size `yaml:"body_bytes" default:"0B"`
	// InFlight is how many requests are with backends at once; more get a 503.
	// Default 0: any number.
	InFlight int `yaml:"in_flight" default:"0"`
	// Connections is how many client connections are open at once; more are
	// closed as soon as they are accepted. Default 0: as many as the system gives.
	Connections int `yaml:"connections" default:"0"`
	// HeaderTimeout is how long a client may take to send a request's head. 100ms
	// to 1h. Default 10s. Raising it lets slow clients hold connections.
	HeaderTimeout time.Duration `yaml:"header_timeout" default:"10s"`
	// BodyStall is how long a client may send nothing of a body. 0s for ever, or
	// 100ms to 24h. Default 30s.
	BodyStall time.Duration `yaml:"body_stall" default:"30s"`
	// WriteStall is how long a client may read nothing of an answer. 0s for ever,
	// or 100ms to 24h. Default 30s.
	WriteStall time.Duration `yaml:"write_stall" default:"30s"`
	// IdleTimeout is how long a connection is kept without a request. 1s to 24h.
	// Default 2m.
	IdleTimeout time.Duration `yaml:"idle_timeout" default:"2m"`
}

// Retry is a listener's second chance with another backend.
type Retry struct {
	// Attempts is how often a request is sent again whose backend refused or broke
	// the connection before it had any of it; others are never repeated. 0 to 10.
	// Default 1.
	Attempts int `yaml:"attempts" default:"1"`
}

// TenantSource says who the tenant of a request is, by exactly one of its parts.
type TenantSource struct {
	// Header is the name of a field whose value names the tenant, such as
	// X-Api-Key. Requests without it are one tenant together, as are those whose
	// peer is not in trusted_peers. Default none.
	Header string `yaml:"header,omitempty"`
	// Client makes the client's address the tenant, an IPv6 one by its first 64
	// bits. Default false.
	Client bool `yaml:"client,omitempty" default:"false"`
}

// Backend is one upstream server.
type Backend struct {
	// URL is http://, https:// or h2c:// with host and optional port. Required.
	URL string `yaml:"url"`
	// Weight is the backend's part of the requests. A whole number from 1 to
	// 1,000,000. Default 1.
	Weight int64 `yaml:"weight" default:"1"`
}

// Check is the forward-auth door of a listener.
type Check struct {
	// Enabled answers checks at path. Default false; without backends, true.
	Enabled bool `yaml:"enabled" default:"false"`
	// Path of the check. Default /v1/check.
	Path string `yaml:"path" default:"/v1/check"`
	// RefusalStatus is the HTTP status of a refusal, 400 to 499. Default 403,
	// the only one of them that nginx passes on; Traefik and Caddy pass on any,
	// so write 429 for them.
	RefusalStatus int `yaml:"refusal_status" default:"403"`
}

// Headers is a listener's choice of rate-limit fields.
type Headers string

func (Headers) Choices() []string { return []string{"ietf", "draft03", "x", "off"} }

// RetryBy is a listener's retry_by.
type RetryBy string

func (RetryBy) Choices() []string { return []string{"request", "address", "off"} }

// OnUnknown is a listener's answer to a request that no rule matches.
type OnUnknown string

// The three answers.
const (
	ToDefault OnUnknown = "default"
	Deny      OnUnknown = "deny"
	Allow     OnUnknown = "allow"
)

func (OnUnknown) Choices() []string {
	return []string{string(ToDefault), string(Deny), string(Allow)}
}

// Target names a class of a budget.
type Target struct {
	// Budget is the name of an entry of budgets. Required with class.
	Budget string `yaml:"budget"`
	// Class is the name of a class of that budget. Required with budget.
	Class string `yaml:"class"`
}

// ClassRule sends matching requests to a class.
type ClassRule struct {
	// Match says which requests; every part given must hold. Required.
	Match Match `yaml:"match"`
	// Budget is the name of an entry of budgets. Required.
	Budget string `yaml:"budget"`
	// Class is the name of a class of that budget. Required.
	Class string `yaml:"class"`
	// Cost is what one request takes from the budget, in whole units: requests,
	// or bytes for a budget in bytes. From 1 to 1,000,000,000. Default 1. Every
	// bucket can hold one request of the largest cost, or it could never pass:
	// a cost above a node's rate * burst lets that much more through at once.
	Cost int64 `yaml:"cost" default:"1"`
	// Tenant is who a request of this rule is counted to. Default none: as the
	// listener says.
	Tenant *TenantSource `yaml:"tenant,omitempty"`
	// Egress is what the bodies of this rule's answers are paced by. Default none:
	// as the listener says.
	Egress *Target `yaml:"egress,omitempty"`
}

// Match is the condition of a rule. At least one part is required.
type Match struct {
	// Method is a list of HTTP methods. Default any.
	Method []string `yaml:"method,omitempty"`
	// Path is a pattern for the URL's path, where * stands for any text.
	// Default any.
	Path string `yaml:"path,omitempty"`
	// Host is a pattern for the request's host, such as *.example.com. Default
	// any.
	Host string `yaml:"host,omitempty"`
	// Header maps header names to the pattern each value must fit. Clients can set any
	// header: use one that your own proxy sets and clears, and name its network
	// in trusted_peers. Default none.
	Header map[string]string `yaml:"header,omitempty"`
	// Network is a list of CIDRs of which one must hold the client's address.
	// Default any.
	Network []netip.Prefix `yaml:"network,omitempty"`
}
