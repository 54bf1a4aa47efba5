package report

import (
	"math"
	"time"

	"subak/testbed/evidence"
)

// series is one value for each bin of seconds, the first at the end of bin skip.
type series struct {
	bin    float64
	skip   int
	values []float64
}

// end is the instant of value i, in seconds.
func (s series) end(i int) float64 { return float64(s.skip+i+1) * s.bin }

// point is a value at an instant in seconds.
type point struct{ x, y float64 }

func newSeries(bin time.Duration, n int) series {
	if bin <= 0 {
		bin = 100 * time.Millisecond
	}
	return series{bin: bin.Seconds(), values: make([]float64, n)}
}

// add adds counts bin by bin; the longer one gives the length.
func (s *series) add(counts []uint32) {
	for len(s.values) < len(counts) {
		s.values = append(s.values, 0)
	}
	for i, c := range counts {
		s.values[i] += float64(c)
	}
}

// window is the rate/s over the window that ends with each bin, as a meter of
// that width shows it; it begins with the first whole window.
func (s series) window(width time.Duration) series {
	n := max(1, int(math.Round(width.Seconds()/s.bin)))
	out := series{bin: s.bin, skip: s.skip + n - 1}
	sum := 0.0
	for i, v := range s.values {
		sum += v
		if i >= n {
			sum -= s.values[i-n]
		}
		if i >= n-1 {
			out.values = append(out.values, sum/(float64(n)*s.bin))
		}
	}
	return out
}

// plus adds another series of the same bins and beginning.
func (s series) plus(t series) series {
	out := series{bin: s.bin, skip: s.skip, values: make([]float64, max(len(s.values), len(t.values)))}
	copy(out.values, s.values)
	for i, v := range t.values {
		out.values[i] += v
	}
	return out
}

func (s series) max() float64 {
	m := 0.0
	for _, v := range s.values {
		m = math.Max(m, v) // of NaN and v it gives NaN, which axes refuse; see finite
	}
	return finite(m)
}

// finite is v, or 0 where v is none: evidence from a file may hold anything.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// envelope reduces the series to at most 2 points for each of so many columns:
// the lowest and the highest value of a column, in the order in which they came.
// A mean would draw an overshoot of one bin too low, or not at all; so drawn it
// keeps its full height however long the run is.
func (s series) envelope(columns int) []point {
	n := len(s.values)
	at := func(i int) point { return point{s.end(i), finite(s.values[i])} }
	var out []point
	if n <= 2*columns {
		for i := range n {
			out = append(out, at(i))
		}
		return out
	}
	for c := range columns {
		low, high := c*n/columns, c*n/columns
		for i := low; i < (c+1)*n/columns; i++ {
			if s.values[i] < s.values[low] {
				low = i
			}
			if s.values[i] > s.values[high] {
				high = i
			}
		}
		out = append(out, at(min(low, high)))
		if low != high {
			out = append(out, at(max(low, high)))
		}
	}
	return out
}

// limits is the budget over time as corners of a step line: while a change is
// under way the larger of the two binds.
func limits(r *evidence.Run) []point {
	end := runEnd(r).Seconds()
	level := float64(r.Limit)
	out := []point{{0, level}}
	for _, l := range r.Limits {
		at, to := l.At, float64(l.Limit)
		if to < level {
			at = l.In
		}
		x := math.Max(0, math.Min(end, at.Seconds()))
		out = append(out, point{x, level}, point{x, to})
		level = to
	}
	return append(out, point{end, level})
}

// allowed is the most that any window may see, as a rate: limits times
// (window + burst + spread)/window, and for an unchanged limit exactly what the
// bound was judged by. A window over a change may see the larger limit's, so a
// cut counts one window later.
func allowed(r *evidence.Run, window time.Duration) []point {
	steps := limits(r)
	factor := float64(window+r.Burst+r.Origin.Spread) / float64(window)
	if b, ok := result(r, window); ok && len(r.Limits) == 0 && r.Limit > 0 {
		factor = float64(b.Bound) / window.Seconds() / float64(r.Limit)
	}
	out := make([]point, len(steps))
	for i, p := range steps {
		out[i] = point{p.x, p.y * factor}
	}
	end := runEnd(r).Seconds()
	for i := 1; i+1 < len(out); i++ {
		if out[i].x == out[i+1].x && out[i+1].y < out[i].y {
			x := math.Min(end, out[i].x+window.Seconds())
			out[i].x, out[i+1].x = x, x
		}
	}
	return out
}

// runEnd is the run's length, or what its bins say where that is longer.
func runEnd(r *evidence.Run) time.Duration {
	bins := 0
	for _, a := range r.Origin.Arrivals {
		bins = max(bins, len(a))
	}
	return max(r.Length, time.Duration(bins)*r.Bin, time.Second)
}

// arrivals is what reached the origin, class by class, as a rate over width.
func arrivals(r *evidence.Run, width time.Duration) []series {
	out := make([]series, len(r.Origin.Arrivals))
	for k, a := range r.Origin.Arrivals {
		s := newSeries(r.Bin, 0)
		s.add(a)
		out[k] = s.window(width)
	}
	return out
}

func total(parts []series) series {
	var sum series
	for i, s := range parts {
		if i == 0 {
			sum = s
			continue
		}
		sum = sum.plus(s)
	}
	return sum
}

// shares is the sum of what the nodes enforce, over those that answered: a dead
// process enforces nothing.
func shares(r *evidence.Run) series {
	sum := newSeries(r.Bin, 0)
	for i := range r.Series {
		s := &r.Series[i]
		for len(sum.values) < len(s.Share) {
			sum.values = append(sum.values, 0)
		}
		for b, v := range s.Share {
			if b >= len(s.Up) || s.Up[b] > 0 {
				sum.values[b] += finite(v)
			}
		}
	}
	return sum
}
