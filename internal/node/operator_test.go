package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"subak/internal/config"
)

// startFault returns why a node with a configuration did not start.
func startFault(t *testing.T, text string) string {
	t.Helper()
	cfg, err := config.Parse("a", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	err = Run(context.Background(), cfg, Options{Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("the node ran")
	}
	return err.Error()
}

func TestAStartThatFailsNamesTheFieldAndTheMend(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	b := begin(t, setup{name: "b", dir: foreign})
	eventually(t, "state is on disk", func() bool {
		_, err := os.Stat(filepath.Join(foreign, "state.json"))
		return err == nil
	})
	b.end()
	plain := setup{name: "a", dir: t.TempDir()}.yaml()
	at := func(field string) string {
		return strings.Replace(plain, field+`listen: "127.0.0.1:0"`, fmt.Sprintf("%slisten: %q", field, taken.Addr()), 1)
	}
	for _, tc := range []struct{ name, text, field, mend string }{
		{"admin address taken", at("admin: {"), "admin.listen: ", "another port"},
		{"door taken", at("edge, "), "listeners[0].listen: ", "another port"},
		{"gossip address taken", setup{name: "a", dir: t.TempDir(), gossip: taken.Addr().String()}.yaml(), "gossip.listen: ", "another port"},
		{"gossip address of another machine", setup{name: "a", dir: t.TempDir(), gossip: "192.0.2.1:7946"}.yaml(), "gossip.listen: ", "of this machine"},
		{"data directory is a file", setup{name: "a", dir: file}.yaml(), "cluster.data_dir: ", "a directory that this user may"},
		{"data directory of another node", setup{name: "a", dir: foreign}.yaml(), "cluster.data_dir: ", "directory of this node"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := startFault(t, tc.text)
			if !strings.HasPrefix(got, tc.field) || !strings.Contains(got, "; mend: ") || !strings.Contains(got, tc.mend) {
				t.Errorf("got %q, want field %q and mend %q", got, tc.field, tc.mend)
			}
		})
	}
}

func TestTheLogSaysWhenReadinessChangesAndWhy(t *testing.T) {
	t.Parallel()
	a := begin(t, setup{name: "a", dir: t.TempDir()})
	eventually(t, "the log says why the node is not ready", func() bool {
		return strings.Contains(a.logged.String(), `msg=readiness ready=false reason="quarantine after the start`)
	})
}

// A full disk is told once, not at every tick, and shows in the readiness.
func TestAStateThatCannotBeSavedIsSaidOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	a := begin(t, setup{name: "a", dir: dir})
	saved := filepath.Join(dir, "state.json")
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	eventually(t, "state is on disk, and settled", func() bool { return exists(saved) && a.status().Ready })
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	save := func() { a.node.ask(func() { a.node.core.TryDisk() }) } // as if the memory had changed
	save()
	eventually(t, "readiness says why", func() bool {
		ready, reason := a.node.Ready()
		return ready && strings.Contains(reason, "cannot save") && strings.Contains(reason, "what is in force goes on")
	})
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	save()
	eventually(t, "it is saved again", func() bool { return strings.Contains(a.logged.String(), "is saved again") })
	if n := strings.Count(a.logged.String(), "cannot save the durable state"); n != 1 {
		t.Errorf("said %d times, want once\n%s", n, a.logged.String())
	}
}

// A frozen node is live and brings nothing; nobody should have to guess why.
func TestAFrozenNodeIsExplainedEverywhere(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	if err := nodes[0].node.Freeze(true); err != nil {
		t.Fatal(err)
	}
	said := func(at *live, want string) func() bool {
		return func() bool {
			e, err := at.node.Explain("origin", "low", "a")
			return err == nil && strings.Contains(strings.Join(e.Words, " "), want)
		}
	}
	eventually(t, "it says so itself", said(nodes[0], "This node is frozen"))
	eventually(t, "the others say what can be", said(nodes[1], "brings nothing to the pool: it is frozen"))
	for _, c := range nodes[0].status().Budgets[0].Cells {
		if c.Node == "a" && (c.Ceiling == 0 || c.Ceiling != c.Share) {
			t.Errorf("frozen, it counts ceiling %v and share %v of its own", c.Ceiling, c.Share)
		}
	}
}
