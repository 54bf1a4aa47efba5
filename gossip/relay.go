package gossip

import (
	"github.com/hashicorp/memberlist"
)

// maxRelay bounds the relay queue, in packets; one per key, so this is also
// the number of keys whose newest packet can wait for relay.
const maxRelay = 2048

// relayQueue holds the newest packet per key until it has been passed on as
// often as memberlist's transmit limit says (multiplier x log10 of the number of
// nodes). memberlist piggybacks its content on its own traffic.
type relayQueue struct {
	q       memberlist.TransmitLimitedQueue
	metrics *metrics
}

func newRelayQueue(mult int, nodes func() int, m *metrics) *relayQueue {
	return &relayQueue{
		q:       memberlist.TransmitLimitedQueue{NumNodes: nodes, RetransmitMult: mult},
		metrics: m,
	}
}

// add queues an encoded relay frame; it replaces the one of the same key.
func (r *relayQueue) add(key string, frame []byte) {
	r.q.QueueBroadcast(&relayed{key: key, frame: frame})
	r.metrics.relayQueued.Inc()
	if over := r.q.NumQueued() - maxRelay; over > 0 {
		r.metrics.relayDropped.Add(float64(over))
		r.q.Prune(maxRelay)
	}
}

// take returns what fits the rest of a datagram.
func (r *relayQueue) take(overhead, limit int) [][]byte {
	out := r.q.GetBroadcasts(overhead, limit)
	for _, f := range out {
		r.metrics.sent(viaRelayOut, len(f))
	}
	return out
}

// relayed is a memberlist.NamedBroadcast.
type relayed struct {
	key   string
	frame []byte
}

func (b *relayed) Name() string    { return b.key }
func (b *relayed) Message() []byte { return b.frame }
func (b *relayed) Finished()       {}

// Invalidates says that a packet replaces the earlier one of its key.
func (b *relayed) Invalidates(other memberlist.Broadcast) bool {
	o, ok := other.(*relayed)
	return ok && o.key == b.key
}
