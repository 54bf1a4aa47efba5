package ledger

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
)

// anyRow draws a plausible row of another node and, often, spoils a field or two.
func anyRow(t *rapid.T, f *fixture) *Row {
	number := rapid.OneOf(rapid.Uint64Range(0, 5), rapid.SampledFrom([]uint64{incA, incA + 1, MaxSeq, MaxSeq + 1, MaxIncarnation, math.MaxUint64})).Draw(t, "number")
	id := NodeID(rapid.OneOf(rapid.IntRange(0, 4), rapid.SampledFrom([]int{-1, 6, math.MaxInt32})).Draw(t, "id"))
	amount := allocator.Rate(rapid.OneOf(rapid.Int64Range(0, int64(20*unit)), rapid.SampledFrom([]int64{-1, int64(MaxRate), math.MaxInt64})).Draw(t, "amount"))

	from := rapid.SampledFrom([]NodeID{b, c, d}).Draw(t, "from")
	r := f.row(from, 1000*uint64(from+1)+rapid.Uint64Range(0, 1).Draw(t, "life"), rapid.Uint64Range(1, 60).Draw(t, "seq"),
		rapid.Uint64Range(0, f.l.seq).Draw(t, "heard"), f.epoch)
	r.Recovering = rapid.Bool().Draw(t, "recovering")
	s := &r.Sections[0]
	s.Demand[0] = allocator.Rate(rapid.Int64Range(0, int64(30*unit)).Draw(t, "demand"))
	if rapid.Bool().Draw(t, "lends") {
		s.Loans = []Loan{{a, 1 + allocator.Rate(rapid.Int64Range(0, int64(10*unit)).Draw(t, "loan"))}}
	}
	if rapid.Bool().Draw(t, "releases") {
		s.Caps = []Cap{{a, rapid.Uint64Range(1, r.Seq).Draw(t, "q"), unit}}
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "spoilt") {
		switch rapid.IntRange(0, 13).Draw(t, "field") {
		case 0:
			r.Node = id
		case 1:
			r.Inc = number
		case 2:
			r.Seq = number
		case 3:
			r.Term = time.Duration(amount)
		case 4:
			r.Epoch.Version = number
		case 5:
			r.Heard[c] = Heard{number, 1}
		case 6:
			r.Heard[a].Seq = number
		case 7:
			r.Heard = append(r.Heard, Heard{number, number})
		case 8:
			r.Extra = []NodeID{id}
		case 9:
			s.Ceiling = amount
		case 10:
			s.Demand = append(s.Demand, amount)
		case 11:
			s.Loans = append(s.Loans, Loan{id, amount})
		case 12:
			s.Caps = append(s.Caps, Cap{id, number, amount})
		case 13:
			s.Demand[0] = amount
		}
	}
	if number == 5 {
		r.Heard = nil
	}
	return r
}

// Whatever is merged, nothing panics or wraps: steps never rise, what is lent and
// the own part stay within the base, and other nodes accept what is published.
func TestAnyRowIsHandledAndWhatIsPublishedIsWellFormed(t *testing.T) {
	outcomes := map[Outcome]int{}
	lent, held := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		f := three(t)
		reader := startFixture(t, func(c *Config) { c.Self, c.Bootstrap = f.dir.Intern("reader"), true }, f.dir, f.epoch)
		var inc uint64
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			f.now += rapid.Int64Range(0, 400*ms).Draw(rt, "dt")
			got := f.l.Merge(f.now, anyRow(rt, f))
			outcomes[got]++
			if got == OwnNameHigher {
				inc = f.l.HighestOwn() + 1
				if inc > MaxIncarnation {
					return
				}
				if err := f.l.Restart(f.now, inc); err != nil {
					rt.Fatal(err)
				}
			}
			f.l.Control(f.now)
			var v View
			f.l.View(f.now, 0, &v)
			targets := make([]allocator.Rate, v.N)
			for i := range targets {
				targets[i] = allocator.Rate(rapid.Int64Range(0, int64(30*unit)).Draw(rt, "target"))
			}
			if change, released := f.l.Settle(f.now, 0, targets); change < 0 || released < 0 {
				rt.Fatalf("change %d, released %d", change, released)
			}
			r := f.l.Publish(f.now, 0)
			if r == nil {
				rt.Fatal("nothing published")
			}
			if got := reader.l.Merge(f.now, r); got != Applied {
				rt.Fatalf("own row %+v: %v", r, got)
			}
			steps := f.l.Steps(f.now, 0, nil)
			for i := range steps {
				if steps[i].Rate < 0 || i > 0 && (steps[i].Rate > steps[i-1].Rate || steps[i].Until <= steps[i-1].Until) {
					rt.Fatalf("steps %v", steps)
				}
			}
			if own, out := steps[len(steps)-1].Rate, f.l.books[0].outstanding(f.now); own+out > 10*unit {
				rt.Fatalf("own part %d and %d lent of 10 units", own, out)
			}
			if f.l.books[0].held(f.now) > 0 {
				held++
			}
			if len(r.Sections[0].Loans) > 0 {
				lent++
			}
			var s Status
			f.l.Status(f.now, &s)
			_ = f.l.Stored()
			if next := f.l.NextEvent(f.now); next <= f.now {
				rt.Fatalf("next event at %d, now %d", next, f.now)
			}
		}
	})
	if outcomes[Applied] == 0 || outcomes[Malformed] == 0 || outcomes[OwnNameHigher] == 0 || lent == 0 || held == 0 {
		t.Errorf("outcomes %v, lent %d times, held %d times: something never happened", outcomes, lent, held)
	}
}
