//go:build linux

package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"subak/internal/api"
	"subak/testbed/cluster"
	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// Polls of a node whose share is timed. One asks what is enforced at that instant
// ([api.Client.Shares]), which costs the node some 50 us and its loop nothing.
const (
	stepEvery = 10 * time.Millisecond
	stepEarly = 100 * time.Millisecond // before the step, for the share before
	stepEnd   = 50 * time.Millisecond  // before its end, for the target
	// A node renews its status four times a second once somebody has asked.
	stepWake = 400 * time.Millisecond
	// reached is the part of the target that counts as all of it.
	reached = 0.99
)

// timeSteps times the demand steps, one after the other.
func (r *session) timeSteps(ctx context.Context) {
	steps := r.whole.Steps
	if steps == nil {
		return
	}
	from := time.Duration(0)
	next := 0
	for _, p := range r.story.Phases {
		if next < steps.Count && p.Name == scenario.StepPhase(next) {
			s, err := r.timeStep(ctx, r.top.Index(steps.At(next)), from, from+p.Length)
			if err != nil {
				return // the run was broken off
			}
			r.record.step(s)
			next++
		}
		from += p.Length
	}
}

// sample is a share at an instant.
type sample struct {
	at    time.Duration
	share float64
}

// timeStep watches the step of node i that lasts from one time to another.
func (r *session) timeStep(ctx context.Context, i int, from, to time.Duration) (evidence.Step, error) {
	if err := r.until(ctx, from-stepEarly); err != nil {
		return evidence.Step{}, err
	}
	client := r.cluster.Client(i)
	var all []sample
	ticker := time.NewTicker(stepEvery)
	defer ticker.Stop()
	woken := false
	for r.record.now() < to-stepEnd {
		if !woken && r.record.now() >= to-stepWake {
			woken = true
			_, _ = client.Status(ctx) // the answer of the next question is what counts
		}
		// The answer is of an instant before it came and after it was asked for;
		// the later one is taken, so that no step seems faster than it was.
		if s, err := client.Shares(ctx); err == nil {
			if share, ok := mainShare(&s); ok {
				all = append(all, sample{r.record.now(), share})
			}
		}
		select {
		case <-ctx.Done():
			return evidence.Step{}, context.Cause(ctx)
		case <-ticker.C:
		}
	}
	target := 0.0
	if s, err := client.Status(ctx); err == nil {
		target = mainTarget(&s)
	}
	s := stepOf(i, from, target, all)
	r.record.eventAt(from, "step", i, "step", "%s", rise(s, all))
	return s, nil
}

// rise tells in words when a share had reached parts of its target.
func rise(s evidence.Step, all []sample) string {
	var parts []string
	for _, percent := range []float64{50, 80, 90, 95, 98, 99} {
		at := "never"
		for _, x := range all {
			if x.at > s.At && x.share >= percent/100*s.Target {
				at = (x.at - s.At).Round(time.Millisecond).String()
				break
			}
		}
		parts = append(parts, fmt.Sprintf("%.0f %%: %s", percent, at))
	}
	return strings.Join(parts, ", ")
}

func mainTarget(s *api.Status) float64 {
	for _, b := range s.Budgets {
		if b.Name == cluster.BudgetName {
			return b.Target
		}
	}
	return 0
}

func mainShare(s *api.Shares) (float64, bool) {
	for _, b := range s.Budgets {
		if b.Name == cluster.BudgetName {
			return b.Total, true
		}
	}
	return 0, false
}

// stepOf is when the share of a node first reached its target, by samples.
func stepOf(i int, from time.Duration, target float64, all []sample) evidence.Step {
	s := evidence.Step{Node: i, At: from, Target: target, Took: -1}
	for _, x := range all {
		if x.at <= from {
			s.Before = x.share
		}
		if s.Took < 0 && x.at > from && target > 0 && x.share >= reached*target {
			s.Took = x.at - from
		}
	}
	return s
}
