package doors

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bufio"
	"bytes"

	"google.golang.org/protobuf/proto"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"subak/internal/config"
)

func TestNodesOfAllDoorsHaveAValidConfiguration(t *testing.T) {
	for name, door := range map[string]string{
		"check": checkDoor, "check with tenants": tenantDoor, "proxy": proxyDoor("127.0.0.1:9"), "rls": rpcDoor(""), "rls with tenants": rpcDoor("api_key"),
	} {
		for _, tenants := range []string{"", keyTenants} {
			if _, err := config.Parse(name, []byte(nodeFile("127.0.0.1:7", "127.0.0.1:8", "127.0.0.1:9", tenants, door))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestRequestsAreWhatTheySay(t *testing.T) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request("/v1/check", checkFields()...))))
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Get("X-Original-Uri") != proxyPath || r.URL.Path != "/v1/check" || r.Host == "" {
		t.Errorf("%+v", r)
	}
	m, vary := rpcRequest()
	copy(m[vary:], fmt.Sprintf("%08x", 0xabc))
	var call ratelimit.RateLimitRequest
	if err := proto.Unmarshal(m, &call); err != nil {
		t.Fatal(err)
	}
	if e := call.Descriptors[0].Entries; call.Domain != "edge" || e[1].Key != "api_key" || e[1].Value != "00000abc" {
		t.Errorf("%v", &call)
	}
}

func TestTheNumberOfRequestsIsReadFromWrk(t *testing.T) {
	const usual = `Running 1s test @ http://127.0.0.1:1/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   540.12us  301.22us   6.51ms   88.61%
    Req/Sec    59.91k     3.79k   65.56k    72.73%
  65464 requests in 1.10s, 4.93MB read
Requests/sec:  59526.45
Transfer/sec:      4.49MB
`
	r, err := parseWrk(usual)
	if err != nil || r.Ops != 65464 || r.Elapsed != 1100*time.Millisecond {
		t.Errorf("%+v, %v", r, err)
	}
	for name, bad := range map[string]string{
		"nothing": "", "refusals": usual + "  Non-2xx or 3xx responses: 12\n", "errors": usual + "  Socket errors: connect 0, read 1\n",
	} {
		if r, err := parseWrk(bad); err == nil {
			t.Errorf("%s: %+v without an error", name, r)
		}
	}
}

func TestClaimsHaveNamesOfTheirOwn(t *testing.T) {
	b := &Bench{Scale: Scale{Keys: 5}}
	seen := map[string]bool{}
	for _, c := range b.Cases() {
		for _, cl := range c.Claims {
			if seen[cl.ID] || !strings.HasPrefix(cl.ID, c.ID) {
				t.Errorf("claim %q of case %q", cl.ID, c.ID)
			}
			seen[cl.ID] = true
			if cl.Side >= len(c.Sides) || cl.Other >= len(c.Sides) {
				t.Errorf("claim %q is about side %d or %d of %d", cl.ID, cl.Side, cl.Other, len(c.Sides))
			}
		}
	}
}
