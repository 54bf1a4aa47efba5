package config

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	"subak/enforce/gate"
	"subak/enforce/tlsfiles"
)

// Gate returns what the gate of a listener needs.
func (l *Listener) Gate() (gate.Config, error) {
	g := gate.Config{
		Name: l.Name, TrustedHops: l.TrustedHops, Headers: l.Headers.mode(), OnUnknown: l.OnUnknown.choice(),
		TrustedPeers: l.TrustedPeers, RetryBy: l.RetryBy.choice(), RetryJitter: l.RetryJitter,
		ResponseTimeout: l.ResponseTimeout, Debug: l.Debug,
		Default: l.Default.target(), TLS: l.TLS.Files(), Limits: l.Limits.bounds(), Retry: l.Retry.choice(),
		Tenant: l.Tenant.source(), Egress: l.Egress.target(),
		Check: gate.Check{
			Enabled: l.Check.Enabled, Path: l.Check.Path, RefusalStatus: l.Check.RefusalStatus,
		},
	}
	for _, b := range l.Backends {
		u, err := url.Parse(b.URL)
		if err != nil { // checked when loaded
			return gate.Config{}, fmt.Errorf("listener %q: backend %q: %w", l.Name, b.URL, err)
		}
		g.Backends = append(g.Backends, gate.Backend{URL: u, Weight: int(b.Weight)})
	}
	for _, r := range l.Rules {
		g.Rules = append(g.Rules, gate.Rule{
			Match: gate.Match{
				Methods: r.Match.Method, Path: r.Match.Path, Host: r.Match.Host, Headers: r.Match.Header, Network: r.Match.Network,
			},
			Target: gate.Target{Budget: r.Budget, Class: r.Class, Cost: r.Cost},
			Tenant: r.Tenant.source(), Egress: r.Egress.target(),
		})
	}
	return g, nil
}

// Files returns what the servers of a door read; nil without TLS.
func (t TLS) Files() *tlsfiles.Config {
	if t.CertFile == "" {
		return nil
	}
	return &tlsfiles.Config{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.ClientCAFile, MinVersion: t.MinVersion.number()}
}

func (v TLSVersion) number() uint16 {
	if v == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

func (l *Limits) bounds() gate.Limits {
	return gate.Limits{
		HeaderBytes: int(l.HeaderBytes), BodyBytes: int64(l.BodyBytes), InFlight: l.InFlight, Connections: l.Connections,
		HeaderTimeout: l.HeaderTimeout, IdleTimeout: l.IdleTimeout,
		BodyStall: orNever(l.BodyStall), WriteStall: orNever(l.WriteStall),
	}
}

// orNever turns the file's 0 into the gate's "for ever".
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// choice turns the file's 0 into the gate's "none".
func (r Retry) choice() gate.Retry {
	if r.Attempts == 0 {
		return gate.Retry{Attempts: -1}
	}
	return gate.Retry{Attempts: r.Attempts}
}

func (t *TenantSource) source() gate.TenantSource {
	if t == nil {
		return gate.TenantSource{}
	}
	return gate.TenantSource{Header: t.Header, Client: t.Client}
}

func (t *Target) target() gate.Target {
	if t == nil {
		return gate.Target{}
	}
	return gate.Target{Budget: t.Budget, Class: t.Class}
}

func (h Headers) mode() gate.HeaderMode {
	switch h {
	case "draft03":
		return gate.HeadersDraft03
	case "x":
		return gate.HeadersX
	case "off":
		return gate.HeadersOff
	}
	return gate.HeadersIETF
}

func (u OnUnknown) choice() gate.Unknown {
	switch u {
	case Deny:
		return gate.UnknownDeny
	case Allow:
		return gate.UnknownAllow
	}
	return gate.UnknownDefault
}

func (r RetryBy) choice() gate.RetryBy {
	switch r {
	case "address":
		return gate.RetryByAddress
	case "off":
		return gate.RetryOff
	}
	return gate.RetryByRequest
}
