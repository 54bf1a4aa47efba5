package gossip

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/hashicorp/memberlist"
)

// How far this node reaches, and is reached (lesson O21). Behind NAT the way out
// may work while the way in does not: then a node joins, and is taken for dead a
// moment later. So peers are asked to call back.
//
// A peer that is asked calls the address that the asker announces in gossip, to
// which memberlist sends pings anyway, and no other: nothing in the question names
// an address. It does so a few times a second at most, for all askers
// together, whoever has the key.

const (
	reachSeedWait = 6500 * time.Millisecond // two pings of the slowest profile
	reachPeerWait = 4 * time.Second
	reachAgain    = time.Second // before a peer is asked again
	maxReachSeeds = 16
	maxReachPings = 3
	maxReachPeers = 3
	maxReachText  = 200

	maxDialBacks   = 4 // under way
	dialBackEvery  = 250 * time.Millisecond
	dialBacksKnown = 32
)

// ErrBusy says that the same is being done already.
var ErrBusy = errors.New("gossip: busy")

// Reach is what was found of the ways from and to this node.
type Reach struct {
	Advertised string // what peers are told
	Seeds      []SeedReach
	Peers      []PeerReach
}

// SeedReach is the way to one seed. An error is "" for a way that works.
type SeedReach struct {
	Seed    string
	Self    bool          // it is this node
	Addrs   []string      // it resolves to, this node's own left out
	Resolve string        // why the name has no address
	UDP     string        // why no ping came back, which it does to the advertised address
	RTT     time.Duration // of the ping that did
	TCP     string        // why no push/pull was possible
	Hint    string        // what a person can do about TCP
}

// PeerReach is the way from one peer to the address that this node advertises.
type PeerReach struct {
	Peer, Addr string
	UDP, TCP   bool   // the peer's call arrived
	Error      string // what the peer says about TCP, if that news arrived
}

// reachOp is what a frame of kindReach says, its first byte; a nonce of 8 bytes
// and a text follow.
type reachOp uint8

const (
	reachAsk   reachOp = iota + 1
	reachByUDP         // sent in a datagram
	reachByTCP         // sent in a stream
	reachNoTCP         // the stream could not be opened; the text says why
)

type reachNote struct {
	op    reachOp
	nonce uint64
	text  string
}

func (n reachNote) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{byte(n.op)}, n.nonce)
	return append(b, n.text[:min(len(n.text), maxReachText)]...)
}

func parseReach(b []byte) (n reachNote, ok bool) {
	if len(b) < 9 || b[0] < byte(reachAsk) || b[0] > byte(reachNoTCP) {
		return n, false
	}
	text := b[9:min(len(b), 9+maxReachText)]
	return reachNote{reachOp(b[0]), binary.BigEndian.Uint64(b[1:]), strings.ToValidUTF8(string(text), "?")}, true
}

// reach is the state of asking and of being asked.
type reach struct {
	asking sync.Mutex // held while this node asks

	mu      sync.Mutex
	waiting map[uint64]chan reachNote // questions of this node, by nonce

	limit  *rate.Limiter
	slots  chan struct{}
	served [dialBacksKnown]uint64 // questions that were answered: each comes by several ways
	next   int
}

func newReach() *reach {
	return &reach{
		waiting: map[uint64]chan reachNote{}, slots: make(chan struct{}, maxDialBacks),
		limit: rate.NewLimiter(rate.Every(dialBackEvery), maxDialBacks),
	}
}

// admit says whether a question may be answered, and takes a slot for that.
func (r *reach) admit(nonce uint64) (fresh, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.served {
		if n == nonce {
			return false, false
		}
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return true, false
	}
	if !r.limit.Allow() {
		<-r.slots
		return true, false
	}
	r.served[r.next%dialBacksKnown] = nonce
	r.next++
	return true, true
}

// Reach tries the ways to the seeds, and asks up to three peers to call back. It
// takes up to 11 s, one at a time: ErrBusy. Each seed is contacted as by the
// rejoining that goes on anyway.
func (g *Gossip) Reach(ctx context.Context) (Reach, error) {
	if !g.reach.asking.TryLock() {
		return Reach{}, ErrBusy
	}
	defer g.reach.asking.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	r := Reach{Advertised: g.Addr(), Seeds: g.reachSeeds(ctx)}
	r.Peers = g.reachPeers(ctx)
	return r, ctx.Err()
}

// background runs f on a goroutine that Close waits for; false once closed.
func (g *Gossip) background(group *sync.WaitGroup, f func()) bool {
	if !g.life.TryRLock() { // callbacks of memberlist must not wait
		return false
	}
	defer g.life.RUnlock()
	if g.closed {
		return false
	}
	group.Go(f)
	return true
}

// reachSeeds tries all ways to the seeds side by side.
func (g *Gossip) reachSeeds(ctx context.Context) []SeedReach {
	ctx, cancel := context.WithTimeout(ctx, reachSeedWait)
	defer cancel()
	seeds := g.cfg.Seeds[:min(len(g.cfg.Seeds), maxReachSeeds)]
	out := make([]SeedReach, len(seeds))
	var all sync.WaitGroup
	for i, seed := range seeds {
		all.Go(func() { out[i] = g.reachSeed(ctx, seed) })
	}
	all.Wait()
	return out
}

func (g *Gossip) reachSeed(ctx context.Context, seed string) SeedReach {
	s := SeedReach{Seed: seed}
	addrs, err := g.resolveSeed(seed)
	if err != nil {
		s.Resolve = err.Error()
		return s
	}
	s.Addrs, s.Self = addrs, len(addrs) == 0
	if s.Self {
		return s
	}
	type result struct {
		tcp bool
		rtt time.Duration
		err error
	}
	results := make(chan result, 2*len(addrs))
	for _, a := range addrs {
		g.background(&g.pingWG, func() {
			rtt, err := g.pingAddress(ctx, a)
			results <- result{false, rtt, err}
		})
		g.background(&g.wg, func() {
			_, err := g.ml.Load().Join([]string{a})
			results <- result{true, 0, err}
		})
	}
	const silent = "no answer"
	s.UDP, s.TCP = silent, silent
	for range cap(results) {
		select {
		case <-ctx.Done():
		case r := <-results:
			switch {
			case r.err == nil && r.tcp:
				s.TCP = ""
			case r.err == nil:
				s.UDP, s.RTT = "", r.rtt
			case r.tcp && s.TCP != "":
				s.TCP = strings.Join(strings.Fields(r.err.Error()), " ")
			}
		}
		if s.UDP == "" && s.TCP == "" {
			break
		}
	}
	if s.TCP != "" {
		s.Hint = joinHint(s.TCP)
	}
	return s
}

// pingAddress pings whoever is at an address, some times if need be.
func (g *Gossip) pingAddress(ctx context.Context, addr string) (rtt time.Duration, err error) {
	to, err := net.ResolveUDPAddr("udp", addr) // an IP address: nothing is looked up
	if err != nil {
		return 0, err
	}
	for range maxReachPings {
		if rtt, err = g.ml.Load().Ping("", to); err == nil || ctx.Err() != nil || g.ctx.Err() != nil {
			return rtt, err
		}
	}
	return rtt, err
}

// reachPeers asks some peers to call back, lost ones if no others are left.
func (g *Gossip) reachPeers(ctx context.Context) []PeerReach {
	ctx, cancel := context.WithTimeout(ctx, reachPeerWait)
	defer cancel()
	var nodes []*memberlist.Node
	live := *g.peers.reach.Load()
	for _, i := range g.shuffled(len(live)) {
		nodes = append(nodes, live[i].node)
	}
	names, _ := g.peers.lostAddresses()
	for _, name := range names {
		if n, ok := g.peers.nodeOf(name); ok {
			nodes = append(nodes, n)
		}
	}
	nodes = nodes[:min(len(nodes), maxReachPeers)]
	out := make([]PeerReach, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { out[i] = g.reachPeer(ctx, n) })
	}
	all.Wait()
	return out
}

// reachPeer asks one peer, by datagram and by stream, since either may be what
// does not work, and waits until both of its calls came, or ctx ends.
func (g *Gossip) reachPeer(ctx context.Context, peer *memberlist.Node) PeerReach {
	p := PeerReach{Peer: peer.Name, Addr: peer.Address()}
	nonce, answers := g.expectAnswers()
	defer g.expectNoMore(nonce)
	ask := g.reachFrame(reachNote{op: reachAsk, nonce: nonce})
	g.background(&g.wg, func() { _ = g.ml.Load().SendReliable(peer, ask) })
	again := time.NewTicker(reachAgain)
	defer again.Stop()
	for {
		_ = g.ml.Load().SendBestEffort(peer, ask) // no answer says the same
		select {
		case <-ctx.Done():
			return p
		case <-again.C:
			continue
		case n := <-answers:
			switch n.op {
			case reachByUDP:
				p.UDP = true
			case reachByTCP:
				p.TCP, p.Error = true, ""
			case reachNoTCP:
				p.Error = n.text
			}
		}
		if p.UDP && (p.TCP || p.Error != "") {
			return p
		}
	}
}

func (g *Gossip) expectAnswers() (nonce uint64, answers <-chan reachNote) {
	c := make(chan reachNote, 8)
	g.rngMu.Lock()
	nonce = g.rng.Uint64()
	g.rngMu.Unlock()
	g.reach.mu.Lock()
	defer g.reach.mu.Unlock()
	g.reach.waiting[nonce] = c
	return nonce, c
}

func (g *Gossip) expectNoMore(nonce uint64) {
	g.reach.mu.Lock()
	defer g.reach.mu.Unlock()
	delete(g.reach.waiting, nonce)
}

func (g *Gossip) reachFrame(n reachNote) []byte {
	f := frame{kind: kindReach, fingerprint: g.Fingerprint(), from: g.cfg.Name, packet: n.encode()}
	return f.encode()
}

// takeReach takes a question or an answer, on a goroutine of memberlist.
func (g *Gossip) takeReach(f *frame) {
	n, ok := parseReach(f.packet)
	switch {
	case !ok:
		g.metrics.dropped.WithLabelValues(reasonMalformed).Inc()
	case n.op == reachAsk:
		g.dialBack(f.from, n.nonce)
	default:
		g.reach.mu.Lock()
		defer g.reach.mu.Unlock()
		select {
		case g.reach.waiting[n.nonce] <- n: // nil, and never ready, if nobody waits
		default:
		}
	}
}

// dialBack calls the address that the named node announces, by both ways.
func (g *Gossip) dialBack(name string, nonce uint64) {
	node, ok := g.peers.nodeOf(name)
	if !ok {
		g.metrics.dropped.WithLabelValues(reasonUnknownPeer).Inc()
		return
	}
	fresh, ok := g.reach.admit(nonce)
	if !ok {
		if fresh {
			g.metrics.dropped.WithLabelValues(reasonBusy).Inc()
		}
		return
	}
	started := g.background(&g.wg, func() {
		defer func() { <-g.reach.slots }()
		ml := g.ml.Load()
		_ = ml.SendBestEffort(node, g.reachFrame(reachNote{op: reachByUDP, nonce: nonce}))
		if err := ml.SendReliable(node, g.reachFrame(reachNote{op: reachByTCP, nonce: nonce})); err != nil {
			_ = ml.SendBestEffort(node, g.reachFrame(reachNote{reachNoTCP, nonce, err.Error()}))
		}
	})
	if !started {
		<-g.reach.slots
	}
}
