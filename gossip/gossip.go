package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/coordinate"
	"github.com/prometheus/client_golang/prometheus"
)

// Errors that callers may branch on.
var (
	ErrClosed      = errors.New("gossip: closed")
	ErrOversize    = errors.New("gossip: packet over the limit")
	ErrUnknownPeer = errors.New("gossip: no such live peer")
	ErrRunning     = errors.New("gossip: Run called twice")
)

const (
	// resendAfter is the distance of the second copy of a changed row.
	resendAfter = 25 * time.Millisecond
	maxResends  = 64
	// pokeEvery is how often a peer believed dead that sends rows is contacted.
	pokeEvery = 2 * time.Second
	maxPokes  = 32
	// maxStreams bounds SendReliable calls in flight.
	maxStreams   = 8
	defaultLeave = 2 * time.Second
)

// Via is the way a message came.
type Via uint8

// The ways.
const (
	Direct Via = iota // from the node that made it
	Relay             // through another node
	Sync              // the state of a push/pull
)

func (v Via) String() string { return [...]string{"direct", "relay", "sync", "unknown"}[v&3] }

// Message is one packet from outside; its bytes belong to the receiver. From is
// the name of the node that made it, as claimed; whoever has the key could claim
// another.
type Message struct {
	From   string
	Packet []byte
	Via    Via
}

// Gossip is one node's membership and packet exchange. Create it with New, then
// call Run; or Close it.
type Gossip struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	limit   *logLimit
	lookup  lookupFunc
	bg      context.Context // for log calls that have none

	peers     *peerTable
	seen      *seenTable
	relay     *relayQueue
	coords    *coordinate.Client
	conflicts conflictTable

	inbox   chan Message
	state   atomic.Pointer[[]byte]
	counter atomic.Uint32 // rows published, see frame.counter
	resends chan resend
	pokes   chan string
	streams chan struct{} // slots of SendReliable

	rngMu sync.Mutex
	rng   *rand.Rand

	ml      atomic.Pointer[memberlist.Memberlist] // replaced when the node moves
	moveMu  sync.Mutex                            // guards bound and adv once New is done
	bound   netip.AddrPort                        // invalid with a foreign transport
	adv     netip.AddrPort                        // what is announced
	self    atomic.Pointer[string]                // g.adv, or what a foreign transport says
	offline atomic.Bool                           // ml is shut down, see move
	running atomic.Bool
	leaving atomic.Bool

	ctx    context.Context // ends in Close
	cancel context.CancelFunc
	life   sync.RWMutex // read-held while memberlist must not be shut down
	closed bool         // guarded by life
	wg     sync.WaitGroup
	pingWG sync.WaitGroup // pingLoop, which ends before the network does
}

type resend struct {
	due   time.Time
	frame []byte
	to    []target
}

// New checks cfg, opens the sockets and starts to listen; it contacts nobody
// before Run. The error names what is wrong with the configuration, or which
// address could not be had. reg may be nil.
func New(cfg Config, logger *slog.Logger, reg prometheus.Registerer) (*Gossip, error) {
	return newGossip(cfg, logger, reg, systemLookup)
}

func newGossip(cfg Config, logger *slog.Logger, reg prometheus.Registerer, lookup lookupFunc) (*Gossip, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	coords, err := coordinate.NewClient(coordinate.DefaultConfig())
	if err != nil {
		return nil, fmt.Errorf("gossip coordinates: %w", err)
	}
	seed := cfg.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &Gossip{
		cfg: cfg, log: logger.With("subsystem", "gossip"), metrics: newMetrics(), limit: newLogLimit(), lookup: lookup,
		bg: context.Background(), peers: newPeerTable(), seen: newSeenTable(maxSeen), coords: coords,
		inbox: make(chan Message, cfg.QueueLen), resends: make(chan resend, maxResends),
		pokes: make(chan string, maxPokes), streams: make(chan struct{}, maxStreams),
		rng: rand.New(rand.NewPCG(seed, 0x5ba4)), ctx: ctx, cancel: cancel,
	}
	g.registerGauges()
	if err := g.metrics.register(reg); err != nil {
		cancel()
		return nil, fmt.Errorf("gossip metrics: %w", err)
	}
	if err := g.listen(); err != nil {
		cancel()
		g.metrics.unregister()
		return nil, err
	}
	return g, nil
}

// listen opens the network and memberlist for the first time.
func (g *Gossip) listen() error {
	mc, err := g.cfg.memberlist()
	if err != nil {
		return err
	}
	g.relay = newRelayQueue(mc.RetransmitMult, func() int { return int(g.peers.members.Load()) + 1 }, g.metrics)
	if g.cfg.Transport == nil {
		if g.bound, err = bindAddress(g.ctx, g.lookup, g.cfg.Listen); err != nil {
			return err
		}
		if len(g.cfg.Keys) == 0 && !g.bound.Addr().IsLoopback() {
			g.log.Warn("GOSSIP IS NOT ENCRYPTED: whoever reaches this address can read and change the shares; set gossip keys",
				"listen", g.bound.String())
		}
	}
	return g.start()
}

// start creates memberlist on a fresh transport. g.bound and g.adv are set to
// what is really in use.
func (g *Gossip) start() error {
	mc, err := g.cfg.memberlist()
	if err != nil {
		return err
	}
	logger := log.New(&logBridge{log: g.log, metrics: g.metrics, limit: g.limit}, "", 0)
	inner := g.cfg.Transport
	if inner == nil {
		nt, bound, err := listen(g.bound, logger)
		if err != nil {
			return err
		}
		inner, g.bound = nt, bound
		if g.adv, err = advertised(g.ctx, g.lookup, g.cfg.Advertise, bound); err != nil {
			_ = newTransport(nt, bound, g.metrics).Shutdown()
			return err
		}
		mc.BindPort = int(bound.Port())
	}
	d := delegate{g}
	mc.Logger = logger
	mc.Delegate, mc.Events, mc.Alive, mc.Ping, mc.Conflict = d, d, d, d, d
	tr := newTransport(inner, g.adv, g.metrics)
	mc.Transport = tr
	ml, err := memberlist.Create(mc)
	if err != nil {
		_ = tr.Shutdown()
		return fmt.Errorf("gossip: %w", err)
	}
	self := ml.LocalNode().Address()
	g.self.Store(&self)
	g.ml.Store(ml)
	g.offline.Store(false)
	return nil
}

// Run keeps the node in the cluster until ctx ends, then stops everything that
// New and Run started and returns. It does not announce a leave; see Leave.
func (g *Gossip) Run(ctx context.Context) error {
	if !g.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	g.life.RLock()
	if g.closed {
		g.life.RUnlock()
		return ErrClosed
	}
	for _, loop := range []func(){g.rejoinLoop, g.pokeLoop, g.resendLoop, g.watchLoop, g.moveLoop} {
		g.wg.Go(loop)
	}
	g.pingWG.Go(g.pingLoop)
	g.life.RUnlock()
	select {
	case <-ctx.Done():
	case <-g.ctx.Done():
	}
	return g.Close()
}

// Close stops everything without announcing a leave. Run calls it; it may be
// called again. The inbox stays open and keeps what is in it.
func (g *Gossip) Close() error {
	g.life.Lock()
	if g.closed {
		g.life.Unlock()
		g.wg.Wait()
		return nil
	}
	g.closed = true
	g.life.Unlock()
	g.cancel()
	g.pingWG.Wait() // healthy peers answer soon, the others cost one probe time-out
	err := g.ml.Load().Shutdown()
	g.wg.Wait()
	// A move that was under way may have replaced memberlist; else this does nothing.
	err = errors.Join(err, g.ml.Load().Shutdown())
	g.metrics.unregister()
	return err
}

// Addr is the address announced to peers.
func (g *Gossip) Addr() string { return *g.self.Load() }

// Inbox delivers packets from other nodes. It is never closed.
func (g *Gossip) Inbox() <-chan Message { return g.inbox }

// Overhead is the number of bytes around a packet in a datagram, without IP and
// UDP headers. A caller that must fit an MTU of 1280 keeps packets under
// 1280 - 48 - Overhead.
func (g *Gossip) Overhead() int {
	n := frameFixed + len(g.cfg.Name) + 1 /* user message */ + 5 /* checksum */ + 2 + len(g.cfg.Cluster)
	if len(g.cfg.Keys) > 0 {
		n += 29 // version, nonce, tag
	}
	return n
}

// Publish sends this node's row to every live peer now, and queues it for relay
// in place of the one before. If changed, lossy peers get it again 25 ms later
// (see "Loss" in the package comment). A packet over MaxPacket is counted
// and refused. packet is not kept.
func (g *Gossip) Publish(packet []byte, changed bool) {
	if !g.fits(packet) {
		return
	}
	key, order, keyed := g.cfg.Key(packet)
	if keyed {
		g.seen.record(key, order, time.Now())
	}
	f := frame{
		kind: kindRow, fingerprint: g.cfg.Fingerprint, counter: uint16(g.counter.Add(1)),
		from: g.cfg.Name, packet: packet,
	}
	targets := *g.peers.targets.Load()
	g.sendAll(f.encode(), targets, viaRowOut)
	if keyed {
		g.passOn(key, &f)
	}
	if changed {
		g.queueResend(&f, targets)
	}
}

func (g *Gossip) queueResend(f *frame, targets []target) {
	r := resend{due: time.Now().Add(resendAfter)}
	for _, t := range targets {
		if t.lossy {
			r.to = append(r.to, t)
		}
	}
	if len(r.to) == 0 {
		return
	}
	f.copied = true
	r.frame = f.encode()
	select {
	case g.resends <- r:
		g.metrics.resendQueued.Inc()
	default:
		g.metrics.resendLost.Inc()
	}
}

func (g *Gossip) sendAll(frame []byte, to []target, via string) {
	ml := g.ml.Load()
	for _, t := range to {
		if err := ml.SendBestEffort(t.node, frame); err != nil {
			g.sendFailed(reasonError, t.name, err)
			continue
		}
		g.metrics.sent(via, len(frame))
	}
}

// SendTo sends a packet to one live peer in one datagram. It may be lost, is not
// relayed and never counts as a duplicate. The error is ErrOversize,
// ErrUnknownPeer (also for refused peers) or what the network said.
func (g *Gossip) SendTo(name string, packet []byte) error {
	if !g.fits(packet) {
		return ErrOversize
	}
	t, ok := g.peers.find(name)
	if !ok {
		g.metrics.sendFailed.WithLabelValues(reasonUnknownPeer).Inc()
		return fmt.Errorf("send to %q: %w", name, ErrUnknownPeer)
	}
	f := g.unicast(packet)
	if err := g.ml.Load().SendBestEffort(t.node, f); err != nil {
		g.sendFailed(reasonError, name, err)
		return fmt.Errorf("send to %q: %w", name, err)
	}
	g.metrics.sent(viaUnicastOut, len(f))
	return nil
}

// SendReliable sends a packet to one live peer over TCP, in the background. What
// cannot be sent is counted: unknown peer, more than 8 under way, network error.
func (g *Gossip) SendReliable(name string, packet []byte) {
	if !g.fits(packet) {
		return
	}
	t, ok := g.peers.find(name)
	if !ok {
		g.metrics.sendFailed.WithLabelValues(reasonUnknownPeer).Inc()
		return
	}
	g.life.RLock()
	defer g.life.RUnlock()
	if g.closed {
		g.metrics.sendFailed.WithLabelValues(reasonClosed).Inc()
		return
	}
	select {
	case g.streams <- struct{}{}:
	default:
		g.metrics.sendFailed.WithLabelValues(reasonBusy).Inc()
		return
	}
	f := g.unicast(packet)
	g.wg.Go(func() {
		defer func() { <-g.streams }()
		if err := g.ml.Load().SendReliable(t.node, f); err != nil {
			g.sendFailed(reasonError, name, err)
			return
		}
		g.metrics.sent(viaReliableOut, len(f))
	})
}

func (g *Gossip) unicast(packet []byte) []byte {
	f := frame{kind: kindUnicast, fingerprint: g.cfg.Fingerprint, from: g.cfg.Name, packet: packet}
	return f.encode()
}

func (g *Gossip) fits(packet []byte) bool {
	if len(packet) <= MaxPacket {
		return true
	}
	g.metrics.sendFailed.WithLabelValues(reasonOversize).Inc()
	if ok, suppressed := g.limit.allow("oversize", time.Minute); ok {
		g.log.Error("packet over the limit is not sent", "bytes", len(packet), "limit", MaxPacket, "suppressed", suppressed)
	}
	return false
}

func (g *Gossip) sendFailed(reason, peer string, err error) {
	g.metrics.sendFailed.WithLabelValues(reason).Inc()
	if ok, suppressed := g.limit.allow("send", 10*time.Second); ok {
		g.log.Warn("cannot send", "peer", peer, "error", err, "suppressed", suppressed)
	}
}

// SetState sets the blob handed out in push/pulls. One over MaxState is
// counted and refused, and the one before stays. blob is kept: do not change it.
func (g *Gossip) SetState(blob []byte) {
	if len(blob) > MaxState {
		g.metrics.sendFailed.WithLabelValues(reasonOversize).Inc()
		if ok, suppressed := g.limit.allow("state", time.Minute); ok {
			g.log.Error("state over the limit is not handed out", "bytes", len(blob), "limit", MaxState, "suppressed", suppressed)
		}
		return
	}
	g.state.Store(&blob)
}

// Leave tells the others that this node goes, and stops rejoining. It returns
// when the news is out or after timeout (zero or less: 2 s), with an error in
// the latter case. The node still sends and receives until Close.
func (g *Gossip) Leave(timeout time.Duration) error {
	if timeout <= 0 {
		timeout = defaultLeave
	}
	g.life.RLock() // memberlist panics on a leave after its shutdown
	defer g.life.RUnlock()
	if g.closed || g.offline.Load() {
		return ErrClosed
	}
	g.leaving.Store(true)
	f := frame{kind: kindLeave, fingerprint: g.cfg.Fingerprint, from: g.cfg.Name}
	g.sendAll(f.encode(), *g.peers.targets.Load(), viaUnicastOut)
	if err := g.ml.Load().Leave(timeout); err != nil {
		return fmt.Errorf("gossip leave: %w", err)
	}
	return nil
}

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
	// Isolated: seeds are configured but no peer is live.
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
	j.Isolated = j.State != Joined && len(g.cfg.Seeds) > 0
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
