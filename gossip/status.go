package gossip

import (
	"time"
)

// Members lists every peer known, sorted by name: live, gone for less than ten
// minutes, and refused ones.
func (g *Gossip) Members() []Member { return g.peers.list(g.distance) }

// RTTMillis is the round trip to a peer in milliseconds: the median of the last
// five direct pings, else the estimate by coordinates; ok is false if nothing
// is known.
func (g *Gossip) RTTMillis(name string) (ms float64, ok bool) {
	d, ok := g.peers.roundTrip(name, g.distance)
	return float64(d) / float64(time.Millisecond), ok
}

// JoinState tells a node that never met anyone from one that lost everybody
// (lesson O1).
type JoinState uint8

// The states of a node among its peers.
const (
	NeverJoined JoinState = iota
	Joined
	LostPeers
)

func (s JoinState) String() string {
	return [...]string{"never-joined", "joined", "lost-peers", "unknown"}[s&3]
}

// Join is where this node stands.
type Join struct {
	State JoinState
	Live  int // peers that rows are exchanged with
	// Isolated: seeds are configured but no peer is live, not even one that no
	// rows are exchanged with because it or this node is provisional.
	Isolated bool
	// Health is memberlist's own score of this node: 0 is healthy, up to 7 when
	// it is too slow to keep its own timing and should distrust its view of
	// others (lesson O20).
	Health int
}

// Joined says whether this node has peers.
func (g *Gossip) Joined() Join {
	j := Join{Live: len(*g.peers.targets.Load()), Health: g.ml.Load().GetHealthScore()}
	switch {
	case j.Live > 0:
		j.State = Joined
	case g.peers.met.Load():
		j.State = LostPeers
	}
	j.Isolated = len(*g.peers.reach.Load()) == 0 && len(g.cfg.Seeds) > 0
	return j
}

// Conflicts lists names that two nodes claimed, sorted by name.
func (g *Gossip) Conflicts() []Conflict { return g.conflicts.list() }

func (g *Gossip) registerGauges() {
	g.metrics.gauge("peers_live", "Peers that rows are exchanged with.", func() float64 { return float64(len(*g.peers.targets.Load())) })
	g.metrics.gauge("peers_lossy", "Live peers with an estimated loss of 5 % or more.", func() float64 {
		n := 0.0
		for _, t := range *g.peers.targets.Load() {
			if t.lossy {
				n++
			}
		}
		return n
	})
	g.metrics.gauge("isolated", "1 if seeds are configured and no peer is live.", func() float64 {
		if g.Joined().Isolated {
			return 1
		}
		return 0
	})
	g.metrics.gauge("health_score", "memberlist's score of this node's own timing, 0 is healthy.", func() float64 { return float64(g.Joined().Health) })
	g.metrics.gauge("inbox_length", "Packets waiting in the inbox.", func() float64 { return float64(len(g.inbox)) })
	g.metrics.gauge("relay_length", "Packets waiting for relay.", func() float64 { return float64(g.relay.q.NumQueued()) })
	g.metrics.gauge("seen_length", "Keys in the duplicate table.", func() float64 { return float64(g.seen.len()) })
}
