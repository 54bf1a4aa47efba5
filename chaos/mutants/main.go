package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// Exit statuses.
const (
	exitOK       = 0
	exitSurvivor = 1
	exitFault    = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(errs)
	only := f.String("only", "", "run this mutant alone")
	seeds := f.Int("seeds", 0, "at most so many seeds for each; 0 means as listed")
	jobs := f.Int("jobs", 2, "how many at once")
	asJSON := f.Bool("json", false, "print the outcomes as JSON")
	list := f.Bool("list", false, "print the mutants and run none")
	keep := f.String("keep", "", "build in this directory and leave sources and binaries there")
	build := f.Bool("build", false, "with -keep: build and run nothing")
	if err := f.Parse(args); err != nil {
		return exitFault
	}
	chosen := choose(*only)
	if len(chosen) == 0 {
		fmt.Fprintf(errs, "mutants: there is no mutant %q; -list names them\n", *only)
		return exitFault
	}
	if *list {
		printList(out, chosen)
		return exitOK
	}
	b, err := newBuilder(*keep)
	if err != nil {
		fmt.Fprintln(errs, "mutants:", err)
		return exitFault
	}
	if *keep == "" {
		defer func() { _ = os.RemoveAll(b.dir) }()
	}
	if *build {
		return buildOnly(ctx, b, chosen, errs)
	}
	start := time.Now()
	t := table{out: out}
	if *asJSON {
		t.out = io.Discard
	}
	t.head()
	if err := b.huntAll(ctx, chosen, *seeds, max(1, *jobs), t.row); err != nil {
		fmt.Fprintln(errs, "mutants:", err)
		return exitFault
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(t.rows); err != nil {
			return exitFault
		}
	}
	line, code := t.verdict(time.Since(start))
	if *asJSON {
		out = errs
	}
	fmt.Fprintln(out, line)
	return code
}

// choose returns the mutant of that name, or all for none.
func choose(only string) []Mutant {
	var chosen []Mutant
	for _, m := range Mutants() {
		if only == "" || m.Name == only {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// buildOnly leaves the binaries in b's directory, to be run by hand.
func buildOnly(ctx context.Context, b *builder, list []Mutant, errs io.Writer) int {
	for i := range list {
		if _, err := b.simulator(ctx, &list[i]); err != nil {
			fmt.Fprintln(errs, "mutants:", err)
			return exitFault
		}
	}
	return exitOK
}
