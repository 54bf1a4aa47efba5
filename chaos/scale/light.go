package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// light is a node reduced to its ledger and allocator: no meters, no codec, no
// limiters, rows by pointer. It publishes by the core's rules: each tick, and at
// once, at least gapMin after the row before, when the settlement asks for a
// change over 1 % of its base.
type light struct {
	w         *lights
	index     int
	region    int
	led       *ledger.Ledger
	alloc     *allocator.Allocator
	view      ledger.View
	target    []allocator.Rate
	total     []allocator.Rate
	steps     []ledger.Step
	newest    []*ledger.Row // by node, as received; own included
	published int64
	urgent    bool
	pending   bool
}

// lights is a cluster of them, in virtual time.
type lights struct {
	queue
	rng     *rand.Rand
	delay   [][]time.Duration
	loss    float64
	batch   time.Duration
	limit   allocator.Rate
	base    []allocator.Rate
	nodes   []*light
	regions [][]int
	tiers   bool
	sent    int // datagrams
	largest int // rows in one bundle
	peak    allocator.Rate
	least   allocator.Rate
}

func newLights(nodes int, tiers bool, loss float64, seed uint64) (*lights, error) {
	w := &lights{
		rng: rand.New(rand.NewPCG(seed, 2)), delay: delays(), batch: 2 * time.Millisecond, tiers: tiers, loss: loss,
		limit: allocator.Rate(nodes) * 1000 * allocator.Unit,
	}
	if nodes > 100 {
		w.batch = 10 * time.Millisecond
	}
	w.regions = make([][]int, len(w.delay))
	dir, doc := ledger.NewDirectory(), document(nodes, 1, int64(nodes)*1000)
	e, err := epoch.Root(doc, dir)
	if err != nil {
		return nil, err
	}
	doc.Canonical()
	w.base = e.Budgets[0].Base
	for i := range nodes {
		n := &light{w: w, index: i, region: i % len(w.delay), newest: make([]*ledger.Row, nodes)}
		w.regions[n.region] = append(w.regions[n.region], i)
		n.led, err = ledger.New(ledger.Config{
			Self: e.Roster[i].ID, Inc: uint64(i+1)<<32 | 1, Term: term, Live: term, EpsPPM: 10_000, Guard: 25 * time.Millisecond,
			Bootstrap: true, Directory: dir,
		}, e, 0)
		if err != nil {
			return nil, err
		}
		if n.alloc, err = allocator.New(doc.Budgets[0].Spec); err != nil {
			return nil, err
		}
		n.target, n.total = make([]allocator.Rate, 2*nodes), make([]allocator.Rate, nodes)
		n.led.SetDemand(0, []allocator.Rate{100 * allocator.Unit, 100 * allocator.Unit})
		w.nodes = append(w.nodes, n)
		w.every(w.rng.Int64N(int64(tick)), tick, func() { n.turn(true) })
	}
	if tiers {
		w.every(int64(tick)/2, tick, w.bundles)
	}
	w.every(0, 5*time.Millisecond, w.check)
	return w, nil
}

func (w *lights) every(first int64, gap time.Duration, do func()) {
	var again func()
	again = func() {
		do()
		w.at(w.now+int64(gap), again)
	}
	w.at(first, again)
}

// share is what the node may enforce now.
func (n *light) share() allocator.Rate {
	n.steps = n.led.Steps(n.w.now, 0, n.steps)
	return n.steps[0].Rate
}

// check holds the sum of the shares against the budget.
func (w *lights) check() {
	var sum allocator.Rate
	for _, n := range w.nodes {
		sum += n.share()
	}
	w.peak = max(w.peak, sum)
	w.least = min(w.least, sum)
}

// turn is the core's pass.
func (n *light) turn(tick bool) {
	now := n.w.now
	n.led.Control(now)
	n.led.View(now, 0, &n.view)
	if n.alloc.SetCeilings(n.view.Ceilings) != nil || n.alloc.Allocate(n.target, n.view.Demand) != nil {
		return
	}
	for i := range n.total {
		n.total[i] = n.target[i] + n.target[len(n.total)+i]
	}
	if change, _ := n.led.Settle(now, 0, n.total); change > n.w.base[n.index]/100 {
		n.urgent = true
	}
	switch {
	case tick || n.urgent && now-n.published >= int64(gapMin):
		n.urgent, n.published = false, now
		row := n.led.Publish(now, 0)
		n.newest[n.index] = row
		n.w.spread(n, row)
	case n.urgent:
		n.soon(n.published + int64(gapMin))
	}
}

func (n *light) soon(at int64) {
	if n.pending {
		return
	}
	n.pending = true
	n.w.at(at, func() {
		n.pending = false
		n.turn(false)
	})
}

func (n *light) merge(row *ledger.Row) {
	if n.led.Merge(n.w.now, row) == ledger.Applied {
		n.newest[row.Node] = row
		n.soon(n.w.now + int64(n.w.batch))
	}
}

// spread sends a row: to everybody or, with two tiers, to the own region and to
// those who lend here or borrow from here.
func (w *lights) spread(n *light, row *ledger.Row) {
	for region, members := range w.regions {
		var to []int
		for _, i := range members {
			if i != n.index && (!w.tiers || region == n.region || n.led.Dealing(ledger.NodeID(i))) {
				to = append(to, i)
			}
		}
		w.carry(n.region, region, to, []*ledger.Row{row}, nil)
	}
}

// carry brings rows to nodes of one region, in a datagram each. then is called
// for those that arrived.
func (w *lights) carry(from, region int, to []int, rows []*ledger.Row, then func(i int)) {
	if len(to) == 0 {
		return
	}
	w.sent += len(to)
	d := w.delay[from][region] + time.Duration(w.rng.Int64N(int64(2*time.Millisecond)))
	w.at(w.now+int64(d), func() {
		for _, i := range to {
			if w.rng.Float64() < w.loss {
				continue
			}
			for _, r := range rows {
				w.nodes[i].merge(r)
			}
			if then != nil {
				then(i)
			}
		}
	})
}

// bundles lets a delegate of every region send the newest rows of its region to a
// delegate of every other, who hands them on. Who that is hangs on the tick and
// the pair, so there is nobody to elect and nobody to fail.
func (w *lights) bundles() {
	round := int(w.now / int64(tick))
	for a := range w.regions {
		for b := range w.regions {
			if a == b || len(w.regions[a]) == 0 || len(w.regions[b]) == 0 {
				continue
			}
			from := w.nodes[w.regions[a][(round+b)%len(w.regions[a])]]
			to := w.regions[b][(round+a)%len(w.regions[b])]
			var rows []*ledger.Row
			for _, i := range w.regions[a] {
				if r := from.newest[i]; r != nil {
					rows = append(rows, r)
				}
			}
			w.largest = max(w.largest, len(rows))
			others := slices.DeleteFunc(slices.Clone(w.regions[b]), func(i int) bool { return i == to })
			w.carry(a, b, []int{to}, rows, func(int) { w.carry(b, b, others, rows, nil) })
		}
	}
}

// lightSteps measures the reaction: from a demand far over the budget at one node
// until it enforces 99 % of its new target.
func lightSteps(nodes int, tiers bool, loss float64, steps int) (figure, error) {
	w, err := newLights(nodes, tiers, loss, 3)
	if err != nil {
		return figure{}, err
	}
	w.least = w.limit
	w.until(int64(1500*time.Millisecond), nil)
	w.sent, w.least = 0, w.limit
	began := w.now
	quiet := []allocator.Rate{100 * allocator.Unit, 100 * allocator.Unit}
	want := (w.limit - allocator.Rate(nodes-1)*200*allocator.Unit) * 99 / 100
	var took []float64
	for range steps {
		busy := w.nodes[w.rng.IntN(nodes)]
		w.until(w.now+w.rng.Int64N(int64(tick)), nil)
		start := w.now
		busy.led.SetDemand(0, []allocator.Rate{100 * allocator.Unit, 2 * w.limit})
		busy.urgent = true
		busy.soon(w.now)
		if !w.until(w.now+int64(10*time.Second), func() bool { return busy.share() >= want }) {
			return figure{}, fmt.Errorf("%d nodes: the busy one got %d of %d", nodes, busy.share(), want)
		}
		took = append(took, float64(w.now-start)/1e6)
		busy.led.SetDemand(0, quiet)
		busy.urgent = true
		busy.soon(w.now)
		w.until(w.now+int64(1500*time.Millisecond), nil)
	}
	how := "flat"
	if tiers {
		how = "two tiers"
	}
	span := time.Duration(w.now - began).Seconds()
	fmt.Printf("%4d nodes, %-9s, loss %.0f %%, ledgers only: 99 %% of the target after %s, %.0f datagrams/s per node, %d rows in a bundle, sum of shares %.2f (loans under way) to %.4f of the budget\n",
		nodes, how, loss*100, spread(took), float64(w.sent)/float64(nodes)/span, w.largest, part(w.least, w.limit), part(w.peak, w.limit))
	return figure{"sum of shares over the budget", part(w.peak, w.limit), 1}, nil
}

func part(a, b allocator.Rate) float64 { return float64(a) / float64(b) }

// spread says mean and extremes of measured milliseconds.
func spread(ms []float64) string {
	slices.Sort(ms)
	sum := 0.0
	for _, x := range ms {
		sum += x
	}
	return fmt.Sprintf("%.0f ms mean, %.0f p95, %.0f at most (%d steps)", sum/float64(len(ms)), ms[(len(ms)*95-1)/100], ms[len(ms)-1], len(ms))
}
