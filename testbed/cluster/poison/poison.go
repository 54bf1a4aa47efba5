// Package poison sends hostile bytes to the nodes of a cluster, from wherever a
// host is: noise and almost right packets to their gossip ports without the key,
// nonsense in the place of rows as a member that has the key, and broken requests
// to their admin interfaces.
//
// Model: nothing that is sent is valid. With the key one can forge rows, and no
// protocol keeps a budget against that; so what has the right form carries
// something that no reader may take: a number that is none, a length beyond the
// end, a packet cut short or with bytes too many. What the nodes owe is to refuse
// it, count it, and go on serving (lesson O13).
//
// The bytes sent depend on the seed, but for packets of the cluster that are
// spoilt; which of those have come depends on the network. [Send] may be called
// from several goroutines at once; it leaves no goroutine and no socket.
package poison

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"subak/testbed/cluster"
)

// Sent counts what was sent. What the network or a node did with it is not known
// here: ask the nodes' metrics.
type Sent struct {
	Datagrams int // to gossip ports, without the key
	Streams   int // likewise
	Packets   int // with the key, as a member
	Spoilt    int // of those, made from real packets of the cluster
	Requests  int // to admin interfaces
	Refused   int // of those, answered by a status that is no success, or not at all
}

// Accepted are requests that a node took for good: a defect.
func (s Sent) Accepted() int { return s.Requests - s.Refused }

// How long one thing may take.
const (
	dialTimeout = 2 * time.Second
	roundEvery  = 50 * time.Millisecond
)

// Send sends so many rounds of everything to nodes, from a host; nil is this
// machine. It takes about 50 ms a round. It fails when a socket cannot be had and
// when ctx ends, but not because a node hangs up.
func Send(ctx context.Context, c *cluster.Cluster, from cluster.Host, nodes []int, rounds int, seed uint64) (sent Sent, err error) {
	if from == nil {
		from = here{}
	}
	rng := rand.New(rand.NewPCG(seed, 0xbad))
	inside, err := newInsider(ctx, c, from, nodes)
	if err != nil {
		return sent, fmt.Errorf("poison: %w", err)
	}
	defer func() { err = errors.Join(err, inside.close()) }()
	outside := newOutsider(from, c.Name())
	for range rounds {
		for _, i := range nodes {
			n := c.Node(i)
			sent.Datagrams += outside.datagram(ctx, rng, address(n))
			sent.Streams += outside.stream(ctx, rng, address(n))
			requests, refused := ask(ctx, rng, from, n.Admin)
			sent.Requests, sent.Refused = sent.Requests+requests, sent.Refused+refused
			packets, spoilt := inside.speak(rng, n.Name)
			sent.Packets, sent.Spoilt = sent.Packets+packets, sent.Spoilt+spoilt
		}
		select {
		case <-time.After(roundEvery):
		case <-ctx.Done():
			return sent, fmt.Errorf("poison: %w", context.Cause(ctx))
		}
	}
	return sent, nil
}

// address is where peers reach a node.
func address(n cluster.Node) string {
	if n.Advertise != "" {
		return n.Advertise
	}
	return n.Gossip
}

// outsider has no key.
type outsider struct {
	from  cluster.Host
	label []byte // what memberlist puts before everything
}

func newOutsider(from cluster.Host, name string) outsider {
	const labelled = 244 // memberlist's hasLabelMsg
	return outsider{from, append([]byte{labelled, byte(len(name))}, name...)}
}

// noise is random, at times behind the cluster's label and one of the first bytes
// that memberlist knows.
func (o outsider) noise(rng *rand.Rand, most int) []byte {
	b := make([]byte, rng.IntN(most))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	switch rng.IntN(3) {
	case 0:
		return b
	case 1:
		return append(o.label[:len(o.label):len(o.label)], b...)
	}
	return append(append(o.label[:len(o.label):len(o.label)], byte(rng.IntN(16))), b...)
}

func (o outsider) datagram(ctx context.Context, rng *rand.Rand, to string) int {
	return o.write(ctx, "udp", to, o.noise(rng, 1400))
}

func (o outsider) stream(ctx context.Context, rng *rand.Rand, to string) int {
	return o.write(ctx, "tcp", to, o.noise(rng, 64<<10))
}

// write reports 1 if the bytes went out. A node that hangs up halfway has refused
// them.
func (o outsider) write(ctx context.Context, network, to string, b []byte) int {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := o.from.DialContext(ctx, network, to)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(dialTimeout)) // it is open
	if n, _ := conn.Write(b); n < len(b) && n == 0 {
		return 0
	}
	return 1
}

// dialAdmin opens a connection to an admin interface. A socket of the file system
// is everywhere.
func dialAdmin(ctx context.Context, from cluster.Host, network, to string) (net.Conn, error) {
	if network == "unix" {
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}
	return from.DialContext(ctx, network, to)
}
