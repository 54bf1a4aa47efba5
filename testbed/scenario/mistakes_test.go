package scenario

import (
	"errors"
	"os"
	"strings"
	"testing"

	"subak/internal/strict"
	"subak/internal/strict/stricttest"
	"subak/testbed/evidence"
)

func TestEveryMistakeIsReportedOnceWithLineFieldAndMend(t *testing.T) {
	text, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse("mistakes.yaml", text)
	faults, _ := errors.AsType[strict.Faults](err)
	stricttest.Match(t, string(text), faults)
}

// base is a scenario without mistakes, to which a test adds one.
const base = "name: base\ntitle: t\nwhy: w\nclaims: [{kind: errors}]\n"

func TestMistakesThatNeedTheWholeFile(t *testing.T) {
	cases := []struct{ name, more, want string }{
		{"no phases", "", "phases: is missing"},
		{"too long", "phases: [{name: a, length: 16m}]\n", "phases: the run of subak takes 16m0s"},
		{"too much load", "phases: [{name: a, length: 1s}]\nload: [{class: confirmed, rate: 301%}]\n", "load: 6020 requests/s are offered at once"},
		{"too much load for many", "topology: cities22\nphases: [{name: a, length: 1s}]\nload: [{class: confirmed, rate: 3501/s}]\n", "offer at most 3500/s over 22 nodes"},
		{"unknown topology", "topology: six\nphases: [{name: a, length: 1s}]\n", "topology: "},
		{"no replicas", "replicas: 0\nphases: [{name: a, length: 1s}]\n", "replicas: 0 is not above 0"},
		{"too many nodes", "replicas: 13\nphases: [{name: a, length: 1s}]\n", "replicas: makes 65 nodes"},
		{"nobody left", "absent: [ams, fra, iad, gru]\nphases: [{name: a, length: 1s}]\n", "absent: leaves fewer than two nodes"},
		{"trace and phases", "trace: {name: S1, cycle: 1s, cycles: 5}\nphases: [{name: a, length: 1s}]\n", "phases: stands beside a trace"},
		{"unknown trace", "trace: {name: S9, cycle: 1s, cycles: 5}\n", `trace.name: there is no contention scenario "S9"`},
		{"term too short", "cluster: {term: 700ms}\nphases: [{name: a, length: 1s}]\n", "cluster.term: 700ms is not between four ticks"},
		{"empty fault", "phases: [{name: a, length: 1s}]\nfaults: [{kind: pause, in: a, at: 1s, nodes: [ams]}]\n", "begins at 1s, after the end"},
		{"no YAML", "phases: [\n", "no valid YAML"},
	}
	for _, c := range cases {
		_, err := Parse("base.yaml", []byte(base+c.more))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Parse("other.yaml", []byte(base+"phases: [{name: a, length: 1s}]\n")); err == nil || !strings.Contains(err.Error(), `"base" is not the file's`) {
		t.Errorf("another name: got %v", err)
	}
}

func TestAScenarioMadeInCodeIsCheckedToo(t *testing.T) {
	s, err := Parse("base.yaml", []byte(base+"phases: [{name: a, length: 1s}]\n"))
	if err != nil || s.Validate() != nil {
		t.Fatal(err, s.Validate())
	}
	s.Faults = []Fault{{Name: "x", Kind: Kill}}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "faults[0].nodes: is missing") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add([]byte(base))
	for _, name := range []string{"steady", "partition-11-11", "reaction", "contention-five", "drain"} {
		text, err := files.ReadFile("files/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := ParseAll("steady.yaml", text)
		if err != nil {
			return
		}
		for i := range all {
			for _, v := range all[i].Variants {
				story := all[i].For(evidence.Variant(v.Name))
				if _, err := story.Rates(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
