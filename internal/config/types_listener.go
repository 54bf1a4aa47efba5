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
