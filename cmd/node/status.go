package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"subak/internal/api"
)

func (p *program) statusCommand() *cobra.Command {
	var a *asker
	var watch time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether a node is ready, the budgets are kept and the views agree",
		Long: `Ask one node for its view of itself, its peers and its budgets. With --watch, ask
again and again until Ctrl-C, also while the node does not answer.

` + exitCodes,
		Example: `  subak status
  subak status --watch          every second
  subak status --watch=10s --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch != 0 && (watch < watchLeast || watch > watchMost) {
				return &failure{exitUsage, fmt.Errorf("--watch %v is not between %v and %v", watch, watchLeast, watchMost), "write --watch for every second, or --watch=5s"}
			}
			return a.ask(cmd.Context(), func(ctx context.Context, c *api.Client) error {
				if watch != 0 {
					return a.watchStatus(ctx, c, watch)
				}
				s, err := c.Status(ctx)
				if err == nil {
					err = a.printStatus(&s)
				}
				if err != nil {
					return err
				}
				return verdict(&s)
			})
		},
	}
	cmd.Flags().DurationVar(&watch, "watch", 0, "ask again after this time, until Ctrl-C")
	cmd.Flags().Lookup("watch").NoOptDefVal = "1s"
	a = p.newAsker(cmd)
	return cmd
}

// How often a watched status may be asked for. A node makes four snapshots
// a second at most.
const (
	watchLeast = 100 * time.Millisecond
	watchMost  = time.Hour
)

// clearScreen moves a terminal's cursor to the top and clears what is below.
const clearScreen = "\x1b[H\x1b[2J"

// watchStatus prints the status until ctx ends. What is amiss is on the page, or
// is the page when the node does not answer.
func (a *asker) watchStatus(ctx context.Context, c *api.Client, every time.Duration) error {
	before := ""
	if f, ok := a.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && !a.json {
		before = clearScreen
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		s, err := c.Status(ctx)
		fmt.Fprint(a.out, before)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			_, err = fmt.Fprintf(a.err, "%s %v\n", time.Now().Format(time.TimeOnly), err)
		default:
			err = a.printStatus(&s)
		}
		if err != nil { // nobody reads any more
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

func (a *asker) printStatus(s *api.Status) error {
	if a.json {
		return printJSON(a.out, s)
	}
	return statusPage(s).writeTo(a.out)
}

// verdict turns a status into an exit code; the page has said why.
func verdict(s *api.Status) error {
	for i := range s.Budgets {
		if s.Epoch.Active && exceeds(&s.Budgets[i]) {
			return &failure{code: exitBroken}
		}
	}
	if !s.Ready {
		return &failure{code: exitNotReady}
	}
	return nil
}

// exceeds reports whether the shares in the node's view add up to more than the
// limit; a thousandth is the rounding of the figures.
func exceeds(b *api.Budget) bool { return b.SumShare > b.Limit*1.001 }

func statusPage(s *api.Status) *page {
	p := &page{}
	p.fact("node", fmt.Sprintf("%s of cluster %s, up %s, version %s", s.Node, s.Cluster, span(s.Uptime), first(s.Version, "unknown")))
	if s.Baseline != "" {
		p.fact("BASELINE", s.Baseline+": this node is for comparisons; the budget is not protected")
	}
	p.fact("ready", readyWords(s)...)
	p.fact("ALARM", alarmWords(s.Alarms)...)
	p.fact("budget", keptWords(s)...)
	p.fact("views", viewWords(s)...)
	p.fact("config", configWords(s)...)
	p.fact("change", s.Change)
	p.fact("frozen", frozenWords(s))
	p.fact("dropped", droppedWords(s.Dropped))
	for i := range s.Budgets {
		p.line("")
		budgetPart(p, &s.Budgets[i])
	}
	return p
}

// readyWords says whether the node can do its job, and what is amiss.
func readyWords(s *api.Status) []string {
	words := []string{yesNo(s.Ready)}
	if s.Reason != "" {
		words[0] += ": " + s.Reason
	}
	if s.Provisional {
		return words // it has not begun: nothing below is about it yet
	}
	switch s.Join {
	case api.NeverJoined:
		words = append(words, "it has never met a peer: check gossip.seeds, keys and firewalls")
	case api.LostPeers:
		words = append(words, "it lost its peers and shares with nobody: check the network and the other nodes")
	case api.Alone:
		words = append(words, "a cluster of one by configuration")
	}
	if s.Quarantine > 0 {
		words = append(words, fmt.Sprintf("in quarantine for another %s, until all loans of its former life are over", span(s.Quarantine)))
	}
	if !s.Proved && s.Join != api.Alone {
		words = append(words, "no peer has vouched for it yet, so it may not use its own base")
	}
	return words
}

// alarmWords lists what needs a person.
func alarmWords(alarms []api.Alarm) (words []string) {
	for _, a := range alarms {
		words = append(words, a.Words)
	}
	return words
}

// keptWords says whether any budget is over its limit, by the shares in the
// node's view.
func keptWords(s *api.Status) []string {
	if len(s.Budgets) == 0 {
		return []string{"there are none"}
	}
	var kept, over, words []string
	for i := range s.Budgets {
		b := &s.Budgets[i]
		sum := fmt.Sprintf("%s %s of %s", b.Name, rate(b.SumShare, b.Unit), rate(b.Limit, b.Unit))
		if exceeds(b) {
			over = append(over, sum)
		} else {
			kept = append(kept, sum)
		}
		if b.Shadow {
			words = append(words, fmt.Sprintf("SHADOW: budget %s refuses nothing", b.Name))
		}
	}
	switch {
	case len(over) > 0 && s.Epoch.Active:
		return append([]string{"BROKEN: the live nodes enforce more than the limit: " + list(over)}, words...)
	case len(over) > 0:
		return append([]string{"in transit, a new configuration is not in force everywhere yet: " + list(over)}, words...)
	}
	return append([]string{"kept: the live nodes enforce " + list(kept)}, words...)
}

// viewWords says whether the live nodes see the same, and names those that are
// not part of it.
func viewWords(s *api.Status) []string {
	live, listed := 0, 0
	var differ, gone, refused, strangers []string
	for i := range s.Members {
		m := &s.Members[i]
		switch {
		case m.Refused != "":
			refused = append(refused, fmt.Sprintf("%s (%s)", m.Name, refusedWords(m.Refused)))
		case !m.Listed:
			strangers = append(strangers, m.Name)
		case !m.Live && !m.Self:
			gone = append(gone, fmt.Sprintf("%s (%s)", m.Name, first(m.Gossip, "unknown")))
		case !m.Agrees && !m.Self:
			differ = append(differ, m.Name)
		}
		if m.Listed {
			listed++
		}
		if m.Listed && (m.Live || m.Self) {
			live++
		}
	}
	head := fmt.Sprintf("agree; %d of %d nodes live", live, listed)
	if s.Digests > 1 {
		head = fmt.Sprintf("DIFFER: %d views, normal for a tick or two; %d of %d nodes live", s.Digests, live, listed)
	}
	return []string{head, labelled("other view", differ), labelled("not live", gone), labelled("outside the pool, frozen or just restarted", outside(s)), labelled("refused", refused), labelled("not members", strangers)}
}

// outside names the live nodes that bring nothing to the pool of some budget;
// what such a node enforces by itself is not in the sums.
func outside(s *api.Status) (names []string) {
	for i := range s.Budgets {
		for _, c := range s.Budgets[i].Cells {
			if c.Live && c.Ceiling == 0 && c.Node != s.Node && !slices.Contains(names, c.Node) {
				names = append(names, c.Node)
			}
		}
	}
	return names
}

// labelled is empty without names.
func labelled(label string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return label + ": " + list(names)
}

// configWords names what this node works under, and what its file would change.
func configWords(s *api.Status) []string {
	const shown = 5
	differs := s.FileDiffers
	if more := len(differs) - shown; more > 0 {
		differs = append(slices.Clone(differs[:shown]), fmt.Sprintf("and %d more", more))
	}
	words := []string{epochWords(s)}
	if len(differs) > 0 {
		words = append(words, "this node's file differs, and counts only once it is applied: "+strings.Join(differs, "; "))
	}
	return words
}

func epochWords(s *api.Status) string {
	if s.Provisional {
		return "what is in force is not known here yet"
	}
	e := &s.Epoch
	words := fmt.Sprintf("epoch %d %s, ", e.Version, short(e.Hash))
	switch {
	case e.Active:
		return words + "in force"
	case e.Acked:
		return words + "acknowledged, waiting for the others"
	}
	return words + "not acknowledged yet"
}

func short(hash string) string { return hash[:min(8, len(hash))] }

func frozenWords(s *api.Status) string {
	if s.Frozen {
		return "YES: this node keeps to its own base; undo with subak unfreeze"
	}
	return ""
}

func droppedWords(dropped map[string]uint64) string {
	var words []string
	for reason, n := range dropped {
		if n > 0 {
			words = append(words, fmt.Sprintf("%s %s", number(float64(n)), reason))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// budgetPart writes one budget as this node sees it.
func budgetPart(p *page, b *api.Budget) {
	notes := first(b.Mode, "unknown mode")
	if b.Shadow {
		notes += ", SHADOW: refuses nothing"
	}
	p.line("BUDGET %s: %s, burst %s, %s", b.Name, rate(b.Limit, b.Unit), span(b.BurstSeconds), notes)
	p.line("  live nodes  enforce %s (%s), asked for %s", rate(b.SumShare, b.Unit), percent(b.SumShare, b.Limit), rate(b.SumDemand, b.Unit))
	p.line("  this node   enforces %s = base in force %s%s", rate(b.Share, b.Unit), rate(b.Ceiling, b.Unit), loanWords(b))
	var rows [][]string
	for i := range b.Classes {
		c := &b.Classes[i]
		refusing := rate(c.RefusedRate, b.Unit)
		if math.Round(c.RefusedRate*1000) == 0 {
			refusing = "-"
		}
		rows = append(rows, []string{c.Name, rate(c.Reservation, b.Unit), rate(c.Demand, b.Unit), rate(c.Target, b.Unit), rate(c.Share, b.Unit), refusing,
			number(float64(c.Admitted)), number(float64(c.Refused))})
	}
	p.table("  ", []string{"CLASS HERE", ">RESERVED OF ALL", ">DEMAND", ">TARGET", ">SHARE", ">REFUSING", ">ADMITTED", ">REFUSED"}, rows)
}

func loanWords(b *api.Budget) string {
	words := ""
	if b.Lent > 0 {
		words += " - lent " + rate(b.Lent, b.Unit)
	}
	if b.Borrow > 0 {
		words += " + borrowed " + rate(b.Borrow, b.Unit)
	}
	if b.Ceiling < b.Base*0.999 {
		words += fmt.Sprintf("; configured base %s", rate(b.Base, b.Unit))
	}
	return words
}
