//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"subak/testbed/evidence"
	"subak/testbed/judge"
	"subak/testbed/report"
	"subak/testbed/scenario"
)

// verdict is the last line, and whether every claim was kept.
func verdict(all []evidence.Outcome, took time.Duration) (line string, kept bool) {
	claims, good, busy := 0, 0, 0
	for _, o := range all {
		for _, v := range o.Verdicts {
			claims++
			if v.Kept {
				good++
			}
		}
		if len(o.Run.Busy) > 0 {
			busy++
		}
	}
	kept = good == claims
	word := "kept"
	if !kept {
		word = "BROKEN"
	}
	line = fmt.Sprintf("testbed %s: %d of %d claims kept in %d runs, %.1f minutes", word, good, claims, len(all), took.Minutes())
	if busy > 0 {
		line += fmt.Sprintf("; the machine was too busy in %d of them", busy)
	}
	return line, kept
}

// conclude prints the table and writes the report.
func (o *options) conclude(out io.Writer, all []evidence.Outcome) error {
	fmt.Fprintln(out)
	if err := report.Table(out, all); err != nil {
		return err
	}
	about, err := about(o.out, all, "testbed run "+strings.Join(os.Args[min(2, len(os.Args)):], " "))
	if err != nil {
		return err
	}
	path, err := writeReport(o.out, all, about)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "report: %s\n", path)
	return nil
}

// writeReport writes report.html, and summary.md with its pictures beside it.
func writeReport(dir string, all []evidence.Outcome, about report.About) (path string, err error) {
	path = filepath.Join(dir, "report.html")
	if err := write(path, func(w io.Writer) error { return report.HTML(w, all, about) }); err != nil {
		return path, err
	}
	if about.Figures, err = drawFigures(dir, all); err != nil {
		return path, err
	}
	return path, write(filepath.Join(dir, "summary.md"), func(w io.Writer) error { return report.Markdown(w, all, about) })
}

// shown is the scenario whose variants the summary shows.
const shown = "partition-11-11"

// drawFigures writes the pictures of the summary that the outcomes give.
func drawFigures(dir string, all []evidence.Outcome) (figures []report.Figure, err error) {
	ofShown := slices.DeleteFunc(slices.Clone(all), func(o evidence.Outcome) bool { return o.Run.Scenario != shown })
	for _, f := range []struct {
		report.Figure
		draw func(io.Writer, []evidence.Outcome) error
		of   []evidence.Outcome
	}{
		{report.Figure{Path: "testbed-" + shown + ".svg", Caption: "Arrivals at the origin while eleven cities are cut off from eleven, by variant"}, report.Origins, ofShown},
		{report.Figure{Path: "testbed-reaction.svg", Caption: "Time from a demand step to 99 % of its target"}, report.Reactions, all},
	} {
		var text bytes.Buffer
		switch err := f.draw(&text, f.of); {
		case errors.Is(err, report.ErrNothing):
			continue
		case err != nil:
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Path), text.Bytes(), 0o644); err != nil {
			return nil, err
		}
		figures = append(figures, f.Figure)
	}
	return figures, nil
}

func write(path string, f func(io.Writer) error) (err error) {
	w, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return f(w)
}

// about says what the outcomes are about.
func about(dir string, all []evidence.Outcome, command string) (report.About, error) {
	a := report.About{Machine: machine(), Command: command, Date: time.Now()}
	simulated, err := simulations(dir)
	if err != nil {
		return a, err
	}
	a.Comparisons = report.Compare(all, simulated)
	if len(all) > 0 {
		a.Version, a.Date = all[0].Run.Version, all[0].Run.Started
	}
	return a, nil
}

// machine is what the runs ran on.
func machine() string {
	text := fmt.Sprintf("%d cores, %s", runtime.NumCPU(), runtime.GOARCH)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		text += fmt.Sprintf(", %.0f GB", float64(info.Totalram)*float64(info.Unit)/1e9)
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		text += ", Linux " + unix.ByteSliceToString(name.Release[:])
	}
	return text
}

func reportCommand(out io.Writer) *cobra.Command {
	var again bool
	cmd := &cobra.Command{
		Use: "report DIR", Short: "Write the report of stored outcomes again", Args: cobra.ExactArgs(1),
		Long: `Write the report of stored outcomes again, with the verdicts of then or, by --judge,
with those of the claims as they are now.`,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := restore(args[0])
			if err == nil && again {
				err = rejudge(args[0], all)
			}
			if err != nil {
				return err
			}
			about, err := about(args[0], all, "testbed run; written again by testbed report")
			if err != nil {
				return err
			}
			path, err := writeReport(args[0], all, about)
			if err != nil {
				return err
			}
			if err := report.Table(out, all); err != nil {
				return err
			}
			fmt.Fprintf(out, "report: %s\n", path)
			return nil
		},
	}
	cmd.Flags().BoolVar(&again, "judge", false, "judge the stored runs again, and store that")
	return cmd
}

// rejudge judges the runs of outcomes by the claims as they are now. One whose
// scenario is gone, or that did not go through, stays as it is.
func rejudge(dir string, outcomes []evidence.Outcome) error {
	all, err := scenario.Files()
	if err != nil {
		return err
	}
	for i := range outcomes {
		o := &outcomes[i]
		k := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == o.Run.Scenario })
		if k < 0 || slices.ContainsFunc(o.Verdicts, func(v evidence.Verdict) bool { return v.Claim == wentThrough }) {
			continue
		}
		o.Verdicts = judge.Judge(&all[k], &o.Run)
		if err := store(dir, o); err != nil {
			return err
		}
	}
	return nil
}
