// Package measure compares things that are measured side by side.
//
// # Model
//
// A [Case] has sides, such as a limiter of ours and one of a peer. A round runs
// batches of all sides in turn, forwards and then backwards (A B B A ...), so
// that whatever else the machine does hits all of them. A round's figure of a
// side is the median of its batches; a [Claim] relates the figures of two sides
// within each round, and its value is the median over the rounds. So a claim
// never compares figures that were taken minutes apart, and neither one bad batch
// nor one bad round moves it much.
//
// # Units
//
// Durations are [time.Duration]; figures are float64 in the unit of their
// [Metric]. Nothing here decides anything but a verdict on a benchmark.
//
// The package reads no clock: sides report what they took. It is not safe for
// concurrent use.
package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Reading is what one batch of one side reports.
type Reading struct {
	Ops     int64         // operations that were completed
	Elapsed time.Duration // wall time of the batch
	CPU     time.Duration // CPU time of the server in it; 0 where none is measured
	Mid     time.Duration // median latency; 0 where none is measured
	Tail    time.Duration // 99th percentile of the latency; likewise
	Value   float64       // of a side that reports a figure of its own; see [Value]
}

// Metric is a figure of a reading.
type Metric uint8

// The metrics.
const (
	Nanos   Metric = iota // wall nanoseconds for each operation
	Rate                  // operations per second
	CPU                   // nanoseconds of CPU for each operation
	Busy                  // CPU time by wall time: how many cores the server kept busy
	Mid                   // median latency, nanoseconds
	Tail                  // 99th percentile of the latency, nanoseconds
	Value                 // what the side says, in the claim's own unit
	Metrics = iota
)

// Of is the metric's figure of a reading, NaN where the reading has none.
func (m Metric) Of(r Reading) float64 {
	ops := float64(r.Ops)
	switch {
	case m == Value:
		return r.Value
	case r.Ops <= 0:
		return math.NaN()
	case m == Nanos:
		return float64(r.Elapsed) / ops
	case m == Rate && r.Elapsed > 0:
		return ops / r.Elapsed.Seconds()
	case m == CPU && r.CPU > 0:
		return float64(r.CPU) / ops
	case m == Busy && r.CPU > 0 && r.Elapsed > 0:
		return float64(r.CPU) / float64(r.Elapsed)
	case m == Mid && r.Mid > 0:
		return float64(r.Mid)
	case m == Tail && r.Tail > 0:
		return float64(r.Tail)
	}
	return math.NaN()
}

// Side is one of the things compared.
type Side struct {
	Name string
	// Batch does some work and says what it took.
	Batch func(context.Context) (Reading, error)
}

// Case is what is measured side by side.
type Case struct {
	// ID names the case: group/what. Its sides and claims are told by it.
	ID string
	// What says in a line what one operation is.
	What string
	// Show are the metrics that the case's table has, in this order.
	Show []Metric
	// Open, unless nil, gets ready what the sides need, and returns what ends it.
	Open func(context.Context) (closed func(), err error)
	// Sides are run in turn; by custom the first is ours.
	Sides []Side
	// Batches of each side in a round, 1 at least.
	Batches int
	// Once marks a case whose one batch is a whole experiment: it has one round.
	Once bool
	// Claims are about the figures of the sides.
	Claims []Claim
}

// Figures are a case's results: by round, side and metric, the median of the
// batches.
type Figures [][][Metrics]float64

// Run plays rounds rounds of the case. After each it calls tell, if not nil. It
// ends with the first error of a batch, which says which side's it was.
func (c *Case) Run(ctx context.Context, rounds int, tell func(round int)) (Figures, error) {
	if c.Once {
		rounds = 1
	}
	if c.Open != nil {
		closed, err := c.Open(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		defer closed()
	}
	var f Figures
	for r := range rounds {
		row, err := c.round(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s, round %d: %w", c.ID, r+1, err)
		}
		f = append(f, row)
		if tell != nil {
			tell(r)
		}
	}
	return f, nil
}

// round runs the batches, every second pass backwards.
func (c *Case) round(ctx context.Context) ([][Metrics]float64, error) {
	got := make([][]Reading, len(c.Sides))
	for b := range max(c.Batches, 1) {
		for i := range c.Sides {
			if b%2 == 1 {
				i = len(c.Sides) - 1 - i
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			r, err := c.Sides[i].Batch(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Sides[i].Name, err)
			}
			got[i] = append(got[i], r)
		}
	}
	out := make([][Metrics]float64, len(c.Sides))
	for i, readings := range got {
		for m := range Metric(Metrics) {
			values := make([]float64, len(readings))
			for j, r := range readings {
				values[j] = m.Of(r)
			}
			out[i][m] = Median(values)
		}
	}
	return out, nil
}

// Over is the metric of one side in every round.
func (f Figures) Over(side int, m Metric) []float64 {
	out := make([]float64, len(f))
	for r := range f {
		out[r] = f[r][side][m]
	}
	return out
}

// Median is the middle value, or the mean of the two in the middle. It is NaN
// where there is no value or one of them is NaN: a figure that is missing in part
// is no figure.
func Median(values []float64) float64 {
	if len(values) == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return s[mid-1] + (s[mid]-s[mid-1])/2
}

// String is the metric's name in files.
func (m Metric) String() string {
	return [Metrics]string{"ns_per_op", "ops_per_second", "cpu_ns_per_op", "cores_busy", "p50_ns", "p99_ns", "value"}[m]
}
