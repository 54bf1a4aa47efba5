package config

import (
	"subak/enforce"
	"subak/enforce/envoy"
)

// Service returns what the rate limit service of a door needs, and the matcher
// of its quota service.
func (e *Envoy) Service() (envoy.Config, error) {
	c := envoy.Config{
		Name: e.Name, Shadow: e.Shadow, OnUnknown: e.OnUnknown.choice(), Client: e.ClientKey,
		Headers: e.Headers.mode(), RetryJitter: e.RetryJitter, Metadata: e.Metadata,
		Default: envoy.Target{Budget: e.Default.Budget, Class: e.Default.Class},
	}
	for _, d := range e.Domains {
		domain := envoy.Domain{Name: d.Name, Budget: d.Budget, Class: d.Class}
		for _, r := range d.Rules {
			domain.Rules = append(domain.Rules, envoy.Rule{Match: r.Match, Budget: r.Budget, Class: r.Class, Cost: r.Cost, Tenant: r.Tenant})
		}
		c.Domains = append(c.Domains, domain)
	}
	return c, nil
}

// TenantConfigs returns how the tenants of each class are bounded; nil where no
// class bounds them.
func (b *Budget) TenantConfigs() []enforce.TenantConfig {
	var out []enforce.TenantConfig
	for k := range b.Classes {
		t := b.Classes[k].Tenants
		if t == nil {
			continue
		}
		if out == nil {
			out = make([]enforce.TenantConfig, len(b.Classes))
		}
		out[k] = enforce.TenantConfig{Burst: t.Burst, Keys: t.Keys}
		if t.Each.IsRate {
			out[k].Rate = t.Each.Amount.Rate
		} else {
			out[k].Share = int64(t.Each.Percent)
		}
	}
	return out
}
