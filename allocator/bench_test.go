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

// benchSpec is a budget of 100,000/s over uneven locations. Nothing is
// lent, so that scarce demand makes every class split its deficits.
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
		s.Classes[c] = ClassSpec{Reservation: res, Borrow: Unlimited, Protect: Whole, Rule: rule(c)}
	}
	return s
}

// benchDemand makes demand vectors around scale percent of base, each cell
// between 0.2 and 1.8 of that.
func benchDemand(a *Allocator, count int, scale int64) [][]Rate {
	r := mixer(17)
	out := make([][]Rate, count)
	for j := range out {
		out[j] = make([]Rate, a.n*a.k)
		for c := range out[j] {
			out[j][c] = a.base[c] * Rate(scale*(200+r.below(1600))) / 100_000
		}
	}
	return out
}

// BenchmarkAllocate measures a cycle in which every class really splits: scarce,
// uneven demand that differs from one iteration to the next. "default" is
// proportional for class 0 and max-min below; "headroom" is demand below budget.
func BenchmarkAllocate(b *testing.B) {
	rules := []struct {
		name  string
		rule  func(int) Rule
		scale int64
	}{
		{"default", func(k int) Rule { return Rule(min(k, 1)) }, 150},
		{"proportional", func(int) Rule { return Proportional }, 150},
		{"maxmin", func(int) Rule { return MaxMin }, 150},
		{"headroom", func(int) Rule { return Proportional }, 70},
	}
	for _, size := range []struct{ n, k, vectors int }{{22, 2, 64}, {1000, 4, 16}, {100_000, 8, 2}} {
		for _, r := range rules {
			b.Run(fmt.Sprintf("N%dK%d/%s", size.n, size.k, r.name), func(b *testing.B) {
				a, err := New(benchSpec(size.n, size.k, r.rule))
				if err != nil {
					b.Fatal(err)
				}
				demand := benchDemand(a, size.vectors, r.scale)
				target := make([]Rate, size.n*size.k)
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
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.n*size.k), "ns/cell")
			})
		}
	}
}
