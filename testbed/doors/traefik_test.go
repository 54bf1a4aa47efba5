package doors

import (
	"net/netip"
	"net/url"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
)

// There is no Traefik in the package archives: its file is read strictly, as its
// manual says that it is made, and what it asks must be what the node serves.
func TestTheFileForTraefikIsWellFormed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("traefik.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type middleware struct {
		Headers *struct {
			CustomRequestHeaders map[string]string `yaml:"customRequestHeaders"`
		} `yaml:"headers"`
		ForwardAuth *struct {
			Address            string `yaml:"address"`
			TrustForwardHeader bool   `yaml:"trustForwardHeader"`
		} `yaml:"forwardAuth"`
	}
	var doc struct {
		HTTP struct {
			Middlewares map[string]middleware `yaml:"middlewares"`
			Routers     map[string]struct {
				Rule        string   `yaml:"rule"`
				EntryPoints []string `yaml:"entryPoints"`
				Middlewares []string `yaml:"middlewares"`
				Service     string   `yaml:"service"`
			} `yaml:"routers"`
			Services map[string]struct {
				LoadBalancer struct {
					Servers []struct {
						URL string `yaml:"url"`
					} `yaml:"servers"`
				} `yaml:"loadBalancer"`
			} `yaml:"services"`
		} `yaml:"http"`
	}
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for name, r := range doc.HTTP.Routers {
		if _, ok := doc.HTTP.Services[r.Service]; !ok {
			t.Errorf("router %s: no service %q", name, r.Service)
		}
		for _, m := range r.Middlewares {
			if _, ok := doc.HTTP.Middlewares[m]; !ok {
				t.Errorf("router %s: no middleware %q", name, m)
			}
		}
		if len(r.Middlewares) != 2 || r.Middlewares[0] != "unforged" || r.Middlewares[1] != "subak" {
			t.Errorf("router %s: middlewares %q: the client's own fields must be gone before Subak is asked", name, r.Middlewares)
		}
	}
	ask := doc.HTTP.Middlewares["subak"].ForwardAuth
	if ask == nil || ask.TrustForwardHeader {
		t.Fatalf("forwardAuth %+v, want one that does not trust the client", ask)
	}
	u, err := url.Parse(ask.Address)
	if err != nil || u.Host != proxyDoor || u.Path != "/v1/check" {
		t.Errorf("it asks %q (%v), want the check at %s", ask.Address, err, netip.MustParseAddrPort(proxyDoor))
	}
}

// What Traefik asks: the fields that its forwardAuth sends.
func TestTheNodeAnswersWhatTraefikAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	url := "http://" + r.doors[proxyDoor] + "/v1/check"
	sent := []string{"X-Forwarded-Proto: http", "X-Forwarded-Host: example.com", "X-Forwarded-For: 192.0.2.7"}
	a := send(t, "GET", url, "", append(sent, "X-Forwarded-Method: POST", "X-Forwarded-Uri: /api/x?y=1")...)
	if a.StatusCode != 200 || a.body != "" {
		t.Errorf("status %d, body %q; want 200 without one", a.StatusCode, a.body)
	}
	wantRefused(t, send(t, "GET", url, "", append(sent, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /page")...), "uncleared")
	if a := send(t, "GET", url, "", append(sent, "X-Forwarded-Uri: /page", "X-Original-URI: /api/x")...); a.StatusCode != 429 && a.StatusCode != 403 || a.Header.Get("Retry-After") != "" {
		t.Errorf("a check of two kinds: status %d, Retry-After %q; want a refusal that is not to be retried", a.StatusCode, a.Header.Get("Retry-After"))
	}
}
