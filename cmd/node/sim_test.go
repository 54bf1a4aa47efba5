package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes files into a directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const simBudget = `nodes: [{name: ams, weight: 1}, {name: fra, weight: 1}]
budgets:
  - name: origin
    limit: 100/s
    classes: [{name: high, reserve: 60%}, {name: low, reserve: 40%}]
`

// simTrace asks for 80/s of the high class at fra, more than twice its base.
const simTrace = `time,location,class,demand
0,fra,high,100
0,ams,low,90
1,fra,high,100
1,ams,low,90
2,fra,high,100
2,ams,low,90
3,fra,high,100
3,ams,low,90
`

func TestAUsersTraceIsPlayedUnderTheUsersBudgetAsItIsAndAsItMightBe(t *testing.T) {
	dir := write(t, map[string]string{"my.csv": simTrace, "my.yaml": simBudget})
	args := []string{"sim", "run", "--trace", filepath.Join(dir, "my.csv"), "--budget", filepath.Join(dir, "my.yaml"), "--method", "static,configured", "--lag", "1", "--set-limit", "200/s", "--json"}
	got := subak(t, nil, args...)
	if got.code != exitOK {
		t.Fatalf("code %d: %s", got.code, got.err)
	}
	var r struct {
		Results []struct {
			Case, Method string
			Classes      []struct{ Mean float64 }
		}
	}
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"as-is static": 30, "as-is configured": 80, // its base; and all unused base, whatever its class
		"what-if static": 60, "what-if configured": 100,
	}
	for _, x := range r.Results {
		if key := x.Case + " " + x.Method; x.Classes[0].Mean != want[key] {
			t.Errorf("%s serves %v %% of the high class, want %v", key, x.Classes[0].Mean, want[key])
		}
	}
	if len(r.Results) != len(want) {
		t.Errorf("%d results, want %d", len(r.Results), len(want))
	}
	if !strings.Contains(got.err, "8 of 16 cells have no row and count as no demand") {
		t.Errorf("nothing is said of missing rows: %q", got.err)
	}
}

func TestTwoBudgetsAreComparedOverOneTrace(t *testing.T) {
	dir := write(t, map[string]string{
		"my.csv": simTrace, "my.yaml": simBudget, "other.yaml": strings.Replace(simBudget, "100/s", "50/s", 1),
		"strange.yaml": strings.Replace(simBudget, "fra", "lhr", 1),
	})
	args := func(against string) []string {
		return []string{"sim", "run", "--trace", filepath.Join(dir, "my.csv"), "--budget", filepath.Join(dir, "my.yaml"), "--against", filepath.Join(dir, against), "--method", "configured", "--lag", "1"}
	}
	if got := subak(t, nil, args("other.yaml")...); got.code != exitOK || !strings.Contains(got.out, "what if: the other budget") || !strings.Contains(got.out, "80.0   40.0  -40.0") {
		t.Errorf("code %d:\n%s%s", got.code, got.out, got.err)
	}
	if got := subak(t, nil, args("strange.yaml")...); got.code != exitBroken || !strings.Contains(got.err, "--against: it has other nodes or classes (ams, lhr; high, low)") {
		t.Errorf("code %d: %s", got.code, got.err)
	}
}

func TestAScenarioCanBeCopiedChangedAndPlayed(t *testing.T) {
	shown := subak(t, nil, "sim", "scenarios", "--show", "S2")
	if shown.code != exitOK {
		t.Fatal(shown.err)
	}
	dir := write(t, map[string]string{"mine.yaml": strings.Replace(shown.out, "name: S2", "name: mine", 1)})
	got := subak(t, nil, "sim", "run", "S2", filepath.Join(dir, "mine.yaml"), "--method", "paper", "--cycles", "20", "--seeds", "1", "--csv")
	if got.code != exitOK {
		t.Fatal(got.err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(got.out) {
		name, rest, _ := strings.Cut(line, ",")
		rows[name] = append(rows[name], rest)
	}
	if len(rows["S2"]) == 0 || strings.Join(rows["S2"], "") != strings.Join(rows["mine"], "") {
		t.Errorf("the copy has other figures:\n%s", got.out)
	}
}

func TestWhatCannotBeSimulatedIsSaidWithItsPlaceAndMend(t *testing.T) {
	dir := write(t, map[string]string{
		"my.csv": simTrace, "my.yaml": simBudget, "short.csv": "time,location,class,demand\n0,fra,high,80\n",
		"bad.csv": simTrace + "4,lhr,high,1\n", "bad.yaml": "name: X\nhigh: {demand: 5}\n", "bad-budget.yaml": strings.Replace(simBudget, "60%", "70%", 1),
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing", nil, exitUsage, "name scenarios, files of your own, or all"},
		{"no such scenario", []string{"S9"}, exitBroken, `"S9": unknown; mend: one of S1, S2`},
		{"no such method", []string{"S1", "--method", "magic"}, exitBroken, `no method "magic"; mend: one of static-equal`},
		{"no such lag", []string{"S1", "--lag", "2"}, exitUsage, "--lag 2: write 0, 1 or 1,0"},
		{"twice the same", []string{"S1", "S1"}, exitUsage, "two scenarios are called S1"},
		{"too few cycles", []string{"S1", "--cycles", "2"}, exitUsage, "3 to 1000000 cycles"},
		{"bad scenario", []string{in("bad.yaml")}, exitBroken, "bad.yaml:2: high.demand"},
		{"trace alone", []string{"--trace", in("my.csv")}, exitUsage, "with --budget FILE.yaml"},
		{"trace and scenario", []string{"S1", "--trace", in("my.csv"), "--budget", in("my.yaml")}, exitUsage, "and without scenarios"},
		{"what if without a trace", []string{"S1", "--without", "fra"}, exitUsage, "change the budget of a --trace"},
		{"bad trace", []string{"--trace", in("bad.csv"), "--budget", in("my.yaml")}, exitBroken, `bad.csv: line 10, column 3: location "lhr" is no node of the budget; mend: write one of ams, fra`},
		{"short trace", []string{"--trace", in("short.csv"), "--budget", in("my.yaml")}, exitBroken, "1 times; mend: at least 3"},
		{"bad budget", []string{"--trace", in("my.csv"), "--budget", in("bad-budget.yaml")}, exitBroken, "bad-budget.yaml:5: budgets[0].classes: the reservations add up to 110%"},
		{"no such node", []string{"--trace", in("my.csv"), "--budget", in("my.yaml"), "--without", "sin"}, exitBroken, `--without: no node "sin"; mend`},
		{"no file", []string{"--trace", in("none.csv"), "--budget", in("my.yaml")}, exitBroken, "none.csv: no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := subak(t, nil, append([]string{"sim", "run"}, c.args...)...)
			if got.code != c.code || !strings.Contains(got.err, c.says) || got.out != "" {
				t.Errorf("code %d, want %d: %q, want %q; and nothing printed: %q", got.code, c.code, got.err, c.says, got.out)
			}
		})
	}
}

func TestTheListsOfScenariosAndMethodsAreWhole(t *testing.T) {
	if got := subak(t, nil, "sim", "scenarios"); got.code != exitOK || strings.Count(got.out, "\nS") != 7 {
		t.Errorf("code %d:\n%s", got.code, got.out)
	}
	if got := subak(t, nil, "sim", "methods"); got.code != exitOK || !strings.Contains(got.out, "pool-first") {
		t.Errorf("code %d:\n%s", got.code, got.out)
	}
}
