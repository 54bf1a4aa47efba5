package timed

import (
	"time"

	"subak/allocator/ledger"
	"subak/chaos"
	"subak/gossip/wire"
)

// oldMax bounds the requests that hold a reading of the clock over one pause:
// one per worker.
const oldMax = 8

// What a fault of the schedule is at.
const (
	waiting = uint8(iota)
	armed   // begun; it bites at the next suitable moment
	inForce
	over
)

// world is one run.
type world struct {
	setup    Setup
	schedule []Fault
	state    []uint8 // of each fault
	active   []int   // begun and not over
	now, end int64   // ns of true time
	queue    queue
	rng      chaos.Rand // the attacker's
	hosts    []*host
	delay    [][]int64
	net      network

	stocks    []*stock
	configs   map[ledger.EpochID]*config
	greatest  ledger.EpochID // ever activated
	views     map[uint64]uint64
	healedAt  int64
	unhealed  int64  // last time that a probe found something wrong after healedAt
	wrong     string // what it found
	healLimit int64
	healWorst int64
	quietEnd  int64
	agreed    bool // all had the same targets at some probe

	events    int64
	sent      int64
	hash      chaos.Hash
	seen      [counterCount]int64
	violation *chaos.Violation
	log       *log
	samples   [][]byte // packets that the attacker saw
	guard     *guard
	largest   map[string]int64
	steps     []ledger.Step
}

func newWorld(s Setup, schedule []Fault) *world {
	w := &world{
		setup: s, schedule: schedule, state: make([]uint8, len(schedule)), delay: s.Delay,
		rng: chaos.NewRand(s.Seed ^ 0xa77ac), views: map[uint64]uint64{}, configs: map[ledger.EpochID]*config{}, healedAt: -1,
	}
	r := chaos.NewRand(s.Seed ^ 0xc10c)
	w.largest = map[string]int64{}
	for b := range s.Limits {
		st := newStock(&s, b)
		w.stocks = append(w.stocks, st)
		if w.largest[st.name] = s.CostMost; s.Whole {
			w.largest[st.name] = s.Limits[b]
		}
	}
	for i := range s.Nodes {
		h := &host{
			w: w, id: i, name: nodeName(i), rng: chaos.NewRand(s.Seed<<8 + uint64(i) + 1), has: s.Disk[i],
			clock: chaos.NewClock(0, r.Int64N(int64(time.Hour))), wall: 1_700_000_000_000 + r.Int64N(2000) - 1000,
			ids: make([]ledger.NodeID, s.Nodes), last: make([]ledger.Heard, s.Nodes), floor: make([]lowest, s.Budgets), targets: make([]past, s.Budgets), armed: -1, stage: -1,
		}
		h.clock.SetRate(0, s.drawRate(&r))
		for range s.Limits {
			h.load, h.owed = append(h.load, make([]int64, s.Classes)), append(h.owed, make([]int64, s.Classes))
		}
		w.hosts = append(w.hosts, h)
	}
	w.guard = newGuard(w)
	w.rewire()
	return w
}

// start begins the first life of everybody, and what goes on for ever.
func (w *world) start() {
	for i, h := range w.hosts {
		h.start(true)
		w.queue.add(event{at: h.rng.Int64N(int64(w.setup.Stretch)), kind: requests, to: int16(i)})
		if w.setup.Pull > 0 {
			w.queue.add(event{at: h.rng.Int64N(int64(w.setup.Pull)), kind: pulls, to: int16(i)})
		}
	}
}

// run lets virtual time pass until the schedule is over or a checker objects.
func (w *world) run() {
	w.start()
	for i, f := range w.schedule {
		w.queue.add(event{at: f.At, kind: begins, gen: uint32(i)})
		w.end = max(w.end, f.At+f.For)
	}
	w.runUntil(w.end)
	if w.violation == nil {
		w.judgeBounds()
	}
}

// runUntil handles all events up to a true instant.
func (w *world) runUntil(end int64) {
	for w.violation == nil && len(w.queue.heap) > 0 && w.queue.heap[0].at <= end {
		e := w.queue.next()
		w.now = e.at
		w.events++
		w.handle(&e)
		w.hash.Add(uint64(e.at)<<8 | uint64(e.kind))
	}
	w.now = max(w.now, end)
}

func (w *world) handle(e *event) {
	var h *host
	if e.to >= 0 {
		h = w.hosts[e.to]
	}
	switch e.kind {
	case arrives:
		w.lapse(h)
		w.sort(h, w.hosts[e.from], e.data)
	case stateful:
		w.lapse(h)
		h.deliver(parcel{as: w.hosts[e.from], packet: e.data, state: true})
	case pulls:
		w.pull(h)
	case wakes:
		if h.up && e.gen == h.wakeGen {
			w.lapse(h)
			h.timer()
		}
	case requests:
		w.lapse(h)
		h.feed()
		w.queue.add(event{at: w.now + int64(w.setup.Stretch), kind: requests, to: e.to})
	case edge:
		w.edge(h, e.arg)
	case watches:
		w.watch(h, int(e.gen))
	case begins:
		w.begin(int(e.gen))
	case ends:
		w.finish(int(e.gen))
	case poisons:
		w.poison(int(e.gen))
	case probes:
		w.probe()
	}
}

// sort looks at an arriving packet before the receiver does: for the counters,
// and for what a relay passes on.
func (w *world) sort(h, as *host, packet []byte) {
	if head, err := wire.Peek(packet); err == nil && head.Kind == wire.KindRow {
		x := ledger.Heard{Inc: head.Inc, Seq: head.Seq}
		if l := &h.last[as.id]; x.Inc < l.Inc || x.Inc == l.Inc && x.Seq < l.Seq {
			w.seen[staleRow]++
		} else {
			*l = x
		}
		w.relay(h, as, packet)
	}
	h.deliver(parcel{as: as, packet: packet})
}

// publish is a core's row on its way out.
func (w *world) publish(h *host, packet []byte, changed bool, every int) {
	packet = append([]byte(nil), packet...)
	packet = w.disguise(h, packet)
	w.sendRow(h, packet, changed, every)
	w.sample(packet)
	w.hash.Add(uint64(len(packet))<<16 | uint64(h.id))
}

// spread is any other packet for everybody.
func (w *world) spread(h *host, packet []byte) {
	w.guard.learn(packet)
	if w.log != nil {
		w.log.reader.learn(packet)
	}
	for _, to := range w.hosts {
		w.carry(h, h, to, packet, 0)
	}
}

// pull exchanges whole states with a random peer, by stream: nothing is lost
// unless the two are cut off.
func (w *world) pull(h *host) {
	w.queue.add(event{at: w.now + int64(w.setup.Pull), kind: pulls, to: int16(h.id)})
	to := w.hosts[h.rng.IntN(len(w.hosts))]
	if to == h || !h.up || !to.up || h.paused > 0 || to.paused > 0 || w.blocked(h.id, to.id) || w.blocked(to.id, h.id) {
		return
	}
	w.seen[synced]++
	there, back := w.delay[h.id][to.id], w.delay[to.id][h.id]
	w.queue.add(event{at: w.now + 3*there, kind: stateful, from: int16(h.id), to: int16(to.id), data: h.core.State()})
	w.queue.add(event{at: w.now + 3*back, kind: stateful, from: int16(to.id), to: int16(h.id), data: to.core.State()})
}

// edge is an instant next to the end of a lease: many requests come, and before
// and at it the loop turns for no reason.
func (w *world) edge(h *host, side int64) {
	if !h.up || h.paused > 0 {
		return
	}
	w.seen[edgeUsed]++
	w.lapse(h)
	if w.now >= w.quietEnd { // in quiet times demand is what it is
		for b := range h.load {
			w.arrive(h, b, h.rng.IntN(len(h.load[b])), 1+h.rng.Int64N(8))
		}
	}
	if h.stalled == 0 && h.rng.IntN(2) == 0 {
		h.turn(h.reading(), side < 0)
	}
	w.check(h)
}

// watch is a look of the watchdog of a host whose loop stands still.
func (w *world) watch(h *host, i int) {
	if !h.up || h.stalled == 0 || w.state[i] != inForce {
		return
	}
	w.queue.add(event{at: w.now + int64(200*time.Millisecond), kind: watches, to: int16(h.id), gen: uint32(i)})
	if h.paused > 0 {
		return
	}
	w.lapse(h)
	for _, s := range w.stocks {
		if b := h.budget(s.name); b != nil {
			before := b.Limiter.Share(h.reading(), nil)
			b.Plane.TakeOver(h.reading(), func() bool { return true })
			if b.Limiter.Share(h.reading(), nil) > before {
				w.seen[tookOver]++
				w.note(h, "the watchdog gives back the base of %s", s.name)
			}
		}
	}
	w.check(h)
}
