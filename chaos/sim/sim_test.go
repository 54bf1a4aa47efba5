package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"subak/chaos"
	"subak/chaos/schedule"
)

func simulate(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestACampaignEndsWithOneLineOfVerdict(t *testing.T) {
	code, out, _ := simulate(t, "-seeds", "14", "-steps", "200", "-jobs", "2", "-adversary", "schedule")
	if code != exitOK || !strings.HasPrefix(out, "sim: ok, 14 seeds, ") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d, output %q", code, out)
	}
}

func TestTheTraceOfACampaignDoesNotHangOnTheNumberOfJobs(t *testing.T) {
	traces := map[string]bool{}
	for _, jobs := range []string{"1", "3"} {
		code, out, _ := simulate(t, "--seeds", "20", "--steps", "200", "--json", "--jobs", jobs, "--adversary", "schedule")
		var got struct {
			OK    bool
			Seeds int
			Trace string
			Seen  map[string]map[string]int64
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || !got.OK || got.Seeds != 20 {
			t.Fatalf("exit %d, error %v, output %s", code, err, out)
		}
		if got.Seen["schedule"]["row published"] == 0 {
			t.Error("the counters are missing")
		}
		traces[got.Trace] = true
	}
	if len(traces) != 1 {
		t.Errorf("traces %v, want one", traces)
	}
}

func TestOneSeedIsToldInFull(t *testing.T) {
	code, out, _ := simulate(t, "--seed", "3", "--mode", "plain", "--steps", "60", "-v", "--adversary", "schedule")
	if code != exitOK || !strings.Contains(out, "seed 3, mode plain") || !strings.Contains(out, " publishes ") {
		t.Errorf("exit %d, output %q", code, out)
	}
}

func TestAScheduleFromAFileIsReplayed(t *testing.T) {
	actions, _ := schedule.New("").Record(5, chaos.Plain, 50)
	path := filepath.Join(t.TempDir(), "schedule")
	if err := os.WriteFile(path, []byte(schedule.Format(actions)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := simulate(t, "--seed", "5", "--mode", "plain", "--schedule", path)
	if code != exitOK || !strings.HasSuffix(out, "sim: ok\n") {
		t.Errorf("exit %d, output %q, errors %q", code, out, errs)
	}
}

func TestAnInterruptedCampaignSaysWhatWasDone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"--seeds", "100", "--adversary", "schedule"}, &out, &errs); code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
	if !strings.HasPrefix(out.String(), "sim: interrupted, ") {
		t.Errorf("output %q", out.String())
	}
}

func TestAViolationAndTooLittleFailTheCampaign(t *testing.T) {
	c := newCampaign(options{steps: 10, faults: 1, adversary: "schedule"}, chaos.Modes())
	c.prepare()
	c.total.seeds = enough
	if missing := c.missing(); len(missing) == 0 {
		t.Error("nothing was met, and nothing is missed")
	} else if line, code := c.verdict(false, missing); code != exitTooLittle || !strings.Contains(line, "TOO LITTLE MET") {
		t.Errorf("exit %d, %q", code, line)
	}
	c.stop = func() {}
	c.add(0, "schedule", chaos.Result{Violation: &chaos.Violation{Checker: "budget"}})
	if line, code := c.verdict(false, nil); code != exitViolation || !strings.Contains(line, "VIOLATION") {
		t.Errorf("exit %d, %q", code, line)
	}
}

func TestWrongArgumentsAreRefusedWithTheReason(t *testing.T) {
	for want, args := range map[string][]string{
		"mode \"x\"":       {"--mode", "x"},
		"profile \"x\"":    {"--profile", "x"},
		"adversary \"x\"":  {"--adversary", "x"},
		"not 1 or more":    {"--steps", "0"},
		"--schedule needs": {"--schedule", "f"},
	} {
		if code, _, errs := simulate(t, args...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, errors %q, want %q", args, code, errs, want)
		}
	}
}
