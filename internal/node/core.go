package node

import (
	"errors"
	"fmt"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/enforce"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

// outbox is what a core can do to the world. Every call must return at once.
type outbox interface {
	// Publish sends the own row to every live peer and leaves it for relay.
	// changed says that it asks for a change worth sending twice under loss. The
	// packet is not kept. One over wire.MaxPacket goes by stream.
	Publish(packet []byte, changed bool)
	// Spread sends one packet to every live peer, best effort. It is kept.
	Spread(packet []byte)
	// SendTo sends one packet to the named peer, best effort.
	SendTo(name string, packet []byte) error
	// Save makes the memory of every group durable before the row that depends
	// on it leaves.
	Save(groups []ledger.Stored) error
}

// coreConfig is what a core is told once.
type coreConfig struct {
	self      string
	inc       uint64
	tick      time.Duration
	gapMin    time.Duration // between two publications
	term      time.Duration
	live      time.Duration
	epsPPM    int64
	guard     time.Duration
	bootstrap bool
	durable   bool
	stored    []ledger.Stored                    // by group; empty without memory
	newLife   func(floor uint64) (uint64, error) // an incarnation above floor
	// largestCost of one request, by budget; 0 and missing mean 1.
	largestCost map[string]int64
	countDrop   func(reason string)
}

// core is the whole decision of a node, without clocks, sockets or goroutines:
// it is told the time and the packets, and drives ledger, allocator and
// limiters. One goroutine owns it; only the limiters are shared.
type core struct {
	cfg      coreConfig
	out      outbox
	dir      *ledger.Directory
	self     ledger.NodeID
	pos      int // own position in the roster
	epoch    *ledger.Epoch
	epochs   map[ledger.EpochID]*ledger.Epoch
	groups   []*group
	budgets  []*budget
	enc      *wire.Encoder
	dec      *wire.Decoder
	asked    map[uint64]int64 // vectors asked for, and when; bounded by askedMax
	answered int64
	content  []allocator.Rate // scratch of the hashes
	frozen   bool
	leaving  bool
	// packets holds the newest row of every node and group as it arrived, for
	// push/pull. Bounded by roster x groups.
	packets  map[packetKey][]byte
	restarts uint64 // lives begun because the own name was seen above us
}

type packetKey struct {
	node  ledger.NodeID
	group uint8
}

// group is the budgets that share one stream of rows.
type group struct {
	led       *ledger.Ledger
	first     int
	count     int
	published int64 // when, lease clock
	urgent    bool  // a change over 1 % of base waits to be published
	saved     uint64
	trails    []trail // by NodeID
}

// budget is one budget's working state.
type budget struct {
	name    string
	group   *group
	index   int // inside the group
	doc     *epoch.Budget
	alloc   *allocator.Allocator
	limiter *enforce.Limiter
	plane   *plane
	meters  []*enforce.Estimator
	view    ledger.View
	target  []allocator.Rate // class-major, by roster position
	total   []allocator.Rate // node totals of target
	demand  []allocator.Rate // own, per class, as published
	counts  []enforce.Counts
	before  []enforce.Counts
	recent  recent
	steps   []ledger.Step
	plan    []enforce.Step
	applied []enforce.Step
	// static is the class split of the share that needs no peer, zero the demand
	// it is computed for.
	static, zero []allocator.Rate
}

func newCore(cfg coreConfig, out outbox, dir *ledger.Directory, e *ledger.Epoch, doc *epoch.Document, now int64) (*core, error) {
	self, ok := dir.Lookup(cfg.self)
	if !ok || e.Position(self) < 0 {
		return nil, errors.New("node: " + cfg.self + " is not in the list of nodes")
	}
	c := &core{
		cfg: cfg, out: out, dir: dir, self: self, pos: e.Position(self), epoch: e,
		epochs: map[ledger.EpochID]*ledger.Epoch{e.ID: e}, packets: map[packetKey][]byte{}, asked: map[uint64]int64{},
	}
	vectors := wire.NewVectors()
	c.enc = wire.NewEncoder(e.Root, dir, vectors)
	c.dec = wire.NewDecoder(e.Root, dir, vectors, func(id ledger.EpochID) *ledger.Epoch { return c.epochs[id] })
	if err := c.buildGroups(now); err != nil {
		return nil, err
	}
	for i := range doc.Budgets {
		b, err := c.buildBudget(&doc.Budgets[i], i, now)
		if err != nil {
			return nil, err
		}
		c.budgets = append(c.budgets, b)
	}
	for _, g := range c.groups { // the cold-start share is in force from the first request
		g.led.Control(now)
		c.settle(now, g)
		c.install(now, g)
	}
	return c, nil
}

// buildGroups makes one ledger for each run of budgets whose sections fit
// together in one packet.
func (c *core) buildGroups(now int64) error {
	budgets := c.epoch.Budgets
	for first := 0; first < len(budgets); {
		count := 1
		for most := budgets[first].Classes; first+count < len(budgets); count++ {
			most = max(most, budgets[first+count].Classes)
			if count+1 > wire.BudgetsPerRow(len(c.epoch.Roster), most) {
				break
			}
		}
		if len(c.groups) > 255 {
			return fmt.Errorf("node: %d budgets need more than 256 rows a tick; merge or drop budgets", len(budgets))
		}
		cfg := ledger.Config{
			Self: c.self, Inc: c.cfg.inc, Term: c.cfg.term, Live: c.cfg.live, EpsPPM: c.cfg.epsPPM, Guard: c.cfg.guard,
			Bootstrap: c.cfg.bootstrap, Doubt: len(c.epoch.Roster) > 1, Durable: c.cfg.durable, Directory: c.dir,
			First: first, Count: count, Group: uint8(len(c.groups)),
		}
		if at := len(c.groups); at < len(c.cfg.stored) {
			cfg.Stored = &c.cfg.stored[at]
		}
		led, err := ledger.New(cfg, c.epoch, now)
		if err != nil {
			return fmt.Errorf("node: ledger: %w", err)
		}
		c.groups = append(c.groups, &group{led: led, first: first, count: count})
		first += count
	}
	return nil
}

func (c *core) buildBudget(doc *epoch.Budget, at int, now int64) (*budget, error) {
	alloc, err := allocator.New(doc.Spec)
	if err != nil {
		return nil, fmt.Errorf("node: budget %q: %w", doc.Name, err)
	}
	k, n := alloc.Classes(), alloc.Nodes()
	b := &budget{
		name: doc.Name, doc: doc, alloc: alloc,
		target: make([]allocator.Rate, k*n), total: make([]allocator.Rate, n), demand: make([]allocator.Rate, k),
		counts: make([]enforce.Counts, k), before: make([]enforce.Counts, k),
		recent: newRecent(k, now),
	}
	for _, g := range c.groups {
		if at >= g.first && at < g.first+g.count {
			b.group, b.index = g, at-g.first
		}
	}
	lends, borrows := make([]bool, k), make([]bool, k)
	for i, cl := range doc.Spec.Classes {
		lends[i], borrows[i] = cl.Lend != 0, cl.Borrow != 0
		b.meters = append(b.meters, enforce.NewEstimator(enforce.EstimatorConfig{Tick: c.cfg.tick}))
	}
	cfg := enforce.LimiterConfig{
		Classes: k, Burst: doc.Burst, LargestCost: c.cfg.largestCost[doc.Name], Revocable: doc.Revocable,
		Lends: lends, Borrows: borrows, Shadow: doc.Shadow,
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("node: budget %q: %w", doc.Name, err)
	}
	b.limiter = enforce.NewLimiter(cfg, now)
	b.plane = &plane{limiter: b.limiter}
	b.static, b.zero = make([]allocator.Rate, k), make([]allocator.Rate, k*n)
	return b, nil
}
