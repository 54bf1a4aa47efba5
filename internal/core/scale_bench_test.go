package core

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

// crowd is whole cores that exchange their rows at the end of each tick.
type crowd struct {
	now   int64
	cores []*Core
	sent  [][2]any
	sizes []int // of the packets of the last ticks
}

func newCrowd(b *testing.B, nodes, budgets int) *crowd {
	doc := func() *epoch.Document {
		weights := make([]int64, nodes)
		for i := range weights {
			weights[i] = int64(20 + i*37%75)
		}
		d := testDocument(200_000, weights...)
		one := d.Budgets[0]
		d.Budgets = nil
		for i := range budgets {
			one.Name = fmt.Sprintf("budget-%04d", i)
			d.Budgets = append(d.Budgets, one)
		}
		return d
	}
	c := &crowd{}
	for i := range nodes {
		dir, d := ledger.NewDirectory(), doc()
		e, err := epoch.Root(d, dir)
		if err != nil {
			b.Fatal(err)
		}
		d.Canonical()
		box := mailbox{fmt.Sprintf("n%d", i), &c.sent, map[string]int{}}
		one, err := New(Config{
			Self: box.name, Inc: uint64(i) + 1, Tick: testTick, GapMin: 40 * time.Millisecond, Term: 3 * time.Second, Live: 3 * time.Second,
			EpsPPM: 10_000, Guard: 25 * time.Millisecond, Bootstrap: true, CountDrop: func(string) {},
		}, box, dir, e, d, 0)
		if err != nil {
			b.Fatal(err)
		}
		c.cores = append(c.cores, one)
	}
	c.now = (3200 * time.Millisecond).Nanoseconds() // the bootstrap has waited for a term
	for range 6 {
		c.tick(func(i, k int) int64 { return int64(1000 + (i*7+k*13)%9000) })
	}
	return c
}

// tick lets all publish, after the demand that rate gives for node and budget.
func (c *crowd) tick(rate func(node, budget int) int64) {
	c.now += testTick.Nanoseconds()
	for i, one := range c.cores {
		for k := range one.budgets {
			c.demand(i, k, rate(i, k))
		}
		one.pass(c.now, uint64(c.now/1e6), true)
	}
	for _, m := range c.sent {
		c.sizes = append(c.sizes, len(m[1].([]byte)))
		for i, one := range c.cores {
			if m[0] != fmt.Sprintf("n%d", i) {
				one.Receive(c.now+1, m[0].(string), m[1].([]byte))
			}
		}
	}
	c.sent = c.sent[:0]
}

func (c *crowd) demand(node, budget int, rate int64) {
	r := allocator.Rate(rate) * allocator.Unit
	c.cores[node].led.SetDemand(budget, []allocator.Rate{r, r})
}

// BenchmarkManyBudgets is what one row of a peer costs a node, by the share of the
// 1,000 budgets that it changes: reading and merging it, and the pass after it.
func BenchmarkManyBudgets(b *testing.B) {
	c := newCrowd(b, 22, 1000)
	for _, changed := range []int{0, 10, 50} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			peer, self := c.cores[1], c.cores[0]
			turn := 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				turn++
				for k := range changed {
					c.demand(1, (turn*changed+k*19)%1000, int64(1000+turn%2*500))
				}
				c.now += int64(time.Millisecond)
				c.sent = c.sent[:0]
				peer.publish(c.now, uint64(c.now/1e6), false)
				packet := bytes.Clone(c.sent[len(c.sent)-1][1].([]byte))
				b.StartTimer()
				self.Receive(c.now, "n1", packet)
				self.pass(c.now, uint64(c.now/1e6), false)
			}
		})
	}
	b.Run("tick", func(b *testing.B) {
		self := c.cores[0]
		b.ReportAllocs()
		for b.Loop() {
			c.now += int64(time.Millisecond)
			self.pass(c.now, uint64(c.now/1e6), true)
		}
	})
}

// BenchmarkScaleBytes is what a row of 22 nodes with 1,000 budgets of two classes
// takes, 60 bytes of frame, encryption and label included, when a share of the
// budgets gets another demand with every tick, at one of the nodes each: loans and
// releases in those budgets follow at all nodes. ns/op means nothing here.
func BenchmarkScaleBytes(b *testing.B) {
	for _, share := range []int{1, 5} {
		b.Run(fmt.Sprintf("changing=%d%%", share), func(b *testing.B) {
			c := newCrowd(b, 22, 1000)
			rates := make([][]int64, 22)
			for i := range rates {
				rates[i] = make([]int64, 1000)
				for k := range rates[i] {
					rates[i][k] = int64(1000 + (i*7+k*13)%9000)
				}
			}
			step := 0
			tick := func() {
				for k := range share * 10 {
					step++
					rates[step%22][(step*389+k)%1000] = int64(1000 + step*7919%9000)
				}
				c.tick(func(i, k int) int64 { return rates[i][k] })
			}
			for range 6 {
				tick()
			}
			c.sizes = c.sizes[:0]
			for b.Loop() {
				tick()
			}
			sum, most, streams := 0, 0, 0
			for _, n := range c.sizes {
				sum += n + around
				most = max(most, n+around)
				if n > wire.MaxPacket {
					streams++
				}
			}
			mean := float64(sum) / float64(len(c.sizes))
			if mean > 1000 {
				b.Errorf("%.0f bytes per row and tick, claimed at most 1000", mean)
			}
			b.ReportMetric(mean, "B/row-and-tick")
			b.ReportMetric(float64(most), "B-largest")
			b.ReportMetric(float64(streams)/float64(len(c.sizes)), "by-stream")
			b.ReportMetric(0, "ns/op")
		})
	}
}
