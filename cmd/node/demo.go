package main

import (
	"context"

	"github.com/spf13/cobra"
)

// demoOptions are the flags of subak demo.
type demoOptions struct {
	keep    bool // leave the cluster running afterwards
	json    bool // print the result as JSON
	plain   bool // no live view, one line for each step
	short   bool // a third of the time
	changes bool // change everything instead
	seed    uint64
	limit   int64 // of the budget, requests/s
}

func (p *program) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch five nodes keep an origin at its cap through floods and a crash",
		Long: `Start an origin that enforces nothing, five nodes and a load generator on this
machine, and play about a minute of calm, flood, flash crowd, crash and restart.
At the end a table says who was served, and whether the origin ever saw more
than the budget allows: then the exit code is 1.

With --changes the cluster is changed under load instead: budget cut and restored,
classes re-split, a node added, one removed, one killed and forgotten.

Ports are chosen free; nothing is left running or on disk.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return untilSignal(cmd.Context(), func(ctx context.Context) error { return startDemo(ctx, p, o) })
		},
	}
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave the cluster running and print the dashboard's address")
	cmd.Flags().BoolVar(&o.plain, "plain", false, "no live view, one line for each step")
	cmd.Flags().BoolVar(&o.short, "short", false, "a third of the time")
	cmd.Flags().BoolVar(&o.changes, "changes", false, "change budget, classes and nodes under load, in place of floods and a crash")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "of the load generator's randomness")
	cmd.Flags().Int64Var(&o.limit, "limit", 1000, "the budget in requests/s; the load grows with it")
	p.jsonFlag(cmd, &o.json)
	return cmd
}
