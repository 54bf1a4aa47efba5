package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"subak/testbed/peers/doors"
	"subak/testbed/peers/measure"
	"subak/testbed/peers/place"
)

// call runs the program and returns what it prints.
func call(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = program(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestCommandLinesThatMakeNoSenseExitWith2(t *testing.T) {
	for _, args := range [][]string{
		{"--no-such-flag"}, {"an argument"}, {"--only", "("}, {"--only", "no such case"}, {"--rounds", "4"}, {"serve", "nothing"}, {"pin", "x"},
	} {
		if code, out, errs := call(t, args...); code != exitUsage || errs == "" {
			t.Errorf("%q: exit code %d, %q, %q; want 2 and why", args, code, out, errs)
		}
	}
}

func TestTheListNamesWhatTheIssueClaims(t *testing.T) {
	code, out, errs := call(t, "--list")
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	for _, want := range []string{
		"library/decision             <= 0.450", "library/coarse               <= 0.200", "library/cores                <= 0.200",
		"library/refusal              <= 1.000", "library/allocs-admitted      <= 0 allocs",
		"library/tenants              <= 0.620", "library/tenants-handle       <= 0.350", "counters/one                 <= 8 ns",
		"doors/rls                    >= 0.850", "doors/rls-cpu                <= 1.150", "doors/check                  >= 0.950",
		"doors/proxy                  >= 0.950", "doors/proxy-p99              <= 1.200", "doors/proxy-tuned            >= 1.600",
		"stress/precise               <= ", "keys/rls-series              <= 0 series", "keys/check-memory            <= ",
	} {
		if !strings.Contains(out, "  "+want) {
			t.Errorf("%q is not in the list", want)
		}
	}
}

// One case from the command line to the files of the report.
func TestASmokeRunWritesItsReport(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := call(t, "--smoke", "--only", "library/(decision|allocs)", "--json", "--out", dir)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var printed, kept struct {
		Smoke, OK bool
		Verdict   string
	}
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(file, &kept)
	}
	if err != nil || kept != printed || !kept.OK || !kept.Smoke {
		t.Errorf("printed %+v, kept %+v, %v", printed, kept, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.txt"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; err != nil || !strings.HasPrefix(last, "bench-peers: ok, ") || !strings.Contains(last, kept.Verdict) {
		t.Errorf("the report ends with %q, %v", last, err)
	}
	if chart, err := os.ReadFile(filepath.Join(dir, "report.svg")); err != nil || !strings.Contains(string(chart), "library/decision-raw") {
		t.Errorf("%v: %s", err, chart)
	}
}

// What cannot be measured is not passed over.
func TestAServerThatIsNotThereFailsTheRun(t *testing.T) {
	code, out, errs := call(t, "--smoke", "--only", "doors/check", "--node", filepath.Join(t.TempDir(), "none"))
	if code != exitShort || !strings.Contains(out, "MISSING") || !strings.Contains(out, "bench-peers: FAILED") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// The program starts itself in other roles; in a test that is this one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}

// A door's case with two floors in the place of a door and its floor: generator,
// servers and pinning as they are in a run.
func TestFloorsAreServedAndDriven(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &doors.Bench{Self: self, Node: "/none", Place: place.Find(), Scale: doors.Scale{Batch: 20 * time.Millisecond, Batches: 1}}
	for _, c := range b.Floors() {
		f, err := c.Run(t.Context(), 1, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		for side := range c.Sides {
			if rate := f[0][side][measure.Rate]; !(rate > 0) {
				t.Errorf("%s, %s: %v requests/s", c.ID, c.Sides[side].Name, rate)
			}
		}
	}
}
