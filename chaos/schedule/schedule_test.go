package schedule

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"subak/chaos"
)

const steps = 800

// The law. A failure prints its seed, its shrunk schedule and the command that
// replays it; chaos/sim runs as many seeds as one likes.
func TestNoSeedBreaksTheBudgetAndEveryFaultBites(t *testing.T) {
	seen := make([]int64, counterCount)
	sweep := func(profile string, seeds uint64) {
		r := New(profile)
		for seed := uint64(1); seed <= seeds; seed++ {
			res := r.Run(seed, chaos.ModeOf(seed), steps)
			if res.Violation != nil {
				t.Fatal(r.Explain(seed, res.Mode, steps))
			}
			for i, n := range res.Seen {
				seen[i] += n
			}
		}
	}
	sweep("", 100)
	for _, p := range Profiles() { // the rare ones too
		if p.Name != "wide" {
			sweep(p.Name, 5)
		}
	}
	for i, c := range counters() {
		if c.Must && seen[i] == 0 {
			t.Errorf("never happened: %s", c.Name)
		}
	}
}

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	used, fresh := New(""), New("")
	used.Run(77, chaos.MixedVersions, steps)
	for seed := uint64(1); seed <= 10; seed++ {
		a, b := used.Run(seed, chaos.ModeOf(seed), steps), fresh.Run(seed, chaos.ModeOf(seed), steps)
		if a.Hash != b.Hash || a.Actions != b.Actions {
			t.Errorf("seed %d: traces %016x and %016x, actions %d and %d", seed, a.Hash, b.Hash, a.Actions, b.Actions)
		}
	}
}

func TestTracesOfSeedsAndModesDiffer(t *testing.T) {
	r := New("")
	seen := map[uint64]string{}
	for seed := uint64(1); seed <= 4; seed++ {
		for _, m := range chaos.Modes() {
			h := r.Run(seed, m, 200).Hash
			if was, ok := seen[h]; ok {
				t.Errorf("seed %d, mode %v has the trace of %s", seed, m, was)
			}
			seen[h] = m.String()
		}
	}
}

func TestARecordedScheduleReplaysToTheSameTrace(t *testing.T) {
	r := New("")
	for seed := uint64(1); seed <= 10; seed++ {
		mode := chaos.ModeOf(seed)
		schedule, res := r.Record(seed, mode, steps)
		parsed, err := Parse(Format(schedule))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Replay(seed, mode, parsed); got.Hash != res.Hash {
			t.Errorf("seed %d: replay gives trace %016x, want %016x", seed, got.Hash, res.Hash)
		}
	}
}

// What shrinking needs: actions whose objects are gone do nothing, and no
// assumption is broken by leaving actions out.
func TestAnySublistOfAScheduleRunsWithoutViolation(t *testing.T) {
	r := New("")
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64Range(1, 1<<20).Draw(t, "seed")
		mode := chaos.ModeOf(seed)
		full, _ := r.Record(seed, mode, 100)
		keep := rapid.IntRange(1, 7).Draw(t, "kept of 8")
		rng := chaos.NewRand(rapid.Uint64().Draw(t, "which"))
		var part []Action
		for _, a := range full {
			if a.Kind != Heal && rng.IntN(8) < keep {
				part = append(part, a)
			}
		}
		if res := r.Replay(seed, mode, part); res.Violation != nil {
			t.Fatalf("%s: %s", res.Violation.Checker, res.Violation.Detail)
		}
	})
}

func TestABrokenShellIsCaughtWithinFewSeeds(t *testing.T) {
	for name, c := range map[string]struct {
		broken breakage
		seeds  uint64
	}{
		"data plane lowered after the row left": {lowersLate, 20},
		"state not written":                     {forgetsState, 120},
		"clock that stops in a pause":           {jumpsClock, 40},
	} {
		t.Run(name, func(t *testing.T) {
			r := New("")
			r.w.broken = c.broken
			for seed := uint64(1); seed <= c.seeds; seed++ {
				if r.Run(seed, chaos.ModeOf(seed), steps).Violation != nil {
					t.Logf("seed %d", seed)
					return
				}
			}
			t.Errorf("not caught by %d seeds", c.seeds)
		})
	}
}

func TestAFailureIsExplainedByAShortScheduleThatStillFails(t *testing.T) {
	r := New("")
	r.w.broken = lowersLate
	seed := uint64(1)
	for r.Run(seed, chaos.ModeOf(seed), steps).Violation == nil {
		seed++
	}
	text := r.Explain(seed, chaos.ModeOf(seed), steps)
	for _, want := range []string{"VIOLATION of ", "shrunk from ", " publishes ", "processes at the end:", "go run ./chaos/sim --mode "} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation lacks %q", want)
		}
	}
	full, res := r.Record(seed, chaos.ModeOf(seed), steps)
	short := r.Shrink(seed, chaos.ModeOf(seed), full, res.Violation.Checker)
	if len(short) > 60 || len(short) == 0 {
		t.Errorf("shrunk from %d to %d actions, want 1 to 60", len(full), len(short))
	}
	if v := r.Replay(seed, chaos.ModeOf(seed), short).Violation; v == nil || v.Checker != res.Violation.Checker {
		t.Errorf("the shrunk schedule gives %v, want a violation of %s", v, res.Violation.Checker)
	}
}

func TestParseNamesTheLineThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"1 publish n0 0 0":              "six fields",
		"1 dance n0 0 0 0":              "unknown kind",
		"1 publish n0 0 0 0\n2 pass x1": "line 2",
		"1 publish n900 0 0 0":          "out of range",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if got, err := Parse("# comment\n\n 3 pass n0 0 -5 1 \n"); err != nil || len(got) != 1 || got[0] != (Action{ID: 3, Kind: Pass, Arg: -5, Then: 1}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEveryProfileCanBeRunAlone(t *testing.T) {
	for _, p := range Profiles() {
		if _, ok := ByName(p.Name); !ok {
			t.Errorf("profile %s is not found by its name", p.Name)
		}
		r := New(p.Name)
		for seed := uint64(1); seed <= 2; seed++ {
			if res := r.Run(seed, chaos.ModeOf(seed), 200); res.Violation != nil || res.Profile != p.Name {
				t.Errorf("seed %d ran profile %s: %v", seed, res.Profile, res.Violation)
			}
		}
	}
}
