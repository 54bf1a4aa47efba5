package main

import (
	"fmt"
	"time"
)

// manyBudgets measures the rows of 22 nodes with 1,000 budgets of two classes,
// of which a share changes with every tick: each of those budgets gets another
// demand, at one node or at all.
func manyBudgets(share float64, everywhere bool, loss float64, seconds int) (figure, error) {
	const nodes, budgets = 22, 1000
	c, err := newCluster(nodes, budgets, 200_000, 1)
	if err != nil {
		return figure{}, err
	}
	draw := func(h *host, b int) {
		h.load[b] = [2]int64{2000 * (1 + c.rng.Int64N(4)), 2000 * (1 + c.rng.Int64N(4))}
	}
	for _, h := range c.hosts {
		for b := range h.load {
			draw(h, b)
		}
	}
	c.until(int64(4*time.Second), nil)
	c.loss = loss
	change := func() {
		for range int(share * float64(budgets)) {
			b := c.rng.IntN(budgets)
			if !everywhere {
				draw(c.hosts[c.rng.IntN(nodes)], b)
				continue
			}
			for _, h := range c.hosts {
				draw(h, b)
			}
		}
	}
	ticks := seconds * int(time.Second/tick)
	for k := range ticks + 5 {
		if k == 5 {
			c.clearCounts()
		}
		change()
		c.until(c.now+int64(tick), nil)
	}
	t := c.total()
	drops := map[string]int{}
	for _, h := range c.hosts {
		for k, n := range h.drops {
			drops[k] += n
		}
	}
	perTick := float64(t.bytes) / float64(nodes*(nodes-1)*ticks)
	where := "at one node each"
	if everywhere {
		where = "at every node"
	}
	fmt.Printf("22 x 1000 x 2, %3.0f %% of the budgets change per tick %s, loss %.0f %%: %4.0f B per row, %4.0f B per tick and peer, largest datagram %d B, %.1f rows/s, %d by stream, not used: %v\n",
		share*100, where, loss*100, float64(t.bytes)/float64(t.datagrams+t.streams), perTick, t.largest,
		float64(t.rows)/float64(nodes)/float64(seconds), t.streams, drops)
	return figure{fmt.Sprintf("B per row and tick, %.0f %% changing %s", share*100, where), perTick, 1000}, nil
}

// figure is a measured value with what it may be at most.
type figure struct {
	name         string
	value, limit float64
}
