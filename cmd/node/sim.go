package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"subak/chaos/timed"
	"subak/internal/contention"
	"subak/internal/evaluation"
	"subak/internal/evaluation/outcome"
	"subak/internal/evaluation/through"
	"subak/internal/simulate"
	"subak/testbed/topology"
)

func (p *program) simCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Play demand against ways to share a budget, and compare what is served",
		Long: `Play demand against ways to share a budget: the eight contention scenarios, a
scenario of your own, or a trace of your own traffic under your own budget. No
cluster is needed and none is touched.`,
	}
	cmd.AddCommand(p.simScenariosCommand(), p.simMethodsCommand(), p.simRunCommand(), p.simAblateCommand())
	return cmd
}

func (p *program) simScenariosCommand() *cobra.Command {
	var show string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "scenarios",
		Short: "List the contention scenarios, or show the file of one to copy",
		Example: `  subak sim scenarios
  subak sim scenarios --show S5 > mine.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if show != "" {
				text := contention.Source(show)
				if text == nil {
					_, err := contention.Find(show)
					return err
				}
				_, err := p.out.Write(text)
				return err
			}
			var all []contention.Scenario
			for _, name := range contention.Names() {
				s, err := contention.Find(name)
				if err != nil {
					return err
				}
				all = append(all, s)
			}
			if asJSON {
				return printJSON(p.out, all)
			}
			page := &page{}
			for _, s := range all {
				page.line("%s  %s\n    %s", s.Name, s.Title, strings.TrimSpace(s.Why))
			}
			return page.writeTo(p.out)
		},
	}
	cmd.Flags().StringVar(&show, "show", "", "print the file of one scenario")
	p.jsonFlag(cmd, &asJSON)
	return cmd
}

func (p *program) simMethodsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "methods",
		Short: "List the ways to share a budget",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(p.out, evaluation.Methods())
			}
			page := &page{}
			var rows [][]string
			for _, m := range evaluation.Methods() {
				rows = append(rows, []string{m.Name, m.Title, m.Words})
			}
			page.table("", []string{"METHOD", "IN TABLES", "WHAT IT IS"}, rows)
			return page.writeTo(p.out)
		},
	}
	p.jsonFlag(cmd, &asJSON)
	return cmd
}

// simRun is one `subak sim run`.
type simRun struct {
	*program
	methods, lags              string
	seeds, cycles, workers     int
	limit                      int64
	topology                   string
	trace, budget, budgetName  string
	against                    string
	change                     simulate.Change
	json, csv, markdown, quiet bool
	protocol                   bool
	report                     string // file
	limitWords                 string // of a budget that was read
}

func (p *program) simRunCommand() *cobra.Command {
	s := &simRun{program: p}
	cmd := &cobra.Command{
		Use:   "run [all | SCENARIO | FILE.yaml]...",
		Short: "Play scenarios or a trace and print what is served",
		Long: `Play contention scenarios (by name, "all", or files of your own), or with --trace
and --budget your own demand under your own budget, and print what part of the
demand each way to share serves.

A trace is CSV with the columns time, location, class, demand: seconds or RFC 3339
times in order, nodes and classes of the budget, units per second. A fifth column,
legit, is the legitimate part of the demand. The budget file holds nodes and
budgets, as in a node's configuration, which will do as well.

With --against, --set-limit, --set-reserve, --set-weight or --without another budget is
played beside the present one. The clients of a node that is lost go to the others,
by weight.`,
		Example: `  subak sim run all
  subak sim run S3 S5 --method paper,pool-first,revocable --lag 1
  subak sim run mine.yaml --seeds 1
  subak sim run --trace my.csv --budget subak.yaml
  subak sim run --trace my.csv --budget subak.yaml --without fra --set-limit 15000/s
  subak sim run all --json > figures.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&s.methods, "method", "", "ways to share, such as paper,pool-first (see subak sim methods); default all")
	f.StringVar(&s.lags, "lag", "1,0", "1: targets follow the cycle before, 0: the present one")
	f.IntVar(&s.seeds, "seeds", 5, "play every scenario with so many seeds")
	f.IntVar(&s.cycles, "cycles", 600, "cycles of a scenario")
	f.Int64Var(&s.limit, "limit", 100_000, "budget of a scenario, per second")
	f.StringVar(&s.topology, "topology", "cities22", "places of a scenario: cities22, five or a .csv of round trips")
	f.IntVar(&s.workers, "workers", 0, "plays at a time; default one for each core")
	f.StringVar(&s.trace, "trace", "", "CSV of your own demand")
	f.StringVar(&s.budget, "budget", "", "file with nodes and budgets for --trace")
	f.StringVar(&s.budgetName, "budget-name", "", "which of several budgets")
	f.StringVar(&s.against, "against", "", "another file with a budget for the same nodes and classes, to compare with")
	f.StringVar(&s.change.Limit, "set-limit", "", "what if the limit were this, such as 12000/s")
	f.StringToStringVar(&s.change.Reserve, "set-reserve", nil, "what if classes had these reservations, such as high=70%,low=30%")
	f.StringToStringVar(&s.change.Weights, "set-weight", nil, "what if nodes had these weights, such as ams=80")
	f.StringSliceVar(&s.change.Without, "without", nil, "what if these nodes were lost")
	f.BoolVar(&s.protocol, "protocol", true, "with all, also play the scenarios through the protocol, which takes most of the time")
	f.BoolVar(&s.csv, "csv", false, "print CSV instead of tables")
	f.BoolVar(&s.markdown, "markdown", false, "print tables in Markdown")
	f.StringVar(&s.report, "report", "", "write a page with plots to this file")
	f.BoolVar(&s.quiet, "quiet", false, "no progress")
	p.jsonFlag(cmd, &s.json)
	return cmd
}

func (s *simRun) run(ctx context.Context, args []string) error {
	plan, judged, err := s.plan(args)
	if err != nil {
		return err
	}
	r, err := s.play(ctx, plan, "plays")
	if err != nil {
		return err
	}
	r.About.Budget, r.About.WhatIf = s.budgetWords(), s.change.Words()
	if err := s.vertices(r, plan); err != nil {
		return err
	}
	if s.protocol && slices.Equal(args, []string{"all"}) {
		if r.Protocol, err = s.throughProtocol(ctx, plan); err != nil {
			return err
		}
	}
	if judged {
		shifted, err := s.fromNoon(ctx, plan)
		if err != nil {
			return err
		}
		r.Judge(shifted)
	}
	if err := s.print(r); err != nil {
		return err
	}
	if n := r.Broken(); n > 0 {
		return &failure{exitBroken, fmt.Errorf("%s of %d not kept", count(n, "claim", "claims"), len(r.Claims)), ""}
	}
	return nil
}

// fromNoon is S7 with its day begun at noon, by the paper's rule at lag 1.
func (s *simRun) fromNoon(ctx context.Context, plan *evaluation.Plan) (*outcome.Line, error) {
	one, err := contention.Find("S7")
	if err != nil {
		return nil, err
	}
	one.Sun.Begins = one.Sun.Day / 2
	top, err := topology.Find(s.topology)
	if err != nil {
		return nil, err
	}
	methods, err := evaluation.Find([]string{"paper"})
	if err != nil {
		return nil, err
	}
	noon := &evaluation.Plan{Cases: []evaluation.Case{s.scenario(&one, top)}, Methods: methods, Lags: []int{1}, Seeds: plan.Seeds, Workers: plan.Workers}
	rows, err := evaluation.Run(ctx, noon)
	if err != nil {
		return nil, err
	}
	return outcome.New(noon, rows).Find("S7", "paper", 1), nil
}

// vertexEvery is how many cycles apart the two-class LP is solved by the simplex: it
// takes milliseconds where the closed forms take nothing.
const vertexEvery = 60

// vertices adds what the simplex's vertex of the two-class LP serves, where that LP
// is played with two classes and few enough cells.
func (s *simRun) vertices(r *outcome.Report, plan *evaluation.Plan) error {
	if !slices.ContainsFunc(plan.Methods, func(m evaluation.Method) bool { return m.Name == "lp2" }) {
		return nil
	}
	for _, c := range plan.Cases {
		if len(c.Spec.Classes) != 2 || len(c.Spec.Weights) > 100 {
			return nil
		}
		t, err := c.Open(plan.Seeds[0])
		if err != nil {
			return err
		}
		percent, cycles, err := evaluation.Vertex(t, c.Spec, vertexEvery)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		r.Vertices = append(r.Vertices, outcome.Vertex{Case: c.Name, Percent: percent, Cycles: cycles})
	}
	return nil
}

func (s *simRun) budgetWords() string { return first(s.limitWords, fmt.Sprintf("%d/s", s.limit)) }

// protocolLimit is the budget of the plays in which every request is decided: as in
// the testbed.
const protocolLimit = 1100

func (s *simRun) throughProtocol(ctx context.Context, plan *evaluation.Plan) ([]through.Row, error) {
	c := timed.DefaultContest()
	var err error
	if c.Topology, err = topology.Find(s.topology); err != nil {
		return nil, err
	}
	c.Limit = protocolLimit
	p := through.DefaultPlan(c, plan.Seeds, plan.Workers)
	var stop func()
	p.Progress, stop = s.progress("through the protocol")
	rows, err := through.Run(ctx, p)
	stop()
	return rows, err
}

func usage(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...), "see subak sim run --help"}
}

// plan turns the command line into what is played, and says whether the claims about
// the eight scenarios can be judged by it.
func (s *simRun) plan(args []string) (plan *evaluation.Plan, judged bool, err error) {
	plan = &evaluation.Plan{Workers: s.workers}
	if plan.Workers <= 0 {
		plan.Workers = runtime.GOMAXPROCS(0)
	}
	if plan.Methods, err = s.chosen(); err != nil {
		return nil, false, err
	}
	for _, text := range strings.Split(s.lags, ",") {
		lag, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || lag < 0 || lag > 1 || slices.Contains(plan.Lags, lag) {
			return nil, false, usage("--lag %s: write 0, 1 or 1,0", s.lags)
		}
		plan.Lags = append(plan.Lags, lag)
	}
	if s.trace != "" || s.budget != "" {
		if len(args) > 0 || s.trace == "" || s.budget == "" {
			return nil, false, usage("a trace is played by --trace FILE.csv with --budget FILE.yaml, and without scenarios")
		}
		plan.Seeds = []uint64{0}
		plan.Cases, err = s.recorded()
		return plan, false, err
	}
	if !s.change.Zero() || s.against != "" {
		return nil, false, usage("--against, --set-limit, --set-reserve, --set-weight and --without change the budget of a --trace")
	}
	if s.seeds < 1 || s.seeds > 1000 || s.cycles < 3 || s.cycles > 1_000_000 {
		return nil, false, usage("%d seeds of %d cycles: write 1 to 1000 seeds, and 3 to 1000000 cycles", s.seeds, s.cycles)
	}
	for n := range s.seeds {
		plan.Seeds = append(plan.Seeds, uint64(n+1))
	}
	plan.Cases, err = s.scenarios(args)
	published := s.topology == "cities22" && s.cycles == 600 && s.seeds == 5
	return plan, published && slices.Equal(args, []string{"all"}), err
}

// chosen are the methods asked for. Without a budget of one's own there is nothing
// configured.
func (s *simRun) chosen() ([]evaluation.Method, error) {
	if s.methods != "" {
		return evaluation.Find(strings.Split(s.methods, ","))
	}
	all := evaluation.Methods()
	if s.budget == "" {
		all = slices.DeleteFunc(all, func(m evaluation.Method) bool { return m.Name == evaluation.Configured })
	}
	return all, nil
}

// scenarios are the cases of names and files.
func (s *simRun) scenarios(args []string) ([]evaluation.Case, error) {
	if len(args) == 0 {
		return nil, usage("name scenarios, files of your own, or all")
	}
	top, err := topology.Find(s.topology)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && args[0] == "all" {
		args = contention.Names()
	}
	var cases []evaluation.Case
	for _, arg := range args {
		one, err := readScenario(arg)
		if err == nil {
			_, err = one.Trace(top, s.limit, 1)
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(cases, func(c evaluation.Case) bool { return c.Name == one.Name }) {
			return nil, usage("two scenarios are called %s", one.Name)
		}
		cases = append(cases, s.scenario(&one, top))
	}
	return cases, nil
}

// scenario is the case of one scenario.
func (s *simRun) scenario(one *contention.Scenario, top topology.Topology) evaluation.Case {
	return evaluation.Case{
		Name: one.Name, Title: one.Title, Spec: evaluation.ContendedSpec(top, s.limit),
		Open: func(seed uint64) (evaluation.Trace, error) {
			return evaluation.Contended(one, top, s.limit, seed, s.cycles)
		},
	}
}

// readScenario finds one of the eight, or reads a file.
func readScenario(arg string) (contention.Scenario, error) {
	if ext := filepath.Ext(arg); ext != ".yaml" && ext != ".yml" {
		return contention.Find(arg)
	}
	text, err := readFile(arg, 1<<20)
	if err != nil {
		return contention.Scenario{}, err
	}
	return contention.Read(arg, text)
}

// readFile reads a file of bounded size.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: larger than %d bytes; mend: name the right file", name, most)
	}
	return text, err
}

func (s *simRun) readBudget(name string) (*simulate.Budget, error) {
	text, err := readFile(name, 16<<20)
	if err != nil {
		return nil, err
	}
	return simulate.ReadBudget(name, text, s.budgetName)
}

// recorded is the case of a user's trace.
func (s *simRun) recorded() ([]evaluation.Case, error) {
	b, err := s.readBudget(s.budget)
	if err == nil && s.against != "" {
		s.change.Against, err = s.readBudget(s.against)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(s.trace)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	trace, err := evaluation.ReadCSV(f, b.Names(), nil)
	if bad, ok := errors.AsType[*evaluation.FileError](err); ok {
		return nil, fmt.Errorf("%s: %w", s.trace, bad)
	}
	if err != nil {
		return nil, err
	}
	if trace.Cycles() < 3 {
		return nil, fmt.Errorf("%s: %d times; mend: at least 3, for the first two are not counted", s.trace, trace.Cycles())
	}
	if trace.Missing > 0 && !s.quiet {
		fmt.Fprintf(s.err, "%s: %d of %d cells have no row and count as no demand\n", s.trace, trace.Missing, trace.Missing+int64(trace.Rows()))
	}
	s.limitWords = b.Limit()
	return simulate.Cases(trace, b, &s.change)
}

// progress tells how far something is, on a line of a terminal; nil where there is
// none.
func (s *simRun) progress(what string) (tell func(done, all int), stop func()) {
	f, ok := s.err.(*os.File)
	if s.quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func() {}
	}
	started, said := time.Now(), time.Time{}
	tell = func(done, all int) {
		if now := time.Now(); now.Sub(said) > 100*time.Millisecond || done == all {
			said = now
			fmt.Fprintf(s.err, "\r%s: %d of %d, %s ", what, done, all, now.Sub(started).Round(100*time.Millisecond))
		}
	}
	return tell, func() { fmt.Fprint(s.err, "\r\x1b[K") }
}

func (s *simRun) print(r *outcome.Report) error {
	if s.report != "" {
		if err := writeWhole(s.report, r.HTML); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		return r.JSON(s.out)
	case s.csv:
		return r.CSV(s.out)
	case s.markdown:
		return r.Markdown(s.out)
	}
	return r.Table(s.out)
}
