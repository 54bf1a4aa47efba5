package core

import (
	"fmt"
	"testing"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
	"subak/gossip/wire"
	"subak/internal/epoch"
)

// manyBudgets is n copies of the usual budget.
func manyBudgets(n int) func() *epoch.Document {
	return func() *epoch.Document {
		d := fiveNodes()
		one := d.Budgets[0]
		d.Budgets = nil
		for i := range n {
			one.Name = fmt.Sprintf("budget-%03d", i)
			d.Budgets = append(d.Budgets, one)
		}
		return d
	}
}

func TestMoreBudgetsThanFitOneDatagramAreShared(t *testing.T) {
	w := newWorld(t, 30, manyBudgets(200))
	w.start()
	w.run(time.Second) // all bases have come into force, in all budgets at once
	busy := w.hosts[2]
	largest, deltas := 0, 0
	w.hosts[0].seen = func(packet []byte) {
		largest = max(largest, len(packet))
		if h, err := wire.Peek(packet); err == nil && h.Kind == wire.KindDelta {
			deltas++
		}
	}
	wanted := []int{0, 99, 199}
	flood := func() {
		for _, b := range wanted {
			for range 100 {
				busy.core.budgets[b].Limiter.Decide(w.now, 1, 1)
			}
		}
	}
	for range 200 {
		flood()
		w.run(5 * time.Millisecond)
	}
	for _, b := range wanted {
		share := busy.core.budgets[b].Limiter.Share(w.now, make([]allocator.Rate, 2))
		if share < w.limit*995/1000 {
			t.Errorf("budget %d: the only busy node enforces %d of %d", b, share, w.limit)
		}
	}
	for _, h := range w.hosts {
		if n := h.drops["row-too_large"]; n > 0 {
			t.Errorf("%s: %d rows did not fit", h.name, n)
		}
	}
	if largest > wire.MaxDelta {
		t.Errorf("a packet has %d bytes, although few budgets change", largest)
	}
	if deltas == 0 {
		t.Error("no row went as a delta: the test does not test")
	}
	busy.kill()
	busy.start(false)
	w.until(4*time.Second, "after a restart every budget is served", func() bool {
		for b := range busy.core.budgets {
			if busy.core.budgets[b].Limiter.Share(w.now, make([]allocator.Rate, 2)) == 0 {
				return false
			}
		}
		return true
	})
}

// wide is N nodes with K classes.
func wide(nodes, classes int) *epoch.Document {
	d := &epoch.Document{Cluster: "wide"}
	spec := allocator.Spec{Budget: allocator.Rate(classes) * 1000 * allocator.Unit}
	for i := range nodes {
		d.Nodes = append(d.Nodes, epoch.Node{Name: fmt.Sprintf("n%03d", i), Weight: 1})
		spec.Weights = append(spec.Weights, 1)
	}
	for k := range classes {
		spec.Classes = append(spec.Classes, allocator.ClassSpec{
			Name: fmt.Sprintf("c%02d", k), Reservation: 1000 * allocator.Unit, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole,
		})
	}
	d.Budgets = []epoch.Budget{{Name: "wide", Unit: "/s", Burst: time.Second, Spec: spec}}
	return d
}

// mailbox delivers packets between cores at the end of each tick.
type mailbox struct {
	name  string
	sent  *[][2]any // publisher's name, packet
	drops map[string]int
}

func (m mailbox) Publish(packet []byte, _ bool) {
	*m.sent = append(*m.sent, [2]any{m.name, append([]byte(nil), packet...)})
}
func (m mailbox) Spread(packet []byte)                 { m.Publish(packet, false) }
func (m mailbox) SendTo(_ string, packet []byte) error { m.Publish(packet, false); return nil }
func (m mailbox) Save(ledger.Stored) error             { return nil }

func TestTwoHundredNodesWithFiftyClassesSeeAllDemandWithoutADrop(t *testing.T) {
	const nodes, classes = 200, 50
	var sent [][2]any
	cores := make([]*Core, nodes)
	boxes := make([]mailbox, nodes)
	for i := range cores {
		dir := ledger.NewDirectory()
		doc := wide(nodes, classes)
		e, err := epoch.Root(doc, dir)
		if err != nil {
			t.Fatal(err)
		}
		boxes[i] = mailbox{fmt.Sprintf("n%03d", i), &sent, map[string]int{}}
		cores[i], err = New(Config{
			Self: boxes[i].name, Inc: uint64(i) + 1, Tick: testTick, GapMin: 40 * time.Millisecond, Term: 3 * time.Second, Live: 3 * time.Second,
			EpsPPM: 10_000, Guard: 25 * time.Millisecond, Bootstrap: true,
			CountDrop: func(reason string) { boxes[i].drops[reason]++ },
		}, boxes[i], dir, e, doc, 0)
		if err != nil {
			t.Fatal(err)
		}
	}
	largest := 0
	for tick := range int64(4) {
		now := tick * testTick.Nanoseconds()
		for i, c := range cores {
			// Every cell has a demand of its own.
			for k := range classes {
				c.budgets[0].Limiter.Decide(now, k, int64(1+(i+k)%7))
			}
			c.sample(now)
			c.pass(now, uint64(tick)+1, true)
		}
		for _, m := range sent {
			largest = max(largest, len(m[1].([]byte)))
			for i, c := range cores {
				if boxes[i].name != m[0] {
					c.Receive(now+1, m[0].(string), m[1].([]byte))
				}
			}
		}
		sent = sent[:0]
	}
	if largest > wire.MaxPacket {
		t.Errorf("the largest packet has %d bytes, want at most %d", largest, wire.MaxPacket)
	}
	if cores[7].budgets[0].Demand[3] == 0 {
		t.Fatal("nobody demands anything: the test does not test")
	}
	for i, c := range cores {
		if len(boxes[i].drops) > 0 {
			t.Fatalf("%s dropped %v", boxes[i].name, boxes[i].drops)
		}
		v := &ledger.View{}
		c.led.View(4*testTick.Nanoseconds()-1, 0, v)
		for j := range cores {
			for k := range classes {
				if got, want := v.Demand[k*nodes+j], cores[j].budgets[0].Demand[k]; got != want {
					t.Fatalf("%s sees demand %d of class %d at n%03d, which published %d", boxes[i].name, got, k, j, want)
				}
			}
		}
	}
}
