package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuantileIsAtMostOneThirtySecondAboveTheSortedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<36), 1, 200).Draw(t, "values")
		small := rapid.SliceOfN(rapid.Int64Range(0, 100_000), 0, 100).Draw(t, "small")
		values = append(values, small...)
		var h, left, right Histogram
		for i, v := range values {
			h.Add(time.Duration(v))
			[]*Histogram{&left, &right}[i%2].Add(time.Duration(v))
		}
		slices.Sort(values)
		q := rapid.SampledFrom([]float64{0.001, 0.5, 0.9, 0.99, 0.999, 1}).Draw(t, "q")
		want := values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
		got := int64(h.Quantile(q))
		if got < want || got > want+want/32+1 {
			t.Fatalf("quantile %g = %d, want %d to 1/32 above", q, got, want)
		}
		left.Merge(&right)
		if left != h {
			t.Fatal("two halves merged differ from the whole")
		}
	})
}

func TestHistogramTakesAnyDuration(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{math.MinInt64, -1, 0, math.MaxInt64} {
		h.Add(d)
	}
	if h.Count() != 4 || h.Quantile(0.75) != 0 {
		t.Errorf("count %d, p75 %v; want 4 and 0", h.Count(), h.Quantile(0.75))
	}
	var empty Histogram
	if empty.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}
