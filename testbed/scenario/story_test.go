package scenario

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"subak/testbed/evidence"
)

func read(t *testing.T, more string) Scenario {
	t.Helper()
	s, err := Parse("base.yaml", []byte(base+more))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const tale = `
variants: [{name: subak}, {name: naive, lengths: {cut: 2s}}]
absent: [sin]
load: [{class: confirmed, rate: 10%}]
phases: [{name: calm, length: 3s}, {name: cut, length: 10s}, {name: after, length: 4s}]
steps: {count: 3, gap: 1s, rest: 500ms, class: uncleared, nodes: [gru, iad], rate: 100/s}
faults:
  - {kind: partition, in: cut, at: 1s, groups: [[ams], [fra]]}
  - {kind: isolate, in: cut, through: after}
  - {name: dead, kind: kill, at: 2s, for: 4s, nodes: [fra]}
  - {kind: pause, at: 5s, nodes: [gru]}
  - {kind: restart, in: after}
  - {kind: links, in: calm, rule: {loss: 5%}, to: [gru]}
`

func TestForWritesTheStoryOut(t *testing.T) {
	s := read(t, tale)
	story := s.For(evidence.Subak)
	var phases []string
	for _, p := range story.Phases {
		phases = append(phases, p.Name+" "+p.Length.String())
	}
	if diff := cmp.Diff([]string{"calm 3s", "cut 10s", "after 4s", "rest 1 500ms", "step 1 1s", "rest 2 500ms", "step 2 1s", "rest 3 500ms", "step 3 1s"}, phases); diff != "" {
		t.Error(diff)
	}
	everybody, present := []string{"ams", "fra", "iad", "gru", "sin"}, []string{"ams", "fra", "iad", "gru"}
	type timed struct {
		Name    string
		At, For time.Duration
		Nodes   []string
		Groups  [][]string
		From    []string
	}
	var got []timed
	for _, f := range story.Faults {
		if f.In != "" || f.Through != "" {
			t.Errorf("%s still names phases", f.Name)
		}
		got = append(got, timed{f.Name, f.At, f.For, f.Nodes, f.Groups, f.From})
	}
	want := []timed{
		{"partition", 4 * time.Second, 9 * time.Second, nil, [][]string{{"ams"}, {"fra"}, {"iad", "gru", "sin"}}, nil},
		{"isolate", 3 * time.Second, 14 * time.Second, present, nil, nil},
		{"dead", 2 * time.Second, 4 * time.Second, []string{"fra"}, nil, nil},
		{"pause", 5 * time.Second, 16500 * time.Millisecond, []string{"gru"}, nil, nil},
		{"restart", 13 * time.Second, 0, present, nil, nil},
		{"links", 0, 3 * time.Second, nil, nil, everybody},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(present, story.Load[0].Nodes); diff != "" {
		t.Error(diff)
	}
	if again := story.For(evidence.Subak); !cmp.Equal(story, again, cmp.AllowUnexported()) {
		t.Error(cmp.Diff(story, again))
	}
}

func TestAVariantHasItsOwnLengthsAndClaims(t *testing.T) {
	s := read(t, tale)
	s.Claims = append(s.Claims, Claim{Kind: BoundBroken, Variant: "naive"})
	naive := s.For(evidence.Naive)
	if naive.Phases[1].Length != 2*time.Second || s.Phases[1].Length != 10*time.Second {
		t.Errorf("got lengths %v and %v", naive.Phases[1].Length, s.Phases[1].Length)
	}
	if f, _ := naive.FaultNamed("partition"); f.At != 4*time.Second || f.For != time.Second {
		t.Errorf("got a partition at %v for %v", f.At, f.For)
	}
	if len(naive.Claims) != 1 || naive.Claims[0].Kind != BoundBroken {
		t.Errorf("got claims %+v", naive.Claims)
	}
	if got, want := s.Planned(), 2*4*time.Second+21500*time.Millisecond+13500*time.Millisecond; got != want {
		t.Errorf("planned %v, want %v", got, want)
	}
}

func TestRatesAreThoseOfTheScenarioAndThePhase(t *testing.T) {
	s := read(t, `
phases:
  - {name: calm, length: 1s}
  - name: flood
    length: 1s
    load:
      - {class: uncleared, nodes: [ams, fra], rate: 150/s, spread: equal}
      - {class: uncleared, nodes: [ams], rate: 1%}
load: [{class: confirmed, rate: 16%}]
`)
	story := s.For(evidence.Subak)
	got, err := story.Rates()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float64{
		{55, 55}, {80, 80}, {95, 95}, {45, 45}, {45, 45},
		{0, 95}, {0, 75}, {0, 0}, {0, 0}, {0, 0},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Error(diff)
	}
}

func TestATraceIsOfferedCycleByCycle(t *testing.T) {
	s := read(t, "trace: {name: S2, cycle: 500ms, cycles: 7, first: 2}\n")
	story := s.For(evidence.Subak)
	got, err := story.Rates()
	if err != nil || len(got) != 10 || len(got[0]) != 7 || story.Every() != 500*time.Millisecond {
		t.Fatalf("got %d streams, every %v, %v", len(got), story.Every(), err)
	}
	if len(story.Phases) != 1 || story.Phases[0].Length != 3500*time.Millisecond {
		t.Errorf("got phases %+v", story.Phases)
	}
	if got[6][0] < 2000 { // the flood of 150 % at fra
		t.Errorf("got %v of the low class at fra", got[6])
	}
}

func TestEachIsEveryContentionScenario(t *testing.T) {
	all, err := ParseAll("base.yaml", []byte(base+"trace: {name: each, cycle: 1s, cycles: 5}\n"))
	if err != nil || len(all) != 8 || all[7].Name != "base-s8" || all[7].Trace.Name != "S8" || all[0].Trace.Name != "S1" {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestReplicasAreNextToEachOther(t *testing.T) {
	s := read(t, "replicas: 3\nphases: [{name: a, length: 1s}]\n")
	net, err := s.Net()
	if err != nil {
		t.Fatal(err)
	}
	one, two := net.Index("fra"), net.Index("fra3")
	if len(net.Places) != 15 || one != 1 || two != 11 || net.Places[two].Weight != 80 {
		t.Fatalf("got %v", net.Names())
	}
	if net.OneWay[one][two] != nearby || net.OneWay[one][net.Index("ams2")] != net.OneWay[one][0] || net.OneWay[two][two] != 0 {
		t.Errorf("got %v", net.OneWay[one])
	}
}

func TestNamesOfFilesAreUnique(t *testing.T) {
	all, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(all) {
		t.Errorf("names are not unique: %v", names)
	}
}
