package timed

import (
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/chaos"
	"subak/internal/core"
	"subak/internal/epoch"
)

const (
	inboxMax   = 1024        // packets that wait for a process that does not run
	owedMost   = time.Second // of arrivals wait likewise
	hourMillis = int64(3_600_000)
)

// host is a machine with the process of one name, its disk and its load. It is
// its core's outbox.
type host struct {
	w     *world
	id    int
	name  string
	rng   chaos.Rand
	clock chaos.Clock
	wall  int64 // its wall clock less true time, ms
	disk  *ledger.Stored
	has   bool // a disk

	core    *core.Core
	dir     *ledger.Directory
	ids     []ledger.NodeID // of the hosts in dir, -1 while unknown
	led     *ledger.Ledger
	up      bool
	wakeGen uint32 // of the wake-up that counts
	news    bool   // something was received since the last turn
	paused  int    // faults that keep the process from running
	stalled int    // faults that keep its loop from running
	slow    int64
	full    bool
	inbox   []parcel
	held    *parcel // taken with an old reading, to be used after the pause
	old     []oldRequest

	armed   int // fault that bites at the next suitable moment, -1 for none
	stage   int // of DieInPublish; -1 for none
	dying   bool
	leaving bool
	killer  int // the fault that kills

	load  [][]int64 // milli-units/s, by budget and class
	owed  [][]int64 // nano-units that are due
	fedAt int64

	standing ledger.Standing // as of the last check
	active   ledger.EpochID
	epoch    ledger.EpochID
	last     []ledger.Heard // newest row delivered, by publisher
	floor    []lowest       // by budget
	targets  []past         // likewise
	born     int64
}

// parcel is a packet that waits. packet is nil for a turn of the loop without.
type parcel struct {
	as      *host
	packet  []byte
	state   bool
	reading int64
}

// oldRequest has read the clock and was then stopped.
type oldRequest struct {
	budget, class int
	reading       int64
}

func (h *host) reading() int64     { return h.clock.At(h.w.now) }
func (h *host) wallMillis() uint64 { return uint64(max(h.w.now/1e6+h.wall, 1)) }

// start begins a life of the name.
func (h *host) start(bootstrap bool) {
	w := h.w
	dir := ledger.NewDirectory()
	e, doc := h.config(dir)
	now := h.reading()
	cfg := core.Config{
		Self: h.name, Tick: w.setup.Tick, GapMin: w.setup.GapMin, FirstTick: now + h.rng.Int64N(int64(w.setup.Tick)),
		Term: w.setup.Term, Live: w.setup.Term, EpsPPM: w.setup.EpsPPM, Guard: w.setup.Guard,
		Bootstrap: bootstrap, Durable: h.has, Stored: h.disk,
		NewLife:     h.newLife,
		LargestCost: w.largest,
		CountDrop:   h.countDrop,
	}
	cfg.Installed = func([]*core.Budget) { w.know(h.core.Epoch(), h.core.Document()) }
	var above uint64
	var err error
	if h.disk != nil {
		above = h.disk.Incarnation
	}
	if cfg.Inc, err = h.newLife(above); err != nil {
		panic(err)
	}
	if h.core, err = core.New(cfg, h, dir, e, doc, now); err != nil {
		panic(err)
	}
	h.led, h.dir = h.core.Ledger(), dir
	for i := range h.ids {
		h.ids[i] = -1
	}
	h.up, h.dying, h.stage, h.armed, h.born = true, false, -1, -1, w.now
	h.paused, h.stalled, h.news = 0, 0, false
	h.inbox, h.held, h.old = h.inbox[:0], nil, h.old[:0]
	h.standing, h.active, h.epoch = ledger.Standing{}, ledger.EpochID{}, ledger.EpochID{}
	clear(h.last)
	h.unwatch()
	h.fedAt = w.now
	if !bootstrap {
		w.seen[quarantined]++
		if h.disk != nil && !h.disk.Recovering {
			w.seen[restored]++
		} else {
			w.seen[forgot]++
		}
	}
	w.note(h, "starts as %d, disk %v", cfg.Inc, h.disk != nil)
	h.turn(now, false)
}

// config is what a life begins with: the epoch on disk; else, as a joiner asks,
// that of a peer; else the first one, from its config file.
func (h *host) config(dir *ledger.Directory) (*ledger.Epoch, *epoch.Document) {
	var r *epoch.Record
	var err error
	peer := h.w.hosts[h.rng.IntN(len(h.w.hosts))]
	switch {
	case h.disk != nil:
		r, err = epoch.Load(h.disk, dir)
	case peer.up && peer != h:
		e := peer.core.Epoch()
		r, err = epoch.Decode(e.ID, e.Body, dir)
	default:
		doc := h.w.setup.document()
		e, err := epoch.Root(doc, dir)
		if err != nil {
			panic(err)
		}
		return e, doc
	}
	if err != nil {
		panic(err)
	}
	return r.Epoch, r.Doc
}

func (h *host) newLife(floor uint64) (uint64, error) {
	return ledger.IncarnationAbove(floor, h.wallMillis(), uint32(h.rng.Uint64()))
}

func (h *host) countDrop(reason string) {
	switch reason {
	case "own-name-higher":
		h.w.seen[superseded]++
	case "state-not-saved":
		h.w.seen[notSaved]++
	default:
		h.w.seen[refused]++
	}
	h.w.note(h, "drops: %s", reason)
}

// kill ends the process at once. What waits for it is lost.
func (h *host) kill() {
	w := h.w
	w.seen[crashed]++
	if h.hasLoans() {
		w.seen[crashedWithLoans]++
	}
	h.up, h.dying, h.leaving, h.stage, h.armed = false, false, false, -1, -1
	h.paused, h.stalled = 0, 0
	h.wakeGen++
	h.inbox, h.held, h.old = h.inbox[:0], nil, h.old[:0]
	w.note(h, "dies")
	w.check(h)
}

func (h *host) hasLoans() bool {
	now := h.reading()
	for b := range h.core.Budgets() {
		for _, o := range h.w.hosts {
			id, ok := h.idOf(o)
			if ok && (h.led.Lent(now, b, id) > 0 || h.led.Borrowed(now, b, id) > 0) {
				return true
			}
		}
	}
	return false
}

// idOf returns the number that this process has for another name.
func (h *host) idOf(o *host) (ledger.NodeID, bool) {
	if h.ids[o.id] < 0 {
		id, ok := h.dir.Lookup(o.name)
		if !ok {
			return 0, false
		}
		h.ids[o.id] = id
	}
	return h.ids[o.id], true
}

// remembers reports whether the name can tell what is in force: its process
// does, if it is not about to end, or its disk.
func (h *host) remembers() bool {
	if h.up && h.stage < 0 && !h.leaving {
		return !h.led.Standing().Recovering
	}
	return h.disk != nil && !h.disk.Recovering
}

// deliver is the arrival of a packet at the machine.
func (h *host) deliver(p parcel) {
	switch {
	case !h.up:
	case h.paused > 0 || h.stalled > 0:
		if len(h.inbox) < inboxMax {
			h.inbox = append(h.inbox, p)
		}
	case h.cuts(CutDelivery):
		p.reading = h.reading()
		h.bite(p)
	default:
		h.receive(p, h.reading())
		h.heard()
	}
}

func (h *host) receive(p parcel, reading int64) {
	if p.state {
		h.core.ReceiveState(reading, p.as.name, p.packet)
		return
	}
	h.w.noteRow(h, p)
	h.core.Receive(reading, p.as.name, p.packet)
}

// heard lets the loop turn for what was received, soon.
func (h *host) heard() {
	lag := h.w.setup.TurnLag
	if h.slow > 0 {
		lag += h.rng.Int64N(h.slow)
	}
	switch {
	case h.news:
		h.w.touch(h)
	case lag == 0:
		h.turn(h.reading(), true)
	default:
		h.w.touch(h)
		h.news = true
		h.w.queue.add(event{at: h.w.now + lag, kind: wakes, to: int16(h.id), gen: h.wakeGen})
	}
}

// timer is a wake-up of the loop.
func (h *host) timer() {
	if h.paused > 0 || h.stalled > 0 {
		return // resume turns it
	}
	if h.cuts(CutTurn) {
		h.bite(parcel{reading: h.reading()})
		return
	}
	h.turn(h.reading(), h.news)
}

// turn runs the core by the given reading, which may be an old one.
func (h *host) turn(reading int64, news bool) {
	w := h.w
	h.news = false
	h.wakeGen++
	h.feed() // so that demand is counted to the moment
	next := h.core.Turn(reading, h.wallMillis(), news)
	if h.dying {
		h.die()
		return
	}
	at := h.clock.When(w.now, next)
	if h.slow > 0 {
		at += h.rng.Int64N(h.slow)
	}
	w.queue.add(event{at: at, kind: wakes, to: int16(h.id), gen: h.wakeGen})
	w.check(h)
	h.edges()
}

// edges uses the instants around the next end of a lease: requests come just
// then, and the loop turns.
func (h *host) edges() {
	w := h.w
	if w.setup.EdgePPM == 0 || h.rng.Int64N(1_000_000) >= w.setup.EdgePPM/8 {
		return
	}
	now := h.reading()
	b := h.rng.IntN(len(h.core.Budgets()))
	w.steps = h.led.Steps(now, b, w.steps)
	until := w.steps[0].Until
	if until-now > 2*int64(w.setup.Term) {
		return
	}
	at := h.clock.When(w.now, until)
	for d := int64(-1); d <= 1; d++ {
		w.queue.add(event{at: max(at+d, w.now), kind: edge, to: int16(h.id), arg: d})
	}
}

// cuts reports whether an armed pause is to begin at this kind of moment.
func (h *host) cuts(flag int64) bool {
	return h.armed >= 0 && h.w.schedule[h.armed].Arg&flag != 0
}

// bite begins the armed pause; p is taken up again after it, by the reading it
// holds.
func (h *host) bite(p parcel) {
	w, i := h.w, h.armed
	h.armed = -1
	h.held = &p
	w.seen[cutInTwo]++
	w.queue.add(event{at: w.now + w.schedule[i].For, kind: ends, gen: uint32(i)})
	h.pause(i)
}

func (h *host) pause(i int) {
	h.w.state[i] = inForce
	h.paused++
	h.w.seen[paused]++
	now := h.reading()
	for b := range h.load {
		for k := range h.load[b] {
			if h.load[b][k] > 0 && len(h.old) < oldMax {
				h.old = append(h.old, oldRequest{b, k, now})
			}
		}
	}
	h.w.note(h, "pauses for %s", time.Duration(h.w.schedule[i].For))
}

// resume ends one reason not to run. The last one gone, the process goes on where
// it was stopped.
func (h *host) resume(f *Fault) {
	if f.Kind == Pause {
		h.paused--
		if f.Arg&InboxLost != 0 {
			h.inbox = h.inbox[:0]
		}
	} else {
		h.stalled--
	}
	if h.paused > 0 {
		return
	}
	w := h.w
	h.unwatch()
	w.lapse(h)
	for _, o := range h.old {
		w.seen[oldReading]++
		if w.decide(h, o.reading, o.budget, o.class, 1) {
			w.seen[oldAdmitted]++
		}
	}
	h.old = h.old[:0]
	if h.stalled > 0 {
		return
	}
	w.note(h, "goes on")
	if p := h.held; p != nil {
		h.held = nil
		if p.packet != nil {
			h.receive(*p, p.reading)
		}
		h.turn(p.reading, true)
	}
	for i := 0; i < len(h.inbox) && h.up; i++ {
		h.receive(h.inbox[i], h.reading())
	}
	h.inbox = h.inbox[:0]
	if h.up {
		h.turn(h.reading(), true)
	}
}

// die ends the process inside its publication.
func (h *host) die() {
	w := h.w
	i := h.killer
	w.seen[diedInSave+h.stage]++
	h.kill()
	w.state[i] = inForce
	w.queue.add(event{at: w.now + w.schedule[i].For, kind: ends, gen: uint32(i)})
}

// feed decides the requests that came since the last time.
func (h *host) feed() {
	w := h.w
	span := w.now - h.fedAt
	h.fedAt = w.now
	for b := range h.load {
		for k, load := range h.load[b] {
			if load == 0 && h.owed[b][k] == 0 {
				continue
			}
			// milli-units/s x ns = 10^-12 units; what is owed is in 10^-9.
			h.owed[b][k] = min(h.owed[b][k]+load*(span/1000), load*int64(owedMost/1000))
			if !h.up {
				h.owed[b][k] = 0
			}
			if h.paused > 0 {
				continue
			}
			n := h.owed[b][k] / nano
			h.owed[b][k] -= n * nano
			w.arrive(h, b, k, n)
		}
	}
}

// nano is one unit in the nano-units that are owed.
const nano = int64(1_000_000_000)

// share is what the process enforces of a budget now, by its own clock.
func (h *host) share(budget string) allocator.Rate {
	if !h.up {
		return 0
	}
	if b := h.budget(budget); b != nil {
		return b.Limiter.Share(h.reading(), nil)
	}
	return 0
}

// budget finds a budget of the running core, nil if it has none of that name.
func (h *host) budget(name string) *core.Budget {
	for _, b := range h.core.Budgets() {
		if b.Name == name {
			return b
		}
	}
	return nil
}
