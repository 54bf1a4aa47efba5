//go:build linux

package wan

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// someRule draws a rule within bounds that does not block.
func someRule() *rapid.Generator[Rule] {
	ppm := rapid.Int64Range(0, million)
	return rapid.Custom(func(t *rapid.T) Rule {
		return Rule{
			Delay:     time.Duration(rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(t, "delay")),
			Jitter:    time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, "jitter")),
			Loss:      ppm.Draw(t, "loss"),
			Duplicate: ppm.Draw(t, "duplicate"),
			Reorder:   ppm.Draw(t, "reorder"),
		}
	})
}

func TestAPacketTravelsForItsDelayGiveOrTakeTheJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRule().Draw(t, "rule")
		l := newLink(rapid.Uint64().Draw(t, "seed"), 0, 1)
		now, last := int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "packets") {
			now += rapid.Int64Range(0, 2*second).Draw(t, "gap")
			p := l.plan(&r, now, 100)
			if p.fate == lost {
				continue
			}
			if p.fate != passed || p.due < now || p.due < now+int64(r.Delay-r.Jitter) {
				t.Fatalf("at %d: %+v is too early", now, p)
			}
			longest := max(now+int64(r.Delay+r.Jitter), last)
			if p.held {
				longest += max(int64(r.Delay)/2, holdMin)
			} else if p.due < last {
				t.Fatalf("at %d: %+v overtakes one due at %d", now, p, last)
			} else {
				last = p.due
			}
			if p.due > longest {
				t.Fatalf("at %d: %+v is later than %d", now, p, longest)
			}
		}
	})
}

func TestAHeldPacketIsOvertaken(t *testing.T) {
	l := newLink(1, 0, 1)
	r := Rule{Delay: 10 * time.Millisecond, Reorder: million}
	held := l.plan(&r, 0, 100)
	r.Reorder = 0
	next := l.plan(&r, 1000, 100)
	if !held.held || next.held || held.due != int64(15*time.Millisecond) || next.due != int64(10*time.Millisecond)+1000 {
		t.Errorf("held %+v, next %+v", held, next)
	}
}

func TestFatesFollowFromSeedPairAndNumberAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		one, two := newLink(seed, 3, 4), newLink(seed, 3, 4)
		r := someRule().Draw(t, "rule")
		var now1, now2 int64
		for range rapid.IntRange(1, 50).Draw(t, "packets") {
			now1 += rapid.Int64Range(0, second).Draw(t, "gap one")
			now2 += rapid.Int64Range(0, second).Draw(t, "gap two")
			if rapid.Bool().Draw(t, "other rule") {
				other := someRule().Draw(t, "rule two")
				other.Block = rapid.Bool().Draw(t, "block")
				one.plan(&r, now1, 100)
				two.plan(&other, now2, 1400)
				continue
			}
			p, q := one.plan(&r, now1, 100), two.plan(&r, now2, 1400)
			if p.fate != q.fate || p.copies != q.copies || p.held != q.held {
				t.Fatalf("the same packet fares differently: %+v and %+v", p, q)
			}
		}
	})
}

func TestPairsAndSeedsDoNotShareTheirChances(t *testing.T) {
	half := Rule{Loss: million / 2}
	pattern := func(seed uint64, src, dst int) []bool {
		l := newLink(seed, src, dst)
		var p []bool
		for range 2000 {
			p = append(p, l.plan(&half, 0, 1).fate == lost)
		}
		return p
	}
	links := [][]bool{
		pattern(1, 0, 1), pattern(1, 1, 0), pattern(1, 0, 2), pattern(1, 2, 1), pattern(2, 0, 1), pattern(0, 0, 1),
	}
	for i, a := range links {
		for _, b := range links[:i] {
			for _, shift := range []int{0, 1, 7} {
				same := 0
				for k := range len(a) - shift {
					if a[k+shift] == b[k] {
						same++
					}
				}
				if same < 850 || same > 1150 {
					t.Errorf("two links agree on %d of 2000 packets, shifted by %d", same, shift)
				}
			}
		}
	}
}

func TestChancesBiteAsOftenAsAsked(t *testing.T) {
	l := newLink(5, 0, 1)
	r := Rule{Loss: 300_000, Duplicate: 100_000, Reorder: 10_000, Jitter: time.Millisecond, Delay: 2 * time.Millisecond}
	const packets = 100_000
	var losses, copies, held int
	var least, most int64 = second, 0
	for i := range int64(packets) {
		now := i * second
		p := l.plan(&r, now, 100)
		if p.fate == lost {
			losses++
			continue
		}
		if p.copies == 2 {
			copies++
		}
		if p.held {
			held++
		} else {
			least, most = min(least, p.due-now), max(most, p.due-now)
		}
	}
	for _, c := range []struct {
		name           string
		got, low, high int
	}{
		{"lost", losses, 29_400, 30_600},
		{"doubled", copies, 6_700, 7_300},
		{"held", held, 600, 800},
		{"shortest µs", int(least / 1000), 1000, 1002},
		{"longest µs", int(most / 1000), 2998, 3000},
	} {
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s: %d, want %d to %d", c.name, c.got, c.low, c.high)
		}
	}
}

func TestCertainAndImpossibleChances(t *testing.T) {
	for _, draw := range []uint64{0, 1, 1 << 63, 1<<64 - 1} {
		if chance(draw, 0) || !chance(draw, million) {
			t.Errorf("draw %d: 0 ppm %v, 1,000,000 ppm %v", draw, chance(draw, 0), chance(draw, million))
		}
	}
}

func TestAPacedLinkCarriesNoMoreThanItsRateAndQueuesNoMoreThanItsQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rule{
			Rate:  rapid.Int64Range(1000, 1_000_000).Draw(t, "rate"),
			Queue: rapid.Int64Range(1500, 100_000).Draw(t, "queue"),
		}
		l := newLink(1, 0, 1)
		now := int64(0)
		type sent struct{ due, bytes int64 }
		var all []sent
		for range rapid.IntRange(1, 80).Draw(t, "packets") {
			now += rapid.Int64Range(0, 20_000_000).Draw(t, "gap")
			length := rapid.Int64Range(20, 1400).Draw(t, "length")
			waiting := int64(0)
			for _, s := range all {
				if s.due > now {
					waiting += s.bytes
				}
			}
			p := l.plan(&r, now, int(length))
			if p.fate == queueFull {
				if waiting+length <= r.Queue-1400 {
					t.Fatalf("dropped with %d bytes waiting", waiting)
				}
				continue
			}
			// The packet being sent is waiting with what is left of it.
			if waiting+length > r.Queue+1400 {
				t.Fatalf("kept with %d bytes waiting", waiting)
			}
			all = append(all, sent{p.due, length})
		}
		for i := range all {
			total := int64(0)
			for _, s := range all[i+1:] {
				total += s.bytes
				if allowed := (s.due-all[i].due)*r.Rate/second + 2; total > allowed {
					t.Fatalf("%d bytes within %d ns at %d bytes/s", total, s.due-all[i].due, r.Rate)
				}
			}
		}
	})
}

func TestANewRuleIsANewWire(t *testing.T) {
	l := newLink(1, 0, 1)
	slow := Rule{Delay: time.Second, Rate: 100}
	l.plan(&slow, 0, 1000)
	fast := Rule{Delay: time.Millisecond}
	if p := l.plan(&fast, 5, 1000); p.due != 5+int64(time.Millisecond) {
		t.Errorf("due at %d: it waits for a packet of the old wire", p.due)
	}
}

func TestRulesAreBroughtWithinBounds(t *testing.T) {
	const most = 1<<63 - 1
	got := Rule{Delay: most, Jitter: -1, Loss: -5, Duplicate: most, Reorder: 7, Rate: -1, Queue: -most}.within()
	want := Rule{Delay: delayMax, Duplicate: million, Reorder: 7}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		any64 := rapid.Int64()
		r := Rule{
			Delay: time.Duration(any64.Draw(t, "delay")), Jitter: time.Duration(any64.Draw(t, "jitter")),
			Loss: any64.Draw(t, "loss"), Duplicate: any64.Draw(t, "duplicate"), Reorder: any64.Draw(t, "reorder"),
			Rate: any64.Draw(t, "rate"), Queue: any64.Draw(t, "queue"),
		}.within()
		l := newLink(1, 0, 1)
		now := rapid.Int64Range(0, 1<<55).Draw(t, "now") // a year
		for range 20 {
			if p := l.plan(&r, now, 9000); p.fate == passed && p.due < now {
				t.Fatalf("due at %d, before %d", p.due, now)
			}
		}
	})
}

func TestScaleIsExactOrSaturates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Min(0).Draw(t, "a"), rapid.Int64Min(0).Draw(t, "b")
		c := rapid.Int64Min(1).Draw(t, "c")
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Quo(want, big.NewInt(c))
		if limit := big.NewInt(1<<62 - 1); want.Cmp(limit) > 0 {
			want = limit
		}
		if got := scale(a, b, c); got != want.Int64() {
			t.Fatalf("%d*%d/%d = %d, want %s", a, b, c, got, want)
		}
	})
}

func TestTheQueueGivesPacketsByDueTimeThenByEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var model []flight
		order := uint64(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if len(model) > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				got := q.pop()
				if want := model[0]; got.due != want.due || got.order != want.order {
					t.Fatalf("got %+v, want %+v", got, want)
				}
				model = model[1:]
				continue
			}
			order++
			f := flight{due: rapid.Int64Range(0, 9).Draw(t, "due"), order: order}
			q.push(f)
			model = append(model, f)
			slices.SortStableFunc(model, func(a, b flight) int { return int(a.due - b.due) })
		}
		if len(q) != len(model) {
			t.Fatalf("%d in the queue, want %d", len(q), len(model))
		}
	})
}
