package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"subak/chaos"
)

// enough seeds that every counter that must rise has risen.
const enough = 2000

// campaign runs seeds on several goroutines and adds up what they gave.
type campaign struct {
	options
	rota  []chaos.Mode
	next  atomic.Uint64 // the next seed, counted from 0
	start time.Time
	stop  context.CancelFunc

	mu     sync.Mutex
	total  totals
	failed []failure
}

// totals of a campaign, guarded by campaign.mu.
type totals struct {
	seeds, steps, actions int64
	virtual               time.Duration
	peak                  int64
	hash                  uint64 // sum over seeds: the order does not matter
	seen                  []adversarySeen
}

type adversarySeen struct {
	name     string
	counters []chaos.Counter
	counts   []int64
}

// failure is a seed to which a checker objected.
type failure struct {
	Adversary string `json:"adversary"`
	Seed      uint64 `json:"seed"`
	Mode      string `json:"mode"`
	Profile   string `json:"profile"`
	Checker   string `json:"checker"`
	Step      int64  `json:"step"`
	Detail    string `json:"detail"`
	mode      chaos.Mode
}

func newCampaign(o options, modes []chaos.Mode) *campaign {
	return &campaign{options: o, rota: modes}
}

// run is the whole campaign.
func (c *campaign) run(ctx context.Context, out, errs io.Writer) int {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	if c.limit > 0 {
		inner, stop = context.WithTimeout(inner, c.limit)
		defer stop()
	}
	c.stop, c.start = stop, time.Now()
	c.prepare()
	done := make(chan struct{})
	var workers, bar sync.WaitGroup
	bar.Go(func() { c.progress(done, errs) })
	for range c.jobs {
		workers.Go(func() { c.work(inner) })
	}
	workers.Wait()
	close(done)
	bar.Wait()
	return c.report(ctx.Err() != nil, out)
}

// prepare makes room for the counters.
func (c *campaign) prepare() {
	runners, err := c.runners()
	if err != nil {
		return
	}
	for _, r := range runners {
		c.total.seen = append(c.total.seen, adversarySeen{r.Name(), r.Counters(), make([]int64, len(r.Counters()))})
	}
}

// work runs seeds until there are no more.
func (c *campaign) work(ctx context.Context) {
	runners, err := c.runners()
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		n := c.next.Add(1) - 1
		if n >= c.seeds {
			return
		}
		seed := c.first + n
		for i, r := range runners {
			res := r.Run(seed, modeOf(c.rota, seed), r.steps)
			c.add(i, r.Name(), res)
		}
		c.mu.Lock()
		c.total.seeds++
		c.mu.Unlock()
	}
}

// add counts one result; a violation ends the campaign.
func (c *campaign) add(adversary int, name string, res chaos.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.total
	t.steps += res.Steps
	t.actions += res.Actions
	t.virtual += res.Virtual
	t.peak = max(t.peak, res.PeakPPM)
	t.hash += res.Hash
	for i, n := range res.Seen {
		t.seen[adversary].counts[i] += n
	}
	if v := res.Violation; v != nil {
		c.failed = append(c.failed, failure{name, res.Seed, res.Mode.String(), res.Profile, v.Checker, v.Step, v.Detail, res.Mode})
		c.stop()
	}
}

// missing are the counters that had to rise and did not, if the campaign is
// large enough to tell.
func (c *campaign) missing() (names []string) {
	if c.total.seeds < enough {
		return nil
	}
	for _, a := range c.total.seen {
		for i, k := range a.counters {
			possible := false
			for _, m := range c.rota {
				possible = possible || k.In(m)
			}
			if k.Must && possible && a.counts[i] == 0 {
				names = append(names, a.name+": "+k.Name)
			}
		}
	}
	return names
}

// verdict is the last line.
func (c *campaign) verdict(interrupted bool, missing []string) (line string, code int) {
	took := time.Since(c.start).Seconds()
	t := &c.total
	result, code := "ok", exitOK
	switch {
	case len(c.failed) > 0:
		result, code = "VIOLATION", exitViolation
	case interrupted:
		result, code = "interrupted", exitInterrupted
	case len(missing) > 0:
		result, code = "TOO LITTLE MET", exitTooLittle
	}
	return fmt.Sprintf("sim: %s, %d seeds, %d steps, %d violations, peak %.3f, %.0f seeds/s",
		result, t.seeds, t.steps, len(c.failed), float64(t.peak)/1e6, float64(t.seeds)/took), code
}

func (c *campaign) report(interrupted bool, out io.Writer) int {
	missing := c.missing()
	line, code := c.verdict(interrupted, missing)
	if c.json {
		return c.reportJSON(out, line, missing, code)
	}
	if c.verbose {
		c.printCounters(out)
	}
	if len(c.failed) > 0 {
		c.explain(out)
	}
	for _, name := range missing {
		fmt.Fprintf(out, "never happened: %s\n", name)
	}
	fmt.Fprintln(out, line)
	return code
}

// explain shrinks and describes the first failure.
func (c *campaign) explain(out io.Writer) {
	f := c.failed[0]
	runners, err := c.runners()
	if err != nil {
		return
	}
	for _, r := range runners {
		if r.Name() == f.Adversary {
			fmt.Fprintln(out, r.Explain(f.Seed, f.mode, r.steps))
		}
	}
}

func (c *campaign) printCounters(out io.Writer) {
	for _, a := range c.total.seen {
		for i, k := range a.counters {
			fmt.Fprintf(out, "%12d  %s: %s\n", a.counts[i], a.name, k.Name)
		}
	}
	fmt.Fprintf(out, "%d actions, %v of virtual time, trace %016x\n", c.total.actions, c.total.virtual.Round(time.Second), c.total.hash)
}

func (c *campaign) reportJSON(out io.Writer, line string, missing []string, code int) int {
	took := time.Since(c.start).Seconds()
	seen := map[string]map[string]int64{}
	for _, a := range c.total.seen {
		m := map[string]int64{}
		for i, k := range a.counters {
			m[k.Name] = a.counts[i]
		}
		seen[a.name] = m
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	err := e.Encode(struct {
		Verdict    string                      `json:"verdict"`
		OK         bool                        `json:"ok"`
		Seeds      int64                       `json:"seeds"`
		Steps      int64                       `json:"steps"`
		Actions    int64                       `json:"actions"`
		Peak       float64                     `json:"peak"`
		Seconds    float64                     `json:"seconds"`
		Pace       float64                     `json:"seeds_per_second"`
		Trace      string                      `json:"trace"`
		Violations []failure                   `json:"violations"`
		Missing    []string                    `json:"never_happened"`
		Seen       map[string]map[string]int64 `json:"seen"`
	}{line, code == exitOK, c.total.seeds, c.total.steps, c.total.actions, float64(c.total.peak) / 1e6, took,
		float64(c.total.seeds) / took, fmt.Sprintf("%016x", c.total.hash), c.failed, missing, seen})
	if err != nil {
		return exitUsage
	}
	return code
}
