package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"subak/gossip"
	"subak/internal/api"
)

// Pace says how often what is sampled; 0 is never.
type Pace struct {
	// Status is for what nodes say of themselves. A node renews that four times a
	// second, so asking twice as often misses nothing. An answer has tens of KB in
	// a large cluster, and far more with many budgets.
	Status time.Duration
	// Usage is for memory and CPU, which costs nothing worth mentioning.
	Usage time.Duration
	// Metrics is for gossip's bytes and [Config.Counters]. They are also read when
	// Watch ends, unless this is 0.
	Metrics time.Duration
}

// Point is what a node said of itself at one instant.
type Point struct {
	At     time.Time // of its snapshot
	Got    time.Time // of the newest answer that had it
	Ready  bool
	Share  float64 // requests/s, of the main budget, as is what follows
	Target float64
	Demand []float64 // by class
	Live   int       // members it counts as live and that do not leave, itself included
	Digest string    // of its view
	Epoch  uint64    // version active there
}

// usagePoint is what a process used at one instant.
type usagePoint struct {
	at       time.Time
	rss, cpu int64
}

// How old a snapshot may be and still be of the instant that it names. Nodes
// renew it within a second.
const snapshotAge = 2 * time.Second

// Watch samples all nodes that run until ctx ends, each on its own: one that does
// not answer holds up nobody. Call it once.
func (c *Cluster) Watch(ctx context.Context, pace Pace) {
	var wg sync.WaitGroup
	every := func(k int, d time.Duration, f func()) {
		if d > 0 {
			wg.Go(func() { repeat(ctx, d*time.Duration(k)/time.Duration(len(c.nodes)), d, f) })
		}
	}
	c.setPace(pace)
	for k, n := range c.nodes {
		every(k, pace.Status, func() { n.askStatus(ctx) })
		every(k, pace.Usage, n.readUsage)
		every(k, pace.Metrics, func() { n.scrape(ctx, c.cfg.Counters) })
	}
	wg.Wait()
	if pace.Metrics > 0 {
		c.Scrape(context.WithoutCancel(ctx))
	}
}

// Scrape reads the metrics of every node that runs, now.
func (c *Cluster) Scrape(ctx context.Context) {
	var wg sync.WaitGroup
	for _, n := range c.nodes {
		wg.Go(func() { n.scrape(ctx, c.cfg.Counters) })
	}
	wg.Wait()
}

// repeat does something after the first wait, and again and again until ctx ends.
// What takes longer than the period misses turns.
func repeat(ctx context.Context, first, period time.Duration, f func()) {
	if sleep(ctx, first) != nil {
		return
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		f()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Cluster) setPace(pace Pace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace = pace
}

// Points are the samples of node i so far.
func (c *Cluster) Points(i int) []Point {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.points)
}

// askable tells whether a question would be answered: the process runs and is not
// paused.
func (n *node) askable() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil || n.pausedLocked(time.Now()) {
		return false
	}
	gone, _ := n.process.Ended()
	return !gone
}

func (n *node) askStatus(ctx context.Context) {
	if !n.askable() {
		return
	}
	if s, err := n.client.Status(ctx); err == nil {
		n.take(&s, time.Now())
	}
}

// take enters an answer.
func (n *node) take(s *api.Status, got time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var last Point
	if k := len(n.points); k > 0 {
		last = n.points[k-1]
		if last.At.Equal(s.Time) { // the same again
			n.points[k-1].Got = got
			return
		}
	}
	p := Point{At: s.Time, Got: got, Ready: s.Ready, Epoch: last.Epoch}
	if age := got.Sub(p.At); age < 0 || age > snapshotAge || p.At.Before(last.At) {
		p.At = got // its wall clock was set, or it is stuck
	}
	for _, m := range s.Members {
		// One that has said that it leaves is not counted, though its last rows are
		// fresh for as long as a lease.
		if m.Self || m.Live && m.Gossip != gossip.Left.String() {
			p.Live++
		}
		if m.Self {
			p.Digest = m.Digest
		}
	}
	if s.Epoch.Active {
		p.Epoch = s.Epoch.Version
	}
	k := slices.IndexFunc(s.Budgets, func(b api.Budget) bool { return b.Name == BudgetName })
	switch {
	case k >= 0:
		b := &s.Budgets[k]
		p.Share, p.Target = b.Share, b.Target
		for _, class := range b.Classes {
			p.Demand = append(p.Demand, class.Demand)
		}
	case !s.Provisional: // its loop had no time to say
		p.Share, p.Target, p.Demand = last.Share, last.Target, last.Demand
	}
	n.points = append(n.points, p)
}

func (n *node) readUsage() {
	p := n.running()
	if p == nil {
		return
	}
	if u, err := p.Usage(); err == nil { // else it has just ended
		n.mu.Lock()
		defer n.mu.Unlock()
		n.usage = append(n.usage, usagePoint{time.Now(), u.RSS, u.CPU})
	}
}

// Latest is the newest sample of node i; ok is false before the first.
func (c *Cluster) Latest(i int) (p Point, ok bool) {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := len(n.points); k > 0 {
		return n.points[k-1], true
	}
	return Point{}, false
}
