package schedule

import (
	"fmt"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
)

// letter is a row on its way for ever: it may arrive anywhere at any time.
type letter struct {
	id    int32 // of the action that published it
	row   *ledger.Row
	epoch *ledger.Epoch
}

// edition is an epoch and the action that made it.
type edition struct {
	id    int32
	epoch *ledger.Epoch
}

// world is the true state of everything, and the adversary.
type world struct {
	setup
	seed  uint64
	mode  chaos.Mode
	steps int

	rng    chaos.Rand // the adversary's choices, made while actions are made
	habit  habits
	nextID int32
	record bool
	done   []Action // what happened, if recorded
	step   int64
	acted  int64
	hash   chaos.Hash

	t      int64 // true time, ns
	dirs   map[int]*ledger.Directory
	dir    *ledger.Directory
	procs  [maxNodes]*process // by name; nil is not running
	spare  []*process
	ghosts []*process
	disks  [maxNodes]*ledger.Stored
	full   uint64 // disks that refuse writes
	calm   bool   // all faults are over
	lastIn [maxNodes]uint64
	gone   [maxNodes]uint64 // highest incarnation that an operator declared dead
	incs   uint64

	list     []edition
	longest  [maxNodes]time.Duration // term that each name ever had
	greatest *ledger.Epoch           // the greatest that was activated
	limits   [maxBudgets]allocator.Rate

	pool []letter
	up   [maxNodes]uint64 // links that are up, by sender

	sum    [maxBudgets]allocator.Rate // enforced
	claims [maxBudgets]allocator.Rate
	top    [maxBudgets]allocator.Rate // greatest sum under the present limit
	peak   int64
	failed *chaos.Violation
	seen   [counterCount]int64

	versions versions
	packet   []byte
	exact    map[exactKey]*allocator.Allocator
	view     ledger.View
	targets  []allocator.Rate
	cells    []allocator.Rate
	parts    [maxClasses]allocator.Rate
	story    []string // what happened to lives and epochs, while telling
	telling  bool
	broken   breakage // a rule of the shell that a test breaks on purpose
}

// breakage is a fault of the shell that tests put in.
type breakage uint8

const (
	sound        breakage = iota
	lowersLate            // the data plane is lowered after the row left
	forgetsState          // state is not written
	jumpsClock            // a pause stops the lease clock
)

// setup is what a seed fixes before anything happens.
type setup struct {
	nodes   int
	budgets int
	classes [maxBudgets]int
	eps     int64
	terms   [maxNodes]time.Duration
	hasDisk [maxNodes]bool
	members uint64
	doubt   bool // first starts sit out a quarantine
	exactly bool // the product's allocator computes the targets
}

func newWorld() *world {
	return &world{dirs: map[int]*ledger.Directory{}, exact: map[exactKey]*allocator.Allocator{}}
}

// reset makes w the world of a seed before its first step.
func (w *world) reset(seed uint64, mode chaos.Mode, p *Profile, steps int) {
	for i, q := range w.procs {
		if q != nil {
			w.spare = append(w.spare, q)
			w.procs[i] = nil
		}
	}
	w.spare = append(w.spare, w.ghosts...)
	old := *w
	*w = world{
		seed: seed, mode: mode, steps: steps, rng: chaos.NewRand(seed ^ 0x5bd1e995*uint64(mode+1)),
		dirs: old.dirs, spare: old.spare, exact: old.exact, record: old.record, telling: old.telling, broken: old.broken,
		done: old.done[:0], list: old.list[:0], pool: old.pool[:0],
		view: old.view, targets: old.targets, cells: old.cells, packet: old.packet,
	}
	clear(w.exact)
	clear(old.pool[:cap(old.pool)])
	w.setup = chooseSetup(&w.rng, p, mode)
	w.habit = chooseHabits(&w.rng, p, mode)
	w.dir = w.directory(w.nodes)
	w.versions.reset(mode == chaos.MixedVersions, w)
	w.begin()
}

// directory returns the directory of n names; it is shared by all worlds of that
// size, and all processes, which never learn other names.
func (w *world) directory(n int) *ledger.Directory {
	d := w.dirs[n]
	if d == nil {
		d = ledger.NewDirectory()
		for i := range n {
			d.Intern(fmt.Sprintf("n%d", i))
		}
		w.dirs[n] = d
	}
	return d
}

func chooseSetup(rng *chaos.Rand, p *Profile, mode chaos.Mode) setup {
	s := setup{nodes: pick(rng, p.Nodes), budgets: pick(rng, p.Budgets)}
	s.eps = chaos.Pick(rng, int64(ledger.MinEpsPPM), 50_000)
	disks, members := pick(rng, p.Disks), pick(rng, p.Members)
	switch mode {
	case chaos.NoDurable:
		disks = 0
	case chaos.FastQuarantine:
		disks = 100
	case chaos.MajorityProof, chaos.ForcedRemoval:
		disks = max(disks, 50)
	}
	for i := range s.nodes {
		s.terms[i] = chaos.Pick(rng, 2*time.Second, 2*time.Second, 3*time.Second)
		s.hasDisk[i] = rng.Chance(disks)
		if i < 2 || rng.Chance(members) {
			s.members |= 1 << i
		}
	}
	for u := range s.budgets {
		s.classes[u] = 1
	}
	s.exactly = rng.Chance(pick(rng, p.Exact))
	for u := range s.budgets {
		if s.exactly {
			s.classes[u] = 1 + rng.IntN(maxClasses)
		}
	}
	s.doubt = rng.Chance(25)
	return s
}

func pick(rng *chaos.Rand, list []int) int { return list[rng.IntN(len(list))] }

// begin makes the first epoch and the first lives.
func (w *world) begin() {
	var base recipe
	base.members = w.members
	for u := range w.budgets {
		base.limits[u] = someRate(&w.rng)
		base.classes[u] = w.classes[u]
	}
	g := w.makeEpoch(&w.rng, 0, nil, base)
	w.greatest = g
	w.limit()
	for i := range w.nodes {
		w.start(ledger.NodeID(i), g, w.rng.Uint64()&^1, w.members>>i&1 == 1, w.doubt)
	}
	w.rewire(100)
}

// limit takes over the budgets of the greatest epoch.
func (w *world) limit() {
	w.limits = [maxBudgets]allocator.Rate{}
	for b := range w.greatest.Budgets {
		for _, x := range w.greatest.Budgets[b].Base {
			w.limits[budgetOf(w.greatest, b)] += x
		}
	}
	w.top = [maxBudgets]allocator.Rate{}
}

// pass lets d ns of true time pass.
func (w *world) pass(d int64) {
	w.t += d
	for i := range w.nodes {
		if p := w.procs[i]; p != nil {
			w.advance(p)
		}
	}
	if len(w.ghosts) > 0 {
		w.fade()
	}
}

// fail notes the first objection of a checker.
func (w *world) fail(checker, format string, args ...any) {
	if w.failed == nil {
		w.failed = &chaos.Violation{Checker: checker, At: time.Duration(w.t), Step: w.step, Detail: fmt.Sprintf(format, args...)}
	}
}

// tell notes something for the reader of a failure.
func (w *world) tell(format string, args ...any) {
	if w.telling {
		w.story = append(w.story, fmt.Sprintf("%9.3fs #%d ", float64(w.t)/1e9, w.nextID)+fmt.Sprintf(format, args...))
	}
}

// check compares the sums with the budgets. Sums rise and limits fall only where
// it is called.
func (w *world) check() {
	for u := range w.budgets {
		sum := w.sum[u]
		if sum > w.top[u] {
			w.top[u] = sum
			if limit := w.limits[u]; limit > 0 {
				w.peak = max(w.peak, int64(sum)*1_000_000/int64(limit))
			}
		}
		if sum > w.limits[u] {
			w.fail("budget", "budget b%d: enforced %d over %d of epoch %v", u, sum, w.limits[u], w.greatest.ID)
		} else if sum == w.limits[u] {
			w.seen[sawWhole]++
		}
		if w.claims[u] > w.limits[u] {
			w.fail("claims", "budget b%d: nodes claim %d of their own bases, over %d of epoch %v", u, w.claims[u], w.limits[u], w.greatest.ID)
		}
	}
}

// cover checks that borrower uses no more than lender counts as lent (I2).
func (w *world) cover(lender, borrower *process) {
	if lender == nil || borrower == nil {
		return
	}
	if s := lender.l.Standing(); s.Quarantine || s.Superseded {
		return // loans of a former life: the quarantine waits for them
	}
	there, here := lender.clock.At(w.t), borrower.clock.At(w.t)
	for u := range w.budgets {
		x, y := lender.place(u), borrower.place(u)
		if x < 0 || y < 0 {
			continue
		}
		used := borrower.l.Borrowed(here, y, lender.name)
		if used == 0 {
			continue
		}
		if lent := lender.l.Lent(there, x, borrower.name); used > lent {
			w.fail("cover", "budget b%d: n%d uses %d of n%d, which counts %d as lent", u, borrower.name, used, lender.name, lent)
		}
	}
}

// coverAll checks all loans of one lender.
func (w *world) coverAll(p *process) {
	for i := range w.nodes {
		if q := w.procs[i]; q != nil && q != p {
			w.cover(p, q)
		}
	}
}
