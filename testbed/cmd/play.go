//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"subak/testbed/evidence"
	"subak/testbed/judge"
	"subak/testbed/run"
	"subak/testbed/scenario"
	"subak/testbed/wan"
)

// Variables by which the process outside tells the one inside what is done.
const (
	builtVariable   = "SUBAK_TESTBED_BUILT"
	versionVariable = "SUBAK_TESTBED_VERSION"
)

// wentThrough is the claim that a run without an outcome breaks.
const wentThrough = "the run goes through"

// options are those of testbed run.
type options struct {
	choice
	out      string
	seed     uint64
	keepLogs bool
}

func runCommand(out io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "run [NAME...]",
		Short: "Play scenarios: those named, or the whole list",
		Long: `Play scenarios, store each outcome, print the table of claims and write
report.html. The logs of the nodes are kept where a claim is broken. Ctrl-C ends
everything and leaves nothing behind.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context(), out)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.ci, "ci", false, "only the short list that runs at every change")
	f.StringVar(&o.group, "group", "", "the scenarios of this group, such as contention")
	f.StringVar(&o.variant, "variant", "", "only this variant: subak, static or naive")
	f.StringVar(&o.out, "out", filepath.Join("bin", "testbed-out"), "directory for outcomes, logs and the report")
	f.Uint64Var(&o.seed, "seed", 0, "seed of load and network in place of the scenarios' own")
	f.BoolVar(&o.keepLogs, "keep-logs", false, "keep the logs also where every claim is kept")
	return cmd
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	all, err := scenario.Files()
	if err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	picked, err := o.pick(all)
	if err != nil {
		return err
	}
	b, err := o.outside(ctx, out, picked)
	if err != nil {
		return &failure{exitUsage, err}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	started := time.Now()
	outcomes, err := o.playAll(ctx, out, picked, b.names(picked))
	if err == nil {
		err = o.simulate(ctx, out, b, picked)
	}
	if len(outcomes) > 0 {
		err = errors.Join(err, o.conclude(out, outcomes))
	}
	if err != nil {
		return &failure{exitBroken, err}
	}
	line, kept := verdict(outcomes, time.Since(started))
	fmt.Fprintln(out, line)
	if !kept {
		return &failure{exitBroken, nil}
	}
	return nil
}

// outside is what has to be done before this program runs itself again in
// namespaces of its own, where there is no network. It returns inside only.
func (o *options) outside(ctx context.Context, out io.Writer, picked []scenario.Scenario) (*builder, error) {
	b, err := newBuilder()
	if err != nil {
		return nil, err
	}
	if os.Getenv(builtVariable) != "" {
		return b, nil // see main
	}
	if err := missing(); err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "testbed: building the nodes")
	if err := b.build(ctx, o.choice, picked); err != nil {
		return nil, err
	}
	_ = os.Setenv(versionVariable, b.version()) // fails for a bad name only
	_ = os.Setenv(builtVariable, "1")
	return b, wan.Isolate()
}

// playAll plays every variant of every scenario. It ends early with ctx only.
func (o *options) playAll(ctx context.Context, out io.Writer, picked []scenario.Scenario, bins run.Binaries) (all []evidence.Outcome, err error) {
	total := 0
	for i := range picked {
		total += len(o.variants(&picked[i]))
	}
	n := 0
	for i := range picked {
		for _, v := range o.variants(&picked[i]) {
			n++
			s := newScreen(out, fmt.Sprintf("[%d/%d] %s", n, total, title(&picked[i], v)))
			s.say("%s", picked[i].Title)
			outcome := o.playOne(ctx, s, &picked[i], v, bins)
			if ctx.Err() != nil {
				s.end()
				return all, errors.New("broken off")
			}
			s.conclude(&outcome)
			if err := store(o.out, &outcome); err != nil {
				return all, err
			}
			all = append(all, outcome)
		}
	}
	return all, nil
}

// playOne plays and judges. A run that did not go through is a broken claim.
func (o *options) playOne(ctx context.Context, s *screen, sc *scenario.Scenario, v evidence.Variant, bins run.Binaries) evidence.Outcome {
	var verdicts []evidence.Verdict
	r, err := run.Run(ctx, sc, run.Options{
		Variant: v, Binaries: bins, Seed: o.seed, Say: s.say, Progress: s.progress, Logs: filepath.Join(o.out, "logs"),
		Keep: func(r *evidence.Run) bool {
			verdicts = judge.Judge(sc, r)
			broken := evidence.Outcome{Verdicts: verdicts}
			return o.keepLogs || !broken.Kept()
		},
	})
	if err != nil {
		if r.Scenario == "" {
			r.Scenario, r.Title, r.Variant, r.Started = sc.Name, sc.Title, v, time.Now()
		}
		verdicts = append(verdicts, evidence.Verdict{Claim: wentThrough, Measured: err.Error(), Bound: "no failure"})
	}
	return evidence.Outcome{Run: r, Verdicts: verdicts}
}
