//go:build linux

package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
	"subak/testbed/wan"
)

// binaryVariable is where the outermost process of the test has built the node.
const binaryVariable = "SUBAK_RUN_TEST_BINARY"

// The process outside builds, then runs itself again inside namespaces; see
// package wan. What it made is removed by the inner one.
func TestMain(m *testing.M) {
	if os.Getenv(binaryVariable) == "" {
		if err := buildNode(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot build the node:", err)
			os.Exit(1)
		}
	}
	if err := wan.Isolate(); err != nil {
		// The test that needs a network says so by itself.
		fmt.Fprintln(os.Stderr, err)
	} else {
		isolated = true
	}
	code := m.Run()
	_ = os.RemoveAll(filepath.Dir(os.Getenv(binaryVariable))) // nobody is left who needs it
	os.Exit(code)
}

var isolated bool

func buildNode() error {
	dir, err := os.MkdirTemp("", "subak-run-")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "subak")
	cmd := exec.Command("go", "build", "-o", path, "subak/cmd/node")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return os.Setenv(binaryVariable, path)
}

const story = `
name: story
title: everything that a node can suffer, briefly
why: whether it happens, and is taken down
budget: {limit: 300/s}
cluster: {profile: local, tick: 50ms, term: 500ms, ipv6: true}
absent: [sin]
phases:
  - name: one
    length: 3s
    load: [{class: confirmed, rate: 30%}, {class: uncleared, rate: 30%}]
  - name: two
    length: 3s
    load: [{class: confirmed, rate: 30%}, {class: uncleared, rate: 30%}]
  - {name: quiet, length: 500ms}
faults:
  - {kind: apply, at: 200ms, edit: {limit: 200/s}}
  - {kind: pause, at: 1s, for: 300ms, nodes: [ams]}
  - {kind: join, at: 1500ms, nodes: [sin]}
  - {kind: one-way, at: 2s, for: 500ms, from: [fra], to: [iad]}
  - {kind: kill, in: two, at: 100ms, for: 400ms, nodes: [gru]}
  - {kind: stream, in: two, at: 500ms, for: 1s, nodes: [fra], class: confirmed}
claims:
  - {kind: bound-kept}
`

func TestAStoryIsPlayedAndTakenDown(t *testing.T) {
	if !isolated {
		t.Skipf("no namespaces of our own here: %s", strings.Join(wan.Check(), "; "))
	}
	s, err := scenario.Parse("story.yaml", []byte(story))
	if err != nil {
		t.Fatal(err)
	}
	logs, asked := t.TempDir(), false
	r, err := Run(t.Context(), &s, Options{
		Binaries: Binaries{Subak: os.Getenv(binaryVariable), Version: "test"}, Logs: logs,
		Keep: func(*evidence.Run) bool { asked = true; return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Events {
		if e.Kind == failedKind {
			t.Errorf("not done: %s", e.Text)
		}
	}
	if r.Length != s.Length(evidence.Subak) {
		t.Errorf("it lasted %v of %v: the end is that of the last phase, not of the last request", r.Length, s.Length(evidence.Subak))
	}
	checkBands(t, &s, &r)
	checkEvents(t, &r)
	if len(r.Limits) != 1 || r.Limits[0].Limit != 200 || r.Limits[0].In <= r.Limits[0].At {
		t.Errorf("limits %+v, want one change to 200/s", r.Limits)
	}
	if o := r.Origin; !o.Bound.OK() || o.Bound.Total < 300 || len(o.Peaks) != len(r.Phases) {
		t.Errorf("origin: %v, peaks %v; want some hundred arrivals within the bound, and peaks of two phases", o.Bound, o.Peaks)
	}
	if len(r.Series) != 5 || len(r.Series[4].Share) != int(r.Length/r.Bin) {
		t.Fatalf("%d series", len(r.Series))
	}
	checkLoad(t, &r)
	if files, err := filepath.Glob(filepath.Join(r.Logs, "*")); err != nil || len(files) < 5 || !asked {
		t.Errorf("logs kept at %q: %v (%v)", r.Logs, files, err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "sb-*")); len(left) > 0 && os.Getenv("CI") != "" {
		t.Errorf("left behind: %v", left)
	}
}

// checkBands compares what was done with what was planned.
func checkBands(t *testing.T, s *scenario.Scenario, r *evidence.Run) {
	t.Helper()
	resolved := s.For(evidence.Subak)
	if len(r.Bands) != len(resolved.Faults) {
		t.Fatalf("%d bands of %d faults", len(r.Bands), len(resolved.Faults))
	}
	for _, b := range r.Bands {
		f, ok := resolved.FaultNamed(b.Label)
		if !ok || b.From < f.At || b.To < b.From || f.For > 0 && b.To < f.End() {
			t.Errorf("band %+v of fault %+v", b, f)
		}
	}
}

// checkEvents looks for what every kind of fault leaves.
func checkEvents(t *testing.T, r *evidence.Run) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range r.Events {
		seen[strings.Fields(e.Text)[0]+" "+e.Kind] = true
	}
	for _, want := range []string{"apply apply", "apply in-force", "join start", "join in-force", "join ready", "kill kill", "kill start", "kill ready"} {
		if !seen[want] {
			t.Errorf("no event %q in %v", want, seen)
		}
	}
}

// checkLoad: nobody is blamed for requests to a node that does not run.
func checkLoad(t *testing.T, r *evidence.Run) {
	t.Helper()
	away := uint64(0)
	for k, st := range r.Load.Streams {
		for _, c := range st.Cells {
			away += c.Away
			if n := c.Failed(); n > 0 && k%len(r.Nodes) != 0 { // ams was paused
				t.Errorf("%s: %d failed: %v", st.Name, n, c.Errors)
			}
		}
	}
	if away == 0 {
		t.Error("nobody wanted to go to the killed node")
	}
	offered := uint32(0)
	for b := range r.Series[3].Offered[0] {
		if at := time.Duration(b) * r.Bin; at > 3300*time.Millisecond && at < 3400*time.Millisecond {
			offered += r.Series[3].Offered[0][b]
		}
	}
	if offered > 0 {
		t.Errorf("%d requests count as offered to gru while it was dead", offered)
	}
}
