package config

import (
	"crypto/tls"
	"encoding/base64"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/envoy"
	"subak/enforce/gate"
	"subak/enforce/tlsfiles"
)

func TestSpecsAreInCanonicalOrderAndExact(t *testing.T) {
	text := `
cluster: {name: edge}
gossip: {seeds: ["a:1"]}
nodes: [{name: fra, weight: 3}, {name: ams, weight: 1}]
budgets:
  - name: origin
    limit: 10/s
    mode: paper
    headroom: owner-keeps
    insurance: 5%
    classes:
      - {name: hi, reserve: 33.3333%, preempts: true, borrow: 0%}
      - {name: lo, reserve: 66.6667%, lend: 50%, protect: 25%}
    cells: [{node: fra, class: lo, floor: 1/s, cap: 2/s}, {node: ams, class: hi, floor: 2/s}]
`
	c, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const u = allocator.Unit
	want := []allocator.Spec{{
		Budget: 10 * u, Weights: []int64{1, 3}, Mode: allocator.Paper, Headroom: allocator.HeadroomOwnerKeeps, InsurancePPM: 50_000,
		Classes: []allocator.ClassSpec{
			{Name: "hi", Reservation: 3_333_330, Lend: 1_000_000, Borrow: 0, Protect: 1_000_000, Preempts: true, Rule: allocator.Proportional},
			{Name: "lo", Reservation: 6_666_670, Lend: 500_000, Borrow: -1, Protect: 250_000, Rule: allocator.Proportional},
		},
		Floors: [][]allocator.Rate{{2 * u, 0}, {0, 1 * u}},
		Caps:   [][]allocator.Rate{{-1, -1}, {-1, 2 * u}},
	}}
	if diff := cmp.Diff(want, c.Specs()); diff != "" {
		t.Error(diff)
	}
	if s := c.Summary(); s.Nodes[0].Name != "ams" || len(s.Budgets[0].Bases) != 2 {
		t.Errorf("summary %+v", s)
	}
}

// Whatever percentages add up to 100%, the reservations add up to the limit and
// the allocator takes them.
func TestReservationsAddUpToTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := allocator.Rate(rapid.Int64Range(1, int64(MaxRate)).Draw(t, "limit"))
		cuts := rapid.SliceOfN(rapid.Int64Range(0, int64(Whole)), 1, 8).Draw(t, "cuts")
		b := Budget{Limit: Amount{limit, Requests}}
		left := Whole
		for _, cut := range cuts {
			p := min(left, Percent(cut))
			b.Classes = append(b.Classes, Class{Reserve: Portion{Percent: p}})
			left -= p
		}
		b.Classes = append(b.Classes, Class{Reserve: Portion{Percent: left}})
		out, ok := b.reservations()
		var sum allocator.Rate
		for _, r := range out {
			sum += r
		}
		if !ok || sum != limit {
			t.Fatalf("%v of %d add up to %d (%v)", out, limit, sum, ok)
		}
		spec := b.spec([]Node{{Name: "a", Weight: 1}})
		if err := spec.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSecretsAreReadFromTheirFilesAndNeverRepeated(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	keys := write(t, "# old and new\n"+key+"\n\n"+key+"\n")
	token := write(t, "0123456789abcdef-secret\n")
	c := Default()
	c.Gossip.KeyFile, c.Admin.TokenFile = keys, token
	s, err := c.Secrets()
	if err != nil || len(s.Keys) != 2 || len(s.Keys[0]) != 32 || s.Token != "0123456789abcdef-secret" {
		t.Fatalf("got %d keys, token %q, %v", len(s.Keys), s.Token, err)
	}
	c.Gossip.KeyFile, c.Admin.TokenFile = write(t, "hidden-thing\n"+key[:20]+"\n"), write(t, "short\n")
	_, err = c.Secrets()
	if err == nil || strings.Count(err.Error(), "mend: ") != 3 || strings.Contains(err.Error(), "hidden-thing") || strings.Contains(err.Error(), "short;") {
		t.Errorf("got %v, want three faults without the secrets", err)
	}
	c.Gossip.KeyFile, c.Admin.TokenFile = "/nonexistent/keys", write(t, strings.Repeat("x", maxSecretBytes+1))
	if _, err = c.Secrets(); err == nil || strings.Count(err.Error(), "mend: ") != 2 {
		t.Errorf("got %v, want two faults", err)
	}
	if err := os.WriteFile(keys, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Gossip.KeyFile, c.Admin.TokenFile = keys, ""
	if _, err = c.Secrets(); err == nil || !strings.Contains(err.Error(), "holds 0 keys") {
		t.Errorf("got %v, want no keys", err)
	}
}

func TestAListenerReachesItsGateWhole(t *testing.T) {
	text := strings.Replace(small, "budgets: [", "budgets: [{name: out, limit: 5MB/s, classes: [{name: hi, reserve: 50%}, {name: lo, reserve: 50%}]}, ", 1) + `
listeners:
  - name: l
    listen: 127.0.0.1:1
    backends: [{url: "http://h:1", weight: 3}, {url: "https://i"}]
    check: {enabled: true, path: /c, refusal_status: 429}
    trusted_hops: 2
    trusted_peers: [10.0.0.0/8]
    headers: draft03
    retry_by: address
    retry_jitter: 3s
    response_timeout: 7s
    debug: true
    on_unknown: allow
    default: {budget: origin, class: lo}
    tls: {cert_file: /c, key_file: /k, client_ca_file: /a, min_version: 1.3}
    limits: {header_bytes: 1KiB, body_bytes: 2MB, in_flight: 3, connections: 4, header_timeout: 5s, body_stall: 0s, write_stall: 6s, idle_timeout: 8s}
    retry: {attempts: 0}
    tenant: {client: true}
    egress: {budget: out, class: hi}
    rules:
      - match: {method: [GET], path: /a*, host: h, header: {X-A: "1"}, network: ["::/0"]}
        budget: origin
        class: hi
        cost: 2
        tenant: {header: X-Key}
        egress: {budget: out, class: lo}
`
	c, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Listeners[0].Gate()
	if err != nil {
		t.Fatal(err)
	}
	want := gate.Config{
		Name:     "l",
		Backends: []gate.Backend{{URL: &url.URL{Scheme: "http", Host: "h:1"}, Weight: 3}, {URL: &url.URL{Scheme: "https", Host: "i"}, Weight: 1}},
		Check:    gate.Check{Enabled: true, Path: "/c", RefusalStatus: 429}, TrustedHops: 2,
		TrustedPeers: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Headers: gate.HeadersDraft03,
		RetryBy: gate.RetryByAddress, RetryJitter: 3 * time.Second, ResponseTimeout: 7 * time.Second, Debug: true,
		OnUnknown: gate.UnknownAllow, Default: gate.Target{Budget: "origin", Class: "lo"},
		TLS: &gate.TLS{CertFile: "/c", KeyFile: "/k", ClientCAFile: "/a", MinVersion: tls.VersionTLS13},
		Limits: gate.Limits{
			HeaderBytes: 1024, BodyBytes: 2_000_000, InFlight: 3, Connections: 4,
			HeaderTimeout: 5 * time.Second, BodyStall: -1, WriteStall: 6 * time.Second, IdleTimeout: 8 * time.Second,
		},
		Retry: gate.Retry{Attempts: -1}, Tenant: gate.TenantSource{Client: true}, Egress: gate.Target{Budget: "out", Class: "hi"},
		Rules: []gate.Rule{{
			Match: gate.Match{
				Methods: []string{"GET"}, Path: "/a*", Host: "h", Headers: map[string]string{"X-A": "1"},
				Network: []netip.Prefix{netip.MustParsePrefix("::/0")},
			},
			Target: gate.Target{Budget: "origin", Class: "hi", Cost: 2},
			Tenant: gate.TenantSource{Header: "X-Key"}, Egress: gate.Target{Budget: "out", Class: "lo"},
		}},
	}
	if diff := cmp.Diff(want, got, compareAddresses()); diff != "" {
		t.Error(diff)
	}
}

func TestAnEnvoyDoorReachesItsServicesWhole(t *testing.T) {
	text := small + `
envoy:
  - name: e
    listen: unix:/run/e.sock
    tls: {cert_file: /c, key_file: /k}
    shadow: true
    on_unknown: deny
    default: {budget: origin, class: lo}
    client_key: remote_address
    headers: x
    retry_jitter: 2s
    metadata: true
    domains:
      - {name: "any text", budget: origin, class: hi, rules: [{match: {a: "b*", c: ""}, class: lo, cost: 3, tenant: a}, {match: {d: e}}]}
      - {name: other, rules: [{match: {a: b}, budget: origin, class: lo}]}
`
	c, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Envoy[0].Service()
	if err != nil {
		t.Fatal(err)
	}
	want := envoy.Config{
		Name: "e", Shadow: true, OnUnknown: gate.UnknownDeny, Default: envoy.Target{Budget: "origin", Class: "lo"},
		Client: "remote_address", Headers: gate.HeadersX, RetryJitter: 2 * time.Second, Metadata: true,
		Domains: []envoy.Domain{
			{Name: "any text", Budget: "origin", Class: "hi", Rules: []envoy.Rule{
				{Match: map[string]string{"a": "b*", "c": ""}, Class: "lo", Cost: 3, Tenant: "a"},
				{Match: map[string]string{"d": "e"}, Cost: 1},
			}},
			{Name: "other", Rules: []envoy.Rule{{Match: map[string]string{"a": "b"}, Budget: "origin", Class: "lo", Cost: 1}}},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(envoy.Target{})); diff != "" {
		t.Error(diff)
	}
	if files := c.Envoy[0].TLS.Files(); *files != (tlsfiles.Config{CertFile: "/c", KeyFile: "/k", MinVersion: tls.VersionTLS12}) {
		t.Errorf("TLS: %+v", files)
	}
	if e := c.Envoy[0]; !e.RLS || e.Quota.Enabled || e.Quota.TTL != 2*time.Second {
		t.Errorf("defaults: %+v", e)
	}
}

func TestTenantsReachTheLimiterWhole(t *testing.T) {
	text := strings.Replace(small, "{name: hi, reserve: 33.3333%}", "{name: hi, reserve: 33.3333%, tenants: {each: 12.5%, burst: 3s}}, {name: mid, reserve: 0%}", 1)
	text = strings.Replace(text, "{name: lo, reserve: 66.6667%}", "{name: lo, reserve: 66.6667%, tenants: {each: 50/min, keys: 7}}", 1)
	c, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []enforce.TenantConfig{{Share: 125_000, Burst: 3 * time.Second, Keys: 100_000}, {}, {Rate: 833_333, Keys: 7}}
	if diff := cmp.Diff(want, c.Budgets[0].TenantConfigs()); diff != "" {
		t.Error(diff)
	}
	cfg := enforce.LimiterConfig{Classes: 3, Tenants: want}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	if c, err := Parse("x", []byte(small)); err != nil || c.Budgets[0].TenantConfigs() != nil {
		t.Errorf("%v: want no tenants by default", err)
	}
}

// Every choice of the file is one of the gate's and the allocator's, and no two
// are the same.
func TestEveryChoiceHasItsOwnMeaning(t *testing.T) {
	distinct(t, Headers("").Choices(), func(s string) any { return Headers(s).mode() })
	distinct(t, OnUnknown("").Choices(), func(s string) any { return OnUnknown(s).choice() })
	distinct(t, RetryBy("").Choices(), func(s string) any { return RetryBy(s).choice() })
	distinct(t, TLSVersion("").Choices(), func(s string) any { return TLSVersion(s).number() })
	distinct(t, Mode("").Choices(), func(s string) any { return Mode(s).rule() })
	distinct(t, Headroom("").Choices(), func(s string) any { return Headroom(s).rule() })
	distinct(t, Rule("").Choices(), func(s string) any { return Rule(s).rule() })
}

func distinct(t *testing.T, choices []string, meaning func(string) any) {
	t.Helper()
	seen := map[any]string{}
	for _, c := range choices {
		if other, again := seen[meaning(c)]; again {
			t.Errorf("%s means the same as %s", c, other)
		}
		seen[meaning(c)] = c
	}
}
