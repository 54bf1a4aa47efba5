package evaluation

import (
	"math"
	"testing"

	"subak/allocator"
	"subak/internal/contention"
)

func almost(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(b)) }

func sumFloat(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// eachSample calls f with every 50th cycle of every scenario.
func eachSample(t *testing.T, f func(scenario string, budget allocator.Rate, demand []allocator.Rate)) {
	t.Helper()
	for _, scenario := range contention.Names() {
		trace, err := Contended(eight(t, scenario), cities(t), 100_000, 1, 600)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := cyclesOf(t, trace)
		for at := 0; at < len(all); at += 50 {
			f(scenario, 100_000*allocator.Unit, all[at])
		}
	}
}

func TestTheSimplexFindsTheClosedFormOfTheSingleClassLP(t *testing.T) {
	eachSample(t, func(scenario string, budget allocator.Rate, demand []allocator.Rate) {
		high := demand[:len(demand)/2]
		reserved := budget / 10 * 6
		x, err := Throughput(reserved, high)
		if err != nil {
			t.Fatal(err)
		}
		if want := float64(min(reserved, sumOf(high))) / float64(allocator.Unit); !almost(sumFloat(x), want) {
			t.Errorf("%s: simplex %v, closed form %v", scenario, sumFloat(x), want)
		}
		closed := make([]allocator.Rate, len(high))
		if err := (alone{[]allocator.Rate{reserved}, cities(t).Weights()}).Share(closed, high); err != nil {
			t.Fatal(err)
		}
		var served allocator.Rate
		for i, d := range high {
			served += min(d, closed[i])
		}
		if served != min(reserved, sumOf(high)) {
			t.Errorf("%s: the method serves %d, the optimum is %d", scenario, served, min(reserved, sumOf(high)))
		}
	})
}

func TestTheSimplexFindsTheClosedFormOfTheTwoClassLPWithinItsRange(t *testing.T) {
	eachSample(t, func(scenario string, budget allocator.Rate, demand []allocator.Rate) {
		n := len(demand) / 2
		high, low := sumOf(demand[:n]), sumOf(demand[n:])
		x, err := Throughput(budget, demand)
		if err != nil {
			t.Fatal(err)
		}
		if want := float64(min(budget, high+low)) / float64(allocator.Unit); !almost(sumFloat(x), want) {
			t.Errorf("%s: simplex %v, closed form %v", scenario, sumFloat(x), want)
		}
		var r Range
		r.add(budget, high, low)
		least, most := r.Percent()
		vertex := 100 * sumFloat(x[:n]) / (float64(high) / float64(allocator.Unit))
		if vertex < least-1e-6 || vertex > most+1e-6 {
			t.Errorf("%s: the vertex serves %.2f %% of the high class, outside of %.2f to %.2f", scenario, vertex, least, most)
		}
	})
}

func TestTheMethodsOfTheTwoClassLPAreOptimaAtTheEndsAndInTheMiddle(t *testing.T) {
	for _, scenario := range contention.Names() {
		low, centre, oracle := played(t, "lp2-low", scenario, 0), played(t, "lp2", scenario, 0), played(t, "oracle", scenario, 0)
		for _, r := range []Result{low, centre, oracle} {
			if r.Idle != (Total{}) {
				t.Errorf("%s: %.3f of the budget idle, so this is no optimum", scenario, r.Idle.Float())
			}
		}
		least, most := low.LP.Percent()
		if got := low.Classes[0].Percent(); !almost(got, least) {
			t.Errorf("%s: the least of the range is %v, serving the low class first gives %v", scenario, least, got)
		}
		if got := oracle.Classes[0].Percent(); !almost(got, most) {
			t.Errorf("%s: the most of the range is %v, serving the high class first gives %v", scenario, most, got)
		}
		if got := centre.Classes[0].Percent(); got < least-1e-6 || got > most+1e-6 {
			t.Errorf("%s: the centre %v is outside of %v to %v", scenario, got, least, most)
		}
	}
}
