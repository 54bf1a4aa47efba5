package gossip

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestEachPeerGetsItsOwnFormAndASparedOneIsNotLossy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.startAll(4)
		c.within(time.Minute, "all see all", c.see(3))
		for seq := range uint64(200) {
			c.nodes[0].PublishEach(true, func(name string, _ bool) []byte {
				if name == nameOf(3) && seq%3 != 0 {
					return nil
				}
				return row("for "+name, 1, seq+1)
			})
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(10 * time.Second) // relays would have come by now
		for i := 1; i < 4; i++ {
			want := 200
			if i == 3 {
				want = 67
			}
			for j := 1; j < 4; j++ {
				key := "for " + nameOf(j)
				if got := c.nodes[i].count(key, Direct); (i == j) != (got == want) || i != j && got != 0 {
					t.Errorf("%s got %d of %q, want %d if it is its own", nameOf(i), got, key, want)
				}
				if got := c.nodes[i].count(key, Relay); i != j && got != 0 {
					t.Errorf("%s got %d of %q by relay", nameOf(i), got, key)
				}
			}
			if m, ok := c.nodes[i].member(nameOf(0)); !ok || m.LossPPM != 0 {
				t.Errorf("%s believes that %d ppm are lost", nameOf(i), m.LossPPM)
			}
		}
		c.stop()
	})
}

func TestFormsForLossyPeersGoTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.startAll(3)
		c.within(time.Minute, "all see all", c.see(2))
		g := c.nodes[0]
		for i := 1; i < 3; i++ {
			g.peers.mu.Lock()
			g.peers.byName[nameOf(i)].isLossy = true
			g.peers.publishLocked()
			g.peers.mu.Unlock()
		}
		if !g.Lossy() || c.nodes[1].Lossy() {
			t.Error("want links of the first node to be lossy, and none of the second")
		}
		before := counter(g.metrics.resendQueued)
		g.PublishEach(true, func(name string, _ bool) []byte { return []byte(name + " changed") })
		g.PublishEach(false, func(name string, _ bool) []byte { return []byte(name) })
		g.PublishEach(true, func(string, bool) []byte { return nil })
		time.Sleep(time.Second)
		if got := counter(g.metrics.resendQueued) - before; got != 1 {
			t.Errorf("%v re-sends queued, want 1 for the one changed row", got)
		}
		for i := 1; i < 3; i++ {
			n := c.nodes[i]
			n.mu.Lock()
			counts := map[string]int{}
			for _, s := range n.sync {
				counts[s]++
			}
			n.mu.Unlock()
			if counts[nameOf(i)+" changed"] != 2 || counts[nameOf(i)] != 1 {
				t.Errorf("%s got %v", nameOf(i), counts)
			}
		}
		c.stop()
	})
}
