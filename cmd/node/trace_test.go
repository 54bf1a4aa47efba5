package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"subak/internal/api"
	"subak/internal/evaluation"
)

// asking is a cluster of two locations whose demand goes up by one with every
// answer; fra is not heard the second time.
func asking() func() api.Status {
	asked := 0
	return func() api.Status {
		asked++
		d := float64(asked)
		return api.Status{
			Time: time.Date(2026, 11, 30, 12, 0, asked, 0, time.UTC),
			Budgets: []api.Budget{{
				Name: "origin", Classes: []api.Class{{Name: "high"}, {Name: "low"}},
				Cells: []api.Location{
					{Node: "ams", Live: true, Demand: []float64{d, 2.5}},
					{Node: "fra", Live: asked != 2, Demand: []float64{0, 10 * d}},
				},
			}},
		}
	}
}

func TestARecordingIsATraceThatTheSimulationPlays(t *testing.T) {
	address, _ := serve(t, asking())
	file := filepath.Join(t.TempDir(), "my.csv")
	got := subak(t, nil, "trace", "record", "--admin", address, "--every", "250ms", "--for", "1s", "--out", file)
	if got.code != exitOK || !strings.Contains(got.out, "budget origin") {
		t.Fatalf("code %d: %s%s", got.code, got.out, got.err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	want := []string{
		"time,location,class,demand",
		"2026-11-30T12:00:01.000Z,ams,high,1.000000", "2026-11-30T12:00:01.000Z,fra,high,0.000000",
		"2026-11-30T12:00:01.000Z,ams,low,2.500000", "2026-11-30T12:00:01.000Z,fra,low,10.000000",
		"2026-11-30T12:00:02.000Z,ams,high,2.000000", "2026-11-30T12:00:02.000Z,ams,low,2.500000",
	}
	if len(lines) < len(want) || strings.Join(lines[:len(want)], "\n") != strings.Join(want, "\n") {
		t.Errorf("the file begins with\n%s\nwant\n%s", strings.Join(lines[:min(len(lines), len(want))], "\n"), strings.Join(want, "\n"))
	}
	names := evaluation.Names{Nodes: []string{"ams", "fra"}, Classes: []string{"high", "low"}}
	if r, err := evaluation.ReadCSV(strings.NewReader(string(text)), names, nil); err != nil || r.Cycles() < 3 || r.Missing != 2 {
		t.Errorf("read again: %v", err)
	}
}

func TestARecordingThatFailsLeavesNoFile(t *testing.T) {
	first := asking()
	asked := 0
	address, _ := serve(t, func() api.Status {
		s := first()
		if asked++; asked == 3 {
			s.Budgets[0].Cells = s.Budgets[0].Cells[:1] // fra was removed from the roster
		}
		return s
	})
	dir := t.TempDir()
	got := subak(t, nil, "trace", "record", "--admin", address, "--every", "250ms", "--out", filepath.Join(dir, "my.csv"))
	if got.code != exitBroken || !strings.Contains(got.err, "have changed; mend: record anew") {
		t.Errorf("code %d: %s", got.code, got.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v left in the directory, %v", left, err)
	}
}

func TestWhatARecordingCannotDoIsSaidFirst(t *testing.T) {
	address, _ := serve(t, asking())
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{}, exitUsage, "--out is missing"},
		{[]string{"--out", "x.csv", "--every", "1ms"}, exitUsage, "--every 1ms is not between 250ms"},
		{[]string{"--out", "x.csv", "--budget", "egress"}, exitRefused, `no budget "egress"`},
	} {
		got := subak(t, nil, append([]string{"trace", "record", "--admin", address}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.err, c.says) {
			t.Errorf("%v: code %d, %s", c.args, got.code, got.err)
		}
	}
}
