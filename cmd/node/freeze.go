package main

import (
	"context"

	"github.com/spf13/cobra"

	"subak/internal/api"
)

func (p *program) freezeCommand() *cobra.Command {
	return p.freezing("freeze", true, "Make a node keep to its own base",
		`The kill switch. The node gives back all it borrowed, calls in all it lent, and
keeps to its own base, without any peer's help, until unfreeze or a restart.`,
		"frozen: the node keeps to its own base; undo with subak unfreeze")
}

func (p *program) unfreezeCommand() *cobra.Command {
	return p.freezing("unfreeze", false, "Let a frozen node borrow and lend again",
		"Undo freeze: the node borrows and lends again.",
		"unfrozen: the node borrows and lends again")
}

func (p *program) freezing(name string, on bool, short, long, done string) *cobra.Command {
	var a *asker
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, c *api.Client) error {
				if err := c.Freeze(ctx, on); err != nil {
					return err
				}
				if a.json {
					return printJSON(p.out, map[string]bool{"frozen": on})
				}
				page := &page{}
				page.line("%s", done)
				return page.writeTo(p.out)
			})
		},
	}
	a = p.newAsker(cmd)
	return cmd
}
