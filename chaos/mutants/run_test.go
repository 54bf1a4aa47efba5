package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeSim is a simulator that does as the shell script says.
func fakeSim(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sim")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAViolationInTheReportIsAnObjection(t *testing.T) {
	bin := fakeSim(t, `echo '{"seeds":7,"peak":1.5,"violations":[{"checker":"budget","detail":"over"}]}'; exit 1`)
	got, err := simulate(context.Background(), bin, Adversary{}, 10)
	if err != nil || got.Seeds != 7 || got.Peak != 1.5 || len(got.Violations) != 1 || got.Violations[0].Checker != "budget" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestASimulatorThatDiesGivesNoVerdict(t *testing.T) {
	for name, script := range map[string]string{"no report": "echo panic >&2; exit 2", "success without report": "exit 0"} {
		if got, err := simulate(context.Background(), fakeSim(t, script), Adversary{}, 10); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestRunningTwiceObjectsToTracesThatDiffer(t *testing.T) {
	same := fakeSim(t, `echo '{"seeds":5,"trace":"aa"}'`)
	other := fakeSim(t, `echo x >>"$0.count"; echo "{\"seeds\":5,\"trace\":\"$(wc -l <"$0.count")\"}"`)
	for bin, want := range map[string]int{same: 0, other: 1} {
		got, err := simulate(context.Background(), bin, Adversary{Twice: true}, 5)
		if err != nil || len(got.Violations) != want {
			t.Errorf("got %+v, %v; want %d objections", got, err, want)
		}
	}
}

func TestArgumentsNameTheAdversary(t *testing.T) {
	got := Adversary{Kind: timed, Mode: "plain", Profile: "plots", Faults: 40}.args(9)
	for _, want := range [][]string{{"--adversary", "timed"}, {"--mode", "plain"}, {"--profile", "plots"}, {"--faults", "40"}, {"--seeds", "9"}, {"--jobs", "1"}} {
		if i := slices.Index(got, want[0]); i < 0 || got[i+1] != want[1] {
			t.Errorf("%v lacks %v", got, want)
		}
	}
}

func TestTheVerdictNamesWhatIsNotInOrder(t *testing.T) {
	caught := outcome{Name: "caught", Caught: true, Seeds: 12, Checker: "budget"}
	survivor := outcome{Name: "survivor", Seeds: 500}
	accused := outcome{Name: "accused", Caught: true, Seeds: 3, Kept: 1}
	fault := outcome{Name: "fault", Fault: "does not build"}
	for _, c := range []struct {
		name string
		rows []outcome
		code int
		want string
	}{
		{"all caught", []outcome{caught}, exitOK, "mutants: ok, 1 of 1 caught, slowest 12 seeds, 9 s"},
		{"one survives", []outcome{caught, survivor}, exitSurvivor, "mutants: FAILED, 1 of 2 caught, slowest 12 seeds, 9 s; not in order: survivor"},
		{"the product is accused", []outcome{accused}, exitSurvivor, "not in order: accused"},
		{"one cannot be built", []outcome{fault, survivor}, exitFault, "not in order: fault; survivor"},
	} {
		var out strings.Builder
		tab := table{out: &out}
		for _, o := range c.rows {
			tab.row(o)
		}
		line, code := tab.verdict(9 * time.Second)
		if code != c.code || !strings.HasSuffix(line, c.want) {
			t.Errorf("%s: got %d %q, want %d %q", c.name, code, line, c.code, c.want)
		}
		if rows := strings.Count(out.String(), "\n"); rows < len(c.rows) {
			t.Errorf("%s: %d lines for %d rows", c.name, rows, len(c.rows))
		}
	}
}

func TestAnUnknownNameIsRefused(t *testing.T) {
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"-only", "nothing"}, &out, &errs); code != exitFault || !strings.Contains(errs.String(), `"nothing"`) {
		t.Errorf("got %d, %q", code, errs.String())
	}
}

func TestTheListNeedsNoBuild(t *testing.T) {
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"-list"}, &out, &errs); code != exitOK || strings.Count(out.String(), "\n") != len(Mutants()) {
		t.Errorf("got %d, %d lines for %d mutants", code, strings.Count(out.String(), "\n"), len(Mutants()))
	}
}
