package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"subak/internal/api"
)

func (p *program) explainCommand() *cobra.Command {
	var a *asker
	cmd := &cobra.Command{
		Use:   "explain BUDGET CLASS [NODE]",
		Short: "Say why a class gets what it gets on a node",
		Long: `Say in figures and words why a class of a budget gets what it gets on a node;
without NODE, on the node that answers.`,
		Example: `  subak explain origin confirmed
  subak explain origin uncleared fra`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return errors.New("name a BUDGET and a CLASS, and a NODE if you like")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			node := first(append(args[2:], "")...)
			return a.ask(cmd.Context(), func(ctx context.Context, c *api.Client) error {
				e, err := c.Explain(ctx, args[0], args[1], node)
				if err != nil {
					return err
				}
				if a.json {
					return printJSON(p.out, e)
				}
				// The explanation has no unit of its own; the status has. Without
				// it the figures still stand.
				unit := "/s"
				if s, err := c.Status(ctx); err == nil {
					unit = unitOf(&s, e.Budget)
				}
				return explainPage(&e, unit).writeTo(p.out)
			})
		},
	}
	a = p.newAsker(cmd)
	return cmd
}

func unitOf(s *api.Status, budget string) string {
	for i := range s.Budgets {
		if s.Budgets[i].Name == budget && s.Budgets[i].Unit != "" {
			return s.Budgets[i].Unit
		}
	}
	return "/s"
}

func explainPage(e *api.Explanation, unit string) *page {
	p := &page{}
	p.line("%s / %s on %s", e.Budget, e.Class, e.Node)
	var rows [][]string
	for _, row := range []struct {
		label, note string
		value       float64
		always      bool
	}{
		{"asks for", "", e.Demand, true},
		{"base", "its own part when nobody borrows", e.Base, true},
		{"keeps", "of its own base", e.Kept, true},
		{"+ level 1", "from its own class elsewhere", e.Level1, false},
		{"+ borrowed", "from other classes", e.Borrowed, false},
		{"+ headroom", "spare beyond all demand", e.Headroom, false},
		{"= target", "what the allocation says", e.Target, true},
		{"lends", "to other classes and nodes", e.Lent, false},
		{"enforces", "now; differs while loans move", e.Share, e.Share >= 0},
	} {
		if row.always || row.value > 0 {
			rows = append(rows, []string{row.label, rate(row.value, unit), row.note})
		}
	}
	p.table("  ", []string{"", ">", ""}, rows)
	for _, words := range e.Words {
		p.line("  %s", words)
	}
	return p
}
