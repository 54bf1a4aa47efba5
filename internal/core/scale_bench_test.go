package core

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// crowd is whole cores that exchange their rows at the end of each tick.
type crowd struct {
	now   int64
	cores []*Core
	sent  [][2]any
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
