package config

import (
	"fmt"
	"net/url"

	"subak/enforce/gate"
)

// Gate returns what the gate of a listener needs.
func (l *Listener) Gate() (gate.Config, error) {
	g := gate.Config{
		Name: l.Name, TrustedHops: l.TrustedHops, Headers: l.Headers.mode(), OnUnknown: l.OnUnknown.choice(),
		TrustedPeers: l.TrustedPeers, RetryBy: l.RetryBy.choice(), RetryJitter: l.RetryJitter,
		ResponseTimeout: l.ResponseTimeout, Debug: l.Debug,
		Default: gate.Target{Budget: l.Default.Budget, Class: l.Default.Class},
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
		})
	}
	return g, nil
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
