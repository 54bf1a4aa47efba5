package gossip

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/coordinate"
)

// quietGossip is a Gossip without memberlist, for feeding its delegate.
func quietGossip(t testing.TB) *Gossip {
	t.Helper()
	coords, err := coordinate.NewClient(coordinate.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	g := &Gossip{
		cfg: Config{Cluster: "c", Name: "self", Fingerprint: 42, Key: rowKey, QueueLen: 16}.withDefaults(),
		log: discard(), bg: t.Context(), metrics: m, limit: newLogLimit(), peers: newPeerTable(42),
		seen: newSeenTable(64), coords: coords, inbox: make(chan Message, 16), pokes: make(chan string, 1),
		rng: rand.New(rand.NewPCG(1, 1)), reach: newReach(),
		closed: true, // nothing is sent
	}
	g.relay = newRelayQueue(4, func() int { return 3 }, m)
	return g
}

// drained empties the inbox and checks what a reader may rely on.
func drained(t *testing.T, g *Gossip) {
	limit := map[Via]int{Relay: MaxPacket, Direct: MaxLong, Sync: MaxState} // Direct: a unicast may come by stream
	for {
		select {
		case m := <-g.inbox:
			if len(m.Packet) > limit[m.Via] || !validName(m.From) || m.Fingerprint == 0 && m.Via != Direct {
				t.Fatalf("delivered %d bytes from %q by %v", len(m.Packet), m.From, m.Via)
			}
		default:
			return
		}
	}
}

// alive is a node as memberlist announces it.
func alive(name string, fingerprint uint64) *memberlist.Node {
	return &memberlist.Node{Name: name, Addr: []byte{10, 0, 0, 1}, Port: 7946, Meta: encodeMeta(fingerprint)}
}

func noPanics(t *testing.T, g *Gossip) {
	if counter(g.metrics.dropped.WithLabelValues(reasonPanic)) != 0 {
		t.Fatal("panic on foreign bytes")
	}
}

func FuzzMessage(f *testing.F) {
	for k := kindRow; k <= kindReach; k++ {
		fr := frame{kind: k, fingerprint: 42, counter: 7, from: "peer", packet: row("k", 1, 2)}
		f.Add(fr.encode())
		fr.packet = make([]byte, MaxPacket+1) // only a unicast may be this long
		f.Add(fr.encode())
		fr.fingerprint, fr.packet = 0, row("k", 1, 3) // of a provisional node
		f.Add(fr.encode())
	}
	for op := reachAsk; op <= reachNoTCP; op++ {
		fr := frame{kind: kindReach, fingerprint: 42, from: "peer", packet: reachNote{op, 1, "why"}.encode()}
		f.Add(fr.encode())
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		g := quietGossip(t)
		d := delegate{g}
		g.peers.joined(&memberlist.Node{Name: "peer"}, 42, time.Now())
		for own := range uint64(3) { // of another lineage, provisional, of the peer's
			g.peers.setOwn([]uint64{43, 0, 42}[own])
			d.NotifyMsg(b)
			d.MergeRemoteState(b, true)
		}
		drained(t, g)
		noPanics(t, g)
		for _, frame := range d.GetBroadcasts(3, datagramBytes) { // what we pass on is well-formed
			if _, err := parseFrame(frame); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzNodeMeta(f *testing.F) {
	f.Add("peer", encodeMeta(42))
	f.Add("peer", encodeMeta(43))
	f.Add("peer", encodeMeta(0))
	f.Add("self", []byte{})
	f.Add("\n", []byte{1})
	f.Fuzz(func(t *testing.T, name string, meta []byte) {
		g := quietGossip(t)
		d := delegate{g}
		n := &memberlist.Node{Name: name, Addr: []byte{1, 2, 3}, Meta: meta}
		err := d.NotifyAlive(n)
		fp, ok := parseMeta(meta)
		accept := name == g.cfg.Name || ok && (fp == 42 || fp == 0) && validName(name)
		if (err == nil) != accept {
			t.Fatalf("name %q meta %x: %v", name, meta, err)
		}
		if err == nil {
			d.NotifyJoin(n)
			d.NotifyUpdate(n)
			d.NotifyConflict(n, n)
			d.NotifyLeave(n)
		}
		for _, m := range g.Members() {
			if !validName(m.Name) {
				t.Fatalf("unprintable name %q in the table", m.Name)
			}
		}
	})
}

func FuzzPingPayload(f *testing.F) {
	f.Add(encodeCoord(coordinate.NewCoordinate(coordinate.DefaultConfig())), int64(time.Millisecond))
	f.Add([]byte{}, int64(-1))
	f.Add(make([]byte, 4000), int64(1)<<62)
	f.Fuzz(func(t *testing.T, payload []byte, rtt int64) {
		g := quietGossip(t)
		d := delegate{g}
		n := &memberlist.Node{Name: "peer", Meta: encodeMeta(42)}
		d.NotifyJoin(n)
		for range 3 {
			d.NotifyPingComplete(n, time.Duration(rtt), payload)
		}
		noPanics(t, g)
		if !g.coords.GetCoordinate().IsValid() {
			t.Fatal("our own coordinate is poisoned")
		}
		if _, err := parseCoord(d.AckPayload()); err != nil && rtt >= 0 && rtt <= int64(maxRTT) {
			t.Fatalf("we now send a coordinate that others refuse: %v", err)
		}
		if ms, ok := g.RTTMillis("peer"); ok && (ms < 0 || ms > 60_000) {
			t.Fatalf("round trip %v ms", ms)
		}
	})
}
