package allocator

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

func TestLaw10AllocateAllocatesNothing(t *testing.T) {
	m := mixer(3)
	for range 40 {
		sc := m.draw(int(1+m.below(40)), int(1+m.below(6)), 1<<40, m.below(2) == 0)
		a := sc.build(t)
		target, share := make([]Rate, len(sc.demand)), make([]Rate, a.Classes())
		other := make([]Rate, a.Nodes())
		if allocs := testing.AllocsPerRun(10, func() {
			if err := a.Allocate(target, sc.demand); err != nil {
				t.Fatal(err)
			}
			a.Split(share, 1<<30, 0, target)
		}); allocs != 0 {
			t.Fatalf("%v allocations in a cycle of %d locations and %d classes", allocs, a.n, a.k)
		}
		if err := a.SetCeilings(other); err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(10, func() {
			other[0]++
			if err := a.SetCeilings(other); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Fatalf("%v allocations in setting ceilings", allocs)
		}
	}
}

// A radix selection has no pivot to spoil: the worst input keeps all candidates
// in one bucket at every digit.
func TestLaw10SelectionPassesAreBoundedByTheWordWidth(t *testing.T) {
	const n = 1000
	most := 1 + 2*((64+wideBits-1)/wideBits)
	for _, c := range []struct {
		name string
		rem  func(i int) uint64
	}{
		{"all equal", func(int) uint64 { return 1<<62 - 7 }},
		{"sorted", func(i int) uint64 { return uint64(i) << 40 }},
		{"organ pipe", func(i int) uint64 { return uint64(min(i, n-i)) << 40 }},
		{"differ in the last bits", func(i int) uint64 { return 1<<61 + uint64(i%3) }},
		{"one digit apart at every level", func(i int) uint64 { return uint64(1) << (i % 62) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for count := uint32(1); count < n; count = count*2 + 1 {
				s := newScratch(n)
				p := s.newRounding(1, 1<<62)
				out := make([]Rate, n)
				for i := range out {
					s.rem[i] = c.rem(i)
				}
				p.left = uint64(count)
				p.finish(out)
				if s.passes > most {
					t.Errorf("%d passes to choose %d, want at most %d", s.passes, count, most)
				}
				if got := total(out); got != Rate(count) {
					t.Errorf("chose %d, want %d", got, count)
				}
			}
		})
	}
}

// chain builds demand whose deficits join the satisfied cells one at a time:
// each sits just above the level at which the one before it joins.
func chain(n int, budget int64) []Rate {
	left, demand := budget, make([]Rate, n)
	for i := range demand {
		level := left / int64(n-i)
		demand[i] = Rate(level)
		if i > n/2 {
			demand[i] = Rate(2 * level)
		}
		left -= level - 1
	}
	return demand
}

func TestLaw10WaterFillingRoundsStayWithinTheirBound(t *testing.T) {
	const n = 500
	check := func(t interface{ Errorf(string, ...any) }, s *scratch, want, weight []Rate, amount Rate) {
		out := make([]Rate, len(want))
		s.passes = 0
		if left := s.addFill(out, want, weight, amount); total(out)+left != amount {
			t.Errorf("filled %d, left %d of %d", total(out), left, amount)
		}
		hi, lo := bits.Mul64(uint64(amount), uint64(total(weight)))
		width := bits.Len64(lo)
		if hi > 0 {
			width = 64 + bits.Len64(hi)
		}
		if most := 2 + width/2 + 1 + 2*7; s.passes > most {
			t.Errorf("%d passes, want at most %d", s.passes, most)
		}
	}
	ones := make([]Rate, n)
	geometric := make([]Rate, n)
	for i := range ones {
		ones[i], geometric[i] = 1, Rate(1)<<(i%52)
	}
	t.Run("geometric demand", func(t *testing.T) {
		for amount := Rate(1); amount < total(geometric); amount *= 3 {
			check(t, newScratch(n), geometric, ones, amount)
		}
	})
	t.Run("one cell joins at a time", func(t *testing.T) {
		for size := 2; size <= n; size++ {
			check(t, newScratch(size), chain(size, 1<<50), ones[:size], 1<<50)
		}
	})
	t.Run("random", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			size := rapid.IntRange(1, 60).Draw(t, "n")
			want, weight := make([]Rate, size), make([]Rate, size)
			for i := range want {
				want[i], weight[i] = magnitude(t, 1<<50, "want"), 1+magnitude(t, 1<<40, "weight")
			}
			check(t, newScratch(size), want, weight, magnitude(t, 1<<56, "total"))
		})
	})
}

// FuzzAllocate feeds arbitrary demand: it is refused or conserved.
func FuzzAllocate(f *testing.F) {
	f.Add(uint64(1), int64(5), int64(-1), int64(1<<62))
	f.Fuzz(func(t *testing.T, seed uint64, x, y, z int64) {
		m := mixer(seed)
		sc := m.draw(int(1+m.below(9)), int(1+m.below(5)), 1<<40, m.below(2) == 0)
		a := sc.build(t)
		for i, v := range []int64{x, y, z} {
			sc.demand[int(m.below(int64(len(sc.demand)))+int64(i))%len(sc.demand)] = Rate(v)
		}
		target := make([]Rate, len(sc.demand))
		if err := a.Allocate(target, sc.demand); err != nil {
			for c, x := range target {
				if x != 0 {
					t.Fatalf("refused with %v but wrote %d to cell %d", err, x, c)
				}
			}
			return
		}
		if got := total(target) + a.Parked(); got != sc.inForce() {
			t.Fatalf("sum %d, want %d", got, sc.inForce())
		}
	})
}
