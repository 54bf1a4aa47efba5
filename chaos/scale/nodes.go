package main

import (
	"fmt"
	"time"

	"subak/allocator"
)

// coreSteps measures whole cores with one budget: what a quiet node sends, what
// it sends while a flood moves from node to node, and how fast the flooded node
// gets 99 % of its new target.
func coreSteps(nodes int, loss float64, steps int) (figure, error) {
	limit := int64(nodes) * 10_000
	c, err := newCluster(nodes, 1, limit, 5)
	if err != nil {
		return figure{}, err
	}
	if nodes > 100 {
		c.batch = 10 * time.Millisecond
	}
	for _, h := range c.hosts {
		h.load[0] = [2]int64{1000, 1000}
	}
	c.until(int64(2*term+1500*time.Millisecond), nil) // all bases in force, nobody young any more
	c.clearCounts()
	c.loss = loss
	c.until(c.now+int64(2400*time.Millisecond), nil)
	quiet := c.total().mbit(nodes, 2.4)
	quietUDP := c.total().mbitUDP(nodes, 2.4)
	began := c.now
	c.clearCounts()
	want := (c.limit - allocator.Rate(nodes-1)*2000*allocator.Unit) * 99 / 100
	var took []float64
	peak := allocator.Rate(0)
	looked := int64(0)
	for range steps {
		busy := c.hosts[c.rng.IntN(nodes)]
		c.until(c.now+c.rng.Int64N(int64(tick)), nil)
		start := c.now
		busy.load[0][1] = 3 * limit
		if !c.until(c.now+int64(10*time.Second), func() bool {
			if c.now-looked > int64(5*time.Millisecond) {
				looked, peak = c.now, max(peak, c.sum(0))
			}
			return busy.share(0) >= want
		}) {
			return figure{}, fmt.Errorf("%d nodes: the busy one enforces %d of %d", nodes, busy.share(0), want)
		}
		took = append(took, float64(c.now-start)/1e6)
		busy.load[0][1] = 1000
		c.until(c.now+int64(1500*time.Millisecond), nil)
	}
	span := time.Duration(c.now - began).Seconds()
	t := c.total()
	fmt.Printf("%4d nodes x 1 budget, whole cores, loss %.0f %%: %.2f Mbit/s out per node when quiet (%.2f with UDP/IP headers), %.2f (%.2f) with a flood every %.1f s, largest datagram %d B; 99 %% of the target after %s; sum of shares at most %.4f of the budget\n",
		nodes, loss*100, quiet, quietUDP, t.mbit(nodes, span), t.mbitUDP(nodes, span), span/float64(steps), t.largest, spread(took), part(peak, c.limit))
	if peak > c.limit {
		return figure{}, fmt.Errorf("%d nodes: the shares added up to %d of %d", nodes, peak, c.limit)
	}
	return figure{fmt.Sprintf("Mbit/s out per node, %d nodes without floods", nodes), quiet, 1.5}, nil
}

// mbit is what a node sent per second, in Mbit.
func (t traffic) mbit(nodes int, seconds float64) float64 {
	return float64(t.bytes) * 8 / 1e6 / float64(nodes) / seconds
}

func (t traffic) mbitUDP(nodes int, seconds float64) float64 {
	t.bytes += t.datagrams * udp
	return t.mbit(nodes, seconds)
}
