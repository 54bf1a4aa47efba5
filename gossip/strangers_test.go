package gossip

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Lesson O16: a stranger is refused in both directions, counted, and logged once
// on either side.
func TestStrangersAreRefusedInBothDirections(t *testing.T) {
	ring := func(b byte) [][]byte { return [][]byte{append(make([]byte, 31), b)} }
	tests := []struct {
		name    string
		base    func(*Config)
		strange func(*Config)
		reason  string // in the refusal counter of the node that is called
	}{
		{"cluster", nil, func(c *Config) { c.Cluster = "other" }, reasonLabel},
		{"key", func(c *Config) { c.Keys = ring(1) }, func(c *Config) { c.Keys = ring(2) }, reasonKey},
		{"no key", func(c *Config) { c.Keys = ring(1) }, nil, reasonKey},
		{"only the stranger has a key", nil, func(c *Config) { c.Keys = ring(1) }, reasonKey},
		{"fingerprint", nil, func(c *Config) { c.Fingerprint = 43 }, reasonFingerprint},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 9)
				for i := range 3 {
					c.start(i, tt.base)
				}
				c.within(15*time.Second, "three see each other", c.see(2))
				s := c.start(3, tt.strange)
				s.SetState([]byte("strange state"))
				for _, n := range c.nodes[:3] {
					n.SetState([]byte("our state"))
				}
				c.tick(300, 1) // a minute
				if j := s.Joined(); j.Live != 0 || j.State != NeverJoined {
					t.Errorf("the stranger believes it is in: %+v", j)
				}
				total := 0.0
				for i, n := range c.nodes[:3] {
					if n.Joined().Live != 2 {
						t.Errorf("node %d sees %d live peers, want 2", i, n.Joined().Live)
					}
					if got := n.newest(nameOf(3)); got != [2]uint64{} {
						t.Errorf("node %d was given a row of the stranger: %v", i, got)
					}
					if got := s.newest(nameOf(i)); got != [2]uint64{} {
						t.Errorf("the stranger was given a row of node %d: %v", i, got)
					}
					if got := n.states(); len(got) > 0 && got[0] == 's' {
						t.Errorf("node %d was given the stranger's state", i)
					}
					total += counter(n.metrics.refused.WithLabelValues(tt.reason))
					if got := n.logs.count("level=WARN"); got > 2 {
						t.Errorf("node %d logged %d warnings in a minute, want at most two", i, got)
					}
				}
				if s.states() != "" {
					t.Error("the stranger was given our state")
				}
				if total == 0 {
					t.Errorf("refusals are not counted as %q", tt.reason)
				}
				if s.logs.count("level=WARN") == 0 {
					t.Error("the stranger logged nothing")
				}
				c.stop()
			})
		})
	}
}

func TestRefusedPeerIsListedWithReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 10)
		c.start(0, nil)
		c.start(1, func(cfg *Config) { cfg.Fingerprint = 43 })
		c.within(20*time.Second, "refusals", func() bool {
			a, ok := c.nodes[0].member(nameOf(1))
			b, ok2 := c.nodes[1].member(nameOf(0))
			return ok && ok2 && a.Refused == reasonFingerprint && a.Fingerprint == 43 && b.Refused == reasonFingerprint && b.Fingerprint == 42
		})
		time.Sleep(5 * time.Minute)
		if got := c.nodes[0].logs.count("peer refused"); got != 1 {
			t.Errorf("refusal logged %d times, want once", got)
		}
		if err := c.nodes[0].SendTo(nameOf(1), []byte("x")); !errors.Is(err, ErrUnknownPeer) {
			t.Errorf("sending to a refused peer: %v", err)
		}
		c.stop()
	})
}

func TestTwoNodesOfOneNameAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 11)
		c.startAll(3)
		c.within(15*time.Second, "all see all", c.see(2))
		c.start(3, func(cfg *Config) { cfg.Name = nameOf(1) })
		c.within(30*time.Second, "the holder of the name and another node notice", func() bool {
			return len(c.nodes[1].Conflicts()) == 1 && len(c.nodes[0].Conflicts()) == 1
		})
		got := c.nodes[1].Conflicts()[0]
		if got.Name != nameOf(1) || got.Addr != addrOf(1) || got.Other != addrOf(3) {
			t.Errorf("got %+v", got)
		}
		if c.nodes[1].logs.count("level=ERROR") == 0 {
			t.Error("a conflict about the own name must be an error in the log")
		}
		if counter(c.nodes[1].metrics.conflicts) == 0 {
			t.Error("conflict not counted")
		}
		c.stop()
	})
}
