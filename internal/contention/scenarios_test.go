package contention

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/internal/strict"
	"subak/testbed/topology"
)

func TestTheEightScenariosAreReadFromTheirFiles(t *testing.T) {
	if want := []string{"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"}; !slices.Equal(Names(), want) {
		t.Fatalf("scenarios %v, want %v", Names(), want)
	}
	for _, name := range Names() {
		s, err := Read(name+".yaml", Source(name))
		if err != nil || s.Name != name || s.Title == "" || s.Why == "" {
			t.Errorf("%s: %v, title %q", name, err, s.Title)
		}
	}
}

func TestAFaultOfAScenarioIsSaidWithItsPlaceAndMend(t *testing.T) {
	const good = "name: X\nhigh: {demand: 100%}\n"
	for _, c := range []struct{ name, text, says string }{
		{"empty", "", "x.yaml:1: the file is empty; mend: start from a copy"},
		{"no name", "high: {demand: 100%}\n", `name: "" is no name; mend: write a word, such as S1`},
		{"no demand", "name: X\n", "high.demand: is missing; mend: write a percentage"},
		{"unknown field", good + "flod: {}\n", "flod"},
		{"no percent", "name: X\nhigh: {demand: 100}\n", "x.yaml:2"},
		{"too much", "name: X\nhigh: {demand: 20000%}\n", "high.demand: 20000% is not between"},
		{"nowhere", good + "flood: {part: 10%, at: moon}\n", "flood.at"},
		{"region left out", good + "flood: {part: 10%, at: region}\n", "flood.region: and at: region belong together"},
		{"place of no use", good + "flood: {part: 10%, place: fra}\n", "flood.place: is given"},
		{"stays for ever", good + "flood: {stay: 0}\n", "flood.stay: 0 is not between 1 and"},
		{"crowd of nobody", good + "crowd: {more: 10%, every: 10}\n", "crowd.region: is missing"},
		{"crowd too long", good + "crowd: {region: europe, more: 10%, every: 10, stays: 20}\n", "crowd.every: 10 is shorter than what happens in it"},
		{"pulse too long", good + "pulse: {every: 3, stays: 4}\n", "pulse.stays: 4 is longer than a period of 3"},
		{"half a percent", good + "bursts: {begin: 0.5%, end: 10%, to: 200%}\n", "bursts.begin: 0.5% is not between 1% and 100%, in whole percent"},
		{"sun below zero", good + "sun: {swing: 120%}\n", "sun.swing: 120% is not between 0% and 100%"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("x.yaml", []byte(c.text))
			if _, ok := errors.AsType[strict.Faults](err); !ok || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestWhateverAScenarioSaysItsDemandIsAnAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pct := func(name string, least, most int) string {
			return fmt.Sprintf("%d%%", rapid.IntRange(least, most).Draw(t, name))
		}
		text := "name: X\nhigh: {demand: " + pct("demand", 1, 10000) + ", hot: " + pct("hot", 0, 10000) + "}\nlegit: " + pct("legit", 0, 10000) + "\n"
		text += "flood: {part: " + pct("part", 0, 10000) + ", at: " + rapid.SampledFrom([]string{"everywhere", "place", "rotating", "region, region: europe"}).Draw(t, "at") + "}\n"
		text += "mix: " + rapid.SampledFrom([]string{"weight", "reversed"}).Draw(t, "mix") + "\n"
		if rapid.Bool().Draw(t, "crowd") {
			text += "crowd: {region: europe, more: " + pct("more", 1, 10000) + ", every: 30, begins: 3, rises: 4, stays: 5, falls: 6}\n"
		}
		if rapid.Bool().Draw(t, "bursts") {
			text += "bursts: {begin: " + pct("begin", 1, 100) + ", end: " + pct("end", 1, 100) + ", to: " + pct("to", 1, 10000) + "}\n"
		}
		if rapid.Bool().Draw(t, "pulse") {
			text += "pulse: {every: 5, stays: 2, low: " + pct("low", 0, 10000) + "}\n"
		}
		if rapid.Bool().Draw(t, "sun") {
			text += "sun: {swing: " + pct("swing", 1, 100) + ", day: 24}\n"
		}
		s, err := Read("x.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		limit := rapid.Int64Range(1, MaxLimit).Draw(t, "limit")
		tr, err := s.Trace(topology.Cities22(), limit, 1)
		if most := s.maxLimit(); limit > most {
			if want := fmt.Sprintf("limit %d; mend: 1 to %d requests/s", limit, most); err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %q", err, want)
			}
			tr, err = s.Trace(topology.Cities22(), most, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		demand, legit := make([]allocator.Rate, Classes*tr.Nodes()), make([]allocator.Rate, tr.Nodes())
		for n := range 40 {
			tr.Cycle(n, demand)
			tr.Legit(n, legit)
			var sum allocator.Rate // the allocator refuses a sum of 2^63 or more
			for i, d := range demand {
				if sum += d; d < 0 || sum < 0 {
					t.Fatalf("cycle %d: cell %d asks for %d, which makes %d", n, i, d, sum)
				}
			}
			for i, l := range legit {
				if l < 0 || l > demand[tr.Nodes()+i] {
					t.Fatalf("cycle %d: %d of %d at place %d is legitimate", n, l, demand[tr.Nodes()+i], i)
				}
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, name := range Names() {
		f.Add(string(Source(name)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("x.yaml", []byte(text))
		if err != nil {
			return
		}
		tr, err := s.Trace(topology.Five(), 1000, 1)
		if err != nil {
			return // no place of such a region
		}
		demand := make([]allocator.Rate, Classes*tr.Nodes())
		for n := range 5 {
			tr.Cycle(n, demand)
		}
	})
}
