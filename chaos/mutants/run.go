package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// outcome is what became of one mutant.
type outcome struct {
	Name      string  `json:"name"`
	Rule      string  `json:"rule"`
	Adversary string  `json:"adversary"`
	Caught    bool    `json:"caught"`
	Seeds     int     `json:"seeds"`             // to the first objection, or all that were run
	Checker   string  `json:"checker,omitempty"` // who objected
	Detail    string  `json:"detail,omitempty"`
	Peak      float64 `json:"peak"` // greatest sum of enforced rates / budget
	// Kept is the number of objections to the product itself by the same
	// adversary, over as many seeds.
	Kept    int     `json:"kept"`
	Seconds float64 `json:"seconds"`
	// Fault says why there is no verdict.
	Fault string `json:"fault,omitempty"`
}

func (o *outcome) ok() bool { return o.Caught && o.Kept == 0 && o.Fault == "" }

// keptSeeds is over how many seeds the product is run: as many as the mutant took,
// and some more where a seed costs little.
func keptSeeds(a Adversary, caught int) int {
	if a.Kind == timed {
		return caught
	}
	return max(caught, 100)
}

// hunt builds m and lets its adversary hunt it.
func (b *builder) hunt(ctx context.Context, m *Mutant, product string, seeds int) (o outcome) {
	start := time.Now()
	o = outcome{Name: m.Name, Rule: m.Rule, Adversary: m.Adversary.String()}
	defer func() { o.Seconds = time.Since(start).Seconds() }()
	bin, err := b.simulator(ctx, m)
	if err != nil {
		o.Fault = err.Error()
		return o
	}
	got, err := simulate(ctx, bin, m.Adversary, seeds)
	if err != nil {
		o.Fault = err.Error()
		return o
	}
	o.Seeds, o.Peak = got.Seeds, got.Peak
	if len(got.Violations) > 0 {
		v := got.Violations[0]
		o.Caught, o.Checker, o.Detail = true, v.Checker, v.Detail
	}
	kept, err := simulate(ctx, product, m.Adversary, keptSeeds(m.Adversary, o.Seeds))
	if err != nil {
		o.Fault = err.Error()
		return o
	}
	o.Kept = len(kept.Violations)
	if o.Kept > 0 {
		o.Detail = "product: " + kept.Violations[0].Checker + ": " + kept.Violations[0].Detail
	}
	return o
}

// report is what is read of the simulator's JSON.
type report struct {
	Seeds      int         `json:"seeds"`
	Peak       float64     `json:"peak"`
	Trace      string      `json:"trace"`
	Violations []objection `json:"violations"`
}

type objection struct {
	Checker string `json:"checker"`
	Detail  string `json:"detail"`
}

// simulate runs a simulator to its first objection or to the end of the seeds. An
// adversary that runs all twice objects to traces that differ.
func simulate(ctx context.Context, bin string, a Adversary, seeds int) (report, error) {
	first, err := simulateOnce(ctx, bin, a.args(seeds))
	if err != nil || !a.Twice || len(first.Violations) > 0 {
		return first, err
	}
	again, err := simulateOnce(ctx, bin, a.args(seeds))
	if err == nil && again.Trace != first.Trace {
		first.Violations = []objection{{"replay", "trace " + first.Trace + ", then " + again.Trace}}
	}
	return first, err
}

func simulateOnce(ctx context.Context, bin string, args []string) (r report, err error) {
	cmd := exec.CommandContext(ctx, bin, args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, fmt.Errorf("%v: %w", cmd, err)
	}
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		if exit != nil {
			return r, fmt.Errorf("%v: %w: %s", cmd, err, exit.Stderr)
		}
		return r, fmt.Errorf("%v: %w", cmd, jsonErr)
	}
	return r, nil
}

// huntAll hunts the mutants, jobs at a time, each over at most most seeds (0 means
// as listed), and hands over each outcome in the order of the list.
func (b *builder) huntAll(ctx context.Context, list []Mutant, most, jobs int, each func(outcome)) error {
	product, err := b.simulator(ctx, nil)
	if err != nil {
		return err
	}
	outcomes := make([]outcome, len(list))
	ready := make([]chan struct{}, len(list))
	for i := range ready {
		ready[i] = make(chan struct{})
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for i := range next {
				seeds := list[i].Adversary.Seeds
				if most > 0 {
					seeds = most
				}
				outcomes[i] = b.hunt(ctx, &list[i], product, seeds)
				close(ready[i])
			}
		})
	}
	workers.Go(func() {
		for i := range list {
			next <- i
		}
		close(next)
	})
	for i := range list {
		<-ready[i]
		each(outcomes[i])
	}
	workers.Wait()
	return nil
}
