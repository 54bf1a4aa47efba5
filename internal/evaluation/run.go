package evaluation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"subak/allocator"
)

// Case is one demand to play: a scenario or a user's trace, with the budget that it
// is about.
type Case struct {
	Name, Title string
	Spec        *allocator.Spec
	// Open returns the trace for a seed, from its beginning; many may be open at once.
	Open func(seed uint64) (Trace, error)
}

// Plan is what to play: every case by every method, at every lag, with every seed.
type Plan struct {
	Cases   []Case
	Methods []Method
	Lags    []int
	Seeds   []uint64
	// Workers play at once; at least 1.
	Workers int
	// Progress, if set, is told after each play how many of all are done.
	Progress func(done, all int)
}

// Row is one case by one method at one lag.
type Row struct {
	Case, Method string
	Lag          int
	Results      []Result // by seed
}

// Figures of the results over the seeds.
func (r *Row) Figures(of func(*Result) float64) Figures {
	return Spread(len(r.Results), func(n int) float64 { return of(&r.Results[n]) })
}

// Spread is the figures of n values.
func Spread(n int, of func(int) float64) Figures {
	f := Figures{Least: math.Inf(1), Most: math.Inf(-1)}
	for i := range n {
		x := of(i)
		f.Mean += x / float64(n)
		f.Least, f.Most = min(f.Least, x), max(f.Most, x)
	}
	return f
}

// Figures are a mean and its spread.
type Figures struct {
	Mean  float64 `json:"mean"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// High is the part of the first class's demand served, in percent; Legit that of
// the legitimate demand of the last class; Whole that of all demand; Idle the part of
// the budget that was not served while demand reached it.
func High(r *Result) float64  { return r.Classes[0].Percent() }
func Legit(r *Result) float64 { return r.Legit.Percent() }
func Whole(r *Result) float64 { return r.All.Percent() }
func Idle(r *Result) float64 {
	if r.Contended == (Total{}) {
		return 0
	}
	return r.Idle.Percent(r.Contended)
}

// Unplaced is the part of the budget that was in no target although the demand
// that the targets were made from reached it; Worst the least part of the first
// class's demand served in any cycle.
func Unplaced(r *Result) float64 {
	if r.Contended == (Total{}) {
		return 0
	}
	return r.Unplaced.Percent(r.Contended)
}
func Worst(r *Result) float64 { return float64(r.Worst) / 10_000 }

// Run plays a plan. Rows are in the order of cases, methods and lags, whatever the
// number of workers; the first error ends it.
func Run(ctx context.Context, p *Plan) ([]Row, error) {
	if len(p.Cases) == 0 || len(p.Methods) == 0 || len(p.Lags) == 0 || len(p.Seeds) == 0 {
		return nil, errors.New("nothing to play: a plan needs cases, methods, lags and seeds")
	}
	rows := make([]Row, 0, len(p.Cases)*len(p.Methods)*len(p.Lags))
	for i := range p.Cases {
		for _, m := range p.Methods {
			for _, lag := range p.Lags {
				rows = append(rows, Row{p.Cases[i].Name, m.Name, lag, make([]Result, len(p.Seeds))})
			}
		}
	}
	each := len(p.Methods) * len(p.Lags)
	err := Parallel(ctx, p.Workers, len(rows)*len(p.Seeds), p.Progress, func(at int) error {
		row, seed := at/len(p.Seeds), at%len(p.Seeds)
		c := &p.Cases[row/each]
		trace, err := c.Open(p.Seeds[seed])
		if err == nil {
			rows[row].Results[seed], err = Play(trace, &p.Methods[row%each/len(p.Lags)], c.Spec, rows[row].Lag)
		}
		if err != nil {
			return fmt.Errorf("%s, seed %d: %w", c.Name, p.Seeds[seed], err)
		}
		return nil
	})
	return rows, err
}

// Parallel calls do for 0 to n-1 on some workers, until the first error or the end
// of ctx, and tells how many are done.
func Parallel(ctx context.Context, workers, n int, progress func(done, all int), do func(int) error) error {
	var mu sync.Mutex
	next, done := 0, 0
	var failed error
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = ctx.Err()
		}
		if failed != nil || next == n {
			return 0, false
		}
		next++
		return next - 1, true
	}
	finish := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if done++; failed == nil {
			failed = err
		}
		if progress != nil {
			progress(done, n)
		}
	}
	var wg sync.WaitGroup
	for range max(workers, 1) {
		wg.Go(func() {
			for at, ok := take(); ok; at, ok = take() {
				finish(do(at))
			}
		})
	}
	wg.Wait()
	return failed
}
