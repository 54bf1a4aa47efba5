package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTheTableEndsWithTheVerdict(t *testing.T) {
	var out, complaints strings.Builder
	code := run(strings.Fields("--nodes 5 --limit 1000 --cycle 1s --cycles 2 --scenario S2,S4"), &out, &complaints)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code != 0 || complaints.Len() > 0 || len(lines) != 5 {
		t.Fatalf("exit %d, complaints %q, output\n%s", code, &complaints, &out)
	}
	for i, want := range []string{"5 places (five), longest round trip 242ms; limit 1000/s", "served in %", "S2 flood at a single place", "S4 rotating flood", "contention: ok, 2 scenarios, "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], want)
		}
	}
}

func TestTheJSONHoldsSettingsFiguresAndVerdict(t *testing.T) {
	var out, complaints strings.Builder
	code := run(strings.Fields("--nodes five --cycle 500ms --cycles 2 --scenario S1 --json --insurance 0"), &out, &complaints)
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || code != 0 || complaints.Len() > 0 {
		t.Fatalf("exit %d, complaints %q, %v", code, &complaints, err)
	}
	if s := r.Settings; s.Limit != 2000 || s.Cycle != 500*time.Millisecond || s.Cycles != 2 || s.InsurancePPM != 0 || len(s.Nodes) != 5 {
		t.Errorf("settings %+v", s)
	}
	if len(r.Results) != 1 || r.Results[0].Subak.High < 50 || r.Results[0].Static.Total > 60 || !strings.HasPrefix(r.Verdict, "contention: ok") {
		t.Errorf("results %+v, verdict %q", r.Results, r.Verdict)
	}
}

func TestWhatCannotBePlayedIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--nodes 7":                  "unknown; mend: five, cities22",
		"--nodes 5 --scenario S9":    "one of S1",
		"--nodes 5 --cycle 1ms":      "cycle 1ms",
		"--nodes 5 --cycles 0":       "0 cycles",
		"--nodes 5 --limit 5000000":  "at most 1000000/s",
		"--nodes 5 --insurance 1000": "insurance above",
		"five":                       `"five" is no flag`,
		"--what":                     "not defined",
	} {
		var out, complaints strings.Builder
		if code := run(strings.Fields(args), &out, &complaints); code != 2 || !strings.Contains(complaints.String(), want) {
			t.Errorf("%s: exit %d, complaints %q, want %q", args, code, &complaints, want)
		}
	}
}

func TestEachFaultMakesTheVerdictFail(t *testing.T) {
	fine := row{Scenario: "S1", Subak: figures{High: 90, Idle: 8, Insured: 6}, Static: figures{High: 80, Idle: 30}}
	full := settings{Cycle: claimedFrom, InsurancePPM: claimedInsured}
	for _, c := range []struct {
		want  string
		least bool // claimed whatever the settings
		spoil func(r *row)
	}{
		{"subak was 0.1000 % over", true, func(r *row) { r.Subak.Over = 0.1 }},
		{"static was 0.1000 % over", true, func(r *row) { r.Static.Over = 0.1 }},
		{"subak: budget at 1s", true, func(r *row) { r.Subak.Objection = "budget at 1s" }},
		{"subak serves 79.9 % of the high", false, func(r *row) { r.Subak.High = 79.9 }},
		{"9.1 % idle, at most 9.0 % with", false, func(r *row) { r.Subak.Idle = 9.1 }},
	} {
		bad := fine
		c.spoil(&bad)
		r := report{Settings: full, Results: []row{fine, bad}}
		var out strings.Builder
		if code := r.finish(&out, false); code != 1 || !strings.Contains(out.String(), "contention: FAILED, S1: "+c.want) {
			t.Errorf("%q: exit %d, %s", c.want, code, &out)
		}
		for _, s := range []settings{{Cycle: claimedFrom - 1, InsurancePPM: claimedInsured}, {Cycle: claimedFrom}} {
			if got := bad.faults(&s); len(got) > 0 != c.least {
				t.Errorf("%q with settings of which less is claimed: %q", c.want, got)
			}
		}
	}
	r := report{Settings: full, Results: []row{fine, fine}}
	var out strings.Builder
	if code := r.finish(&out, false); code != 0 || !strings.HasPrefix(out.String(), "contention: ok") {
		t.Errorf("nothing wrong: exit %d, %s", code, &out)
	}
}
