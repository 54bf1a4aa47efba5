package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"subak/testbed/peers/counters"
	"subak/testbed/peers/doors"
	"subak/testbed/peers/library"
	"subak/testbed/peers/measure"
	"subak/testbed/peers/place"
	"subak/testbed/peers/show"
)

// options are the flags.
type options struct {
	only   string
	rounds int
	smoke  bool
	json   bool
	list   bool
	floors bool
	out    string
	node   string
	repo   string
}

func rootCommand(out, errs io.Writer, code *int) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "bench-peers",
		Short: "Measure Subak beside its peers and judge the claims",
		Args:  cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			*code, err = o.run(c.Context(), out, errs)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.only, "only", "", "measure only the cases whose name matches this regular expression")
	f.IntVar(&o.rounds, "rounds", 9, "rounds of every case; at least 5 for a verdict")
	f.BoolVar(&o.smoke, "smoke", false, "see in a few seconds that everything runs; no verdict on speed")
	f.BoolVar(&o.json, "json", false, "print the report as JSON; the tables go to standard error")
	f.BoolVar(&o.floors, "floors", false, "measure each floor beside itself instead: how far from 1 noise makes a ratio")
	f.BoolVar(&o.list, "list", false, "list cases and claims, measure nothing")
	f.StringVar(&o.out, "out", "", "directory for report.txt, report.json and report.svg")
	f.StringVar(&o.node, "node", "bin/subak", "the subak program whose doors are measured")
	f.StringVar(&o.repo, "repo", ".", "the source of Subak, for the build without counters")
	return c
}

// run measures and returns the exit code.
func (o *options) run(ctx context.Context, out, errs io.Writer) (int, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return exitUsage, fmt.Errorf("--only: %w", err)
	}
	if o.rounds < 5 && !o.smoke {
		return exitUsage, fmt.Errorf("--rounds %d: a verdict needs 5", o.rounds)
	}
	cases, where, err := o.cases()
	if err != nil {
		return exitUsage, err
	}
	var chosen []measure.Case
	for _, c := range cases {
		if only.MatchString(c.ID) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return exitUsage, fmt.Errorf("--only %q: no such case; see --list", o.only)
	}
	if o.list {
		list(out, chosen)
		return 0, nil
	}
	screen := out
	if o.json {
		screen = errs
	}
	var kept strings.Builder
	r := &run{options: o, screen: io.MultiWriter(screen, &kept), progress: screen}
	r.report = show.Report{Started: time.Now().UTC().Truncate(time.Second), Rounds: o.rounds, Smoke: o.smoke, Machine: machine(where)}
	defer place.Favour()()
	ok := r.all(ctx, chosen)
	if err := ctx.Err(); err != nil {
		return exitShort, err
	}
	if o.json {
		err = r.report.JSON(out)
	}
	if o.out != "" && err == nil {
		err = r.save(kept.String())
	}
	if !ok || err != nil {
		return exitShort, err
	}
	return 0, nil
}

// cases are all cases at the scale that the flags ask for.
func (o *options) cases() ([]measure.Case, place.Place, error) {
	lib := library.Scale{Batch: 4 * time.Millisecond, Batches: 10}
	span := 10 * time.Second
	door := doors.Scale{Batch: 125 * time.Millisecond, Batches: 8, Keys: 1_000_000}
	if o.smoke {
		o.rounds = 1
		lib = library.Scale{Batch: time.Millisecond, Batches: 2}
		span = time.Second
		door = doors.Scale{Batch: 50 * time.Millisecond, Batches: 2, Keys: 20_000}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, place.Place{}, err
	}
	node, err := filepath.Abs(o.node)
	if err != nil {
		return nil, place.Place{}, err
	}
	b := &doors.Bench{Self: self, Node: node, Place: place.Find(), Scale: door}
	if o.floors {
		return b.Floors(), b.Place, nil
	}
	all := append(lib.Cases(), counters.Scale(lib).Cases(o.repo)...)
	all = append(all, library.Stress(span)...)
	return append(all, b.Cases()...), b.Place, nil
}

func list(w io.Writer, cases []measure.Case) {
	for _, c := range cases {
		fmt.Fprintf(w, "%s: %s\n", c.ID, c.What)
		for _, cl := range c.Claims {
			fmt.Fprintf(w, "  %-28s %-12s %s\n", cl.ID, cl.BoundText(), cl.What)
		}
	}
}

// run is one run of the program.
type run struct {
	*options
	screen   io.Writer // tables: shown and kept
	progress io.Writer // what is shown while a case runs
	report   show.Report
	results  []measure.Result
}

// all plays the cases and judges.
func (r *run) all(ctx context.Context, cases []measure.Case) bool {
	began := time.Now()
	m := r.report.Machine
	fmt.Fprintf(r.screen, "%d cores of %s, %s, %s\n%s\n%d rounds of alternating batches; each figure is a median, each ratio that of its own round\n",
		m.Cores, m.CPU, m.OS, m.Go, m.Place, r.rounds)
	for i := range cases {
		if ctx.Err() != nil {
			return false
		}
		r.results = append(r.results, r.one(ctx, &cases[i])...)
	}
	r.report.Seconds = math.Round(time.Since(began).Seconds()*10) / 10
	r.report.AddClaims(r.results)
	r.report.Verdict, r.report.OK = measure.Verdict(r.results)
	if r.smoke {
		r.report.Verdict += "; everything was run, without a verdict on speed"
	}
	fmt.Fprintf(r.screen, "\nsummary\n")
	show.Summary(r.screen, r.results)
	fmt.Fprintf(r.screen, "bench-peers: %s, %.0f s\n", r.report.Verdict, r.report.Seconds)
	return r.report.OK
}

// one plays one case and shows it.
func (r *run) one(ctx context.Context, c *measure.Case) []measure.Result {
	fmt.Fprintf(r.screen, "\n%s: %s\n", c.ID, c.What)
	fmt.Fprint(r.progress, "  ")
	f, err := c.Run(ctx, r.rounds, func(int) { fmt.Fprint(r.progress, ".") })
	fmt.Fprintln(r.progress)
	var results []measure.Result
	for _, cl := range c.Claims {
		var res measure.Result
		if err != nil {
			res = cl.Fail(err.Error())
		} else {
			res = cl.Judge(f)
		}
		if r.smoke {
			res = res.Untimed()
		}
		results = append(results, res)
	}
	if err != nil {
		fmt.Fprintln(r.screen, "  not measured:", err)
		return results
	}
	show.Case(r.screen, c, f, results)
	r.report.AddCase(c, f)
	return results
}

// save writes the report's files.
func (r *run) save(text string) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	m := r.report.Machine
	title := fmt.Sprintf("Ours beside others: measured ratio (bar), all rounds (line) and bound (mark); %d cores of %s", m.Cores, m.CPU)
	for name, write := range map[string]func(io.Writer) error{
		"report.txt":  func(w io.Writer) error { _, err := io.WriteString(w, text); return err },
		"report.json": r.report.JSON,
		"report.svg":  func(w io.Writer) error { return show.Chart(w, title, r.results) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// machine says where this runs.
func machine(p place.Place) show.Machine {
	m := show.Machine{CPU: "unknown CPU", Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Place: p.String()}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return m
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}
