package node

import (
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"subak/allocator/ledger"
	"subak/gossip"
	"subak/gossip/wire"
	"subak/internal/api"
)

// These tests start whole nodes with files that are not what is in force.

// again ends a node and starts it anew.
func (l *live) again(t *testing.T, s setup) *live {
	t.Helper()
	s.name, s.existing = l.name, true
	l.end()
	return begin(t, s)
}

// check asks a node's door, on a connection of its own.
func check(t *testing.T, l *live) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get(l.url("/v1/check"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func limits(s api.Status) (out []float64) {
	for _, b := range s.Budgets {
		out = append(out, b.Limit)
	}
	return out
}

// underTheCluster waits until l serves what the cluster has in force.
func underTheCluster(t *testing.T, l *live, peer *live, share float64) {
	t.Helper()
	eventually(t, l.name+" is ready, a live member under the cluster's epoch", func() bool {
		s := l.status()
		return s.Ready && s.Member && s.Epoch == peer.status().Epoch && l.liveMembers() == peer.liveMembers()
	})
	// The demand of a request that a test made takes seconds to be forgotten.
	eventually(t, fmt.Sprintf("%s enforces %v", l.name, share), func() bool { return math.Abs(l.status().Budgets[0].Share-share) < 2 })
	if got, want := fmt.Sprint(limits(l.status())), fmt.Sprint(limits(peer.status())); got != want {
		t.Errorf("%s limits %s, the cluster %s", l.name, got, want)
	}
}

func TestAStoredEpochWinsOverAnEditedFileWhichIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"a": t.TempDir(), "b": t.TempDir(), "c": t.TempDir()}
	nodes := clusterIn(t, dirs)
	c := nodes[2].again(t, setup{seed: nodes[0].node.gossip.Addr(), dir: dirs["c"], limit: 9999, roster: []string{"b", "c", "d"}})
	if c.status().Provisional {
		t.Error("it remembers, yet does not know what is in force")
	}
	underTheCluster(t, c, nodes[0], 1000)
	differs := strings.Join(c.status().FileDiffers, "; ")
	for _, want := range []string{"node a: removed", "node d: added", "9999"} {
		if !strings.Contains(differs, want) {
			t.Errorf("status says that the file differs in %q, want %q in it", differs, want)
		}
	}
	if n := strings.Count(c.logged.String(), "the file differs"); n != 1 || !strings.Contains(c.logged.String(), "subak apply -f FILE") {
		t.Errorf("the log warns %d times, want once, with the mend:\n%s", n, c.logged.String())
	}
	if got := nodes[0].status().FileDiffers; got != nil {
		t.Errorf("a node whose file is in force says that it differs in %v", got)
	}
}

func TestANodeOutsideTheRosterWaitsUntilAnEpochTakesItIn(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	all := []string{"a", "b", "c", "d"}
	d := begin(t, setup{name: "d", existing: true, seed: nodes[0].node.gossip.Addr(), dir: t.TempDir(), roster: all})
	eventually(t, "it says that it is no member", func() bool {
		s := d.status()
		return !s.Provisional && !s.Member && !s.Ready && strings.Contains(s.Reason, "not a member yet")
	})
	if s := d.status(); s.Budgets[0].Share != 0 || len(s.FileDiffers) == 0 {
		t.Errorf("share %v, file differs in %v", s.Budgets[0].Share, s.FileDiffers)
	}
	if _, err := d.node.Explain("origin", "low", ""); err == nil {
		t.Error("a cell that does not exist was explained")
	}
	for _, l := range nodes {
		if n := l.liveMembers(); n != 3 {
			t.Errorf("%s counts %d live members with an observer about, want 3", l.name, n)
		}
	}
	if _, err := nodes[1].node.Change(api.ChangeRequest{Name: "new.yaml", File: setup{name: "b", roster: all}.yaml()}); err != nil {
		t.Fatal(err)
	}
	underTheCluster(t, d, nodes[0], 750)
	if s := d.status(); len(s.FileDiffers) != 0 {
		t.Errorf("its file is in force, yet differs in %v", s.FileDiffers)
	}
}

func TestANodeComesBackUnderTheClustersEpochWhateverItsFileAndMemory(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"a": t.TempDir(), "b": t.TempDir(), "c": t.TempDir()}
	nodes := clusterIn(t, dirs)
	seed, addr := nodes[0].node.gossip.Addr(), nodes[2].node.gossip.Addr()
	raise := func() {
		if _, err := nodes[0].node.Change(api.ChangeRequest{Name: "new.yaml", File: setup{name: "a", limit: 6000}.yaml()}); err != nil {
			t.Fatal(err)
		}
		for _, l := range nodes {
			underTheCluster(t, l, nodes[0], 2000)
		}
	}
	for _, tc := range []struct {
		name   string
		before func()
		file   setup
		share  float64
	}{
		{"without memory, with the file in force", nil, setup{dir: dirs["c"] + "/new"}, 1000},
		{"with memory and the file of before a change", raise, setup{dir: dirs["c"] + "/new"}, 2000},
		{"without a disk, with a file of other nodes and budgets", nil, setup{limit: 1, roster: []string{"c", "d", "e", "f"}}, 2000},
	} {
		t.Log("restart " + tc.name)
		if tc.before != nil {
			tc.before()
		}
		tc.file.seed, tc.file.gossip = seed, addr
		nodes[2] = nodes[2].again(t, tc.file)
		if s := nodes[2].status(); s.Ready || s.Budgets[0].Share != 0 {
			t.Errorf("right after the start: ready %v with share %v", s.Ready, s.Budgets[0].Share)
		}
		underTheCluster(t, nodes[2], nodes[0], tc.share)
		eventually(t, "its door admits", func() bool { return check(t, nodes[2]).StatusCode == http.StatusOK })
	}
}

func TestANodeThatWasTakenOutRemembersThatItIsNoMember(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"a": t.TempDir(), "b": t.TempDir(), "c": t.TempDir()}
	nodes := clusterIn(t, dirs)
	if _, err := nodes[0].node.Change(api.ChangeRequest{Name: "new.yaml", File: setup{name: "a", roster: []string{"a", "b"}}.yaml()}); err != nil {
		t.Fatal(err)
	}
	for _, l := range nodes[:2] {
		underTheCluster(t, l, nodes[0], 1500)
	}
	out := func(l *live) func() bool {
		return func() bool {
			s := l.status()
			return !s.Ready && !s.Member && !s.Provisional && strings.Contains(s.Reason, "not a member yet") && s.Epoch.Hash == nodes[0].status().Epoch.Hash
		}
	}
	eventually(t, "it knows that it is out", out(nodes[2]))
	c := nodes[2].again(t, setup{seed: "127.0.0.1:1", dir: dirs["c"]}) // it meets nobody
	eventually(t, "it knows that still, of itself", out(c))
	if share := c.status().Budgets[0].Share; share != 0 {
		t.Errorf("it enforces %v", share)
	}
}

// Lesson O16: whoever remembers another lineage is a stranger, even with the file
// of the cluster that it is pointed at.
func TestANodeThatRemembersAnotherLineageIsRefusedBothWays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stranger := begin(t, setup{name: "b", dir: dir, limit: 90_000})
	eventually(t, "it remembers", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "state.json"))
		return len(found) == 1
	})
	nodes := cluster(t)
	before := nodes[0].status().Budgets[0].Share
	stranger = stranger.again(t, setup{dir: dir, seed: nodes[0].node.gossip.Addr()})
	refused := func(at *live, addr string) bool {
		for _, m := range at.status().Members {
			if m.Address == addr && m.Refused != "" {
				return true
			}
		}
		return false
	}
	eventually(t, "the stranger refuses the cluster", func() bool { return refused(stranger, nodes[0].node.gossip.Addr()) })
	eventually(t, "the cluster has refused the stranger", func() bool { return counterSum(t, nodes[0].node, "budget_gossip_") > 0 })
	if n := stranger.liveMembers(); n != 1 {
		t.Errorf("the stranger sees %d live members, want itself alone", n)
	}
	if got := nodes[0].status().Budgets[0].Share; got != before || nodes[0].liveMembers() != 3 {
		t.Errorf("share %v of %d live members, was %v of 3", got, nodes[0].liveMembers(), before)
	}
	core := nodes[0].node
	root := core.gossip.Fingerprint()
	row := []byte{0x93, 0x10, byte(wire.KindRow), 0}
	question := wire.NewEncoder(0, ledger.NewDirectory(), wire.NewVectors()).LineageWanted()
	for _, tc := range []struct {
		name string
		m    gossip.Message
		want bool
	}{
		{"a packet of the lineage", gossip.Message{Fingerprint: root, Packet: row}, true},
		{"a packet of another", gossip.Message{Fingerprint: root + 1, Packet: row}, false},
		{"a row of a node without one", gossip.Message{Packet: row}, false},
		{"its question", gossip.Message{Packet: question}, true},
	} {
		var got bool
		if !core.ask(func() { got = core.mayReceive(tc.m) }) || got != tc.want {
			t.Errorf("%s may reach the core: %v, want %v", tc.name, got, tc.want)
		}
	}
	if !strings.Contains(stranger.logged.String(), "the file differs") {
		t.Error("its file is the cluster's, its memory is not: that was not said")
	}
}

func TestAProvisionalNodeRefusesCleanlyAndIsNotReady(t *testing.T) {
	t.Parallel()
	a := begin(t, setup{name: "a", dir: t.TempDir(), existing: true})
	if ready, reason := a.node.Ready(); ready || !strings.HasPrefix(reason, "no epoch yet") {
		t.Errorf("ready %v: %q", ready, reason)
	}
	resp := check(t, a)
	if resp.StatusCode != http.StatusForbidden || resp.Header.Get("X-Subak-Status") != "429" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, %v, want a refusal that says when to come back", resp.StatusCode, resp.Header)
	}
	s := a.status()
	if !s.Provisional || s.Member || s.Epoch != (api.Epoch{}) || s.Budgets[0].Share != 0 {
		t.Errorf("status %+v", s)
	}
	if _, err := a.node.Change(api.ChangeRequest{Name: "new.yaml", File: setup{name: "a", limit: 1}.yaml()}); err == nil {
		t.Error("a node that does not know what is in force changed it")
	}
	if err := a.node.Freeze(true); err != nil {
		t.Error(err)
	}
	a.end()
	if found, _ := filepath.Glob(filepath.Join(a.node.cfg.Cluster.DataDir, "state.json")); len(found) != 0 {
		t.Error("it remembers an epoch that it made up from its file")
	}
}

func TestAWholeClusterWithoutMemorySaysHowToBeginAnew(t *testing.T) {
	t.Parallel()
	a := begin(t, setup{name: "a", dir: t.TempDir(), existing: true})
	b := begin(t, setup{name: "b", dir: t.TempDir(), existing: true, seed: a.node.gossip.Addr()})
	for _, l := range []*live{a, b} {
		eventually(t, l.name+" names the mend", func() bool {
			ready, reason := l.node.Ready()
			return !ready && strings.Contains(reason, "start all nodes with --bootstrap once")
		})
	}
}
