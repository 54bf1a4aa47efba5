package gossip

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func provisionalNode(c *Config) { c.Fingerprint = 0 }

func (n *node) fingerprints(state string) (names []string) {
	for _, m := range n.Members() {
		switch {
		case m.Refused != "" && state == "refused",
			m.Refused == "" && m.Provisional && state == "provisional",
			m.Refused == "" && !m.Provisional && state == "kin":
			names = append(names, m.Name)
		}
	}
	return names
}

func TestAProvisionalNodeIsAMemberThatGetsNoRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 21)
		c.startAll(3)
		c.within(15*time.Second, "three see each other", c.see(2))
		for _, n := range c.nodes {
			n.SetState([]byte("our state"))
		}
		p := c.start(3, provisionalNode)
		p.SetState([]byte("its state"))
		c.within(15*time.Second, "all take it in, and it all of them", func() bool {
			for _, n := range c.nodes[:3] {
				if !slices.Equal(n.fingerprints("provisional"), []string{nameOf(3)}) {
					return false
				}
			}
			return len(p.fingerprints("kin")) == 3
		})
		c.tick(300, 1) // a minute
		for i, n := range c.nodes[:3] {
			if n.newest(nameOf(3)) != [2]uint64{} || p.newest(nameOf(i)) != [2]uint64{} {
				t.Errorf("rows passed between node %d and the provisional one", i)
			}
			if n.Joined().Live != 2 {
				t.Errorf("node %d counts %d live peers, want 2", i, n.Joined().Live)
			}
			if n.logs.count("level=WARN") != 0 {
				t.Errorf("node %d warned of a provisional node", i)
			}
		}
		if j := p.Joined(); j.Live != 0 || j.State != NeverJoined || j.Isolated {
			t.Errorf("the provisional node stands at %+v, want never joined and not isolated", j)
		}
		if p.states() != "" || strings.Contains(c.nodes[0].states(), "its state") {
			t.Error("state was handed to or by a provisional node")
		}
		c.stop()
	})
}

func TestAProvisionalNodeCanAskAndBeAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 22)
		c.startAll(2)
		p := c.start(2, provisionalNode)
		c.within(15*time.Second, "it is taken in", func() bool {
			return len(c.nodes[0].fingerprints("provisional")) == 1 && len(p.fingerprints("kin")) == 2
		})
		if err := p.SendTo(nameOf(0), row("question", 1, 1)); err != nil {
			t.Error(err)
		}
		if err := c.nodes[0].SendTo(nameOf(2), row("answer", 1, 1)); err != nil {
			t.Error(err)
		}
		c.nodes[0].SendReliable(nameOf(2), row("long answer", 1, 1))
		time.Sleep(time.Second)
		for key, n := range map[string]*node{"question": c.nodes[0], "answer": p, "long answer": p} {
			if n.newest(key) != [2]uint64{1, 1} {
				t.Errorf("the %s did not arrive", key)
			}
		}
		c.stop()
	})
}

func TestRowsFlowBothWaysOnceTheFingerprintIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 23)
		c.startAll(3)
		p := c.start(3, provisionalNode)
		c.within(15*time.Second, "it is taken in", func() bool { return len(p.fingerprints("kin")) == 3 })
		p.SetFingerprint(42)
		c.within(2*time.Second, "every node counts three live peers", c.see(3))
		c.tick(5, 1)
		for i, n := range c.nodes[:3] {
			if n.newest(nameOf(3)) == [2]uint64{} || p.newest(nameOf(i)) == [2]uint64{} {
				t.Errorf("no rows between node %d and the new one", i)
			}
		}
		c.stop()
	})
}

// The metadata may be lost on the way; the first row is proof enough.
func TestARowIsAheadOfTheMetadata(t *testing.T) {
	g := quietGossip(t)
	d := delegate{g}
	n := alive("peer", 0)
	if err := d.NotifyAlive(n); err != nil {
		t.Fatal(err)
	}
	d.NotifyJoin(n)
	f := frame{kind: kindRow, fingerprint: 0, counter: 1, from: "peer", packet: row("peer", 1, 1)}
	d.NotifyMsg(f.encode())
	if len(g.inbox) != 0 || len(*g.peers.targets.Load()) != 0 {
		t.Error("a row without a lineage was taken")
	}
	f.fingerprint = 42
	d.NotifyMsg(f.encode())
	if len(g.inbox) != 1 || len(*g.peers.targets.Load()) != 1 {
		t.Error("a row of our lineage was not taken, or its publisher gets none")
	}
}

// Lesson O16: what a provisional node has to take in does not melt two clusters,
// and is refused as soon as it knows where it belongs.
func TestAProvisionalNodeIsNoBridgeBetweenLineages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 24)
		other := func(cfg *Config) { cfg.Fingerprint = 43; cfg.Seeds = []string{addrOf(2)} }
		c.start(0, nil)
		c.start(1, nil)
		c.start(2, other)
		c.start(3, other)
		p := c.start(4, provisionalNode)
		c.within(20*time.Second, "it sees both lineages", func() bool { return len(p.fingerprints("kin")) == 4 })
		mixed := func(when string) {
			c.tick(150, uint64(time.Now().Unix()))
			for i, n := range c.nodes[:4] {
				for j := range 4 {
					if i/2 != j/2 && n.newest(nameOf(j)) != [2]uint64{} {
						t.Errorf("%s: node %d was given a row of node %d of the other lineage", when, i, j)
					}
				}
			}
		}
		mixed("while provisional")
		p.SetFingerprint(42)
		c.within(5*time.Second, "both sides of the choice", func() bool {
			return slices.Equal(p.fingerprints("kin"), []string{nameOf(0), nameOf(1)}) && slices.Equal(p.fingerprints("refused"), []string{nameOf(2), nameOf(3)})
		})
		mixed("after the choice")
		for i := range 2 {
			if p.newest(nameOf(i)) == [2]uint64{} || c.nodes[i].newest(nameOf(4)) == [2]uint64{} {
				t.Errorf("no rows with node %d of the chosen lineage", i)
			}
			if p.newest(nameOf(2+i)) != [2]uint64{} || c.nodes[2+i].newest(nameOf(4)) != [2]uint64{} {
				t.Errorf("rows with node %d of the other lineage", 2+i)
			}
			c.within(2*time.Minute, "the other lineage refuses the one that did not choose it", func() bool {
				return slices.Contains(c.nodes[2+i].fingerprints("refused"), nameOf(4))
			})
		}
		time.Sleep(2 * refusedFor)
		for i := range 2 {
			if got := c.nodes[2+i].fingerprints("refused"); !slices.Contains(got, nameOf(4)) {
				t.Errorf("node %d refuses %v after a while, want the one that chose the other lineage among them", 2+i, got)
			}
		}
		if got := p.logs.count("members refused"); got != 1 {
			t.Errorf("the choice was logged %d times, want once", got)
		}
		c.stop()
	})
}

func TestNodesThatAllLackALineageAreTogetherAndNotIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 25)
		for i := range 3 {
			c.start(i, provisionalNode)
		}
		c.within(15*time.Second, "all see all", func() bool {
			for _, n := range c.nodes {
				if len(n.fingerprints("provisional")) != 2 || n.Joined().Isolated {
					return false
				}
			}
			return true
		})
		c.tick(50, 1)
		if c.nodes[0].newest(nameOf(1)) != [2]uint64{} {
			t.Error("a row passed between two nodes without a lineage")
		}
		c.stop()
	})
}

func TestTheFingerprintMayBeSetAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 26)
		p := c.start(0, provisionalNode)
		p.SetFingerprint(7)
		p.SetFingerprint(7)
		c.kill(0)
		p.SetFingerprint(8) // after Close: no panic, no wait
		if p.Fingerprint() != 8 {
			t.Errorf("fingerprint %d", p.Fingerprint())
		}
		c.stop()
	})
}
