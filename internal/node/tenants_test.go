package node

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"subak/internal/api"
)

// as asks the first listener in the name of a tenant.
func (l *live) as(tenant, path string) int {
	l.t.Helper()
	r, err := http.NewRequest(http.MethodGet, l.url(path), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", tenant)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// A tenant of a node has one bucket, whichever door it comes by, and bounds that
// are changed at one node hold at the others.
func TestATenantHasOneBucketAtAllDoorsAndItsBoundTravels(t *testing.T) {
	t.Parallel()
	two := []string{"a", "b"}
	keyed := func(s setup) string {
		more := envoyLines("127.0.0.1:0", "")
		s.more = strings.Replace(more, "rules: [{match: {path: \"/high*\"}, class: high}]", "rules: [{match: {path: \"*\"}, class: high, tenant: path}]", 1)
		return strings.Replace(s.yaml(), "edge, ", "edge, tenant: {header: X-Api-Key}, ", 1)
	}
	bounded := func(text string) string {
		return strings.Replace(text, "{name: high, reserve: 60%}", "{name: high, reserve: 60%, tenants: {each: 0.1/s, keys: 100}}", 1)
	}
	url := backend(t)
	first := setup{name: "a", dir: t.TempDir(), backend: url, roster: two}
	a := begin(t, first)
	second := setup{name: "b", dir: t.TempDir(), backend: url, roster: two, seed: a.node.gossip.Addr()}
	b := begin(t, second)
	eventually(t, "both are ready and live", func() bool {
		return a.status().Ready && b.status().Ready && a.liveMembers() == 2 && b.liveMembers() == 2
	})
	b.reload(keyed(second))
	mustSay(t, a.reload(bounded(keyed(first))), "class high: tenants none -> 0.1/s each, 100 keys")
	eventually(t, "both work under it", func() bool {
		e, f := a.status().Epoch, b.status().Epoch
		return e.Version == 2 && e.Active && f.Version == 2 && f.Active
	})
	limited := func(l *live, tenant string) bool {
		for range 10 {
			if l.as(tenant, "/high") == 429 {
				return l.as("another", "/high") == 200
			}
		}
		return false
	}
	eventually(t, "b bounds its tenants, too", func() bool { return limited(b, "greedy") })

	conn := b.dialEnvoy(t, insecure.NewCredentials())
	r, err := askEnvoy(t, conn, "greedy", 1) // the tenant of a descriptor is its path here
	if err != nil || r.OverallCode != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("the tenant that is refused by HTTP is admitted by gRPC: %v, %v", r, err)
	}
	if r, err := askEnvoy(t, conn, "modest", 1); err != nil || r.OverallCode != rlsv3.RateLimitResponse_OK {
		t.Errorf("a tenant that has its own is refused: %v, %v", r, err)
	}
	class, err := b.node.Class("origin", "high")
	if err != nil {
		t.Fatal(err)
	}
	if class.For("greedy").Allow() {
		t.Error("the tenant that is refused by HTTP is admitted by a handle")
	}
	if n, _ := metric(t, b, "budget_gate_decisions_total", "reason=tenant-empty"); n == 0 {
		t.Error("no refusal for this reason is counted")
	}

	out := a.change(api.ChangeRequest{Name: "f.yaml", File: budgetFile(3000, 60), Revert: true})
	a.ends(out.Epoch, api.ChangeInForce)
	eventually(t, "a file without bounds takes them away", func() bool {
		for range 3 { // a bounded one has saved up two at most
			if b.as("greedy", "/high") != 200 {
				return false
			}
		}
		return true
	})
}

func TestANodeDecidesByTheCoarseClock(t *testing.T) {
	t.Parallel()
	s := setup{name: "a", dir: t.TempDir(), backend: backend(t)}
	s.more = "node: {name: a, coarse_clock: true}\n"
	text := strings.Replace(s.yaml(), "node: {name: a}\n", "", 1)
	a := beginText(t, s, text)
	eventually(t, "it admits", func() bool { return a.get("/high") == 200 })
	for range 3 {
		if now, coarse := a.node.clock.Now(), a.node.now(); coarse > now+int64(time.Second) || coarse < now-int64(time.Second) {
			t.Errorf("the coarse clock reads %d, the other %d", coarse, now)
		}
	}
}
