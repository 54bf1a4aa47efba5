package core

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// world runs the cores of one cluster in virtual time over a network that the
// test controls. The same seed gives the same run.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	now     int64
	queue   events
	serial  int
	delay   time.Duration
	jitter  time.Duration
	loss    float64
	lost    func(from, to *host, publisher string) bool // further loss, nil for none
	poisson bool                                        // arrivals are random, not evenly spread
	hosts   []*host
	doc     func() *epoch.Document
	limit   allocator.Rate            // of the first budget in the greatest epoch activated anywhere
	inForce ledger.EpochID            // that epoch
	limits  map[string]allocator.Rate // its budgets
	sums    map[string]allocator.Rate // scratch of check
	served  service
	peak    allocator.Rate // highest sum of enforced shares seen
	lenient bool           // the sum may exceed the budget: the test looks at it itself
	during  func()         // called after every event
	alter   func(*Config)  // what differs from the usual in lives to come, nil for nothing
}

// host is one node: its core, its disk and its load.
type host struct {
	w         *world
	name      string
	core      *Core
	up        bool
	life      int
	disk      *ledger.Stored
	published int // rows
	noDisk    bool
	diskFull  bool
	cut       bool                // packets to and from it are lost
	stalled   bool                // its loop stands still; its data plane does not
	load      []float64           // units per second, by class
	owed      []float64           // arrivals not yet drawn
	drops     map[string]int      // by reason
	seen      func(packet []byte) // taps what arrives
	full      bool                // its disk takes nothing
	ppm       int64               // what its lease clock gains
	wall      time.Duration       // by how much its wall clock was set wrong
}

// service counts what was asked for and what was admitted.
type service struct{ offered, admitted float64 }

type event struct {
	at     int64
	serial int
	do     func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

const testTick = 200 * time.Millisecond

// testDocument is one budget of limit units/s over nodes of the given weights,
// with the two usual classes.
func testDocument(limit int64, weights ...int64) *epoch.Document {
	d := &epoch.Document{Cluster: "test"}
	for i, w := range weights {
		d.Nodes = append(d.Nodes, epoch.Node{Name: fmt.Sprintf("n%d", i), Weight: w})
	}
	b := allocator.Rate(limit) * allocator.Unit
	d.Budgets = []epoch.Budget{{
		Name: "origin", Unit: "/s", Burst: time.Second, Revocable: true,
		Spec: allocator.Spec{
			Budget: b, Weights: weights,
			Classes: []allocator.ClassSpec{
				{Name: "confirmed", Reservation: b * 6 / 10, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole},
				{Name: "uncleared", Reservation: b - b*6/10, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole, Rule: allocator.MaxMin},
			},
		},
	}}
	return d
}

func newWorld(t testing.TB, seed uint64, doc func() *epoch.Document) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), delay: 100 * time.Microsecond, doc: doc}
	t.Logf("seed %d", seed)
	d := doc()
	w.limit = d.Budgets[0].Spec.Budget
	for _, n := range d.Nodes {
		h := &host{w: w, name: n.Name, load: make([]float64, 2), owed: make([]float64, 2), drops: map[string]int{}}
		w.hosts = append(w.hosts, h)
	}
	return w
}

// start begins a life of every host, as the first start of a cluster, and runs
// until the bases are in force.
func (w *world) start() {
	w.t.Helper()
	for _, h := range w.hosts {
		h.start(true)
	}
	w.run(3100 * time.Millisecond)
}

func (h *host) start(bootstrap bool) {
	h.t().Helper()
	h.life++
	dir := ledger.NewDirectory()
	e, doc := h.knownEpoch(dir, bootstrap)
	cfg := Config{
		Self: h.name, Inc: h.newInc(0), Tick: testTick, GapMin: 40 * time.Millisecond, Term: 3 * time.Second, Live: 3 * time.Second,
		EpsPPM: 10_000, Guard: 25 * time.Millisecond, Bootstrap: bootstrap, Durable: !h.noDisk, Stored: h.disk,
		FirstTick: h.clock() + h.w.rng.Int64N(testTick.Nanoseconds()),
		NewLife:   func(floor uint64) (uint64, error) { return h.newInc(floor), nil },
		CountDrop: func(reason string) { h.drops[reason]++ },
	}
	if h.w.alter != nil {
		h.w.alter(&cfg)
	}
	var err error
	h.core, err = New(cfg, h, dir, e, doc, h.clock())
	if err != nil {
		h.t().Fatal(err)
	}
	h.up = true
	life := h.life
	var turn func()
	turn = func() {
		if h.up && h.life == life {
			h.turn(false)
			h.w.after(5*time.Millisecond, turn)
		}
	}
	h.w.after(0, turn)
}

// knownEpoch is the epoch that a life begins with: the stored one; else, as a
// joiner asks, that of a peer; else the first one.
func (h *host) knownEpoch(dir *ledger.Directory, bootstrap bool) (*ledger.Epoch, *epoch.Document) {
	h.t().Helper()
	if h.disk != nil {
		r, err := epoch.Load(h.disk, dir)
		if err != nil {
			h.t().Fatal(err)
		}
		return r.Epoch, r.Doc
	}
	for _, peer := range h.w.hosts {
		if peer != h && peer.up && !bootstrap {
			e := peer.core.settled()
			r, err := epoch.Decode(e.ID, e.Body, dir)
			if err != nil {
				h.t().Fatal(err)
			}
			return r.Epoch, r.Doc
		}
	}
	doc := h.w.doc()
	e, err := epoch.Root(doc, dir)
	if err != nil {
		h.t().Fatal(err)
	}
	return e, doc
}

func (h *host) t() testing.TB { return h.w.t }

func (h *host) newInc(floor uint64) uint64 {
	inc, err := ledger.IncarnationAbove(floor, uint64(h.w.now/1e6), h.w.rng.Uint32())
	if err != nil {
		h.t().Fatal(err)
	}
	return inc
}

// kill ends the process at once; its shares are enforced by nobody.
func (h *host) kill() { h.up = false }

// turn does what the shell's loop does, and the arrivals of the last stretch.
func (h *host) turn(news bool) {
	if h.stalled {
		return
	}
	h.core.Turn(h.clock(), h.wallMillis(), news)
}

// arrive decides the requests of a stretch of time, evenly spread.
func (h *host) arrive(span time.Duration) {
	if !h.up {
		return
	}
	for k := range h.load {
		mean := h.load[k] * span.Seconds()
		if h.w.poisson {
			mean = poisson(h.w.rng, mean)
		}
		h.owed[k] += mean
		for ; h.owed[k] >= 1; h.owed[k]-- {
			h.w.served.offered++
			if h.core.budgets[0].Limiter.Decide(h.clock(), k, 1).OK {
				h.w.served.admitted++
			}
		}
	}
}

// The host is its core's outbox.

func (h *host) Publish(packet []byte, _ bool) {
	h.published++
	for _, to := range h.w.hosts {
		h.w.carry(h, to, append([]byte(nil), packet...))
	}
}

func (h *host) Spread(packet []byte) { h.Publish(packet, false) }

func (h *host) SendTo(name string, packet []byte) error {
	for _, to := range h.w.hosts {
		if to.name == name {
			h.w.carry(h, to, packet)
		}
	}
	return nil
}

func (h *host) Save(s ledger.Stored) error {
	if h.full {
		return errDiskFull
	}
	if h.diskFull {
		return errors.New("disk full")
	}
	if !h.noDisk {
		h.disk = &s
	}
	return nil
}

func (w *world) carry(from, to *host, packet []byte) {
	if w.lost != nil && w.lost(from, to, from.name) {
		return
	}
	if from == to || from.cut || to.cut || w.rng.Float64() < w.loss {
		return
	}
	d := w.delay
	if w.jitter > 0 {
		d += time.Duration(w.rng.Int64N(int64(w.jitter)))
	}
	w.after(d, func() {
		if !to.up || to.cut || to.stalled {
			return
		}
		if to.seen != nil {
			to.seen(packet)
		}
		to.core.Receive(to.clock(), from.name, packet)
		to.turn(true)
	})
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.queue, event{w.now + int64(d), w.serial, do})
}

// run advances virtual time, feeding arrivals each 5 ms and checking the
// conservation of the budget after every event.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	const stretch = 5 * time.Millisecond
	end := w.now + int64(d)
	var feed func()
	feed = func() {
		for _, h := range w.hosts {
			h.arrive(stretch)
		}
		if w.now+int64(stretch) <= end {
			w.after(stretch, feed)
		}
	}
	w.after(stretch, feed)
	for len(w.queue) > 0 && w.queue[0].at <= end {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
		w.check()
		if w.during != nil {
			w.during()
		}
	}
	w.now = end
}

// check asserts the promise on true values: what is enforced of a budget is at
// most its limit in the greatest epoch that any node has activated.
func (w *world) check() {
	w.t.Helper()
	for _, h := range w.hosts {
		if h.up && w.inForce.Less(h.core.led.Active()) {
			w.activated(h)
		}
	}
	if w.sums == nil {
		w.sums = map[string]allocator.Rate{}
	}
	clear(w.sums)
	for _, h := range w.hosts {
		if h.up {
			for b, budget := range h.core.budgets {
				w.sums[budget.Name] += h.shareOf(b)
			}
		}
	}
	for name, sum := range w.sums {
		w.peak = max(w.peak, sum)
		if limit := w.limits[name]; sum > limit && !w.lenient {
			for _, h := range w.hosts {
				w.t.Logf("%s up %v epoch %v active %v share %d", h.name, h.up, h.core.epoch.ID, h.core.led.Active(), h.share())
			}
			w.t.Fatalf("at %s the enforced shares of budget %s add up to %d, over the limit of %d of epoch %v", time.Duration(w.now), name, sum, limit, w.inForce)
		}
	}
}

// activated notes the limits of an epoch that h has just activated.
func (w *world) activated(h *host) {
	w.inForce, w.limits = h.core.led.Active(), map[string]allocator.Rate{}
	for _, b := range h.core.lineage.known[w.inForce].Doc.Budgets {
		w.limits[b.Name] = b.Spec.Budget
	}
	w.limit = h.core.lineage.known[w.inForce].Doc.Budgets[0].Spec.Budget
}

// share is what the host enforces of the first budget.
func (h *host) share() allocator.Rate { return h.shareOf(0) }

func (h *host) shareOf(b int) allocator.Rate {
	return h.core.budgets[b].Limiter.Share(h.clock(), make([]allocator.Rate, 2))
}

// poisson draws the number of arrivals whose mean is given.
func poisson(rng *rand.Rand, mean float64) (n float64) {
	for t := rng.ExpFloat64(); t < mean; t += rng.ExpFloat64() {
		n++
	}
	return n
}
