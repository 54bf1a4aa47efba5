package ledger

import (
	"errors"
	"fmt"
	"time"

	"subak/allocator"
)

// Bounds on foreign and configured values. They leave room so that no sum or
// successor wraps.
const (
	// MaxRate bounds every amount and every sum of amounts in a row or epoch.
	MaxRate allocator.Rate = 1 << 62
	// MaxSeq bounds sequence numbers: a row beyond it is refused, so that no
	// single bad row can make a name unable to go on (lesson O18).
	MaxSeq uint64 = 1 << 62
	// MaxIncarnation bounds incarnations for the same reason.
	MaxIncarnation uint64 = 1<<63 - 1
	// MaxTerm is the longest lease.
	MaxTerm = 10 * time.Minute
	// MinEpsPPM is the smallest allowance for clock drift: two clocks that are
	// each slewed by 500 ppm, (1+rho)/(1-rho) rounded up.
	MinEpsPPM = 1001
)

// Config configures a [Ledger].
type Config struct {
	// Self is this node's number in Directory.
	Self NodeID
	// Inc is this life's incarnation: 1 to MaxIncarnation, never used before by
	// this name (see [NewIncarnation]); above Stored.Incarnation.
	Inc uint64
	// Term is the lease length of loans, above 0, at most MaxTerm. A longer term
	// rides out longer message loss; a dead borrower's or a restarted lender's
	// capacity is idle for about that long.
	Term time.Duration
	// Live is how long a node counts as present after its last row, both ways.
	// Usually equal to Term.
	Live time.Duration
	// EpsPPM is how much longer than Term a lender waits, in parts per million,
	// for clocks that run at different rates: MinEpsPPM to 1,000,000.
	EpsPPM int64
	// Guard is the fixed part of that wait, for the grain of timers: the
	// borrower stops this much early and the lender waits this much longer.
	// 0 or more, below half of Term.
	Guard time.Duration
	// Bootstrap is the operator's statement that this is the first start of the
	// whole cluster: no earlier life of this name exists. It is ignored when
	// Stored is present. Setting it wrongly breaks the budget. A single node
	// without a disk is started with it each time: it has nobody to lend to, so
	// a former life left nothing behind.
	Bootstrap bool
	// Doubt makes a bootstrap sit out the quarantine all the same, in case the
	// statement is wrong: a flag forgotten in a unit file, a disk that was lost.
	// Loans of a former life then end before the base counts, and what is left
	// to the truth of the statement is that no config epoch came in between.
	Doubt bool
	// Durable says that the caller writes Stored to disk before rows leave.
	Durable bool
	// Stored is the state of the former life, nil if there is none.
	Stored *Stored
	// Directory numbers the names; shared with the codec.
	Directory *Directory
}

// Validate returns all faults of the configuration, joined.
func (c Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(c.Directory == nil, "directory is missing")
	fault(c.Directory != nil && (c.Self < 0 || int(c.Self) >= c.Directory.Len()), "self %d is not in the directory", c.Self)
	fault(c.Inc == 0 || c.Inc > MaxIncarnation, "incarnation %d is outside 1 to %d", c.Inc, MaxIncarnation)
	fault(c.Term <= 0 || c.Term > MaxTerm, "term %v is outside 0 to %v", c.Term, MaxTerm)
	fault(c.Live <= 0 || c.Live > MaxTerm, "live window %v is outside 0 to %v", c.Live, MaxTerm)
	fault(c.EpsPPM < MinEpsPPM || c.EpsPPM > 1_000_000, "drift allowance %d ppm is outside %d to 1000000", c.EpsPPM, MinEpsPPM)
	fault(c.Guard < 0 || c.Guard > c.Term/2, "guard %v is outside 0 to half the term", c.Guard)
	if s := c.Stored; s != nil {
		fault(c.Inc <= s.Incarnation, "incarnation %d is not above the stored %d", c.Inc, s.Incarnation)
		errs = append(errs, s.validate())
	}
	return errors.Join(errs...)
}

// peer is what the ledger knows of one other node.
type peer struct {
	row    *Row    // T: newest row by (inc, seq), nil if none in this life
	layout *layout // how to read row's sections
	full   *Row    // newest row of the same life that carries Heard, nil if none
	at     int64   // R: clock reading when row was merged
	floor  uint64  // incFloor: rows of lower incarnations are refused
}

// Ledger is the conservation state of one node for all budgets. See
// the package comment.
type Ledger struct {
	cfg Config

	inc, seq uint64
	ownHigh  uint64 // highest incarnation of the own name known to anyone heard
	// superseded: the own name was seen above this life. Nothing is enforced or
	// published until Restart.
	superseded bool

	peers []peer // by NodeID
	log   publishLog
	last  *Row // newest own row

	// books[:listed] are the budgets in the order of the current
	// epoch; the rest were dropped by it and wait for their loans to end.
	books   []*book
	listed  int
	layouts []*layout

	cur       *Epoch
	act       EpochID // last activated epoch, zero if none
	strayed   bool    // see MayForce
	position  []int32 // NodeID -> roster position in cur, -1
	selfPos   int     // own roster position in cur, -1
	parent    nodeSet // members of cur's parent; of cur if it is a root
	acked     bool
	adoptedAt int64
	ackFrom   int64   // epochs are acknowledged from then on, see DeferAck
	wait      nodeSet // W

	proved     bool
	recovering bool // without memory of the former life, until proved
	quarantine bool
	startedAt  int64
	quarTerm   time.Duration // longest term that a loan of the former life may have
	// formerLent are the names that the former life may have lent to, known
	// only from disk. Valid while shortcut is true: a peer confirmed that the
	// memory is no old copy.
	formerLent []NodeID
	shortcut   bool

	lent    nodeSet // names that may hold loans of this life (persisted)
	version uint64  // of Stored

	// held: Stored cannot be saved. onDisk are the names of lent that are saved.
	held   bool
	onDisk nodeSet
	// memoryOld: the memory that this process started from was found to be an
	// old copy, and the node is not proved since.
	memoryOld  bool
	distrusted nodeSet // no loans with these

	frozen bool
	digest uint32

	market market // scratch of the settlement
	plan   []planned
}

// New starts a life of this node under epoch e at lease-clock reading now. With
// Config.Stored, e must be the stored epoch; a newer one is adopted afterwards.
// The faults are those of Config.Validate and Epoch.Validate, and a stored
// epoch that is not e.
func New(cfg Config, e *Epoch, now int64) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ledger config: %w", err)
	}
	if e == nil {
		return nil, errors.New("ledger: no epoch to start with")
	}
	if err := e.Validate(cfg.Directory); err != nil {
		return nil, fmt.Errorf("ledger epoch: %w", err)
	}
	if cfg.Stored != nil && cfg.Stored.Epoch != e.ID {
		return nil, fmt.Errorf("ledger: started under epoch %v, stored is %v", e.ID, cfg.Stored.Epoch)
	}
	l := &Ledger{cfg: cfg, inc: cfg.Inc, ownHigh: cfg.Inc, version: 1}
	l.grow()
	l.enter(e)
	l.adoptedAt = now
	l.wait.addMembers(e)
	switch {
	case cfg.Stored != nil:
		l.resume(cfg.Stored, now)
	case cfg.Bootstrap:
		l.bootstrap()
		if cfg.Doubt {
			l.beginQuarantine(now)
		}
	default:
		l.recovering, l.strayed = true, true
		l.beginQuarantine(now)
	}
	return l, nil
}

// Incarnation returns this life's incarnation.
func (l *Ledger) Incarnation() uint64 { return l.inc }

// HighestOwn returns the highest incarnation of the own name that this node has
// learned of, its own included. A restart must choose one above it.
func (l *Ledger) HighestOwn() uint64 { return l.ownHigh }

// Epoch returns the adopted epoch.
func (l *Ledger) Epoch() *Epoch { return l.cur }

// Active returns the last epoch that this node activated; zero if none in this
// life or on disk.
func (l *Ledger) Active() EpochID { return l.act }

// MayEdit reports whether an operator's edit may be made here now: a child epoch
// is made only of an epoch that its editor has activated (E4, trap 23).
func (l *Ledger) MayEdit() bool { return l.usable() && l.act == l.cur.ID }

// Budgets returns the number of budgets in the current epoch: the
// range of the argument b of the other methods. An adopted epoch may change it
// and the order.
func (l *Ledger) Budgets() int { return l.listed }

// BudgetName returns the name of budget b.
func (l *Ledger) BudgetName(b int) string { return l.books[b].name }

// SetDigest sets the digest that the next rows carry.
func (l *Ledger) SetDigest(d uint32) { l.digest = d }

// SetDemand sets this node's demand for budget b by class, rounded up to
// [DemandGrain]: what View, the rows and so every node's allocation use. It
// panics if the number of classes is not the budget's; negative demand counts
// as 0.
func (l *Ledger) SetDemand(b int, perClass []allocator.Rate) {
	bk := l.books[b]
	if len(perClass) != len(bk.demand) {
		panic(fmt.Sprintf("ledger: demand of %d classes for budget %s of %d", len(perClass), bk.name, len(bk.demand)))
	}
	left := MaxRate
	for k, d := range perClass {
		d = min(max(d, 0), left-left%DemandGrain)
		d = (d + DemandGrain - 1) / DemandGrain * DemandGrain
		bk.demand[k] = d
		left -= d
	}
}

// leaseWait is how long after an event of its own clock a node must wait until a
// lease of the given term, started before that event, has ended on any clock:
// term(1+eps)+guard, rounded up. Source: conservation.md A2, trap 13.
func (l *Ledger) leaseWait(term time.Duration) int64 {
	t := int64(term)
	return t + (t*l.cfg.EpsPPM+999_999)/1_000_000 + int64(l.cfg.Guard)
}

// grow extends what is indexed by NodeID to the directory's length.
func (l *Ledger) grow() {
	n := l.cfg.Directory.Len()
	if len(l.peers) >= n {
		return
	}
	l.peers = append(l.peers, make([]peer, n-len(l.peers))...)
	for len(l.position) < n {
		l.position = append(l.position, -1)
	}
	for _, b := range l.books {
		b.grow(n)
	}
}

// usable reports whether the own base may be used or lent at all (L3, L8).
func (l *Ledger) usable() bool { return l.proved && !l.quarantine && !l.superseded }

// ceiling is the base of b that may be used or lent now.
func (l *Ledger) ceiling(b *book) allocator.Rate {
	if !l.usable() {
		return 0
	}
	return b.ceiling
}

// nodeSet is a set of nodes, dense by NodeID.
type nodeSet []bool

func (s nodeSet) has(id NodeID) bool { return int(id) < len(s) && s[id] }

func (s *nodeSet) add(id NodeID) {
	for int(id) >= len(*s) {
		*s = append(*s, false)
	}
	(*s)[id] = true
}

func (s nodeSet) count() (n int) {
	for _, in := range s {
		if in {
			n++
		}
	}
	return n
}

// addMembers adds the members of e and of its parent.
func (s *nodeSet) addMembers(e *Epoch) {
	for _, m := range e.Roster {
		s.add(m.ID)
	}
	for _, id := range e.ParentRoster {
		s.add(id)
	}
}

// addSat adds without wrapping; both are at least 0.
func addSat(a, b allocator.Rate) allocator.Rate {
	if s := a + b; s >= 0 {
		return s
	}
	return 1<<63 - 1
}
