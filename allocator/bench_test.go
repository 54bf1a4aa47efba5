package allocator

import (
	"fmt"
	"testing"
)

// mixer is a small integer-only generator (splitmix64): the same numbers on
// every machine and Go version.
type mixer uint64

func (m *mixer) next() uint64 {
	*m += 0x9e3779b97f4a7c15
	z := uint64(*m)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n).
func (m *mixer) below(n int64) int64 { return int64(m.next() % uint64(n)) }

// benchSpec is a budget of 100,000/s over uneven locations.
func benchSpec(n, k int, rule func(k int) Rule) Spec {
	r := mixer(9)
	s := Spec{Budget: 100_000 * Unit, Weights: make([]int64, n), Classes: make([]ClassSpec, k)}
	for i := range s.Weights {
		s.Weights[i] = 10 + r.below(90)
	}
	left := s.Budget
	for c := range s.Classes {
		res := left
		if c < k-1 {
			res = left * 3 / 5
		}
		left -= res
		s.Classes[c] = ClassSpec{Reservation: res, Lend: Unlimited, Borrow: Unlimited, Protect: Whole, Rule: rule(c)}
	}
	return s
}

// benchDemand makes one demand vector: class c around scale(c) percent of its
// base, each cell between 0.2 and 1.8 of that.
func benchDemand(r *mixer, a *Allocator, scale func(c int) int64) []Rate {
	out := make([]Rate, a.n*a.k)
	for c := range out {
		out[c] = a.base[c] * Rate(scale(c/a.n)*(200+r.below(1600))) / 100_000
	}
	return out
}

// BenchmarkAllocate measures cycles of scarce, uneven demand that differs from
// one to the next.
//
// Where classes lend freely, the pool goes by priority, and so exactly one class
// has to split: higher ones get all they ask, lower ones just min(demand, base).
// "default" (class 0 proportional, max-min below), "proportional" and "maxmin"
// make each class in turn the one that splits. In "everyclass" (rules as in
// default) nothing is lent, so that every class splits in every cycle. In
// "headroom" demand is below the budget and every class splits its spare.
func BenchmarkAllocate(b *testing.B) {
	standard := func(k int) Rule { return Rule(min(k, 1)) }
	for _, size := range []struct{ n, k, vectors int }{{22, 2, 64}, {1000, 4, 16}, {100_000, 8, 8}} {
		for _, r := range []struct {
			name  string
			rule  func(int) Rule
			lend  PPM
			scale func(vector, class int) int64
		}{
			{"default", standard, Unlimited, nil},
			{"proportional", func(int) Rule { return Proportional }, Unlimited, nil},
			{"maxmin", func(int) Rule { return MaxMin }, Unlimited, nil},
			{"everyclass", standard, 0, func(int, int) int64 { return 150 }},
			{"headroom", standard, Unlimited, func(int, int) int64 { return 60 }},
		} {
			b.Run(fmt.Sprintf("N%dK%d/%s", size.n, size.k, r.name), func(b *testing.B) {
				spec := benchSpec(size.n, size.k, r.rule)
				for k := range spec.Classes {
					spec.Classes[k].Lend = r.lend
				}
				a, err := New(spec)
				if err != nil {
					b.Fatal(err)
				}
				scale := r.scale
				if scale == nil {
					scale = func(vector, class int) int64 {
						if class < vector%a.k {
							return 80
						}
						return 250
					}
				}
				benchAllocate(b, a, size.vectors, scale)
			})
		}
	}
}

func benchAllocate(b *testing.B, a *Allocator, vectors int, scale func(vector, class int) int64) {
	r := mixer(17)
	demand := make([][]Rate, vectors)
	for j := range demand {
		demand[j] = benchDemand(&r, a, func(class int) int64 { return scale(j, class) })
	}
	target := make([]Rate, a.n*a.k)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := a.Allocate(target, demand[i]); err != nil {
			b.Fatal(err)
		}
		if i++; i == len(demand) {
			i = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(a.n*a.k), "ns/cell")
}
