package main

import (
	"fmt"
	"time"
)

// figure is a measured value with what it may be at most.
type figure struct {
	name         string
	value, limit float64
}

const (
	manyNodes   = 22
	manyBudgets = 1000
	// settled is when a cold start is over: the bases of all budgets come into
	// force at once and all loans are found, a burst that takes seconds and is
	// not what is measured.
	settled = 6500 * time.Millisecond
)

// budgetsPart measures the rows of 22 nodes with 1,000 budgets of two classes, of
// which a share gets another demand, at one of the nodes each, with every tick.
// All nodes' targets, loans and releases in those budgets follow.
func budgetsPart() ([]figure, error) {
	c, err := newCluster(manyNodes, manyBudgets, 200_000, 1)
	if err != nil {
		return nil, err
	}
	for _, h := range c.hosts {
		for b := range h.load {
			c.draw(h, b)
		}
	}
	c.until(int64(settled), nil)
	var figures []figure
	for _, x := range []struct {
		share, loss float64
		ticks       int
	}{{0.01, 0, 5}, {0.05, 0, 10}, {0.05, 0.05, 10}} {
		c.loss = x.loss
		figures = append(figures, c.changing(x.share, x.ticks))
	}
	return figures, nil
}

func (c *cluster) draw(h *host, b int) {
	h.load[b] = [2]int64{2000 * (1 + c.rng.Int64N(4)), 2000 * (1 + c.rng.Int64N(4))}
}

// changing lets a share of the budgets change with every tick, and counts what is
// sent from the fourth tick on.
func (c *cluster) changing(share float64, ticks int) figure {
	const before = 3
	for k := range before + ticks {
		if k == before {
			c.clearCounts()
		}
		for range int(share * manyBudgets) {
			c.draw(c.hosts[c.rng.IntN(manyNodes)], c.rng.IntN(manyBudgets))
		}
		c.until(c.now+int64(tick), nil)
	}
	t := c.total()
	drops := map[string]int{}
	for _, h := range c.hosts {
		for reason, n := range h.drops {
			drops[reason] += n
		}
	}
	peak := 0.0
	for b := range manyBudgets {
		peak = max(peak, part(c.sum(b), c.limit))
	}
	perTick := float64(t.bytes) / float64(manyNodes*(manyNodes-1)*ticks)
	fmt.Printf("22 x 1000 x 2, %.0f %% of the budgets change per tick, loss %.0f %%: %.0f B per row, %.0f B per tick and peer, largest datagram %d B, %.1f rows/s, %d of %d packets by stream, not used or by stream: %v; sum of shares at most %.4f\n",
		share*100, c.loss*100, float64(t.bytes)/float64(t.datagrams+t.streams), perTick, t.largest,
		float64(t.rows)/float64(manyNodes)/(float64(ticks)*tick.Seconds()), t.streams, t.datagrams+t.streams, drops, peak)
	return figure{fmt.Sprintf("bytes per row and tick, %.0f %% of 1000 budgets changing, loss %.0f %%", share*100, c.loss*100), perTick, 1000}
}
