// Command sim runs the fault campaign: many seeds of the simulators in
// virtual time. It prints one verdict line and exits with 0 if no checker
// objected, 1 if one did, 3 if too little was met to prove anything, 130 if it
// was interrupted.
//
//	go run ./chaos/sim --seeds 1000000            the long campaign
//	go run ./chaos/sim --mode plain --seed 42 -v  one seed, told in full
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"subak/chaos"
	"subak/chaos/schedule"
	"subak/chaos/timed"
)

// options are the command line.
type options struct {
	seeds     uint64
	first     uint64
	one       uint64
	mode      string
	adversary string
	profile   string
	replay    string
	steps     int // of the schedule adversary
	faults    int // of the timed one
	jobs      int
	limit     time.Duration
	json      bool
	verbose   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	debug.SetGCPercent(400) // some MB live: collections would be most of the cost
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const (
	exitOK          = 0
	exitViolation   = 1
	exitUsage       = 2
	exitTooLittle   = 3
	exitInterrupted = 130
)

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK // the usage is printed
	}
	if err != nil {
		fmt.Fprintln(errs, "sim:", err)
		return exitUsage
	}
	modes, err := o.modes()
	if err == nil {
		_, err = o.runners()
	}
	if err != nil {
		fmt.Fprintln(errs, "sim:", err)
		return exitUsage
	}
	if o.replay != "" {
		return replay(o, modes, out, errs)
	}
	if o.one != 0 && o.verbose && !o.json {
		return tell(o, modes, out)
	}
	return newCampaign(o, modes).run(ctx, out, errs)
}

func parse(args []string, errs io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("sim", pflag.ContinueOnError)
	f.SetOutput(errs)
	f.Uint64Var(&o.seeds, "seeds", 2000, "how many seeds")
	f.Uint64Var(&o.first, "first", 1, "the first seed")
	f.Uint64Var(&o.one, "seed", 0, "run this seed alone")
	f.StringVar(&o.mode, "mode", "all", "all, or one of "+modeNames())
	f.StringVar(&o.adversary, "adversary", "schedule", "schedule, timed or both")
	f.StringVar(&o.profile, "profile", "", "the schedule adversary's only profile: "+profileNames())
	f.StringVar(&o.replay, "schedule", "", "replay the schedule in this file on --seed and one --mode")
	f.IntVar(&o.steps, "steps", 1000, "steps of a seed of the schedule adversary")
	f.IntVar(&o.faults, "faults", 40, "faults of a seed of the timed adversary")
	f.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "how many seeds at once")
	f.DurationVar(&o.limit, "time", 0, "stop after this long; 0 is no limit")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "with --seed: tell what happened; else: print the counters")
	if err := f.Parse(doubleDashed(args)); err != nil {
		return o, err
	}
	if o.one != 0 {
		o.first, o.seeds = o.one, 1
	}
	o.jobs = max(1, o.jobs)
	if o.steps < 1 || o.faults < 1 {
		return o, fmt.Errorf("%d steps and %d faults are not 1 or more", o.steps, o.faults)
	}
	return o, nil
}

// doubleDashed lets -seeds mean --seeds, as in Go's own tools.
func doubleDashed(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if len(a) > 2 && a[0] == '-' && a[1] != '-' && a[1] >= 'a' {
			a = "-" + a
		}
		out[i] = a
	}
	return out
}

func modeNames() string {
	names := make([]string, 0, 8)
	for _, m := range chaos.Modes() {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

func profileNames() string {
	var names []string
	for _, p := range schedule.Profiles() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// modes are the modes to run; several take turns.
func (o options) modes() ([]chaos.Mode, error) {
	if o.mode == "all" {
		return chaos.Modes(), nil
	}
	m, err := chaos.ParseMode(o.mode)
	return []chaos.Mode{m}, err
}

// adversary is a runner and how long its seeds are.
type adversary struct {
	chaos.Runner
	steps int
}

// runners makes one runner for each adversary asked for; every seed goes to all.
func (o options) runners() ([]adversary, error) {
	if _, ok := schedule.ByName(o.profile); !ok && o.profile != "" {
		return nil, fmt.Errorf("profile %q is none of %s", o.profile, profileNames())
	}
	bySchedule := adversary{schedule.New(o.profile), o.steps}
	byTime := adversary{timed.New(), o.faults}
	switch o.adversary {
	case "schedule":
		return []adversary{bySchedule}, nil
	case "timed":
		return []adversary{byTime}, nil
	case "both":
		return []adversary{bySchedule, byTime}, nil
	}
	return nil, fmt.Errorf("adversary %q is not known", o.adversary)
}

// modeOf is the mode of a seed.
func modeOf(modes []chaos.Mode, seed uint64) chaos.Mode {
	return modes[seed%uint64(len(modes))]
}

// tell runs one seed and says what happened.
func tell(o options, modes []chaos.Mode, out io.Writer) int {
	code := exitOK
	runners, err := o.runners()
	if err != nil {
		return exitUsage
	}
	for _, r := range runners {
		mode := modeOf(modes, o.one)
		res := r.Run(o.one, mode, r.steps)
		fmt.Fprintln(out, r.Explain(o.one, mode, r.steps))
		fmt.Fprintf(out, "sim: %s, seed %d, mode %v: %s\n", word(res.Violation == nil), o.one, mode, r.Name())
		if res.Violation != nil {
			code = exitViolation
		}
	}
	return code
}

func word(ok bool) string {
	if ok {
		return "ok"
	}
	return "VIOLATION"
}

// replay runs a schedule from a file.
func replay(o options, modes []chaos.Mode, out, errs io.Writer) int {
	if o.one == 0 || len(modes) != 1 {
		fmt.Fprintln(errs, "sim: --schedule needs --seed and one --mode")
		return exitUsage
	}
	text, err := os.ReadFile(o.replay)
	if err != nil {
		fmt.Fprintln(errs, "sim:", err)
		return exitUsage
	}
	actions, err := schedule.Parse(string(text))
	if err != nil {
		fmt.Fprintln(errs, "sim:", err)
		return exitUsage
	}
	r := schedule.New(o.profile)
	fmt.Fprint(out, r.Tell(o.one, modes[0], actions))
	if res := r.Replay(o.one, modes[0], actions); res.Violation != nil {
		fmt.Fprintf(out, "sim: VIOLATION, %s\n", res.Violation.Checker)
		return exitViolation
	}
	fmt.Fprintln(out, "sim: ok")
	return exitOK
}
