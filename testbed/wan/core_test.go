//go:build linux

package wan

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drain takes out everything that is due at now.
func drain(c *core, now int64) (packets [][]byte, to []int) {
	for {
		dst, p, _, ok := c.next(now)
		if !ok {
			return packets, to
		}
		packets, to = append(packets, bytes.Clone(p)), append(to, dst)
		c.counts.delivered.Add(1)
		c.release(p)
	}
}

func ended(s Stats) int64 {
	return s.Delivered + s.Lost + s.Blocked + s.QueueDrop + s.Overflow + s.Unroutable + s.Malformed + s.Untranslated + s.Refused + s.InFlight
}

func TestEveryPacketEndsInOneCountAndArrivesWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const hosts = 3
		capacity := rapid.IntRange(1, 30).Draw(t, "capacity")
		c := newCore(hosts, mtuDefault, capacity, rapid.Uint64().Draw(t, "seed"))
		sentTo := map[uint64]int{}
		now, number := int64(0), uint64(0)
		check := func(packets [][]byte, to []int) {
			for i, p := range packets {
				id := binary.BigEndian.Uint64(p[len(p)-8:])
				if want, sent := sentTo[id]; !sent || want != to[i] {
					t.Fatalf("packet %d came to %d, sent to %d (%v)", id, to[i], want, sent)
				}
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += rapid.Int64Range(0, second/20).Draw(t, "gap")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				rules := make([]Rule, hosts*hosts)
				for i := range rules {
					rules[i] = someRule().Draw(t, "rule")
					rules[i].Block = rapid.Bool().Draw(t, "block")
				}
				if err := c.replace(rules); err != nil {
					t.Fatal(err)
				}
			case 1:
				check(drain(c, now))
			default:
				src, dst := rapid.IntRange(0, hosts-1).Draw(t, "src"), rapid.IntRange(0, hosts).Draw(t, "dst")
				number++
				sentTo[number] = dst
				payload := binary.BigEndian.AppendUint64(nil, number)
				p := packet4(src, dst, payload)
				if number%2 == 0 {
					p = packet6(src, dst, payload)
				}
				c.receive(src, p, now)
			}
			s := c.snapshot()
			if s.Received+s.Duplicated != ended(s) || s.InFlight > int64(capacity) {
				t.Fatalf("%+v with a capacity of %d", s, capacity)
			}
		}
		check(drain(c, now+100*second))
		if s := c.snapshot(); s.InFlight != 0 || s.Received+s.Duplicated != ended(s) || len(c.free) > capacity {
			t.Fatalf("at the end %+v with %d buffers", s, len(c.free))
		}
	})
}

func TestTheCapOnPacketsInFlightIsCounted(t *testing.T) {
	c := newCore(2, mtuDefault, 10, 1)
	for range 25 {
		c.receive(0, packet4(0, 1, nil), 0)
	}
	if s := c.snapshot(); s.InFlight != 10 || s.Overflow != 15 {
		t.Errorf("%+v, want 10 in flight and 15 too many", s)
	}
}

func TestAPacketThatDoesNotFitLeavesTheFatesOfOthersAlone(t *testing.T) {
	fates := func(capacity int) []int64 {
		c := newCore(2, mtuDefault, capacity, 1)
		if err := c.replace([]Rule{{}, {Delay: time.Second, Loss: million / 2}, {}, {}}); err != nil {
			t.Fatal(err)
		}
		var lost []int64
		for i := range 30 {
			if i >= 10 {
				drain(c, 10*second)
			}
			before := c.snapshot().Lost
			c.receive(0, packet4(0, 1, nil), 0)
			lost = append(lost, c.snapshot().Lost-before)
		}
		return lost[10:]
	}
	roomy, tight := fates(100), fates(1)
	if !slices.Equal(roomy, tight) {
		t.Errorf("lost are\n%d\nafter an overflow\n%d", roomy, tight)
	}
}

func TestRulesOutOfBoundsAreMended(t *testing.T) {
	c := newCore(2, mtuDefault, 10, 1)
	if err := c.replace([]Rule{{}, {Delay: -time.Hour, Loss: -1, Rate: -5}, {}, {}}); err != nil {
		t.Fatal(err)
	}
	if got := c.table.Load().rules[1]; got != (Rule{}) {
		t.Errorf("in force is %+v", got)
	}
}

func TestABlockOfAnyLengthCutsWhatIsInFlight(t *testing.T) {
	c := newCore(2, mtuDefault, 10, 1)
	set := func(r Rule) {
		t.Helper()
		if err := c.replace([]Rule{{}, r, {Delay: time.Second}, {}}); err != nil {
			t.Fatal(err)
		}
	}
	set(Rule{Delay: time.Second})
	c.receive(0, packet4(0, 1, nil), 0)
	c.receive(1, packet4(1, 0, nil), 0)
	set(Rule{Block: true})
	set(Rule{Block: true}) // already so
	set(Rule{Delay: time.Second})
	c.receive(0, packet4(0, 1, nil), 5)
	_, to := drain(c, 2*second)
	if len(to) != 2 || to[0] != 0 || to[1] != 1 {
		t.Errorf("delivered to %v, want the other direction and what came after", to)
	}
	if s := c.snapshot(); s.Blocked != 1 {
		t.Errorf("%+v, want one blocked", s)
	}
}

func TestNextSaysHowLongUntilAPacketIsDue(t *testing.T) {
	c := newCore(2, mtuDefault, 10, 1)
	if _, _, wait, ok := c.next(0); ok || wait >= 0 {
		t.Errorf("an empty switch: %d, %v", wait, ok)
	}
	if err := c.replace([]Rule{{}, {Delay: time.Second}, {}, {}}); err != nil {
		t.Fatal(err)
	}
	c.receive(0, packet4(0, 1, nil), 100)
	if _, _, wait, ok := c.next(300); ok || wait != second-200 {
		t.Errorf("200 ns later: %d, %v", wait, ok)
	}
	if _, _, _, ok := c.next(100 + second); !ok {
		t.Error("not due when it is due")
	}
	c.receive(0, packet4(0, 1, nil), 2*second)
	if _, to := drain(c, 4*second); len(to) != 1 {
		t.Errorf("%d delivered, want 1", len(to))
	}
	if s := c.snapshot(); s.Late != 1 || s.LateMax != time.Second {
		t.Errorf("%+v, want one late by a second", s)
	}
}

func TestATableIsSeenWholeOrNotAtAll(t *testing.T) {
	const hosts = 6
	c := newCore(hosts, mtuDefault, 10, 1)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for writer := range 2 {
		wait.Go(func() {
			rules := make([]Rule, hosts*hosts)
			for generation := int64(writer); ; generation += 2 {
				select {
				case <-stop:
					return
				default:
				}
				for i := range rules {
					rules[i] = Rule{Rate: generation}
				}
				if err := c.replace(rules); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20_000 {
		seen := c.table.Load()
		for i := range seen.rules {
			if seen.rules[i] != seen.rules[0] {
				t.Fatalf("a mixed table: %+v and %+v", seen.rules[0], seen.rules[i])
			}
		}
	}
	close(stop)
	wait.Wait()
	if err := c.replace(make([]Rule, 3)); err == nil {
		t.Error("a table of the wrong size was taken")
	}
}

func TestSetEditsTheRulesOfEveryPairOfTwoHosts(t *testing.T) {
	n := network(t, Config{Hosts: []string{"a", "b", "c"}})
	var seen [][2]int
	n.Set(func(src, dst int, r *Rule) {
		seen = append(seen, [2]int{src, dst})
		r.Delay += time.Duration(src*10 + dst)
	})
	want := [][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}
	if len(seen) != len(want) {
		t.Fatalf("called for %v, want %v", seen, want)
	}
	n.Set(func(src, dst int, r *Rule) {
		if r.Delay != time.Duration(src*10+dst) {
			t.Errorf("%d to %d: the edit before left %v", src, dst, r.Delay)
		}
	})
}
