package gossip

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// reached is a cluster of four in which n03 asks how far it reaches.
func reached(t *testing.T, shut func(dst string) (packets, streams bool)) (c *cluster, r Reach) {
	c = newCluster(t, 11)
	c.net.shut = shut
	c.startAll(4)
	time.Sleep(4 * time.Second)
	r, err := c.nodes[3].Reach(t.Context())
	if err != nil || r.Advertised != addrOf(3) || len(r.Seeds) != 3 {
		t.Fatalf("got %+v, %v", r, err)
	}
	return c, r
}

func TestAReachableNodeHearsSoFromItsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := reached(t, nil)
		defer c.stop()
		for _, s := range r.Seeds {
			if s.Resolve+s.UDP+s.TCP != "" || s.RTT != 40*time.Millisecond || s.Self || len(s.Addrs) != 1 {
				t.Errorf("seed %+v, want both ways and 40 ms", s)
			}
		}
		for _, p := range r.Peers {
			if !p.UDP || !p.TCP || p.Error != "" || p.Addr == "" {
				t.Errorf("peer %+v, want both ways", p)
			}
		}
		if len(r.Peers) != maxReachPeers {
			t.Errorf("%d peers asked, want %d", len(r.Peers), maxReachPeers)
		}
	})
}

func TestANodeThatNobodyReachesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := reached(t, func(dst string) (bool, bool) { return dst == addrOf(3), dst == addrOf(3) })
		defer c.stop()
		for _, s := range r.Seeds {
			if s.TCP != "" || s.UDP == "" {
				t.Errorf("seed %+v, want streams only: they go out, and answers to pings do not come in", s)
			}
		}
		if len(r.Peers) == 0 {
			t.Fatal("nobody was asked")
		}
		for _, p := range r.Peers {
			if p.UDP || p.TCP {
				t.Errorf("peer %+v, want no way", p)
			}
		}
	})
}

func TestAFirewallThatLetsDatagramsInOnlyIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 12)
		c.net.shut = func(dst string) (bool, bool) { return false, dst == addrOf(3) }
		defer c.stop()
		for i := range 4 {
			c.start(i, func(cfg *Config) { cfg.Profile = Local }) // streams are given up after a second
		}
		time.Sleep(4 * time.Second)
		r, err := c.nodes[3].Reach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Peers {
			if !p.UDP || p.TCP || !strings.Contains(p.Error, "timeout") {
				t.Errorf("peer %+v, want datagrams, and why not streams", p)
			}
		}
	})
}

func TestASeedThatIsNotThereOrHasAnotherKeyIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 13)
		defer c.stop()
		c.start(0, nil)
		c.start(1, func(cfg *Config) { cfg.Keys = [][]byte{[]byte(strings.Repeat("k", 32))} })
		c.start(3, func(cfg *Config) { cfg.Seeds = append(cfg.Seeds, addrOf(3)) })
		time.Sleep(2 * time.Second)
		r, err := c.nodes[3].Reach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		well, keyed, absent, self := r.Seeds[0], r.Seeds[1], r.Seeds[2], r.Seeds[3]
		if well.UDP+well.TCP != "" || !self.Self {
			t.Errorf("got %+v and %+v, want a seed that answers and this node", well, self)
		}
		for _, s := range []SeedReach{keyed, absent} {
			if s.UDP == "" || s.TCP == "" || s.Hint == "" {
				t.Errorf("got %+v, want no way, and a hint", s)
			}
		}
	})
}

func TestReachIsAskedOneAtATimeAndEndsWithTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 14)
		c.start(0, nil)
		done := make(chan error)
		go func() { _, err := c.nodes[0].Reach(t.Context()); done <- err }()
		time.Sleep(time.Second)
		if _, err := c.nodes[0].Reach(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("a second question: %v, want ErrBusy", err)
		}
		start := time.Now()
		n := c.nodes[0]
		c.stop()
		if err := <-done; err == nil || time.Since(start) > 6*time.Minute {
			t.Errorf("got %v", err)
		}
		if _, err := n.Reach(t.Context()); err == nil {
			t.Error("a closed node reaches")
		}
	})
}

// A peer must not become a scanner: it calls nobody but a node of the cluster, at
// the address that this node announces, and not often.
func TestCallsBackGoToAnnouncedAddressesAndAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 15)
		defer c.stop()
		c.startAll(3)
		time.Sleep(4 * time.Second)
		g := c.nodes[0].Gossip
		dropped := func(reason string) float64 { return counter(g.metrics.dropped.WithLabelValues(reason)) }
		ask := func(from string, nonce uint64) {
			f := frame{kind: kindReach, fingerprint: 42, from: from, packet: reachNote{op: reachAsk, nonce: nonce}.encode()}
			delegate{g}.NotifyMsg(f.encode())
		}
		ask("stranger", 1)
		if got := dropped(reasonUnknownPeer); got != 1 {
			t.Errorf("a stranger's question: %v dropped, want 1", got)
		}
		for nonce := range uint64(100) {
			ask("n01", 2+nonce)
			ask("n01", 2+nonce) // both ways bring the question
			time.Sleep(10 * time.Millisecond)
		}
		// 4 at once, and 4 in the second that this took; the copies of those are no
		// new questions.
		if got, most := 200-dropped(reasonBusy), 2.0*(maxDialBacks+4); got > most || got < maxDialBacks {
			t.Errorf("%v of 200 questions were heard, want at most %v", got, most)
		}
		time.Sleep(time.Second)
		ask("n02", 1000)
		if len(g.reach.slots) != 1 {
			t.Error("after the flood nobody is answered")
		}
		for _, b := range [][]byte{nil, make([]byte, 8), make([]byte, 9), fmt.Appendf(nil, "\x05%300d", 0)} {
			if _, ok := parseReach(b); ok {
				t.Errorf("%q is taken", b)
			}
		}
	})
}
