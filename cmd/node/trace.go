package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"subak/allocator"
	"subak/internal/api"
	"subak/internal/evaluation"
)

func (p *program) traceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Record the demand of a running cluster, for subak sim",
	}
	cmd.AddCommand(p.traceRecordCommand())
	return cmd
}

// recording is one `subak trace record`.
type recording struct {
	*asker
	budget, out string
	every, last time.Duration
}

// How often demand may be read: a node makes four snapshots a second at most.
const (
	recordLeast = 250 * time.Millisecond
	recordMost  = time.Hour
)

func (p *program) traceRecordCommand() *cobra.Command {
	r := &recording{}
	cmd := &cobra.Command{
		Use:   "record --out FILE.csv",
		Short: "Write the demand of every location and class to a file, until Ctrl-C",
		Long: `Read the demand of every location and class from one node, over and over, and write
it as a trace that subak sim run --trace plays. It ends after --for, or at Ctrl-C.
The file is there only once it is whole. A location that is not heard has no row.`,
		Example: `  subak trace record --for 1h --out monday.csv
  subak sim run --trace monday.csv --budget subak.yaml --without fra`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case r.out == "":
				return &failure{exitUsage, errors.New("--out is missing"), "write --out FILE.csv"}
			case r.every < recordLeast || r.every > recordMost:
				return &failure{exitUsage, fmt.Errorf("--every %v is not between %v and %v", r.every, recordLeast, recordMost), "write --every 1s"}
			case r.last < 0:
				return &failure{exitUsage, fmt.Errorf("--for %v is negative", r.last), "write --for 10m, or leave it out"}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return r.ask(ctx, r.record)
		},
	}
	r.asker = p.newAsker(cmd)
	f := cmd.Flags()
	f.StringVar(&r.budget, "budget", "", "which of several budgets")
	f.StringVar(&r.out, "out", "", "the file to write")
	f.DurationVar(&r.every, "every", time.Second, "time between two readings")
	f.DurationVar(&r.last, "for", 0, "how long to record; until Ctrl-C by default")
	return cmd
}

// recorded is what a recording came to.
type recorded struct {
	File    string `json:"file"`
	Budget  string `json:"budget"`
	Times   int    `json:"times"`
	Missed  int    `json:"missed"`  // readings without an answer
	Unheard int    `json:"unheard"` // locations not heard, over all times
}

func (r *recording) record(ctx context.Context, c *api.Client) error {
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	b, err := r.chosen(&s)
	if err != nil {
		return err
	}
	names := evaluation.Names{}
	for _, k := range b.Classes {
		names.Classes = append(names.Classes, k.Name)
	}
	for _, cell := range b.Cells {
		names.Nodes = append(names.Nodes, cell.Node)
	}
	if r.last > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, r.last)
		defer stop()
	}
	sum := recorded{File: r.out, Budget: b.Name}
	err = writeWhole(r.out, func(w io.Writer) error {
		trace, err := evaluation.NewCSVWriter(w, names)
		if err != nil {
			return err
		}
		return errors.Join(r.read(ctx, c, trace, names, &s, &sum), trace.Flush())
	})
	if err != nil {
		return err
	}
	if r.json {
		return printJSON(r.program.out, sum)
	}
	page := &page{}
	page.line("%s: budget %s, %s of %s and %s", r.out, sum.Budget, count(sum.Times, "time", "times"), count(len(names.Nodes), "location", "locations"), count(len(names.Classes), "class", "classes"))
	if sum.Missed+sum.Unheard > 0 {
		page.line("%s without an answer, %s not heard", count(sum.Missed, "reading", "readings"), count(sum.Unheard, "location", "locations"))
	}
	return page.writeTo(r.program.out)
}

// chosen is the budget to record.
func (r *recording) chosen(s *api.Status) (*api.Budget, error) {
	var names []string
	for i := range s.Budgets {
		if s.Budgets[i].Name == r.budget || r.budget == "" && len(s.Budgets) == 1 {
			return &s.Budgets[i], nil
		}
		names = append(names, s.Budgets[i].Name)
	}
	what := fmt.Errorf("no budget %q", r.budget)
	if r.budget == "" {
		what = fmt.Errorf("the node has %s", count(len(names), "budget", "budgets"))
	}
	return nil, &failure{exitRefused, what, "name one by --budget: " + strings.Join(names, ", ")}
}

// read writes a cycle for every reading until ctx ends. A change of nodes or classes
// ends it with an error: a trace is of one budget.
func (r *recording) read(ctx context.Context, c *api.Client, trace *evaluation.CSVWriter, names evaluation.Names, s *api.Status, sum *recorded) error {
	ticks := time.NewTicker(r.every)
	defer ticks.Stop()
	demand := make([]allocator.Rate, len(names.Nodes)*len(names.Classes))
	var before time.Time
	for {
		if s != nil && s.Time.After(before) {
			before = s.Time
			unheard, err := demands(demand, s, sum.Budget, names)
			if err == nil {
				err = trace.Write(s.Time.UTC().Format("2006-01-02T15:04:05.000Z"), demand)
			}
			if err != nil {
				return err
			}
			sum.Times++
			sum.Unheard += unheard
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		fresh, err := c.Status(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			sum.Missed++
			s = nil
			fmt.Fprintf(r.err, "%s %v\n", time.Now().Format(time.TimeOnly), err)
		default:
			s = &fresh
		}
	}
}

// demands fills dst, class by class, with -1 where a location is not heard.
func demands(dst []allocator.Rate, s *api.Status, budget string, names evaluation.Names) (unheard int, err error) {
	at := slices.IndexFunc(s.Budgets, func(b api.Budget) bool { return b.Name == budget })
	if at < 0 || len(s.Budgets[at].Cells) != len(names.Nodes) || len(s.Budgets[at].Classes) != len(names.Classes) {
		return 0, fmt.Errorf("the budget %s or its nodes have changed; mend: record anew", budget)
	}
	for i, cell := range s.Budgets[at].Cells {
		if cell.Node != names.Nodes[i] || len(cell.Demand) != len(names.Classes) {
			return 0, fmt.Errorf("the nodes of budget %s have changed; mend: record anew", budget)
		}
		if !cell.Live {
			unheard++
		}
		for k, d := range cell.Demand {
			dst[k*len(names.Nodes)+i] = -1
			if cell.Live && d >= 0 && d <= 1e9 {
				dst[k*len(names.Nodes)+i] = allocator.Rate(math.Round(d * float64(allocator.Unit)))
			}
		}
	}
	return unheard, nil
}
