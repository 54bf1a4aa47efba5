package measure

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMedianIsTheMiddle(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"one", []float64{3}, 3},
		{"odd, unsorted", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 2, 100}, 3},
		{"infinity aside", []float64{1, 2, math.Inf(1)}, 2},
		{"none", nil, nan},
		{"one that is missing", []float64{1, nan, 2}, nan},
	} {
		before := slices.Clone(tc.values)
		got := Median(tc.values)
		if got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
		if len(before) > 0 && !math.IsNaN(tc.want) && !slices.Equal(before, tc.values) {
			t.Errorf("%s: the values were reordered", tc.name)
		}
	}
}

// Half of the values are not above a median and half are not below, whatever
// their order.
func TestHalfIsOnEitherSideOfAMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 40).Draw(t, "values")
		m := Median(values)
		above, below := 0, 0
		for _, v := range values {
			if v > m {
				above++
			}
			if v < m {
				below++
			}
		}
		if 2*above > len(values) || 2*below > len(values) {
			t.Fatalf("median %v has %d above and %d below of %v", m, above, below, values)
		}
		if again := Median(rapid.Permutation(values).Draw(t, "permuted")); again != m {
			t.Fatalf("median %v, of another order %v", m, again)
		}
	})
}

func TestMetricsOfAReading(t *testing.T) {
	full := Reading{Ops: 500, Elapsed: time.Second / 2, CPU: 250 * time.Millisecond, Mid: 3, Tail: 7, Value: 11}
	for m, want := range map[Metric]float64{Nanos: 1e6, Rate: 1000, CPU: 5e5, Busy: 0.5, Mid: 3, Tail: 7, Value: 11} {
		if got := m.Of(full); got != want {
			t.Errorf("%v is %v, want %v", m, got, want)
		}
		if got := m.Of(Reading{}); m != Value && !math.IsNaN(got) {
			t.Errorf("%v of nothing is %v, want no number", m, got)
		}
	}
}

// rows makes figures of one metric for two sides by round.
func rows(m Metric, ours, theirs []float64) Figures {
	f := make(Figures, len(ours))
	for r := range f {
		f[r] = make([][Metrics]float64, 2)
		f[r][0][m], f[r][1][m] = ours[r], theirs[r]
	}
	return f
}

// A ratio is that of its own round: when the machine is slow in one round, both
// sides are.
func TestARatioIsTheMedianOfTheRatiosOfEachRound(t *testing.T) {
	f := rows(Nanos, []float64{10, 400, 30}, []float64{20, 1000, 50})
	r := Claim{Metric: Nanos, Relation: Ratio, Other: 1, Bound: 0.5}.Judge(f)
	if want := []float64{0.5, 0.4, 0.6}; !slices.Equal(r.Rounds, want) || r.Value != 0.5 || r.State != OK {
		t.Errorf("%v, median %v, %v; want %v, 0.5, ok", r.Rounds, r.Value, r.State, want)
	}
	if low, high := r.Spread(); low != 0.4 || high != 0.6 {
		t.Errorf("from %v to %v, want 0.4 to 0.6", low, high)
	}
}

func TestARatioDoesNotDependOnTheSpeedOfARound(t *testing.T) {
	figure := rapid.Float64Range(1, 1000)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "rounds")
		a, b := rapid.SliceOfN(figure, n, n).Draw(t, "a"), rapid.SliceOfN(figure, n, n).Draw(t, "b")
		c := Claim{Metric: Rate, Relation: Ratio, Other: 1, Bound: 1}
		before := c.Judge(rows(Rate, a, b))
		for i := range n {
			slow := math.Ldexp(1, rapid.IntRange(-8, 8).Draw(t, "slower")) // exact
			a[i] *= slow
			b[i] *= slow
		}
		if after := c.Judge(rows(Rate, a, b)); after.Value != before.Value {
			t.Fatalf("%v, and in slower rounds %v", before.Value, after.Value)
		}
	})
}

func TestVerdictOnOneClaim(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name         string
		relation     Relation
		sense        Sense
		bound        float64
		ours, theirs float64
		want         State
		value        float64
	}{
		{"below what it may be at most", Ratio, AtMost, 0.5, 4, 10, OK, 0.4},
		{"just at it", Ratio, AtMost, 0.5, 5, 10, OK, 0.5},
		{"above it", Ratio, AtMost, 0.5, 6, 10, Short, 0.6},
		{"above what it must be at least", Ratio, AtLeast, 0.5, 6, 10, OK, 0.6},
		{"just at what it must be", Ratio, AtLeast, 0.5, 5, 10, OK, 0.5},
		{"below what it must be", Ratio, AtLeast, 0.5, 4, 10, Short, 0.4},
		{"without a bound", Ratio, NoBound, 0, 4, 10, Noted, 0.4},
		{"a difference within its bound", Difference, AtMost, 8, 18, 10, OK, 8},
		{"a difference above it", Difference, AtMost, 8, 19, 10, Short, 9},
		{"a figure alone", Alone, AtMost, 0, 0, nan, OK, 0},
		{"a figure alone above it", Alone, AtMost, 0, 1, nan, Short, 1},
		{"no figure", Ratio, AtMost, 0.5, nan, 10, Missing, nan},
		{"no figure to compare with", Ratio, AtMost, 0.5, 4, nan, Missing, nan},
		{"no figure and no bound", Ratio, NoBound, 0, nan, 10, Missing, nan},
		{"by zero", Ratio, AtLeast, 0.5, 4, 0, Missing, math.Inf(1)},
	} {
		c := Claim{Metric: Nanos, Relation: tc.relation, Other: 1, Sense: tc.sense, Bound: tc.bound}
		r := c.Judge(rows(Nanos, []float64{tc.ours}, []float64{tc.theirs}))
		if r.State != tc.want || r.Value != tc.value && !(math.IsNaN(r.Value) && math.IsNaN(tc.value)) {
			t.Errorf("%s: %v, %v; want %v, %v", tc.name, r.Value, r.State, tc.value, tc.want)
		}
	}
}

func TestOneClaimThatIsShortOrMissingFailsTheRun(t *testing.T) {
	c := Claim{Metric: Nanos}
	good := []Result{{Claim: c, State: OK}, {Claim: c, State: Noted}}
	for _, tc := range []struct {
		name string
		more []Result
		want bool
	}{
		{"all hold", nil, true},
		{"one is short", []Result{{Claim: c, State: Short}}, false},
		{"one is missing", []Result{c.Fail("no server")}, false},
	} {
		line, ok := Verdict(append(slices.Clone(good), tc.more...))
		if ok != tc.want || ok != strings.HasPrefix(line, "ok, 1 ") {
			t.Errorf("%s: %v %q, want %v", tc.name, ok, line, tc.want)
		}
	}
}

func TestWithoutTimeOnlySpeedHasNoVerdict(t *testing.T) {
	speed, count := Claim{Metric: Nanos}, Claim{Metric: Value}
	for _, tc := range []struct {
		name string
		r    Result
		want State
	}{
		{"speed that is short", Result{Claim: speed, State: Short}, Noted},
		{"speed that would do", Result{Claim: speed, State: OK}, Noted},
		{"speed that was not measured", speed.Fail("no server"), Missing},
		{"a count that is short", Result{Claim: count, State: Short}, Short},
		{"a count that is right", Result{Claim: count, State: OK}, OK},
	} {
		if got := tc.r.Untimed().State; got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// turns is a case that writes down whose turn it was.
func turns(order *strings.Builder, batches int) Case {
	c := Case{ID: "turns", Batches: batches}
	for _, name := range []string{"a", "b", "c"} {
		c.Sides = append(c.Sides, Side{Name: name, Batch: func(context.Context) (Reading, error) {
			order.WriteString(name)
			return Reading{Ops: 1, Elapsed: time.Duration(order.Len())}, nil
		}})
	}
	return c
}

func TestSidesTakeTurnsForwardsAndBackwards(t *testing.T) {
	var order strings.Builder
	c := turns(&order, 3)
	told := 0
	f, err := c.Run(t.Context(), 2, func(int) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	if want := "abccbaabc" + "abccbaabc"; order.String() != want {
		t.Errorf("order %s, want %s", order.String(), want)
	}
	// Of the batches 1, 6, 7 of the first round the figure is the middle one.
	if got := f.Over(0, Nanos); told != 2 || !slices.Equal(got, []float64{6, 15}) {
		t.Errorf("%d rounds told, figures %v; want 2, [6 15]", told, got)
	}
}

func TestAnExperimentIsMadeOnce(t *testing.T) {
	var order strings.Builder
	c := turns(&order, 0)
	c.Once = true
	if f, err := c.Run(t.Context(), 7, nil); err != nil || len(f) != 1 || order.String() != "abc" {
		t.Errorf("%d rounds, order %s, %v; want 1, abc", len(f), order.String(), err)
	}
}

func TestAnErrorNamesItsSideAndEndsTheCase(t *testing.T) {
	broken := errors.New("broken")
	closed := false
	c := Case{ID: "x/y", Open: func(context.Context) (func(), error) { return func() { closed = true }, nil }}
	c.Sides = []Side{{Name: "theirs", Batch: func(context.Context) (Reading, error) { return Reading{}, broken }}}
	_, err := c.Run(t.Context(), 5, nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "theirs") || !closed {
		t.Errorf("%v, closed %v; want the error of theirs, and everything closed", err, closed)
	}
	c.Open = func(context.Context) (func(), error) { return nil, broken }
	if _, err := c.Run(t.Context(), 5, nil); !errors.Is(err, broken) {
		t.Errorf("what could not be opened: %v", err)
	}
}

func TestAnInterruptedCaseEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var order strings.Builder
	c := turns(&order, 5)
	_, err := c.Run(ctx, 5, func(int) { cancel() })
	if !errors.Is(err, context.Canceled) || order.Len() != 15 {
		t.Errorf("%v after %d batches, want an end after the first round's 15", err, order.Len())
	}
}

func TestFiguresAreReadable(t *testing.T) {
	for _, tc := range []struct {
		v    float64
		unit string
		want string
	}{
		{0.44444, "", "0.444"}, {12.345, "", "12.3"}, {1234.5, "", "1234"},
		{3, "tokens", "3 tokens"}, {0, "allocs", "0 allocs"}, {7.256, "ns", "7.26 ns"},
		{-1226, "tokens", "-1226 tokens"}, {64834.2, "/s", "64834 /s"}, {math.NaN(), "ns", "?"}, {1, "", "1.000"},
	} {
		if got := Figure(tc.v, tc.unit); got != tc.want {
			t.Errorf("%v %s: %q, want %q", tc.v, tc.unit, got, tc.want)
		}
	}
}
