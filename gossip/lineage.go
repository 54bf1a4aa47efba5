package gossip

import (
	"fmt"
	"strings"
	"time"
)

// relation is what two fingerprints make of two nodes.
type relation uint8

const (
	// foreign: both are known and differ. Nothing is exchanged (lesson O16).
	foreign relation = iota
	// kin: of one lineage. Everything is exchanged.
	kin
	// provisional: one of the two does not know its lineage yet. They are
	// members to each other and exchange unicast packets, but no rows and no state.
	provisional
)

func relate(a, b uint64) relation {
	switch {
	case a == 0 || b == 0:
		return provisional
	case a == b:
		return kin
	default:
		return foreign
	}
}

// carries reports whether frames of kind k are read from such a node.
func (r relation) carries(k kind) bool {
	return r == kin || r == provisional && (k == kindUnicast || k == kindLeave || k == kindReach)
}

// announceWait is how long the loop that sets a fingerprint waits for the news
// to be under way. memberlist has queued it by then; it goes out by itself.
const announceWait = time.Millisecond

// Fingerprint returns what this node announces now, see Config.Fingerprint.
func (g *Gossip) Fingerprint() uint64 { return g.peers.own.Load() }

// SetFingerprint tells the node its lineage, and announces it: what is sent and
// taken in from then on is judged by it. Members of another lineage, which a
// provisional node had to take in, are refused from then on.
func (g *Gossip) SetFingerprint(fp uint64) {
	strangers, changed := g.peers.setOwn(fp)
	if !changed {
		return
	}
	g.metrics.refused.WithLabelValues(reasonFingerprint).Add(float64(len(strangers)))
	if len(strangers) > 0 {
		g.log.Warn("members refused: they have another set of budgets", "peers", strings.Join(strangers, ","), "ours", fmt.Sprintf("%016x", fp))
	}
	g.life.RLock()
	defer g.life.RUnlock()
	if !g.closed && !g.offline.Load() {
		g.announce()
	}
}

// announce hands the present metadata to memberlist, which spreads it. The only
// error is that this takes longer than the wait, as it does.
func (g *Gossip) announce() { _ = g.ml.Load().UpdateNode(announceWait) }
