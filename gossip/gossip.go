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
	maxStreams   = 64
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
// the name of the node that made it and Fingerprint its lineage, 0 while it does
// not know its own; both as claimed; whoever has the key could claim another.
type Message struct {
	From        string
	Fingerprint uint64
	Packet      []byte
	Via         Via
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
	reach     *reach

	inbox   chan Message
	state   atomic.Pointer[[]byte]
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
		bg: context.Background(), peers: newPeerTable(cfg.Fingerprint), seen: newSeenTable(maxSeen), coords: coords,
		inbox: make(chan Message, cfg.QueueLen), resends: make(chan resend, maxResends),
		pokes: make(chan string, maxPokes), streams: make(chan struct{}, maxStreams), reach: newReach(),
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
	f := frame{kind: kindLeave, fingerprint: g.Fingerprint(), from: g.cfg.Name}
	g.sendAll(f.encode(), *g.peers.reach.Load(), viaUnicastOut)
	if err := g.ml.Load().Leave(timeout); err != nil {
		return fmt.Errorf("gossip leave: %w", err)
	}
	return nil
}
