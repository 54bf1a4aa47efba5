package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"subak/internal/api"
)

func (p *program) membersCommand() *cobra.Command {
	var a *asker
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the nodes as one node sees them",
		Long: `List the nodes of the cluster as one node sees them: whether they are live, how
old their news is, and whether they see what this node sees.

GOSSIP is what failure detection says. LIVE means fresh news both ways: only live
nodes take part in the sharing. AGE is that of the newest news.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, c *api.Client) error {
				members, err := c.Members(ctx)
				if err != nil {
					return err
				}
				if a.json {
					if members == nil {
						members = []api.Member{}
					}
					return printJSON(p.out, members)
				}
				return membersPage(members).writeTo(p.out)
			})
		},
	}
	a = p.newAsker(cmd)
	return cmd
}

// refusedWords says what is meant by the reason why a peer's rows are refused.
func refusedWords(reason string) string {
	if reason == "fingerprint" {
		return "of another lineage: it began with other nodes or budgets"
	}
	return reason
}

func membersPage(members []api.Member) *page {
	var rows [][]string
	for i := range members {
		m := &members[i]
		name, view := m.Name, "same"
		switch {
		case m.Self:
			name += " (this)"
		case m.Digest == "" || !m.Live:
			view = "-"
		case !m.Agrees:
			view = "OTHER"
		}
		note := ""
		switch {
		case m.Refused != "":
			note = "refused: " + refusedWords(m.Refused)
		case m.Provisional:
			note = "started without memory: asks what is in force"
		case !m.Listed:
			note = "not a member"
		case m.Clock != nil && m.Clock.Verdict != "within":
			note = "clock too " + m.Clock.Verdict + ": no loans with it"
		}
		age, rtt := millis(m.AgeMillis), millis(m.RTTMillis)
		if m.Self {
			age, rtt = "-", "-"
		}
		rows = append(rows, []string{name, m.Address, first(m.Gossip, "unknown"), yesNo(m.Live), age, rtt, fmt.Sprint(m.Weight), view, note})
	}
	p := &page{}
	p.table("", []string{"NODE", "ADDRESS", "GOSSIP", "LIVE", ">AGE", ">RTT", ">WEIGHT", "VIEW", "NOTE"}, rows)
	return p
}
