package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"subak/internal/api"
)

// Bounds of following a change.
const (
	followEvery = 200 * time.Millisecond
	followShort = 10 * time.Second // without --wait
	fileMax     = 1 << 20
)

// changer is a command that changes the cluster and follows the change.
type changer struct {
	*asker
	wait    bool
	waitMax time.Duration
	trial   time.Duration // of the canary, if one was asked for
}

func (p *program) newChanger(cmd *cobra.Command) *changer {
	c := &changer{asker: p.newAsker(cmd)}
	cmd.Flags().BoolVar(&c.wait, "wait", false, "return only when the change is in force at every node that is heard, and fail if it is not within --wait-max")
	cmd.Flags().DurationVar(&c.waitMax, "wait-max", 2*time.Minute, "how long --wait waits, besides the canary's time")
	return c
}

func (p *program) applyCommand() *cobra.Command {
	var c *changer
	var r api.ChangeRequest
	var file string
	var trial time.Duration
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Put nodes and budgets of a file in force in the whole cluster",
		Long: `Send the nodes and budgets of a file to any one node, which puts them in force in
the whole cluster. The file may be a whole configuration, of which the rest is
left alone, or hold only nodes: or only budgets:; what it leaves out stays.

The plan is printed first: what changes, and who must acknowledge it. Where a
node's part shrinks it shrinks at once; where it grows, it grows when every node
concerned has acknowledged. The sum is never above the larger of the two budgets,
and requests go on being served all the while.

With --canary one node takes the change up first. If it does well for --trial, the
change goes to all nodes, else it is taken back; subak change promote and subak
change abandon end the trial by hand.

A file that was in force before is refused as too old unless --revert is given.`,
		Example: `  subak apply -f budgets.yaml --dry-run
  subak apply -f budgets.yaml --wait
  subak apply -f budgets.yaml --canary fra --trial 1m --wait`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if r.Name, r.File, err = readChange(file, cmd.InOrStdin()); err != nil {
				return err
			}
			if r.Canary == "" && cmd.Flags().Changed("trial") {
				return &failure{exitUsage, errors.New("--trial is for the canary, and none is named"), "name it by --canary NODE"}
			}
			if r.Canary != "" {
				r.CanarySeconds, c.trial = trial.Seconds(), trial
			}
			return c.change(cmd.Context(), r)
		},
	}
	c = p.newChanger(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&file, "file", "f", "", "the file; - reads standard input")
	flags.StringVar(&r.Canary, "canary", "", "the node that takes the change up first and alone")
	flags.DurationVar(&trial, "trial", 10*time.Second, "how long the canary must do well")
	flags.BoolVar(&r.DryRun, "dry-run", false, "print the plan and change nothing")
	flags.BoolVar(&r.Revert, "revert", false, "allow what was in force before")
	flags.BoolVar(&r.Replace, "replace", false, "take the place of a change that is under way")
	flags.StringVar(&r.Expect, "expect", "", "the epoch (VERSION-HASH, see subak change) that must be in force, else refuse")
	return cmd
}

func (p *program) forgetCommand() *cobra.Command {
	var c *changer
	var r api.ChangeRequest
	cmd := &cobra.Command{
		Use:   "forget NODE...",
		Short: "Give the part of dead nodes to the others",
		Long: `State that the named nodes are dead: their processes do not run, and the machines
will not come back with them running. They lose their place in the cluster, and
their part of every budget goes to the others one term later, when every loan
they may have made or taken has run out.

The statement must be true. A node that is heard is refused; fewer than half of the
nodes can be forgotten at a time. A forgotten node that starts again is told so
and waits, without a share, until subak apply lists it again.`,
		Example: "  subak forget sin --wait",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			r.Forget = names
			return c.change(cmd.Context(), r)
		},
	}
	c = p.newChanger(cmd)
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "print the plan and change nothing")
	return cmd
}

func (p *program) changeCommand() *cobra.Command {
	var c *changer
	cmd := &cobra.Command{
		Use:   "change [EPOCH]",
		Short: "Say how far the newest change, or that of an epoch, has come",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			epoch := strings.Join(args, "")
			return c.ask(cmd.Context(), func(ctx context.Context, client *api.Client) error {
				now, err := client.Progress(ctx, epoch)
				if err != nil {
					return refusedChange(err)
				}
				if !c.wait {
					return c.say(&now)
				}
				return c.follow(ctx, client, &now)
			})
		},
	}
	c = p.newChanger(cmd)
	cmd.AddCommand(
		p.endTrialCommand("promote", "Let all nodes take up the change that a canary tries", (*api.Client).Promote),
		p.endTrialCommand("abandon", "Take back the change that a canary tries", (*api.Client).Abandon))
	return cmd
}

func (p *program) endTrialCommand(name, short string, end func(*api.Client, context.Context) (api.Change, error)) *cobra.Command {
	var c *changer
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, client *api.Client) error {
				now, err := end(client, ctx)
				if err != nil {
					return refusedChange(err)
				}
				return c.follow(ctx, client, &now)
			})
		},
	}
	c = p.newChanger(cmd)
	return cmd
}

// readChange reads the file of a change, - for standard input.
func readChange(file string, in io.Reader) (name, text string, err error) {
	switch file {
	case "":
		return "", "", &failure{exitUsage, errors.New("no file is named"), "name it by -f FILE, or - for standard input"}
	case "-":
		name = "standard input"
	default:
		f, err := os.Open(file)
		if err != nil {
			return "", "", &failure{exitBroken, err, "name a readable file"}
		}
		defer f.Close()
		name, in = file, f
	}
	data, err := io.ReadAll(io.LimitReader(in, fileMax+1))
	switch {
	case err != nil:
		return "", "", &failure{exitBroken, fmt.Errorf("%s: %w", name, err), "name a readable file"}
	case len(data) > fileMax:
		return "", "", &failure{exitBroken, fmt.Errorf("%s is larger than 1 MiB", name), "split or shorten it"}
	case len(data) == 0:
		return "", "", &failure{exitBroken, fmt.Errorf("%s is empty", name), "start from the output of subak config example"}
	}
	return name, string(data), nil
}

// change asks for a change, prints its plan and follows it.
func (c *changer) change(ctx context.Context, r api.ChangeRequest) error {
	return c.ask(ctx, func(ctx context.Context, client *api.Client) error {
		made, err := client.Change(ctx, r)
		if err != nil {
			return refusedChange(err)
		}
		if !c.json {
			if err := planPage(&made).writeTo(c.out); err != nil {
				return err
			}
		}
		if made.State.Done() {
			return c.finish(&made)
		}
		return c.follow(ctx, client, &made)
	})
}

// refusedChange shows what the node said, which has the mend already.
func refusedChange(err error) error {
	refused, ok := errors.AsType[*api.Refused](err)
	if !ok {
		return err
	}
	switch refused.Status {
	case http.StatusBadRequest: // faults of the file, each with its mend
		return &failure{exitBroken, errors.New(refused.Message), ""}
	case http.StatusConflict, http.StatusNotFound:
		what, mend, _ := strings.Cut(refused.Message, "; mend: ")
		return &failure{exitRefused, errors.New(what), mend}
	}
	return err
}

func planPage(c *api.Change) *page {
	p := &page{}
	p.line("plan, from epoch %s:", first(c.Parent, c.Epoch))
	if len(c.Plan) == 0 {
		p.line("  nothing changes")
	}
	for _, w := range c.Plan {
		p.line("  %s", w)
	}
	for _, w := range c.Warnings {
		p.line("warning: %s", w)
	}
	return p
}

// follow prints news of a change until it is done or the time is over. That the
// node does not answer for a while does not end it.
func (c *changer) follow(ctx context.Context, client *api.Client, now *api.Change) error {
	began, said, kept := time.Now(), "", *now
	for {
		if news := newsOf(now); news != said {
			if err := c.tell("%6s  %s", span(time.Since(began).Seconds()), progressWords(now)); err != nil {
				return err
			}
			said = news
		}
		if now.State.Done() {
			now.Parent, now.Warnings = first(now.Parent, kept.Parent), kept.Warnings
			if len(now.Plan) == 0 {
				now.Plan = kept.Plan
			}
			return c.finish(now)
		}
		limit := c.waitMax + c.trial
		if !c.wait {
			limit = followShort
		}
		if time.Since(began) > limit {
			return c.unfinished(now)
		}
		select {
		case <-ctx.Done():
			return c.unfinished(now)
		case <-time.After(followEvery):
		}
		next, err := client.Progress(ctx, now.Epoch)
		switch _, refused := errors.AsType[*api.Refused](err); {
		case err == nil:
			*now = next
		case refused && !busy(err):
			return refusedChange(err)
		default:
			now.Reason = "the node does not answer: " + err.Error()
		}
	}
}

// busy reports whether a node refused because it has no time.
func busy(err error) bool {
	refused, ok := errors.AsType[*api.Refused](err)
	return ok && refused.Status == http.StatusServiceUnavailable
}

// newsOf tells two lines apart that say something else than the time left.
func newsOf(c *api.Change) string {
	news := []string{c.Epoch, string(c.State)}
	for _, n := range c.Nodes {
		news = append(news, fmt.Sprint(n.Name, n.Adopted, n.Acked, n.InForce))
	}
	return strings.Join(news, " ")
}

// progressWords is the state of a change in one line.
func progressWords(c *api.Change) string {
	var adopted, acked, force int
	for _, n := range c.Nodes {
		adopted += one(n.Adopted)
		acked += one(n.Acked)
		force += one(n.InForce)
	}
	switch c.State {
	case api.ChangeCanary:
		return fmt.Sprintf("epoch %s: on trial at %s; %s", c.Epoch, c.Canary, c.Reason)
	case api.ChangeSuperseded, api.ChangeAbandoned, api.ChangeNone:
		return fmt.Sprintf("epoch %s: %s", c.Epoch, c.State)
	}
	words := fmt.Sprintf("epoch %s", c.Epoch)
	if len(c.Nodes) > 0 {
		words += fmt.Sprintf(": adopted by %d of %d, acknowledged by %d, in force at %d", adopted, len(c.Nodes), acked, force)
	}
	named := false
	for _, n := range c.Nodes { // who has acknowledged only waits for the others
		if !n.InForce && !n.Acked && n.Waits != "" {
			words += fmt.Sprintf("; %s: %s", n.Name, n.Waits)
			named = true
		}
	}
	if !named && c.Reason != "" {
		words += "; " + c.Reason
	}
	return words
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// finish prints the end of a change.
func (c *changer) finish(now *api.Change) error {
	if c.json {
		if err := printJSON(c.out, now); err != nil {
			return err
		}
	}
	switch now.State {
	case api.ChangeInForce:
		return c.tell("in force: epoch %s", now.Epoch)
	case api.ChangeNone:
		return c.tell("nothing to change: epoch %s says the same already", now.Epoch)
	case api.ChangePlanned:
		return c.tell("nothing is changed (dry run)")
	case api.ChangeSuperseded:
		if !c.json {
			p := &page{}
			for _, w := range now.Plan {
				p.line("  %s", w)
			}
			if err := p.writeTo(c.out); err != nil {
				return err
			}
		}
		return &failure{exitRefused, fmt.Errorf("epoch %s lost against another change: %s", now.Epoch, now.Reason), "look at what is in force (subak change), and apply anew what is still wanted"}
	}
	return &failure{exitRefused, fmt.Errorf("epoch %s was taken back: %s", now.Epoch, now.Reason), "see the log of the node that was asked, and of the canary, for why"}
}

// unfinished ends the following of a change that goes on by itself.
func (c *changer) unfinished(now *api.Change) error {
	if c.json {
		if err := printJSON(c.out, now); err != nil {
			return err
		}
	}
	if c.wait {
		return &failure{exitBroken, fmt.Errorf("epoch %s is not in force yet: %s", now.Epoch, first(now.Reason, string(now.State))),
			"it goes on by itself: follow it by subak change --wait; start the nodes that it waits for, or subak forget those that will not come back"}
	}
	return c.tell("it goes on by itself; follow it by subak change --wait")
}

// tell prints one line, unless the output is JSON.
func (c *changer) tell(format string, args ...any) error {
	if c.json {
		return nil
	}
	p := &page{}
	p.line(format, args...)
	return p.writeTo(c.out)
}

// say prints the state of a change, without following it.
func (c *changer) say(now *api.Change) error {
	if c.json {
		return printJSON(c.out, now)
	}
	p := &page{}
	p.line("%s", progressWords(now))
	p.fact("state", string(now.State), now.Reason)
	var rows [][]string
	for _, n := range now.Nodes {
		rows = append(rows, []string{n.Name, yesNo(n.Adopted), yesNo(n.Acked), yesNo(n.InForce), millis(n.AgeMillis), n.Waits})
	}
	if len(rows) > 0 {
		p.table("  ", []string{"node", "adopted", "acknowledged", "in force", ">heard", "waits for"}, rows)
	}
	return p.writeTo(c.out)
}
