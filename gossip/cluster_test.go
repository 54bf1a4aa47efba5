package gossip

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestNodesConvergeAndRowsReachEveryone(t *testing.T) {
	for _, size := range []int{5, 22} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 1)
				c.startAll(size)
				took := c.within(15*time.Second, "all see all", c.see(size-1))
				c.tick(10, 1)
				c.within(time.Second, "the last row of each is everywhere", func() bool {
					for _, n := range c.nodes {
						for j := range c.nodes {
							if n.cfg.Name != nameOf(j) && n.newest(nameOf(j)) != [2]uint64{1, 10} {
								return false
							}
						}
					}
					return true
				})
				t.Logf("%d nodes: joined after %v", size, took)
				for i, n := range c.nodes {
					if got := n.count(nameOf(i), Direct) + n.count(nameOf(i), Relay); got != 0 {
						t.Errorf("node %d was given %d echoes of its own rows", i, got)
					}
					next := nameOf((i + 1) % size)
					direct, relay := n.count(next, Direct), n.count(next, Relay)
					if direct+relay != 10 || direct < 7 {
						t.Errorf("node %d: %d rows direct and %d relayed from its neighbour, want each of 10 once, nearly all direct", i, direct, relay)
					}
				}
				c.stop()
			})
		})
	}
}

// Lesson O15.
func TestLongPartitionHealsWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10
		c := newCluster(t, 2)
		c.startAll(size)
		c.within(15*time.Second, "all see all", c.see(size-1))
		side := map[string]bool{}
		for i := range size {
			side[addrOf(i)] = i%2 == 0
		}
		c.net.setRule(func(s, d string) link { return link{delay: 20 * time.Millisecond, cut: side[s] != side[d]} })
		c.within(3*time.Minute, "each side sees itself only", c.see(size/2-1))
		time.Sleep(2 * time.Minute) // longer than all time-outs: memberlist has forgotten the dead
		c.net.setRule(func(string, string) link { return link{delay: 20 * time.Millisecond} })
		t.Logf("one cluster again after %v", c.within(time.Minute, "one cluster", c.see(size-1)))
		c.stop()
	})
}

func TestOneNodeCutOffReportsIsolationAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll(5)
		c.within(15*time.Second, "all see all", c.see(4))
		lone := addrOf(4)
		c.net.setRule(func(s, d string) link { return link{delay: time.Millisecond, cut: (s == lone) != (d == lone)} })
		n := c.nodes[4]
		c.within(3*time.Minute, "lost peers", func() bool { return n.Joined().State == LostPeers })
		if !n.Joined().Isolated {
			t.Error("a node with seeds and no peers must call itself isolated")
		}
		before := n.logs.count("isolated: no peer")
		time.Sleep(5 * time.Minute)
		if got := n.logs.count("isolated: no peer") - before; got < 4 || got > 6 {
			t.Errorf("%d isolation lines in 5 minutes, want one a minute", got)
		}
		c.net.setRule(func(string, string) link { return link{delay: time.Millisecond} })
		c.within(time.Minute, "back", c.see(4))
		c.stop()
	})
}

// The addresses of members seen help where every configured seed is gone.
func TestLostMembersFindEachOtherWithoutSeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 20)
		c.startAll(5)
		c.within(15*time.Second, "all see all", c.see(4))
		a, b := addrOf(3), addrOf(4)
		c.net.setRule(func(s, d string) link { return link{cut: s == a || d == a || s == b || d == b} })
		for i := range 3 {
			c.kill(i)
		}
		c.within(3*time.Minute, "both are alone", c.see(0))
		time.Sleep(2 * time.Minute) // memberlist has forgotten the dead
		c.net.setRule(func(string, string) link { return link{delay: time.Millisecond} })
		c.within(time.Minute, "they meet", c.see(1))
		c.stop()
	})
}

// A seed that is down costs a start no pause.
func TestAStartTriesSeedAfterSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 21)
		c.startAll(5)
		c.within(15*time.Second, "all see all", c.see(4))
		c.kill(0)
		c.kill(1) // two of the three seeds
		for i := 5; i < 10; i++ {
			n := c.start(i, nil)
			c.within(firstDelayMax+100*time.Millisecond, "joined by the one seed that is up", func() bool { return n.Joined().State == Joined })
		}
		c.stop()
	})
}

func TestNeverJoinedIsNotLostPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		n := c.start(5, nil) // none of its seeds is up
		time.Sleep(90 * time.Second)
		if got := n.Joined(); got.State != NeverJoined || !got.Isolated {
			t.Errorf("got %+v, want never joined and isolated", got)
		}
		if counter(n.metrics.rejoins.WithLabelValues(resultFailed)) == 0 {
			t.Error("failed contacts are not counted")
		}
		c.stop()
	})
}

// Lesson O17: all restart at once, with the names and addresses they had.
func TestAllRestartedNodesSeeEachOtherWithin30s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 30
		c := newCluster(t, 5)
		c.startAll(size)
		c.within(30*time.Second, "all see all", c.see(size-1))
		seq := uint64(1)
		for round := range 3 {
			if round == 1 {
				// Some nodes go early enough to be held for dead by those still there,
				// so that accusations are around when they come back.
				for i := range 8 {
					c.kill(i + 10)
				}
				c.within(30*time.Second, "somebody is held for dead", func() bool { return c.nodes[0].Joined().Live <= size-5 })
			}
			for i := range size {
				if c.nodes[i] != nil {
					c.kill(i)
				}
				time.Sleep(2 * time.Second / size)
				c.start(i, nil)
			}
			took := 0
			c.within(30*time.Second, fmt.Sprintf("round %d: all see all", round), func() bool {
				c.tick(1, seq)
				seq++
				took++
				return c.see(size - 1)()
			})
			t.Logf("round %d: all see all after about %d ticks", round, took)
		}
		c.stop()
	})
}

// A row from a peer believed dead leads to contact with it at once, although
// the peer itself contacts nobody and the next rejoin is far.
func TestRowFromADeadPeerBringsItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 6)
		rare := func(cfg *Config) { cfg.RejoinInterval = time.Minute }
		for i := range 4 {
			c.start(i, rare)
		}
		c.within(15*time.Second, "all see all", c.see(3))
		c.kill(3)
		c.within(2*time.Minute, "3 is gone", c.see(2))
		time.Sleep(time.Minute) // memberlist gossips to the dead for 30 s, which would wake it too
		c.start(3, func(cfg *Config) { cfg.Seeds = nil })
		f := frame{kind: kindRow, fingerprint: 42, from: nameOf(3), packet: row(nameOf(3), 2, 1)}
		delegate{c.nodes[1].Gossip}.NotifyMsg(f.encode())
		t.Logf("back after %v", c.within(3*time.Second, "all see all", c.see(3)))
		c.stop()
	})
}

func TestRowsArriveByRelayWhereTheDirectLinkIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 7)
		c.startAll(6)
		c.within(15*time.Second, "all see all", c.see(5))
		a, b := addrOf(3), addrOf(4)
		c.net.setRule(func(s, d string) link {
			return link{delay: 20 * time.Millisecond, cut: s == a && d == b || s == b && d == a}
		})
		c.tick(100, 1)
		n := c.nodes[4]
		direct, relay := n.count(nameOf(3), Direct), n.count(nameOf(3), Relay)
		if direct != 0 {
			t.Errorf("%d rows came over a link that is cut", direct)
		}
		if relay < 30 { // of 100; each is replaced by the next after 200 ms
			t.Errorf("only %d of 100 rows arrived by relay", relay)
		}
		if got := n.newest(nameOf(3))[1]; got < 97 {
			t.Errorf("newest relayed row is %d, want it fresh (100)", got)
		}
		if n.Joined().Live != 5 {
			t.Error("a cut between two nodes must not remove either")
		}
		if m, _ := n.member(nameOf(3)); m.State != Suspect {
			t.Errorf("peer behind the cut is %v here, want suspect", m.State)
		}
		t.Logf("%d of 100 rows by relay", relay)
		c.stop()
	})
}

func TestLossDoublesChangedRowsAndOnlyThose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 8)
		c.startAll(4)
		c.within(15*time.Second, "all see all", c.see(3))
		c.tick(150, 1)
		if got := counter(c.nodes[0].metrics.sentPackets.WithLabelValues(viaCopyOut)); got != 0 {
			t.Fatalf("%v rows sent twice without loss", got)
		}
		c.net.setRule(func(s, d string) link {
			l := link{delay: 20 * time.Millisecond}
			if s == addrOf(1) || d == addrOf(1) {
				l.loss = 0.2
			}
			return l
		})
		c.tick(150, 1000)
		n := c.nodes[0]
		if m, _ := n.member(nameOf(1)); !m.Lossy || m.LossPPM < 100_000 || m.LossPPM > 320_000 {
			t.Errorf("peer with 20 %% loss: lossy %v, estimate %d ppm", m.Lossy, m.LossPPM)
		}
		if m, _ := n.member(nameOf(2)); m.Lossy {
			t.Errorf("peer without loss is taken for lossy: %d ppm", m.LossPPM)
		}
		before := counter(n.metrics.sentPackets.WithLabelValues(viaCopyOut))
		if before == 0 {
			t.Fatal("loss, but no row was sent twice")
		}
		n.Publish(row(nameOf(0), 1, 5000), false)
		time.Sleep(100 * time.Millisecond)
		if got := counter(n.metrics.sentPackets.WithLabelValues(viaCopyOut)); got != before {
			t.Error("an unchanged row was sent twice")
		}
		n.Publish(row(nameOf(0), 1, 5001), true)
		time.Sleep(100 * time.Millisecond)
		if got := counter(n.metrics.sentPackets.WithLabelValues(viaCopyOut)); got != before+1 {
			t.Errorf("a changed row went out %v times more, want 1 (to the lossy peer only)", got-before)
		}
		c.net.setRule(func(string, string) link { return link{delay: 20 * time.Millisecond} })
		c.tick(160, 10000) // the window is 128 rows; pings need longer
		time.Sleep(3 * time.Minute)
		if m, _ := n.member(nameOf(1)); m.Lossy {
			t.Errorf("still lossy after the loss is over: %d ppm", m.LossPPM)
		}
		c.stop()
	})
}

func TestLeaveIsSeenWithin2sAsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 12)
		c.startAll(6)
		c.within(15*time.Second, "all see all", c.see(5))
		start := time.Now()
		if err := c.nodes[5].Leave(3 * time.Second); err != nil {
			t.Errorf("leave: %v", err)
		}
		c.within(2*time.Second-min(time.Since(start), 2*time.Second), "all see it as left", func() bool {
			for _, n := range c.nodes[:5] {
				if m, _ := n.member(nameOf(5)); m.State != Left {
					return false
				}
			}
			return true
		})
		tries := counter(c.nodes[5].metrics.rejoins.WithLabelValues(resultOK))
		time.Sleep(time.Minute)
		if got := counter(c.nodes[5].metrics.rejoins.WithLabelValues(resultOK)); got > tries+1 {
			t.Errorf("%v contacts to seeds after the leave", got-tries)
		}
		if got := c.nodes[0].Joined().Live; got != 4 {
			t.Errorf("%d live peers a minute after the leave, want 4: it must not rejoin", got)
		}
		c.stop()
	})
}

func TestKilledPeerIsDeadNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 13)
		c.startAll(4)
		c.within(15*time.Second, "all see all", c.see(3))
		c.kill(3)
		c.within(2*time.Minute, "gone", c.see(2))
		if m, _ := c.nodes[0].member(nameOf(3)); m.State != Dead {
			t.Errorf("state %v, want dead", m.State)
		}
		c.stop()
	})
}

func TestLeaveIsBoundedAndSafeAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 14)
		c.startAll(3)
		c.within(15*time.Second, "all see all", c.see(2))
		c.net.setRule(func(string, string) link { return link{cut: true} })
		start := time.Now()
		_ = c.nodes[2].Leave(time.Second)
		if took := time.Since(start); took > 1100*time.Millisecond {
			t.Errorf("leave took %v with a bound of 1 s", took)
		}
		n := c.nodes[2]
		c.kill(2)
		if err := n.Leave(time.Second); !errors.Is(err, ErrClosed) {
			t.Errorf("leave after close: %v", err)
		}
		n.Publish(row("x", 1, 1), true) // must not panic
		n.SendReliable(nameOf(0), []byte("x"))
		c.stop()
	})
}

func TestUnicastAndReliableReachOnePeerAndAreNotRelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 15)
		c.startAll(4)
		c.within(15*time.Second, "all see all", c.see(3))
		for range 2 { // the same packet twice is two messages
			if err := c.nodes[0].SendTo(nameOf(1), row("u", 1, 1)); err != nil {
				t.Fatal(err)
			}
		}
		c.nodes[0].SendReliable(nameOf(2), row("r", 1, 1))
		time.Sleep(5 * time.Second)
		for i, want := range []struct{ u, r int }{{0, 0}, {2, 0}, {0, 1}, {0, 0}} {
			n := c.nodes[i]
			if u, r := n.count("u", Direct)+n.count("u", Relay), n.count("r", Direct)+n.count("r", Relay); u != want.u || r != want.r {
				t.Errorf("node %d: %d datagrams, %d by stream; want %+v", i, u, r, want)
			}
		}
		c.stop()
	})
}

func TestStateIsExchangedOnJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 16)
		c.start(0, nil).SetState([]byte("state of n00"))
		c.start(1, nil).SetState([]byte("state of n01"))
		c.within(15*time.Second, "both have the other's state", func() bool {
			return c.nodes[0].states() != "" && c.nodes[1].states() != ""
		})
		c.stop()
	})
}

func TestFullInboxDropsAreCountedAndCanComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 17)
		n := c.start(0, func(cfg *Config) { cfg.QueueLen = 2 })
		n.cancel() // ends the reader
		<-n.done
		d := delegate{n.Gossip}
		for i := range 5 {
			f := frame{kind: kindRow, fingerprint: 42, from: "peer", packet: row(fmt.Sprint("k", i), 1, 1)}
			d.NotifyMsg(f.encode())
		}
		if got := counter(n.metrics.dropped.WithLabelValues(reasonFull)); got != 3 {
			t.Errorf("%v drops counted, want 3", got)
		}
		if got := counter(n.metrics.received.WithLabelValues("direct")); got != 2 {
			t.Errorf("%v queued counted, want 2", got)
		}
		<-n.Inbox()
		again := frame{kind: kindRelay, fingerprint: 42, from: "peer", packet: row("k4", 1, 1)}
		d.NotifyMsg(again.encode())
		if got := counter(n.metrics.received.WithLabelValues("relay")); got != 1 {
			t.Error("a packet that was dropped must not count as seen")
		}
		c.nodes[0] = nil
		c.stop()
	})
}

func TestRoundTripsAreMeasuredAndEstimated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 18)
		far := addrOf(2)
		c.net.setRule(func(s, d string) link {
			if s == far || d == far {
				return link{delay: 70 * time.Millisecond}
			}
			return link{delay: 10 * time.Millisecond}
		})
		c.startAll(4)
		c.within(15*time.Second, "all see all", c.see(3))
		time.Sleep(3 * time.Minute)
		for name, want := range map[string]float64{nameOf(1): 20, nameOf(2): 140} {
			got, ok := c.nodes[0].RTTMillis(name)
			if !ok || got < want*0.95 || got > want*1.05 {
				t.Errorf("%s: %v ms (%v), want %v within 5 %%", name, got, ok, want)
			}
			m, _ := c.nodes[0].member(name)
			if ms := float64(m.Estimate) / 1e6; ms < want*0.6 || ms > want*1.5 {
				t.Errorf("%s: estimate %v ms, want about %v", name, ms, want)
			}
		}
		if _, ok := c.nodes[0].RTTMillis("nobody"); ok {
			t.Error("a distance to nobody")
		}
		c.stop()
	})
}
