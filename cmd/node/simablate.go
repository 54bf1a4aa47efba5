package main

import (
	"context"

	"github.com/spf13/cobra"

	"subak/internal/config"
	"subak/internal/contention"
	"subak/internal/evaluation"
	"subak/internal/evaluation/outcome"
	"subak/testbed/topology"
)

func (p *program) simAblateCommand() *cobra.Command {
	s := &simRun{program: p, lags: "1", limit: 100_000, topology: "cities22"}
	cmd := &cobra.Command{
		Use:   "ablate",
		Short: "Say what each part of the product's rule is worth",
		Long: `Play the eight scenarios by the product's rule with one thing changed at a time, at
lag 1: limits, headroom, insurance, and other guesses at the coming demand. Then
say what borrowing adds, by how deep the low class's trough is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := s.ablate(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case s.json:
				return printJSON(p.out, a)
			case s.markdown:
				return a.Markdown(p.out)
			}
			return a.Table(p.out)
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.seeds, "seeds", 5, "play every scenario with so many seeds")
	f.IntVar(&s.cycles, "cycles", 600, "cycles of a scenario")
	f.IntVar(&s.workers, "workers", 0, "plays at a time; default one for each core")
	f.BoolVar(&s.markdown, "markdown", false, "print tables in Markdown")
	f.BoolVar(&s.quiet, "quiet", false, "no progress")
	p.jsonFlag(cmd, &s.json)
	return cmd
}

func (s *simRun) ablate(ctx context.Context) (*outcome.Ablation, error) {
	plan, _, err := s.plan([]string{"all"})
	if err != nil {
		return nil, err
	}
	plan.Methods = evaluation.Ablations()
	scenarios, err := s.play(ctx, plan, "ablations")
	if err != nil {
		return nil, err
	}
	if plan.Methods, err = evaluation.Find([]string{"no-borrowing", "paper"}); err != nil {
		return nil, err
	}
	if plan.Cases, err = s.troughs(); err != nil {
		return nil, err
	}
	troughs, err := s.play(ctx, plan, "troughs")
	if err != nil {
		return nil, err
	}
	scenarios.About.Budget = s.budgetWords()
	return outcome.NewAblation(scenarios, troughs), nil
}

// troughs are S6 with ever deeper troughs of the flood.
func (s *simRun) troughs() (cases []evaluation.Case, err error) {
	top, err := topology.Find(s.topology)
	if err != nil {
		return nil, err
	}
	for _, percent := range []config.Percent{150, 100, 75, 50, 40, 30, 23, 15, 5, 0} {
		one, err := contention.Find("S6")
		if err != nil {
			return nil, err
		}
		one.Pulse.Low = percent * config.Whole / 100
		one.Name, one.Title = one.Pulse.Low.String(), one.Pulse.Low.String()
		cases = append(cases, s.scenario(&one, top))
	}
	return cases, nil
}

// play plays a plan with progress.
func (s *simRun) play(ctx context.Context, plan *evaluation.Plan, what string) (*outcome.Report, error) {
	var stop func()
	plan.Progress, stop = s.progress(what)
	rows, err := evaluation.Run(ctx, plan)
	stop()
	if err != nil {
		return nil, err
	}
	return outcome.New(plan, rows), nil
}
