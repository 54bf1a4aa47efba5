// Package core is the whole decision of a node, without clocks, sockets,
// files or goroutines: it is told the time and the packets, and drives ledger,
// allocator and limiters.
//
// # Model
//
// [Core.Receive] takes the news, [Core.Turn] acts on it: it meters demand,
// brings proof, epochs, targets and loans up to date, puts the resulting shares
// in force and hands rows to the [Outbox]. A shell (internal/node) turns it with
// a real clock and real gossip; the simulators of chaos turn many in virtual
// time.
//
// # Changes
//
// A config epoch is made by [Core.Apply] at one node and taken up by all that
// learn of it, the greatest one winning. Taking up lowers bases at once and
// replaces the list of budgets; bases rise when the ledger activates the epoch.
// An epoch that a canary tries is known to all, but taken up by that node alone;
// its end, well or badly, is another epoch ([Core.Promote], [Core.Abandon]), made
// by any member, so a trial never hangs on the node that began it. A trial that
// nobody ends goes on: the canary then serves the lower of its old and new base,
// and other changes are refused unless they take its place. A node outside the
// roster observes: it enforces 0 and follows the epochs.
//
// # Units
//
// Instants are readings of the lease clock in nanoseconds (CLOCK_BOOTTIME in the
// shell), rates are [allocator.Rate]. The wall clock gives sequence numbers
// their size and nothing else.
//
// # Concurrency
//
// One goroutine owns a Core. Only the limiters ([Core.Budgets]) and the
// [Plane]s are shared with others.
package core

import (
	"fmt"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/enforce"
	"subak/gossip/wire"
	"subak/internal/drift"
	"subak/internal/epoch"
)

// Outbox is what a core can do to the world. Every call must return at once.
type Outbox interface {
	// Publish sends the own row to every live peer and leaves it for relay.
	// changed says that it asks for a change worth sending twice under loss. The
	// packet is not kept. One over wire.MaxPacket goes by stream.
	Publish(packet []byte, changed bool)
	// Spread sends one packet to every live peer, best effort. It is kept.
	Spread(packet []byte)
	// SendTo sends one packet to the named peer, best effort.
	SendTo(name string, packet []byte) error
	// Save makes the memory durable before the row that depends on it leaves.
	Save(ledger.Stored) error
}

// Config is what a core is told once.
type Config struct {
	Self string // a name outside the epoch's roster observes: it enforces 0
	Inc  uint64 // this life's incarnation, above Stored.Incarnation
	// Tick is the time between two rows of a quiet node, GapMin the least
	// between two rows.
	Tick, GapMin time.Duration
	// FirstTick is the lease-clock instant of the first row; 0 means at once.
	FirstTick int64
	// Term, Live, EpsPPM, Guard, Bootstrap, Durable and Stored are the ledger's.
	Term, Live time.Duration
	EpsPPM     int64
	Guard      time.Duration
	Bootstrap  bool
	Durable    bool
	Stored     *ledger.Stored
	// NewLife returns an incarnation above floor that no process of this name
	// had or will have.
	NewLife func(floor uint64) (uint64, error)
	// CarvedBefore is for how long after this start data planes may still spend
	// what a former life of this node assigned to them; 0 where none did. Until
	// then the own base is not used. Source: conservation.md L8.
	CarvedBefore time.Duration
	// Baseline makes the node one of those that the protocol is compared with,
	// which only builds with the tag baseline can be; one of them does not keep
	// the budget. Empty, the default, is the product.
	Baseline string
	// LargestCost of one request, by budget; 0 and missing mean 1.
	LargestCost map[string]int64
	// CountDrop counts what was refused or could not be done, by reason.
	CountDrop func(reason string)
	// Installed is called on the owner's goroutine whenever an epoch was taken up.
	// By then the limiters that are gone admit nothing, and their successors are
	// in force: whoever decides requests must look limiters up anew, and takes
	// a budget or class that is gone for unknown. The slice and the budgets'
	// names, documents, limiters and planes do not change later. nil for nobody.
	Installed func(budgets []*Budget)
}

// Core is one node's deciding part.
type Core struct {
	cfg      Config
	out      Outbox
	dir      *ledger.Directory
	self     ledger.NodeID
	pos      int // own position in the roster, -1 for an observer
	epoch    *ledger.Epoch
	doc      *epoch.Document // of epoch
	lineage  *lineage
	lag      map[ledger.NodeID]lag // peers under an older epoch; bounded by the neighbours
	edited   ledger.EpochID        // the newest epoch made here
	refused  refusal
	told     standing // what the newest row said of the epoch
	led      *ledger.Ledger
	budgets  []*Budget
	enc      *wire.Encoder
	dec      *wire.Decoder
	asked    map[uint64]int64 // vectors asked for, and when; bounded by askedMax
	answered int64
	content  []allocator.Rate // scratch of the hashes
	frozen   bool
	leaving  bool

	sampleDue, tickDue, wakeDue int64
	busyAt                      int64 // when there was demand last, lease clock
	published                   int64 // when the newest own row left, lease clock
	settledAll                  int64 // when a tick settled all budgets last
	wasQuiet                    bool  // at the last tick
	urgent                      bool  // a change over 1 % of base waits to be published
	saved                       uint64
	listenEnd                   int64 // a node with a memory speaks by then at the latest
	unsaved                     bool  // the last save failed
	probed                      int64 // when the disk was tried last, lease clock
	drift                       *drift.Detector
	twin                        Twin
	memoryOld                   int64   // when the memory was found to be an old copy, lease clock; 0 for never
	trails                      []trail // by NodeID
	viewHash                    viewHash
	traffic                     traffic
	stale                       stale
	carve                       carve
	stood                       ledger.Standing // as of the last pass
}

// Budget is one budget's working state. What is exported may be read by the
// owner of the core; Limiter and Plane by anybody.
type Budget struct {
	Name    string
	Index   int // in the epoch's order
	Doc     *epoch.Budget
	Limiter *enforce.Limiter
	Plane   *Plane
	View    ledger.View      // as of the last pass; refreshed by look
	Target  []allocator.Rate // class-major, by roster position
	Total   []allocator.Rate // node totals of Target
	Demand  []allocator.Rate // own, per class, as published

	former  ledger.View // the one before
	due     bool        // View has changed since Target was made of it
	shape   enforce.LimiterConfig
	heir    []int // if the limiter is to be succeeded: the old class of each
	alloc   *allocator.Allocator
	meters  []*enforce.Estimator
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

// Classes returns the number of classes.
func (b *Budget) Classes() int { return len(b.meters) }

// New returns the core of a node under epoch e, whose document is doc, at
// lease-clock reading now. The cold-start share is in force when it returns.
func New(cfg Config, out Outbox, dir *ledger.Directory, e *ledger.Epoch, doc *epoch.Document, now int64) (*Core, error) {
	if err := checkBaseline(cfg.Baseline); err != nil {
		return nil, err
	}
	rec, err := epoch.Decode(e.ID, e.Body, dir)
	if err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	rec.Epoch, rec.Doc = e, doc // the caller's, to which it may hold pointers
	self := dir.Intern(cfg.Self)
	c := &Core{
		cfg: cfg, out: out, dir: dir, self: self, pos: e.Position(self), epoch: e, doc: doc, tickDue: cfg.FirstTick,
		lineage: newLineage(rec), drift: drift.New(cfg.EpsPPM),
		traffic: newTraffic(), asked: map[uint64]int64{}, lag: map[ledger.NodeID]lag{},
	}
	vectors := wire.NewVectors()
	c.enc = wire.NewEncoder(e.Root, dir, vectors)
	c.dec = wire.NewDecoder(e.Root, dir, vectors, c.lineage.epoch)
	c.dec.SetMerged(func(id ledger.NodeID) *ledger.Row { return c.led.PeerRow(id) })
	c.led, err = ledger.New(ledger.Config{
		Self: self, Inc: cfg.Inc, Term: cfg.Term, Live: cfg.Live, EpsPPM: cfg.EpsPPM, Guard: cfg.Guard,
		Bootstrap: cfg.Bootstrap && c.pos >= 0, Doubt: len(e.Roster) > 1, Durable: cfg.Durable, Stored: cfg.Stored, Directory: dir,
	}, e, now)
	if err != nil {
		return nil, fmt.Errorf("core: ledger: %w", err)
	}
	budgets, err := c.draft(rec, now)
	if err != nil {
		return nil, err
	}
	if cfg.Stored != nil {
		c.listenEnd = now + 2*cfg.Tick.Nanoseconds()
		c.urgent = true // the first row leaves as soon as it may
	}
	c.led.Control(now)
	c.replace(now, budgets)
	c.told = c.standing()
	return c, nil
}

// Budgets returns the budgets in the epoch's order.
func (c *Core) Budgets() []*Budget { return c.budgets }

// Epoch returns the config epoch that the core works under.
func (c *Core) Epoch() *ledger.Epoch { return c.epoch }

// Active returns the epoch whose bases came in force here last.
func (c *Core) Active() ledger.EpochID { return c.led.Active() }

// Position returns the own position in the roster; -1 for an observer, which is
// no member: it enforces 0.
func (c *Core) Position() int { return c.pos }

// NodeName returns the name of a roster member.
func (c *Core) NodeName(id ledger.NodeID) string { return c.dir.Name(id) }

// Status fills s with the ledger's state.
func (c *Core) Status(now int64, s *ledger.Status) { c.led.Status(now, s) }

// Frozen reports whether the kill switch is on.
func (c *Core) Frozen() bool { return c.frozen }

// Freeze turns the kill switch: the node returns to its own base with no peer's
// help, and says so at once.
func (c *Core) Freeze(now int64, wallMillis uint64, on bool) {
	c.frozen = on
	c.carve.freezes = on
	if !on {
		c.led.Freeze(false)
	}
	c.urgent = true
	c.pass(now, wallMillis, true)
}

// Leave stops asking for capacity and publishes that at once: with no demand of
// its own the node releases what it borrowed.
func (c *Core) Leave(now int64, wallMillis uint64) {
	c.leaving = true
	c.sample(now)
	c.urgent = true
	c.pass(now, wallMillis, true)
}

// Explain says why the cell of a class at a roster position has its target, by
// the present view, which it refreshes.
func (c *Core) Explain(now int64, b *Budget, class, position int) (allocator.Explanation, error) {
	c.look(now, b)
	ceilings, demand := c.believed(b)
	if err := b.alloc.SetCeilings(ceilings); err != nil {
		return allocator.Explanation{}, err
	}
	return b.alloc.Explain(class, position, demand)
}

// Refused returns what class k refused per second lately. counts is a present
// reading of the limiter.
func (b *Budget) Refused(now int64, k int, counts []enforce.Counts) allocator.Rate {
	return b.recent.refused(now, k, counts)
}
