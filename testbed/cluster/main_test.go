package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// binary is the subak that the tests run; built once.
func binary() string { return filepath.Join(os.Getenv(buildEnv), "subak") }

const buildEnv = "CLUSTER_TEST_BUILD"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "subak-cluster-")
	if err == nil {
		err = os.Setenv(buildEnv, dir)
	}
	if err == nil {
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary(), "subak/cmd/node").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w:\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the binary under test:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// testConfig is a cluster of quick nodes on loopback: all but the last are its
// first roster.
func testConfig(t *testing.T, nodes int) Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbk") // short, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(origin.Close)
	cfg := Config{
		Binary: binary(), Dir: dir, Origin: origin.Listener.Addr().String(),
		Limit: 1000, Burst: 500 * time.Millisecond, Insurance: 100_000,
		Classes: []Class{{"confirmed", 600_000}, {"uncleared", 400_000}},
		Tick:    50 * time.Millisecond, Term: 400 * time.Millisecond, Profile: "local",
		Counters: []string{"budget_gossip_inbox_queued_total", `budget_gossip_inbox_queued_total{via="direct"}`, "no_such_metric"},
	}
	ports, err := FreePorts("127.0.0.1", 2*nodes, rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano()))))
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		cfg.Nodes = append(cfg.Nodes, Node{
			Name: fmt.Sprintf("n%d", i), Weight: int64(i + 1), Gossip: ports[2*i], Proxy: ports[2*i+1], Absent: i > 0 && i == nodes-1,
		})
	}
	return cfg
}

func newCluster(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// soon is a context that ends when something has plainly gone wrong.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run is a cluster whose first roster is up.
func run(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c := newCluster(t, cfg)
	must(t, c.each(c.Roster(), c.Start))
	must(t, c.AwaitReady(soon(t), nil, nil))
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx := soon(t)
	for !holds() {
		if sleep(ctx, 10*time.Millisecond) != nil {
			t.Fatalf("never: %s", what)
		}
	}
}
