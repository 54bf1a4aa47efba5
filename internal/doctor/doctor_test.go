package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"subak/gossip"
	"subak/internal/api"
	"subak/internal/config"
)

const testKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// parsed is the configuration of node a with the given sections.
func parsed(t *testing.T, gossip, admin, dir string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("test.yaml", fmt.Appendf(nil, `
cluster: {name: test, data_dir: %q}
node: {name: a}
gossip: {%s}
admin: {listen: %q}
nodes: [{name: a}, {name: b}, {name: c}]
budgets: [{name: origin, limit: 3000/s, classes: [{name: high, reserve: 60%%}, {name: low, reserve: 40%%}]}]
listeners: [{name: edge, listen: "127.0.0.1:0", default: {budget: origin, class: low}, check: {enabled: true}}]
`, dir, gossip, admin))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// peers starts two other nodes' gossip and returns their addresses.
func peers(t *testing.T) (addrs []string) {
	t.Helper()
	for i, name := range []string{"b", "c"} {
		key := make([]byte, 32)
		for j := range key {
			key[j] = byte(j)
		}
		g, err := gossip.New(gossip.Config{
			Cluster: "test", Name: name, Listen: fmt.Sprintf("127.0.0.%d:0", 61+i), Seeds: addrs, Keys: [][]byte{key}, Profile: gossip.Local,
			Fingerprint: 42, Key: func([]byte) (string, [2]uint64, bool) { return "", [2]uint64{}, false },
		}, slog.New(slog.NewTextHandler(io.Discard, nil)), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- g.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		addrs = append(addrs, g.Addr())
	}
	return addrs
}

// verdicts lists the findings as VERDICT name, those of OK only if all.
func verdicts(checks []Check, all bool) (out []string) {
	for _, c := range checks {
		if all || c.Verdict != OK {
			out = append(out, string(c.Verdict)+" "+c.Name)
		}
	}
	return out
}

func says(t *testing.T, checks []Check, name string, words ...string) {
	t.Helper()
	text := ""
	for _, c := range checks {
		if c.Name == name {
			text += c.Words + "; " + c.Mend + "\n"
		}
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q: %s", name, w, text)
		}
	}
}

const nobody = "unix:/nonexistent/s" // no node runs there

func TestAVisitorFindsThatAllIsWell(t *testing.T) {
	seeds := peers(t)
	cfg := parsed(t, fmt.Sprintf("listen: 127.0.0.63:0, seeds: [%q, %q], keys: [%q], profile: local", seeds[0], seeds[1], testKey), nobody, t.TempDir())
	checks := Examine(t.Context(), cfg, Options{})
	if bad := verdicts(checks, false); fmt.Sprint(bad) != "[warn address]" { // a port of chance
		t.Errorf("got %v, want but the warning of the free port\n%+v", bad, checks)
	}
	all := fmt.Sprint(verdicts(checks, true))
	for _, want := range []string{"ok config", "ok data_dir", "ok clock", "ok encryption", "ok node", "ok seed " + seeds[0], "ok seed " + seeds[1], "ok from b", "ok from c"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %v", want, all)
		}
	}
}

func TestAnAddressThatNobodyReachesIsFound(t *testing.T) {
	seeds := peers(t)
	cfg := parsed(t, fmt.Sprintf("listen: 127.0.0.63:0, advertise: \"127.0.0.99:9\", seeds: [%q, %q], keys: [%q], profile: local", seeds[0], seeds[1], testKey), nobody, t.TempDir())
	checks := Examine(t.Context(), cfg, Options{})
	bad := fmt.Sprint(verdicts(checks, false))
	for _, want := range []string{"FAIL seed " + seeds[0], "FAIL seed " + seeds[1], "FAIL from b", "FAIL from c"} {
		if !strings.Contains(bad, want) {
			t.Errorf("no %q in %v", want, bad)
		}
	}
	says(t, checks, "seed "+seeds[0], "answers by TCP", "comes back to 127.0.0.99:9", "forward UDP")
	says(t, checks, "from b", "neither UDP nor TCP", "gossip.advertise")
}

func TestAPortThatAnotherHasIsNamed(t *testing.T) {
	seeds := peers(t)
	cfg := parsed(t, fmt.Sprintf("listen: %q, seeds: [%q], keys: [%q], profile: local", seeds[1], seeds[0], testKey), nobody, t.TempDir())
	checks := Examine(t.Context(), cfg, Options{})
	if bad := verdicts(checks, false); fmt.Sprint(bad) != "[FAIL network]" {
		t.Errorf("got %v", bad)
	}
	says(t, checks, "network", "already in use", "--admin")
}

// A node that runs has its port, so it is the one that is asked.
func TestARunningNodeIsAsked(t *testing.T) {
	status := api.Status{Node: "a", Cluster: "test", Ready: true, Reason: "in the cluster"}
	reach := api.Reach{Advertised: "192.0.2.1:7946", Peers: []api.PeerReach{{Peer: "b", Address: "192.0.2.2:7946", UDP: true, Error: "refused"}}}
	code := http.StatusOK
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(status) })
	mux.HandleFunc("POST /v1/reach", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(reach)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	cfg := parsed(t, fmt.Sprintf("listen: 127.0.0.1:7946, seeds: [\"127.0.0.1:1\"], keys: [%q]", testKey), server.Listener.Addr().String(), t.TempDir())
	examine := func() []Check { return Examine(t.Context(), cfg, Options{}) }

	checks := examine()
	says(t, checks, "from b", "by UDP, not by TCP: refused", "TCP to 192.0.2.1:7946 does not get here")
	says(t, checks, "node", "is ready: in the cluster")

	code = http.StatusConflict
	says(t, examine(), "network", "refused (409)")

	status.Ready, status.Reason, status.Baseline = false, "quarantine", "naive"
	status.Alarms = []api.Alarm{{Words: "cannot save; mend: the disk"}}
	checks = examine()
	says(t, checks, "node", "not ready: quarantine", "naive")
	says(t, checks, "alarm", "the disk")

	status.Node = "b"
	checks = examine()
	says(t, checks, "node", "there is node b", "--admin")
}

func TestAddressesThatCannotWorkAreFound(t *testing.T) {
	cases := []struct{ name, gossip, want, says string }{
		{"one of another machine", `listen: "192.0.2.77:7946", seeds: ["127.0.0.1:1"]`, "FAIL", "no address of this machine"},
		{"loopback, with seeds elsewhere", `listen: "127.0.0.1:7946", seeds: ["192.0.2.2:7946"]`, "FAIL", "each machine's own"},
		{"loopback, all of them", `listen: "127.0.0.1:7946", seeds: ["127.0.0.1:7945"]`, "ok", "tells peers 127.0.0.1:7946"},
		{"IPv6 without listening on it", `listen: "127.0.0.1:7946", advertise: "[2001:db8::1]:7946", seeds: ["192.0.2.2:7946"]`, "FAIL", "[::]:7946"},
		{"IPv6 of an address for all", `listen: "0.0.0.0:7946", advertise: "[2001:db8::1]:7946", seeds: ["192.0.2.2:7946"]`, "ok", "[2001:db8::1]:7946"},
		{"both families", `listen: "[::]:7946", advertise: "203.0.113.7:17946", seeds: ["192.0.2.2:7946"]`, "ok", "203.0.113.7:17946"},
		{"private, with public seeds", `listen: "0.0.0.0:7946", advertise: "10.0.0.7:7946", seeds: ["203.0.113.7:7946"]`, "warn", "a private address"},
		{"carrier-grade NAT, with public seeds", `listen: "0.0.0.0:7946", advertise: "100.64.0.7:7946", seeds: ["203.0.113.7:7946"]`, "warn", "a private address"},
		{"private, with private seeds", `listen: "0.0.0.0:7946", advertise: "10.0.0.7:7946", seeds: ["10.0.0.8:7946"]`, "ok", "10.0.0.7:7946"},
		{"loopback, and told otherwise", `listen: "127.0.0.1:7946", advertise: "203.0.113.7:7946", seeds: ["203.0.113.8:7946"]`, "warn", "nobody gets in"},
		{"an unspecified one", `listen: "0.0.0.0:7946", advertise: "0.0.0.0:7946", seeds: ["203.0.113.8:7946"]`, "FAIL", "cannot be reached"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			x := &examination{cfg: parsed(t, tc.gossip, nobody, "")}
			x.checkAddresses(t.Context())
			says(t, x.checks, "address", tc.says)
			if got := string(x.checks[0].Verdict); got != tc.want || x.checks[0].Name != "address" {
				t.Errorf("got %+v, want %s", x.checks, tc.want)
			}
		})
	}
}

func TestAPublicAddressWithoutAKeyFails(t *testing.T) {
	x := &examination{cfg: parsed(t, `listen: "0.0.0.0:7946", advertise: "203.0.113.7:7946", seeds: ["203.0.113.8:7946"]`, nobody, "")}
	x.checkAddresses(t.Context())
	if bad := verdicts(x.checks, false); fmt.Sprint(bad) != "[FAIL encryption]" {
		t.Errorf("got %v", bad)
	}
}

func TestTheDataDirectoryIsTried(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	there := t.TempDir()
	for dir, want := range map[string]Verdict{
		there: OK, filepath.Join(there, "a", "b"): OK, file: Fail, filepath.Join(file, "below"): Fail, "/proc/self/none": Fail,
	} {
		x := &examination{cfg: parsed(t, `seeds: ["127.0.0.1:1"]`, nobody, dir)}
		x.checkDataDir()
		if len(x.checks) != 1 || x.checks[0].Verdict != want || want == Fail && x.checks[0].Mend == "" {
			t.Errorf("%s: got %+v, want %s", dir, x.checks, want)
		}
	}
	if left, err := os.ReadDir(there); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSeedsThatAreDownAreNoFaultWhileOthersAnswer(t *testing.T) {
	well := api.SeedReach{Seed: "w:1", Addresses: []string{"192.0.2.2:1"}, RTTMillis: 3}
	down := api.SeedReach{Seed: "d:1", UDPError: "no answer", TCPError: "connection refused", Hint: "is it up?"}
	gone := api.SeedReach{Seed: "g:1", ResolveError: "no such host"}
	half := api.SeedReach{Seed: "h:1", UDPError: "no answer"}
	self := api.SeedReach{Seed: "s:1", Self: true}
	both := api.PeerReach{Peer: "b", UDP: true, TCP: true}
	none := api.PeerReach{Peer: "n"}
	cases := []struct {
		name string
		r    api.Reach
		want string
	}{
		{"one is down", api.Reach{Seeds: []api.SeedReach{well, down, gone}, Peers: []api.PeerReach{both}}, "[ok seed w:1 warn seed d:1 warn seed g:1 ok from b]"},
		{"all are down", api.Reach{Seeds: []api.SeedReach{down, gone, self}}, "[FAIL seed d:1 FAIL seed g:1 ok seed s:1 warn peers]"},
		{"datagrams do not come back", api.Reach{Seeds: []api.SeedReach{half, well}, Peers: []api.PeerReach{none}}, "[FAIL seed h:1 ok seed w:1 FAIL from n]"},
		{"one peer is cut off", api.Reach{Seeds: []api.SeedReach{well}, Peers: []api.PeerReach{none, both}}, "[ok seed w:1 warn from n ok from b]"},
		{"the only seed is this node", api.Reach{Seeds: []api.SeedReach{self}}, "[ok seed s:1 warn seeds warn peers]"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			x := &examination{cfg: parsed(t, `seeds: ["127.0.0.1:1"]`, nobody, "")}
			x.judgeReach(&tc.r)
			if got := fmt.Sprint(verdicts(x.checks, true)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			for _, c := range x.checks {
				if c.Verdict == Fail && c.Mend == "" {
					t.Errorf("%+v: no mend", c)
				}
			}
		})
	}
}

func TestFaultsOfTheFileAreFindings(t *testing.T) {
	_, err := config.Parse("bad.yaml", []byte("cluster: {name: test}\nnodes: [{name: a}]\n"))
	checks := Faults(err)
	if len(checks) < 2 {
		t.Fatalf("got %+v", checks)
	}
	for _, c := range checks {
		if c.Verdict != Fail || c.Mend == "" || !strings.HasPrefix(c.Words, "bad.yaml:") || strings.Contains(c.Words, "mend:") {
			t.Errorf("got %+v", c)
		}
	}
}
