//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/report"
	"subak/testbed/run"
	"subak/testbed/scenario"
)

func scenarios(t *testing.T) []scenario.Scenario {
	t.Helper()
	all, err := scenario.Files()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWithoutNamesTheListIsEverythingWithoutAGroup(t *testing.T) {
	all := scenarios(t)
	list, err := choice{}.pick(all)
	if err != nil || len(list) < 20 {
		t.Fatalf("%d scenarios (%v)", len(list), err)
	}
	for _, s := range list {
		if s.Group != "" {
			t.Errorf("%s is of group %s and was not asked for", s.Name, s.Group)
		}
	}
	ci, err := choice{ci: true}.pick(all)
	if err != nil || len(ci) != 4 {
		t.Errorf("the short list is %v (%v), want four", names(ci), err)
	}
	group, err := choice{group: "contention"}.pick(all)
	if err != nil || len(group) != 16 {
		t.Errorf("contention is %v (%v), want eight scenarios on two topologies", names(group), err)
	}
}

func TestNamesArePlayedInTheirOrderWhateverTheirGroup(t *testing.T) {
	picked, err := choice{names: []string{"steady", "contention-five-s2", "nat"}, ci: true}.pick(scenarios(t))
	if got := names(picked); err != nil || !slices.Equal(got, []string{"steady", "contention-five-s2", "nat"}) {
		t.Errorf("picked %v (%v)", got, err)
	}
	if _, err := (choice{names: []string{"stedy"}}).pick(scenarios(t)); err == nil || !strings.Contains(err.Error(), "steady") {
		t.Errorf("an unknown name: %v, want the names that there are", err)
	}
	if _, err := (choice{group: "no"}).pick(scenarios(t)); err == nil {
		t.Error("an unknown group is an empty list")
	}
}

func TestAVariantIsRunAloneAndMustExist(t *testing.T) {
	s, err := choice{names: []string{"partition-2-3"}}.pick(scenarios(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := (choice{}).variants(&s[0]); !slices.Equal(got, []evidence.Variant{evidence.Subak, evidence.Naive}) {
		t.Errorf("variants %v", got)
	}
	if got := (choice{variant: "static"}).variants(&s[0]); !slices.Equal(got, []evidence.Variant{evidence.Static}) {
		t.Errorf("variants %v, want static alone", got)
	}
	if (choice{variant: "other"}).validate() == nil || (choice{variant: "naive"}).validate() != nil {
		t.Error("a variant need not exist")
	}
}

func outcome(name string, kept ...bool) evidence.Outcome {
	o := evidence.Outcome{Run: evidence.Run{Scenario: name, Variant: evidence.Subak}}
	for i, k := range kept {
		o.Verdicts = append(o.Verdicts, evidence.Verdict{Claim: fmt.Sprint(i), Kept: k})
	}
	return o
}

func TestTheLastLineSaysHowManyClaimsWereKept(t *testing.T) {
	line, kept := verdict([]evidence.Outcome{outcome("a", true, true), outcome("b", true)}, 90*time.Second)
	if !kept || line != "testbed kept: 3 of 3 claims kept in 2 runs, 1.5 minutes" {
		t.Errorf("%q, %v", line, kept)
	}
	busy := outcome("b", false)
	busy.Run.Busy = []string{"x"}
	line, kept = verdict([]evidence.Outcome{outcome("a", true, true), busy}, time.Minute)
	if kept || !strings.Contains(line, "BROKEN: 2 of 3") || !strings.Contains(line, "too busy in 1") {
		t.Errorf("%q, %v", line, kept)
	}
}

func TestOutcomesAreStoredAndRestoredByTime(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"late", "early"} {
		o := outcome(name, true)
		o.Run.Started = time.Unix(int64(100-i), 0)
		o.Run.Series = []evidence.Series{{Up: []uint8{0, 1}, Share: []float64{1.5}}}
		if err := store(dir, &o); err != nil {
			t.Fatal(err)
		}
	}
	all, err := restore(dir)
	if err != nil || len(all) != 2 || all[0].Run.Scenario != "early" || all[1].Run.Series[0].Up[1] != 1 || !all[0].Verdicts[0].Kept {
		t.Errorf("restored %+v (%v)", all, err)
	}
	if _, err := restore(t.TempDir()); err == nil {
		t.Error("a directory without outcomes makes an empty report")
	}
	if err := os.WriteFile(filepath.Join(dir, "x"+suffix), []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(dir); err == nil || !strings.Contains(err.Error(), "x"+suffix) {
		t.Errorf("a broken file: %v, want its name", err)
	}
}

func TestTheSummaryLinksThePicturesThatThereAre(t *testing.T) {
	dir := t.TempDir()
	steps := outcome("reaction", true)
	steps.Run.Nodes = []string{"ams"}
	steps.Run.Steps = []evidence.Step{{At: time.Second, Before: 1, Target: 2, Took: time.Second / 2}}
	if _, err := writeReport(dir, []evidence.Outcome{steps}, report.About{}); err != nil {
		t.Fatal(err)
	}
	summary, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if err != nil || !strings.Contains(string(summary), "testbed-reaction.svg") || strings.Contains(string(summary), shown) {
		t.Errorf("%v:\n%s", err, summary)
	}
	for _, name := range []string{"report.html", "testbed-reaction.svg"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheSimulatorIsAskedForTheSameTrace(t *testing.T) {
	picked, err := choice{group: "contention"}.pick(scenarios(t))
	if err != nil {
		t.Fatal(err)
	}
	groups := contentions(picked)
	if len(groups) != 2 || len(groups[0]) != 8 {
		t.Fatalf("%d groups", len(groups))
	}
	for _, g := range groups {
		got := strings.Join((&options{}).simulatorArgs(g), " ")
		s := &g[0]
		for _, want := range []string{
			"--nodes " + s.Topology, "--scenario S1,S2,S3,S4,S5,S6,S7,S8", fmt.Sprintf("--limit %.0f", s.Limit()),
			"--cycle " + s.Trace.Cycle.String(), fmt.Sprintf("--cycles %d", s.Trace.Cycles), fmt.Sprintf("--hasten %d", s.Trace.Hasten), "--insurance 10",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("asked %q, want %q in it", got, want)
			}
		}
	}
}

func TestProgressTellsWhoIsDown(t *testing.T) {
	line := progressLine(run.Progress{Phase: "dead", At: 3 * time.Second, Length: 10 * time.Second, Shares: 1500, Origin: 1400, Limit: 2000, Down: []string{"ams", "fra"}})
	if line != "dead, 7 s left, shares 1500, origin 1400 of 2000/s, down: ams fra" {
		t.Errorf("%q", line)
	}
	var out bytes.Buffer
	s := newScreen(&out, "steady")
	s.progress(run.Progress{}) // too soon for a line that stays
	s.say("x %d", 1)
	if out.String() != "steady: x 1\n" {
		t.Errorf("%q", out.String())
	}
}

func TestErrorsOfTheCommandLineAreUsage(t *testing.T) {
	for _, args := range [][]string{{"fly"}, {"run", "no-such-scenario"}, {"run", "--variant", "x"}, {"report", "/nowhere"}, {"report"}} {
		var out, errs bytes.Buffer
		if code := program(args, &out, &errs); code != exitUsage || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := program([]string{"list"}, &out, &errs); code != 0 || !strings.Contains(out.String(), "steady") {
		t.Errorf("list: %d %s", code, out.String())
	}
	if f := (&failure{exitBroken, errors.New("x")}); f.Error() != "x" {
		t.Error("the reason of a failure is lost")
	}
}
