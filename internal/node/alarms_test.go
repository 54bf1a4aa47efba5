package node

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"subak/internal/api"
	"subak/internal/drift"
)

// alarmed returns the words of a standing alarm, empty if there is none.
func (l *live) alarmed(kind api.AlarmKind) string {
	for _, a := range l.status().Alarms {
		if a.Kind == kind {
			return a.Words
		}
	}
	return ""
}

// copyDir copies the state file of a node, as a cloned machine has it.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(from, "state.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "state.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Two processes use one name, with directories and ports of their own, as when a
// machine is cloned.
func TestOfTwoProcessesOfOneNameOneGivesWayAndBothSaySo(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	a := begin(t, setup{name: "a", dir: dirs[0]})
	b := begin(t, setup{name: "b", dir: dirs[1], seed: a.node.gossip.Addr()})
	c := begin(t, setup{name: "c", dir: dirs[2], seed: a.node.gossip.Addr()})
	for _, l := range []*live{a, b, c} {
		eventually(t, l.name+" is ready and sees three live members", func() bool { return l.status().Ready && l.liveMembers() == 3 })
	}
	copyDir(t, dirs[2], dirs[3])
	start := time.Now()
	twin := begin(t, setup{name: "c", dir: dirs[3], seed: a.node.gossip.Addr(), existing: true})
	eventually(t, "one of the two gives way", func() bool { return c.node.yielded() || twin.node.yielded() })
	t.Logf("one gave way %s after the start of the second", time.Since(start))
	gone, stays := c, twin
	if twin.node.yielded() {
		gone, stays = twin, c
	}
	eventually(t, "it says so", func() bool {
		ready, reason := gone.node.Ready()
		return !ready && strings.Contains(reason, "another process uses the name c") && strings.Contains(reason, "mend: stop the process")
	})
	eventually(t, "the log says so", func() bool { return strings.Contains(gone.logged.String(), "msg=alarm kind=twin") })
	eventually(t, "the other one knows too", func() bool { return strings.Contains(stays.alarmed(api.AlarmTwin), "began a new life") })
	eventually(t, "the other one has the base again", func() bool { return stays.status().Ready && !stays.node.yielded() })
	if got := gone.status().Budgets[0].Share; got != 0 {
		t.Errorf("the one that gave way enforces %v", got)
	}
	t.Logf("%s\n%s", gone.alarmed(api.AlarmTwin), stays.alarmed(api.AlarmTwin))
}

// yielded asks the loop.
func (n *Node) yielded() (yes bool) {
	n.ask(func() { yes = n.core.Twin().Yielded })
	return yes
}

// A flag that is left on must not begin a second history.
func TestTheFlagOfAFirstStartCountsOnce(t *testing.T) {
	first := t.TempDir()
	a := begin(t, setup{name: "a", dir: first})
	eventually(t, "the first start has its base", func() bool { return a.status().Ready })
	a.end()
	whole, err := os.ReadFile(filepath.Join(first, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	for _, c := range []struct {
		name      string
		file      []byte
		remembers bool
		reason    string // of not being ready
	}{
		{"the memory is whole", whole, true, "quarantine"},
		{"the memory is torn", whole[:len(whole)/2], false, "this node remembers none"},
		{"a bit of the memory is flipped", flipped, false, "this node remembers none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "state.json"), c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			again := begin(t, setup{name: "a", dir: dir}) // state: new still
			s := again.status()
			if s.Ready || !strings.Contains(s.Reason, c.reason) || s.Provisional == c.remembers || s.Budgets[0].Ceiling != 0 {
				t.Errorf("ready %v: %s; provisional %v, ceiling %v", s.Ready, s.Reason, s.Provisional, s.Budgets[0].Ceiling)
			}
		})
	}
}

func TestAnOldCopyOfTheMemoryIsToldAndNotUsed(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var nodes []*live
	seed := ""
	for i, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, begin(t, setup{name: name, dir: dirs[i], seed: seed}))
		seed = nodes[0].node.gossip.Addr()
	}
	for _, l := range nodes {
		eventually(t, l.name+" is ready", func() bool { return l.status().Ready && l.liveMembers() == 3 })
	}
	backup := t.TempDir()
	copyDir(t, dirs[2], backup)
	nodes[2].end()
	later := begin(t, setup{name: "c", dir: dirs[2], seed: seed, existing: true}) // a life that the backup does not know
	eventually(t, "c is back, and for so long that no peer hands out older rows", func() bool {
		s := later.status()
		return s.Ready && s.Uptime > 2.5 && later.liveMembers() == 3
	})
	if words := later.alarmed(api.AlarmMemory); words != "" {
		t.Errorf("alarm over a memory that is current: %s", words)
	}
	later.end()
	copyDir(t, backup, dirs[2])
	c := begin(t, setup{name: "c", dir: dirs[2], seed: seed, existing: true})
	eventually(t, "the log says that the memory was an old copy", func() bool {
		return strings.Contains(c.logged.String(), "msg=alarm kind=memory") && strings.Contains(c.logged.String(), "was an old copy")
	})
	eventually(t, "c has its base again, and the alarm still tells", func() bool { return c.status().Ready && c.alarmed(api.AlarmMemory) != "" })
}

func TestClockWordsNameThePeerTheFiguresAndTheMend(t *testing.T) {
	a := begin(t, setup{name: "a", dir: t.TempDir()})
	for _, c := range []struct {
		b    drift.Bounds
		want string
	}{
		{drift.Bounds{LowPPM: 19_500, HighPPM: 21_000, Verdict: drift.Fast}, "the clock of b runs at least 1.95 % fast"},
		{drift.Bounds{LowPPM: -21_000, HighPPM: -19_500, Verdict: drift.Slow}, "the clock of b runs at least 1.95 % slow"},
	} {
		got := a.node.clockWords("b", c.b)
		for _, want := range []string{c.want, "protocol.eps allows for 1%", "mend: "} {
			if !strings.Contains(got, want) {
				t.Errorf("%q lacks %q", got, want)
			}
		}
	}
}

func TestPeersClocksAreBoundedInStatusAndMetrics(t *testing.T) {
	nodes := cluster(t)
	var bounds []string
	eventually(t, "the clocks of both peers are bounded", func() bool {
		bounds = nil
		for _, m := range nodes[0].status().Members {
			if m.Clock != nil {
				bounds = append(bounds, fmt.Sprintf("%s %d to %d ppm %s", m.Name, m.Clock.LowPPM, m.Clock.HighPPM, m.Clock.Verdict))
				if m.Clock.LowPPM > 0 || m.Clock.HighPPM < 0 || m.Clock.Verdict != "within" {
					t.Fatalf("one machine, one clock: %+v", *m.Clock)
				}
			}
		}
		return len(bounds) == 2
	})
	t.Log(bounds)
	families, err := nodes[0].node.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range families {
		found[f.GetName()] = len(f.GetMetric())
	}
	if found["budget_clock_rate_low_ppm"] != 2 || found["budget_clock_beyond_eps"] != 2 || found["budget_node_alarm"] != 4 {
		t.Errorf("series: %v", found)
	}
}
