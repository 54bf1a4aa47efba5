package ledger

import (
	"fmt"
	"math/rand/v2"
	"time"

	"subak/allocator"
)

// The world: a schedule adversary over real ledgers. At each step one random
// thing happens: somebody publishes, any row ever sent is delivered to anybody,
// time passes, a process pauses, crashes or restarts, an operator edits or
// forces. Every process enforces the schedule that its shell installed last, by
// its own clock. After every step the sum over all processes is compared with the
// budget.

const worldBudgets = 2

// process is one life (or several, by Restart) of a name, with its shell.
type process struct {
	l      *Ledger
	name   NodeID
	paused bool
	demand [worldBudgets]allocator.Rate
	// The lease clock: offset + t + t*rate.
	rate, origin, offset int64
	plane                [worldBudgets][]Step // what the data plane enforces
	written              uint64
}

func (p *process) clock(t int64) int64 {
	d := t - p.origin
	return p.offset + d + d*p.rate/1_000_000
}

func (p *process) setRate(t, ppm int64) {
	p.offset, p.origin, p.rate = p.clock(t), t, ppm
}

func (p *process) enforced(t int64, b int) allocator.Rate {
	now := p.clock(t)
	for _, s := range p.plane[b] {
		if now < s.Until {
			return s.Rate
		}
	}
	return 0
}

type letter struct {
	row *Row
	ep  *Epoch
}

type world struct {
	rng    *rand.Rand
	seed   uint64
	t      int64 // true time
	dir    *Directory
	n      int
	eps    int64
	terms  []time.Duration // by name
	procs  []*process
	byName []*process
	disk   []*Stored
	hasDsk []bool
	lastIn []uint64
	incs   uint64

	epochs   map[EpochID]*Epoch
	list     []*Epoch
	greatest *Epoch // greatest activated

	pool   []letter
	up     [][]bool
	calm   bool // no more faults
	failed string
	peak   float64
	seen   map[string]int // sometimes checks
	trace  []string       // epochs, lives and activations, shown with a failure
}

// newWorld makes a world in which each name has a disk with the given chance; with
// a negative one, a chance of the world's own.
func newWorld(seed uint64, disks float64) *world {
	w := &world{seed: seed, rng: rand.New(rand.NewPCG(seed, 77)), dir: NewDirectory(),
		epochs: map[EpochID]*Epoch{}, seen: map[string]int{}}
	w.n = []int{3, 4, 5, 5, 6}[w.rng.IntN(5)] // from five on, a majority may miss a borrower
	w.eps = []int64{MinEpsPPM, 50_000}[w.rng.IntN(2)]
	for i := range w.n {
		w.dir.Intern(fmt.Sprintf("n%d", i))
		w.terms = append(w.terms, []time.Duration{2 * time.Second, 2 * time.Second, 3 * time.Second}[w.rng.IntN(3)])
	}
	w.disk = make([]*Stored, w.n)
	w.hasDsk = make([]bool, w.n)
	w.lastIn = make([]uint64, w.n)
	w.byName = make([]*process, w.n)
	if disks < 0 {
		disks = []float64{0, 0.5, 1}[w.rng.IntN(3)]
	}
	for i := range w.hasDsk {
		w.hasDsk[i] = w.rng.Float64() < disks
	}
	var members []int
	everybody := w.rng.IntN(2) == 0
	for i := range w.n {
		if i < 2 || everybody || w.rng.IntN(3) > 0 {
			members = append(members, i)
		}
	}
	g := w.makeEpoch(nil, members, [worldBudgets]allocator.Rate{w.someRate(), w.someRate()})
	w.greatest = g
	for _, i := range members {
		w.start(NodeID(i), g, true)
	}
	for i := range w.n {
		if w.byName[i] == nil {
			w.start(NodeID(i), g, false)
		}
	}
	w.rewire()
	return w
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8.3fs ", float64(w.t)/1e9)+fmt.Sprintf(format, args...))
}

func (w *world) someRate() allocator.Rate { return allocator.Rate(12+w.rng.IntN(50)) * 1000 }

func (w *world) makeEpoch(parent *Epoch, members []int, limits [worldBudgets]allocator.Rate) *Epoch {
	e := &Epoch{Root: 1, ID: EpochID{1, 1}}
	if parent != nil {
		e.ID = EpochID{parent.ID.Version + 1, w.rng.Uint64()}
		e.Parent = parent.ID
		for _, m := range parent.Roster {
			e.ParentRoster = append(e.ParentRoster, m.ID)
		}
	}
	for _, m := range members {
		e.Roster = append(e.Roster, Member{NodeID(m), 1})
	}
	for b, limit := range limits {
		base := make([]allocator.Rate, len(members))
		for range 12 {
			base[w.rng.IntN(len(base))] += limit / 12
		}
		if w.rng.IntN(2) == 0 { // somebody gives all away
			x, y := w.rng.IntN(len(base)), w.rng.IntN(len(base))
			if x != y {
				base[y] += base[x]
				base[x] = 0
			}
		}
		e.Budgets = append(e.Budgets, BudgetBase{Name: fmt.Sprintf("b%d", b), Classes: 1, Base: base})
	}
	w.epochs[e.ID] = e
	w.list = append(w.list, e)
	return e
}

func limitOf(e *Epoch, b int) (sum allocator.Rate) {
	for _, x := range e.Budgets[b].Base {
		sum += x
	}
	return sum
}

func (w *world) incarnation(name NodeID, above uint64) uint64 {
	w.incs += 1 + uint64(w.rng.IntN(3))
	inc := w.incs*1000 + uint64(w.rng.IntN(1000))
	if above == 0 && w.lastIn[name] > 5000 && w.rng.IntN(4) == 0 {
		// The clock was set back: below the last life, still unique.
		inc = w.lastIn[name] - 2000 - uint64(w.rng.IntN(900))
		if w.disk[name] != nil {
			inc = max(inc, w.disk[name].Incarnation+1+uint64(w.rng.IntN(900)))
		}
	}
	for inc <= above {
		w.incs++
		inc = w.incs*1000 + uint64(w.rng.IntN(1000))
	}
	w.lastIn[name] = max(w.lastIn[name], inc)
	return inc
}

func (w *world) start(name NodeID, e *Epoch, bootstrap bool) *process {
	cfg := Config{Self: name, Term: w.terms[name], Live: 2 * time.Second, EpsPPM: w.eps, Guard: time.Millisecond,
		Bootstrap: bootstrap, Durable: w.hasDsk[name], Directory: w.dir}
	if s := w.disk[name]; s != nil {
		cfg.Stored = s
		e = w.epochs[s.Epoch]
	}
	cfg.Inc = w.incarnation(name, 0)
	if cfg.Stored != nil {
		cfg.Inc = max(cfg.Inc, cfg.Stored.Incarnation+1)
	}
	p := &process{name: name, origin: w.t, offset: int64(w.rng.IntN(1_000_000)) * 1_000_000}
	l, err := New(cfg, e, p.clock(w.t))
	if err != nil {
		panic(err)
	}
	p.l = l
	w.note("n%d starts as %d under %v, stored %v, bootstrap %v", name, cfg.Inc, e.ID, cfg.Stored != nil, bootstrap)
	w.skew(p)
	for b := range p.demand {
		p.demand[b] = []allocator.Rate{0, 0, 60_000, 9_000}[w.rng.IntN(4)]
	}
	w.procs = append(w.procs, p)
	w.byName[name] = p
	if bootstrap {
		w.persist(p) // a first life that leaves no trace would have to be bootstrapped again
	}
	w.install(p)
	return p
}

func (w *world) skew(p *process) {
	rho := w.eps * 1_000_000 / (2_000_000 + w.eps)
	p.setRate(w.t, []int64{0, rho, -rho}[w.rng.IntN(3)])
}

func (w *world) kill(p *process) {
	w.note("n%d (%d) dies", p.name, p.l.inc)
	for i, q := range w.procs {
		if q == p {
			w.procs = append(w.procs[:i], w.procs[i+1:]...)
			break
		}
	}
	if w.byName[p.name] == p {
		w.byName[p.name] = nil
	}
}

// install lowers or raises the data plane. An epoch counts as activated once its
// activator's data plane follows it (before that nobody uses the new bases) and it
// is on disk (an epoch that nobody remembers was never there).
func (w *world) install(p *process) {
	for b := range p.plane {
		p.plane[b] = p.l.Steps(p.clock(w.t), b, p.plane[b])
	}
	if w.greatest.ID.Less(p.l.act) {
		w.persist(p)
		w.greatest = w.epochs[p.l.act]
	}
	w.check()
}

func (w *world) persist(p *process) {
	if w.hasDsk[p.name] && p.written != p.l.StoredVersion() {
		s := p.l.Stored()
		w.disk[p.name] = &s
		p.written = p.l.StoredVersion()
	}
}

// control also notices activations.
func (w *world) control(p *process) {
	quar, proved := p.l.quarantine, p.l.proved
	before := p.l.act
	p.l.Control(p.clock(w.t))
	if quar && !p.l.quarantine && p.clock(w.t) < p.l.quarantineEnd() {
		w.seen["quarantine cut short"]++
	}
	if !proved && p.l.proved {
		w.note("n%d (%d) is proved at %v, c %d %d", p.name, p.l.inc, p.l.cur.ID, p.l.books[0].ceiling, p.l.books[1].ceiling)
		w.seen["proved"]++
	}
	if p.l.act != before {
		w.seen["activated"]++
		w.note("n%d (%d) activates %v, c %d %d", p.name, p.l.inc, p.l.act, p.l.books[0].ceiling, p.l.books[1].ceiling)
		if len(p.l.cur.Forced) > 0 {
			w.seen["activated with force"]++
		}
	}
}

// fair targets: demand first, then max-min; enough to make loans move.
func targets(v *View) []allocator.Rate {
	out := make([]allocator.Rate, v.N)
	var total, ceilings allocator.Rate
	for i := range out {
		total += v.Demand[i]
		ceilings += v.Ceilings[i]
	}
	if total <= ceilings {
		spare := ceilings - total
		live := 0
		for i := range out {
			if v.Live[i] {
				out[i] = v.Demand[i]
				live++
			}
		}
		for i := range out {
			if v.Live[i] {
				out[i] += spare / allocator.Rate(live)
			}
		}
		return out
	}
	left := ceilings
	for i := range out {
		out[i] = min(v.Demand[i], v.Ceilings[i])
		left -= out[i]
	}
	for i := range out {
		more := min(left, v.Demand[i]-out[i])
		out[i] += more
		left -= more
	}
	return out
}

func (w *world) publish(p *process) {
	now := p.clock(w.t)
	w.control(p)
	var v View
	for b := range worldBudgets {
		p.l.SetDemand(b, p.demand[b:b+1])
		p.l.View(now, b, &v)
		if _, released := p.l.Settle(now, b, targets(&v)); released > 0 {
			w.seen["released"]++
		}
	}
	if w.rng.IntN(3) == 0 {
		w.install(p)
	}
	r := p.l.Publish(now, 0)
	if r == nil {
		return
	}
	if !w.calm && w.rng.IntN(1000) == 0 && w.mayCrash(p) {
		w.seen["crashed before the row left"]++
		w.kill(p)
		return
	}
	w.persist(p)
	w.install(p)
	w.seen["published"]++
	if len(r.Sections[0].Loans)+len(r.Sections[1].Loans) > 0 {
		w.seen["lent"]++
	}
	w.pool = append(w.pool, letter{r, p.l.Epoch()})
}

func (w *world) adopt(p *process, e *Epoch) {
	lent := p.l.books[0].outstanding(p.clock(w.t)) > 0
	if p.l.Adopt(p.clock(w.t), e) == nil && p.l.cur == e && lent && !p.l.acked {
		w.seen["epoch changed with loans out"]++
	}
}

func (w *world) deliver(m letter, to NodeID) {
	p := w.byName[to]
	if p == nil || p.paused {
		return
	}
	if m.ep != nil {
		w.adopt(p, m.ep)
	}
	got := p.l.Merge(p.clock(w.t), m.row)
	w.seen[got.String()]++
	if got == OwnNameHigher {
		if err := p.l.Restart(p.clock(w.t), w.incarnation(to, p.l.HighestOwn())); err != nil {
			panic(err)
		}
		w.persist(p)
		w.install(p)
	}
	if w.rng.IntN(4) > 0 {
		w.control(p)
	}
	if w.rng.IntN(3) > 0 {
		w.install(p)
	}
}

// mayCrash keeps assumption A6: in every roster in force another member is
// proved or has its memory on disk.
func (w *world) mayCrash(p *process) bool {
	rosters := [][]Member{p.l.cur.Roster, w.greatest.Roster}
	if e := w.epochs[p.l.act]; e != nil {
		rosters = append(rosters, e.Roster)
	}
	for _, ros := range rosters {
		ok := false
		for _, m := range ros {
			s := w.disk[m.ID]
			q := w.byName[m.ID]
			ok = ok || s != nil && !s.Recovering || q != nil && q != p && q.l.proved && !q.l.superseded
		}
		if !ok {
			return false
		}
	}
	return true
}

func (w *world) edit(p *process, force bool) {
	parent := w.epochs[p.l.act]
	if p.paused || !p.l.proved || p.l.superseded || parent == nil {
		return
	}
	in := map[int]bool{}
	for _, m := range parent.Roster {
		in[int(m.ID)] = true
	}
	if w.rng.IntN(2) == 0 {
		x := w.rng.IntN(w.n)
		in[x] = !in[x]
	}
	forced := map[NodeID]uint64{}
	if force {
		for _, m := range parent.Roster {
			known := p.l.peers[m.ID].row
			q := w.byName[m.ID]
			if m.ID == p.name || known == nil || q != nil && q.l.inc <= known.Inc || 2*(len(forced)+1) >= len(parent.Roster) {
				continue
			}
			forced[m.ID] = known.Inc
			if w.rng.IntN(2) == 0 {
				in[int(m.ID)] = false
			}
		}
	}
	var members []int
	for i := range w.n {
		if in[i] {
			members = append(members, i)
		}
	}
	if len(members) == 0 {
		return
	}
	var limits [worldBudgets]allocator.Rate
	for b := range limits {
		limits[b] = []allocator.Rate{limitOf(parent, b), limitOf(parent, b) / 2, w.someRate()}[w.rng.IntN(3)]
	}
	e := w.makeEpoch(parent, members, limits)
	e.Forced = forced
	w.note("n%d edits %v from %v: roster %v forced %v", p.name, e.ID, parent.ID, members, forced)
	w.adopt(p, e)
	w.control(p)
	w.install(p)
}

func (w *world) rewire() {
	prob := []float64{.3, .6, .8, 1}[w.rng.IntN(4)]
	w.up = make([][]bool, w.n)
	for i := range w.up {
		w.up[i] = make([]bool, w.n)
		for j := range w.up[i] {
			w.up[i][j] = w.rng.Float64() < prob
		}
	}
}

func (w *world) pass(d int64) {
	before := w.sum(0)
	w.t += d
	if w.sum(0) < before {
		w.seen["loan lapsed"]++
	}
}

func (w *world) sum(b int) (total allocator.Rate) {
	for _, p := range w.procs {
		total += p.enforced(w.t, b)
	}
	return total
}

func (w *world) check() {
	for b := range worldBudgets {
		sum, limit := w.sum(b), limitOf(w.greatest, b)
		if limit > 0 {
			w.peak = max(w.peak, float64(sum)/float64(limit))
		}
		if sum == limit && limit > 0 {
			w.seen["sum is the whole budget"]++
		}
		if sum > limit && w.failed == "" {
			w.failed = fmt.Sprintf("seed %d, t=%v: budget %d: sum %d over limit %d of epoch %v", w.seed, time.Duration(w.t), b, sum, limit, w.greatest.ID)
			for _, line := range w.trace {
				w.failed += "\n  " + line
			}
			for _, p := range w.procs {
				now := p.clock(w.t)
				bk := p.l.books[b]
				w.failed += fmt.Sprintf("\n  n%d inc %d: enforced %d (own %d held %d) c %d out %d cur %v act %v acked %v quar %v proved %v rec %v paused %v",
					p.name, p.l.inc, p.enforced(w.t, b), p.l.ownPart(now, bk), bk.held(now), bk.ceiling, bk.outstanding(now), p.l.cur.ID, p.l.act, p.l.acked, p.l.quarantine, p.l.proved, p.l.recovering, p.paused)
			}
		}
	}
}

// round: everybody publishes and hears whom the wiring allows.
func (w *world) round() {
	k := len(w.pool)
	for _, p := range append([]*process(nil), w.procs...) {
		if !p.paused {
			w.publish(p)
		}
	}
	w.pass(w.rng.Int64N(100_000_000))
	for _, m := range append([]letter(nil), w.pool[k:]...) {
		for j := range w.n {
			if w.up[m.row.Node][j] {
				w.deliver(m, NodeID(j))
			}
		}
	}
}

// rush lets news spread, often, while loans of before are still in use.
func (w *world) rush() {
	for range w.rng.IntN(5) {
		w.round()
	}
}

func (w *world) anyone() *process {
	if len(w.procs) == 0 {
		return nil
	}
	return w.procs[w.rng.IntN(len(w.procs))]
}

func (w *world) deliverSomething(old int) {
	if len(w.pool) == 0 {
		return
	}
	to := NodeID(w.rng.IntN(w.n))
	var m letter
	if w.rng.IntN(100) < old {
		m = w.pool[w.rng.IntN(len(w.pool))]
	} else {
		m = w.pool[max(0, len(w.pool)-1-w.rng.IntN(2*w.n))]
		if !w.up[m.row.Node][to] {
			return
		}
	}
	if q := w.anyone(); q != nil && w.rng.IntN(4) == 0 {
		m.ep = q.l.Epoch() // relayed by a node of another epoch
	}
	if w.rng.IntN(6) == 0 {
		m.ep = nil
	}
	w.deliver(m, to)
}

// wake lets a process act at the very instant its ledger waits for.
func (w *world) wake(p *process) {
	now := p.clock(w.t)
	next := p.l.NextEvent(now)
	if next-now > int64(2*time.Second) {
		return
	}
	w.pass(max(0, (next-now)*1_000_000/(1_000_000+p.rate)))
	for p.clock(w.t) < next {
		w.pass(1)
	}
	w.control(p)
	w.install(p)
}

func (w *world) crashOrRestart() {
	for i := range w.n {
		if w.byName[i] == nil && w.rng.IntN(3) > 0 {
			w.start(NodeID(i), w.list[w.rng.IntN(len(w.list))], false)
			return
		}
	}
	p := w.anyone()
	if p == nil || !w.mayCrash(p) {
		return
	}
	w.kill(p)
	if w.rng.IntN(3) > 0 {
		w.start(p.name, w.list[w.rng.IntN(len(w.list))], false)
	}
}

// run takes steps random steps or stops at the first violation.
func (w *world) run(steps int) {
	edits := []int{0, 1, 3, 8}[w.rng.IntN(4)]
	crashes := []int{0, 0, 2, 10}[w.rng.IntN(4)]
	old := []int{0, 5, 20}[w.rng.IntN(3)]
	force := w.rng.IntN(2) == 0
	long := []int{1, 4}[w.rng.IntN(2)]
	for s := 0; s < steps && w.failed == ""; s++ {
		p := w.anyone()
		switch a := w.rng.IntN(200); {
		case a < 50:
			if p != nil && !p.paused {
				w.publish(p)
			}
		case a < 60:
			w.round()
		case a < 140:
			w.deliverSomething(old)
		case a < 160:
			w.pass(w.rng.Int64N(300_000_000))
		case a < 160+long:
			w.pass(w.rng.Int64N(3_000_000_000))
		case a < 170:
			if p != nil && !p.paused {
				w.wake(p)
			}
		case a < 174:
			if p != nil {
				b := w.rng.IntN(worldBudgets)
				limit := limitOf(w.greatest, b)
				p.demand[b] = []allocator.Rate{0, 0, limit, limit / 3}[w.rng.IntN(4)]
			}
		case a < 178:
			w.rewire()
		case a < 180:
			if p != nil {
				w.skew(p)
			}
		case a < 182:
			if p != nil {
				p.paused = !p.paused && w.rng.IntN(2) == 0
			}
		case a < 190:
			if w.rng.IntN(12) < crashes {
				w.crashOrRestart()
				if q := w.anyone(); q != nil && edits > 0 && w.rng.IntN(3) == 0 { // and an operator acts on it
					w.edit(q, force)
					w.rush()
				}
			}
		case a < 191:
			if p != nil && !p.paused {
				p.l.Freeze(!p.l.Frozen())
			}
		default:
			if p != nil && w.rng.IntN(12) < edits {
				w.edit(p, force && w.rng.IntN(2) == 0)
				if q := w.anyone(); w.rng.IntN(2) == 0 { // two operators at once
					w.edit(q, force && w.rng.IntN(2) == 0)
				}
				w.rush()
			}
		}
		w.check()
	}
}

// heal ends all faults and lets everybody talk for the given number of rounds.
func (w *world) heal(rounds int) {
	w.calm = true
	for i := range w.n {
		if w.byName[i] == nil {
			w.start(NodeID(i), w.greatest, false)
		}
		for j := range w.n {
			w.up[i][j] = true
		}
	}
	for _, p := range w.procs {
		p.paused = false
		p.l.Freeze(false)
	}
	for range rounds {
		w.round()
		w.pass(100_000_000)
	}
}
