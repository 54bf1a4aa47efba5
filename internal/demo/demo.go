package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"subak/testbed/load"
)

// Options says how to run the demo. Zero values stand for the defaults named.
type Options struct {
	// Exe is the subak binary to start the nodes from. Required.
	Exe string
	// OriginArgs makes Exe run [ServeOrigin] (default "demo-origin").
	OriginArgs []string
	// Out gets the table and the verdict, or the JSON. Progress goes there too,
	// live when it is a terminal, unless JSON is set. Required.
	Out io.Writer
	// Err gets the progress when JSON is set (default: nobody).
	Err io.Writer
	// Limit is the budget in requests/s (default 1000). The load grows with it:
	// 2.5 requests are offered for each one of the limit, and a machine that
	// cannot keep up makes the run void.
	Limit int64
	// Scale stretches the minute of the script (default 1, 0.25 to 60). Below a
	// quarter the loans of the killed node would outlast its phase.
	Scale float64
	// Seed fixes all arrivals (default: the time, and it is reported).
	Seed uint64
	// Keep leaves the cluster up under a repeating load, after the verdict, until
	// the context ends.
	Keep bool
	// JSON prints the Result as JSON in place of the table.
	JSON bool
	// NoTTY prints plain progress lines also on a terminal.
	NoTTY bool
}

func (o *Options) validate() error {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Limit == 0 {
		o.Limit = 1000
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	if len(o.OriginArgs) == 0 {
		o.OriginArgs = []string{"demo-origin"}
	}
	var errs []error
	if o.Exe == "" || o.Out == nil {
		errs = append(errs, errors.New("demo: Exe and Out are required"))
	}
	if !(o.Scale >= 0.25 && o.Scale <= 60) {
		errs = append(errs, fmt.Errorf("demo: scale %g is outside 0.25..60", o.Scale))
	}
	if o.Limit < 100 || o.Limit > 100_000 {
		errs = append(errs, fmt.Errorf("demo: limit %d/s is outside 100..100000", o.Limit))
	}
	return errors.Join(errs...)
}

// Verdict is the outcome of a run.
type Verdict struct {
	Kept       bool // the bound held in every phase and window
	Meaningful bool // and the run was a test of it
	Line       string
	Result     Result
}

// OK is exit status 0.
func (v Verdict) OK() bool { return v.Kept && v.Meaningful }

// Run starts everything, plays the script, prints the result and stops
// everything. An error means that there is no result: a process did not start or
// ended by itself, or ctx ended first. When ctx ends while the cluster is kept
// for [Options.Keep], that is no error.
func Run(ctx context.Context, opt Options) (Verdict, error) {
	if err := opt.validate(); err != nil {
		return Verdict{}, err
	}
	progress := opt.Out
	if opt.JSON {
		progress = opt.Err
		if progress == nil {
			progress = io.Discard
		}
	}
	ui := newScreen(progress, opt.NoTTY)
	defer ui.end()
	c, err := newCluster(opt, ui)
	if err != nil {
		return Verdict{}, err
	}
	defer c.close()
	if err := c.up(ctx); err != nil {
		return Verdict{}, err
	}
	e, err := c.play(ctx)
	if err != nil {
		return Verdict{}, err
	}
	r := conclude(&c.plan, e)
	v := Verdict{Kept: len(r.Broken) == 0, Meaningful: len(r.Void) == 0, Line: r.Verdict, Result: r}
	ui.end()
	if err := printResult(opt, &r); err != nil {
		return v, err
	}
	if opt.Keep {
		return v, c.keep(ctx)
	}
	return v, nil
}

func printResult(opt Options, r *Result) error {
	if opt.JSON {
		enc := json.NewEncoder(opt.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	_, err := fmt.Fprintf(opt.Out, "%s\n%s\n", table(r), r.Verdict)
	return err
}

// keep leaves the cluster up under the load of the first three phases, again and
// again, until ctx ends.
func (c *cluster) keep(ctx context.Context) error {
	c.ui.say("\nThe cluster stays up under load until Ctrl-C. Dashboards:")
	for i, a := range c.at {
		c.ui.say("  %s  http://%s/", c.plan.nodes[i].name, a.admin)
	}
	c.ui.say("Files: %s", c.dir)
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.watchOver(ctx, cancel) })
	err := c.loadForEver(ctx)
	cancel(err)
	wg.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return err
}

func (c *cluster) loadForEver(ctx context.Context) error {
	p := c.plan
	p.phases = p.phases[:3]
	for seed := c.opt.Seed + 1; ctx.Err() == nil; seed++ {
		g, err := load.New(load.Config{Seed: seed, Phases: p.loadPhases(), Streams: p.streams(c.proxies())})
		if err != nil {
			return err
		}
		_ = g.Run(ctx) // its only error is that of the context
	}
	return nil
}

// tempDir makes the directory of one run, readable by this user only.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "subak-demo-")
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	return dir, nil
}
