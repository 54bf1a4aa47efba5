package config

import "time"

// Envoy is one door for Envoy proxies: gRPC, with the rate limit service (RLS)
// and the rate limit quota service (RLQS) of version 3.
type Envoy struct {
	// Name of the door, shown in logs and metrics. Required, unique among doors.
	Name string `yaml:"name"`
	// Listen is IP:PORT or unix:/path/of/socket; port 0 takes a free one.
	// Required.
	Listen Endpoint `yaml:"listen"`
	// TLS makes the door speak TLS; with client_ca_file, mutual TLS.
	TLS TLS `yaml:"tls,omitempty"`
	// Shadow decides and counts and answers OK to everything. Default false.
	Shadow bool `yaml:"shadow" default:"false"`
	// OnUnknown is what happens to descriptors of a domain that is not listed
	// or that no rule matches: default (the class below), deny, or allow without
	// any limit. Default default.
	OnUnknown OnUnknown `yaml:"on_unknown" default:"default"`
	// Default is where such descriptors go. Required unless on_unknown is deny
	// or allow.
	Default Target `yaml:"default,omitempty"`
	// RLS serves the rate limit service: one question for each request. Default
	// true.
	RLS bool `yaml:"rls" default:"true"`
	// Quota serves the rate limit quota service: Envoys decide by themselves out
	// of shares that they are assigned.
	Quota Quota `yaml:"quota"`
	// ClientKey is the descriptor key whose presence says that equal descriptors
	// come from one client, such as remote_address: its retries of refused
	// requests then are not demand again. Default empty: every request is new.
	ClientKey string `yaml:"client_key"`
	// Headers are the rate-limit fields that Envoy is told to add to answers, as
	// those of a listener: ietf, draft03, x or off. Default ietf.
	Headers Headers `yaml:"headers" default:"ietf"`
	// RetryJitter adds up to this much at random to Retry-After. 0s to 1m. Default
	// 0s: none.
	RetryJitter time.Duration `yaml:"retry_jitter" default:"0s"`
	// Metadata adds budget, class and reason of each decision as dynamic metadata
	// for access logs; clients do not see it. Default false.
	Metadata bool `yaml:"metadata" default:"false"`
	// Domains are the rate limit domains of the Envoys' configurations. Default
	// none: everything is unknown.
	Domains []Domain `yaml:"domains"`
}

// Quota is the rate limit quota service of an Envoy door.
type Quota struct {
	// Enabled serves it. Default false.
	Enabled bool `yaml:"enabled" default:"false"`
	// TTL is how long an assignment lasts that is not renewed, and how long
	// capacity takes at most to move from one Envoy to another. Whole seconds, from
	// 1s to gossip.term, at most 10s. Default 2s.
	TTL time.Duration `yaml:"ttl" default:"2s"`
}

// Domain is one rate limit domain.
type Domain struct {
	// Name of the domain, as in the Envoys' configuration. Required, unique in
	// its door.
	Name string `yaml:"name"`
	// Budget is the name of an entry of budgets. Required unless every rule names
	// one.
	Budget string `yaml:"budget,omitempty"`
	// Class is where descriptors go that no rule of the domain matches. Default
	// none: they go where on_unknown says.
	Class string `yaml:"class,omitempty"`
	// Rules are tried in order for each descriptor; the first match decides.
	// Default none.
	Rules []DescriptorRule `yaml:"rules"`
}

// DescriptorRule sends matching descriptors to a class.
type DescriptorRule struct {
	// Match maps keys of the descriptor to the pattern that their values must
	// fit, where * stands for any text. Required; at least one key.
	Match map[string]string `yaml:"match"`
	// Budget is the name of an entry of budgets. Default none: the domain's.
	Budget string `yaml:"budget,omitempty"`
	// Class is the name of a class of that budget. Default none: the domain's.
	Class string `yaml:"class,omitempty"`
	// Cost is what one hit takes from the budget, in whole units. From 1 to
	// 1,000,000,000. Default 1.
	Cost int64 `yaml:"cost" default:"1"`
	// Tenant is the descriptor key whose value names the tenant, such as
	// remote_address. Default none.
	Tenant string `yaml:"tenant,omitempty"`
}
