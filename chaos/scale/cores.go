package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/gossip/wire"
	"subak/internal/core"
	"subak/internal/epoch"
)

const (
	tick   = 200 * time.Millisecond
	gapMin = 40 * time.Millisecond
	term   = 3 * time.Second
	// batch is how long a node gathers news before it acts, as the shell does
	// with what lies in its inbox.
	batch = 2 * time.Millisecond
	// name and cluster of ordinary lengths, for the bytes around a packet.
	nameBytes    = 6
	clusterBytes = 5
	// overhead is what travels around a packet: memberlist's label (2 bytes and
	// the name), version, nonce and tag of AES-GCM (29), checksum (5) and type (1),
	// then the frame (13 bytes and the sender's name).
	overhead = 2 + clusterBytes + 29 + 5 + 1 + 13 + nameBytes
	// udp is what IPv4 and UDP add, stated apart.
	udp = 28
)

// cluster is N whole cores of the product in virtual time.
type cluster struct {
	queue
	rng   *rand.Rand
	delay [][]time.Duration // between regions
	loss  float64
	hosts []*host
	batch time.Duration
	limit allocator.Rate // of each budget
}

// host is a core with its load and what it sent.
type host struct {
	c       *cluster
	index   int
	region  int
	name    string
	core    *core.Core
	pending bool       // a turn is queued
	load    [][2]int64 // units/s, by budget and class
	owed    [][2]int64 // nano-units
	fed     int64      // until when the load was offered
	drops   map[string]int
	sent    traffic
}

// traffic counts what a node sent.
type traffic struct {
	rows      int // published
	datagrams int
	bytes     int // around included, without UDP and IP
	largest   int // datagram
	streams   int // packets by stream
}

func document(nodes, budgets int, limit int64) *epoch.Document {
	d := &epoch.Document{Cluster: "scale"}
	weights := make([]int64, nodes)
	for i := range nodes {
		weights[i] = int64(20 + i*37%75)
		d.Nodes = append(d.Nodes, epoch.Node{Name: fmt.Sprintf("n%05d", i), Weight: weights[i]})
	}
	b := allocator.Rate(limit) * allocator.Unit
	for k := range budgets {
		d.Budgets = append(d.Budgets, epoch.Budget{
			Name: fmt.Sprintf("b%04d", k), Unit: "/s", Burst: time.Second, Revocable: true,
			Spec: allocator.Spec{
				Budget: b, Weights: weights,
				Classes: []allocator.ClassSpec{
					{Name: "confirmed", Reservation: b * 6 / 10, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole},
					{Name: "uncleared", Reservation: b - b*6/10, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole, Rule: allocator.MaxMin},
				},
			},
		})
	}
	return d
}

// newCluster starts the first life of every node.
func newCluster(nodes, budgets int, limit int64, seed uint64) (*cluster, error) {
	c := &cluster{
		rng: rand.New(rand.NewPCG(seed, 1)), delay: delays(), limit: allocator.Rate(limit) * allocator.Unit,
		batch: batch,
	}
	for i := range nodes {
		h := &host{c: c, index: i, region: i % len(c.delay), name: fmt.Sprintf("n%05d", i), load: make([][2]int64, budgets), owed: make([][2]int64, budgets), drops: map[string]int{}}
		dir, doc := ledger.NewDirectory(), document(nodes, budgets, limit)
		e, err := epoch.Root(doc, dir)
		if err != nil {
			return nil, err
		}
		doc.Canonical()
		h.core, err = core.New(core.Config{
			Self: h.name, Inc: uint64(i+1)<<32 | uint64(c.rng.Uint32()), Tick: tick, GapMin: gapMin, Term: term, Live: term,
			EpsPPM: 10_000, Guard: 25 * time.Millisecond, Bootstrap: true, FirstTick: c.rng.Int64N(int64(tick)),
			NewLife:   func(floor uint64) (uint64, error) { return floor + 1, nil },
			CountDrop: func(reason string) { h.drops[reason]++ },
		}, h, dir, e, doc, 0)
		if err != nil {
			return nil, err
		}
		c.hosts = append(c.hosts, h)
		h.turnAt(0)
	}
	return c, nil
}

// feed offers the load since the last time, just before the core reads its
// meters. The load is even: only its changes are news.
func (h *host) feed() {
	span := h.c.now - h.fed
	h.fed = h.c.now
	budgets := h.core.Budgets()
	for b := range h.load {
		for k, rate := range h.load[b] {
			h.owed[b][k] += rate * span
			if n := h.owed[b][k] / int64(time.Second); n > 0 {
				budgets[b].Limiter.Decide(h.c.now, k, n)
				h.owed[b][k] -= n * int64(time.Second)
			}
		}
	}
}

func (h *host) turnAt(t int64) {
	h.c.at(t, func() { h.turn(false) })
}

// turn runs the core and asks to be called when it next wants to be. Turns that
// come too early do nothing.
func (h *host) turn(news bool) {
	h.feed()
	next := h.core.Turn(h.c.now, uint64(h.c.now/1e6)+80_000_000_000, news)
	if !news {
		h.turnAt(max(next, h.c.now+1))
	}
}

// arrive takes a packet and acts on the news a moment later.
func (h *host) arrive(from string, packet []byte) {
	h.core.Receive(h.c.now, from, packet)
	if h.pending {
		return
	}
	h.pending = true
	h.c.at(h.c.now+int64(h.c.batch), func() {
		h.pending = false
		h.turn(true)
	})
}

// share is what the node enforces of a budget.
func (h *host) share(b int) allocator.Rate {
	return h.core.Budgets()[b].Limiter.Share(h.c.now, make([]allocator.Rate, 2))
}

func (c *cluster) sum(b int) (sum allocator.Rate) {
	for _, h := range c.hosts {
		sum += h.share(b)
	}
	return sum
}

// The host is its core's outbox.

func (h *host) Publish(packet []byte, _ bool) {
	h.sent.rows++
	packet = append([]byte(nil), packet...)
	for _, to := range h.c.hosts {
		if to != h {
			h.carry(to, packet)
		}
	}
}

func (h *host) PublishEach(_ bool, packet func(name string, lossy bool) []byte) {
	h.sent.rows++
	for _, to := range h.c.hosts {
		if to == h {
			continue
		}
		if p := packet(to.name, false); p != nil {
			h.carry(to, append([]byte(nil), p...))
		}
	}
}

func (h *host) Lossy() bool { return false }

func (h *host) Spread(packet []byte) {
	for _, to := range h.c.hosts {
		if to != h {
			h.carry(to, packet)
		}
	}
}

func (h *host) SendTo(name string, packet []byte) error {
	for _, to := range h.c.hosts {
		if to.name == name {
			h.carry(to, packet)
		}
	}
	return nil
}

func (h *host) Save(ledger.Stored) error { return nil }

// carry counts a packet and brings it over. A stream is not lost and takes a
// round trip more.
func (h *host) carry(to *host, packet []byte) {
	h.sent.bytes += len(packet) + overhead
	d := h.c.delay[h.region][to.region]
	if len(packet) > wire.MaxPacket {
		h.sent.streams++
		d *= 3
	} else {
		h.sent.datagrams++
		h.sent.largest = max(h.sent.largest, len(packet)+overhead)
		if h.c.rng.Float64() < h.c.loss {
			return
		}
	}
	d += time.Duration(h.c.rng.Int64N(int64(2 * time.Millisecond)))
	h.c.at(h.c.now+int64(d), func() { to.arrive(h.name, packet) })
}

func (c *cluster) clearCounts() {
	for _, h := range c.hosts {
		h.sent = traffic{}
		clear(h.drops)
	}
}

// total adds up what all nodes sent.
func (c *cluster) total() (t traffic) {
	for _, h := range c.hosts {
		t.rows += h.sent.rows
		t.datagrams += h.sent.datagrams
		t.bytes += h.sent.bytes
		t.streams += h.sent.streams
		t.largest = max(t.largest, h.sent.largest)
	}
	return t
}
