package poison

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"subak/allocator/ledger"
	"subak/gossip/wire"
	"subak/testbed/cluster"
)

const buildEnv = "POISON_TEST_BUILD"

func binary() string { return filepath.Join(os.Getenv(buildEnv), "subak") }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "subak-poison-")
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// three is a cluster of three nodes that is up.
func three(t *testing.T, ctx context.Context, counters ...string) *cluster.Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbk") // short, for the sockets
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(origin.Close)
	cfg := cluster.Config{
		Binary: binary(), Dir: dir, Origin: origin.Listener.Addr().String(), Limit: 1000,
		Classes: []cluster.Class{{Name: "confirmed", Reserve: 600_000}, {Name: "uncleared", Reserve: 400_000}},
		Tick:    50 * time.Millisecond, Term: 400 * time.Millisecond, Profile: "local", Counters: counters,
	}
	ports, err := cluster.FreePorts("127.0.0.1", 6, rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano()))))
	must(t, err)
	for i := range 3 {
		cfg.Nodes = append(cfg.Nodes, cluster.Node{Name: fmt.Sprintf("n%d", i), Weight: 1, Gossip: ports[2*i], Proxy: ports[2*i+1]})
	}
	c, err := cluster.New(cfg)
	must(t, err)
	t.Cleanup(c.Close)
	for i := range 3 {
		must(t, c.Start(i))
	}
	must(t, c.AwaitReady(ctx, nil, nil))
	return c
}

func TestPoisonIsRefusedCountedAndHarmsNobody(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const malformed, panics = "budget_node_dropped_total", `budget_gossip_inbox_dropped_total{reason="panic"}`
	c := three(t, ctx, malformed, panics)
	sent, err := Send(ctx, c, nil, []int{0, 1, 2}, 30, 7)
	must(t, err)
	if sent.Datagrams < 80 || sent.Streams < 80 || sent.Packets < 300 || sent.Spoilt < 20 || sent.Requests < 80 || sent.Accepted() != 0 {
		t.Errorf("sent %+v, %d requests accepted", sent, sent.Accepted())
	}
	must(t, c.AwaitReady(ctx, nil, nil)) // nobody crashed either
	c.Scrape(ctx)
	for i, s := range c.Series(time.Now(), time.Second, 1) {
		if s.Counters[malformed] < 50 || s.Counters[panics] != 0 {
			t.Errorf("node %d: counters %v", i, s.Counters)
		}
	}
	if _, err := Send(ctx, c, nil, nil, 1, 1); err == nil {
		t.Error("nobody was poisoned without an error")
	}
}

func TestNonsenseIsNeverTakenForAPacket(t *testing.T) {
	dir := ledger.NewDirectory()
	const root = uint64(0x1234_5678_9abc_def0)
	enc := wire.NewEncoder(root, dir, wire.NewVectors())
	real := [][]byte{enc.EpochWanted(ledger.EpochID{Version: 3, Hash: 9}), enc.VectorWanted(77), enc.RowWanted(5, 6), enc.LineageWanted()}
	dec := wire.NewDecoder(root, dir, wire.NewVectors(), func(ledger.EpochID) *ledger.Epoch { return nil })
	for _, b := range real {
		if _, err := dec.Decode(b); err != nil {
			t.Fatalf("a real packet is refused: %v", err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	reasons, ours, others := map[wire.Reason]int{}, 0, 0
	for range 20_000 {
		b, spoilt := nonsense(rng, real, wire.RootTag(root))
		m, err := dec.Decode(b)
		if err == nil && m.Kind != wire.KindUnknown {
			t.Fatalf("%x (spoilt %v) was taken as %v", b, spoilt, m.Kind)
		}
		reasons[wire.ReasonOf(err)]++
		if spoilt {
			ours++
		} else {
			others++
		}
	}
	if len(reasons) < 5 || ours < 1000 || others < 1000 || reasons[wire.ReasonForeignRoot] > 0 {
		t.Errorf("little variety: %v, %d spoilt of %d", reasons, ours, others)
	}
}

func TestTheNoiseIsThatOfTheSeed(t *testing.T) {
	o := newOutsider(here{}, "testbed")
	text := func(seed uint64) string {
		rng := rand.New(rand.NewPCG(seed, 0))
		var b strings.Builder
		for range 50 {
			b.Write(o.noise(rng, 1400))
			n, _ := nonsense(rng, nil, 1)
			b.Write(n)
		}
		return b.String()
	}
	if one, again := text(3), text(3); one != again || one == text(4) {
		t.Error("the bytes do not depend on the seed alone")
	}
}
