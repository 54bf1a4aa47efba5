package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"subak/chaos/bound"
	"subak/internal/api"
	"subak/internal/config"
	"subak/testbed/load"
	"subak/testbed/origin"
)

func compose(t *testing.T) *scene {
	t.Helper()
	t.Setenv(config.EnvConfig, "../subak.yaml")
	s, err := newScene()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheSceneIsThatOfTheNodesOwnFile(t *testing.T) {
	s := compose(t)
	if got, want := s.names(), []string{"ams", "fra", "iad", "gru", "sin"}; !slices.Equal(got, want) {
		t.Errorf("nodes %v, want %v", got, want)
	}
	if s.limit != 600 || s.burst != 500*time.Millisecond || s.slots() != 10 {
		t.Errorf("limit %d, burst %s, slots %d", s.limit, s.burst, s.slots())
	}
}

func TestEveryFileNamesTheSameNodes(t *testing.T) {
	for file, pattern := range map[string]string{
		"../compose.yaml":              "SUBAK_NODE: NAME,",
		"../prometheus/prometheus.yml": `["NAME:7947"], labels: {pop: NAME}`,
		"../chaos.sh":                  "    NAME) echo 10.207.7.",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range compose(t).names() {
			if want := strings.ReplaceAll(pattern, "NAME", name); !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
	}
}

func TestTheFloodIsOneAndAHalfTimesTheLimitAtTheFirstNodeOnly(t *testing.T) {
	s := compose(t)
	cfg := plan(s, 1, time.Minute)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	var length time.Duration
	for p, phase := range cfg.Phases {
		length += phase.Length
		total := 0.0
		for _, st := range cfg.Streams {
			total += st.Rates[p]
		}
		want := (calmHigh + calmLow + phases()[p].flood + phases()[p].crowd) * float64(s.limit)
		if math.Abs(total-want) > 1e-6 {
			t.Errorf("phase %s offers %g/s, want %g/s", phase.Name, total, want)
		}
	}
	if length != time.Minute {
		t.Errorf("a cycle lasts %s", length)
	}
	flood := cfg.Streams[len(s.nodes)] // the lowest class at the first node
	if grows := flood.Rates[1] - flood.Rates[0]; flood.Name != "ams/uncleared" || math.Abs(grows-900) > 1e-6 {
		t.Errorf("%s grows by %g/s, want ams/uncleared by 900/s", flood.Name, grows)
	}
}

func node(name string, count uint64, live ...string) reply {
	s := api.Status{Node: name, Ready: true, Budgets: []api.Budget{{Classes: []api.Class{{Admitted: count}}}}}
	for _, l := range live {
		s.Members = append(s.Members, api.Member{Name: l, Live: true})
	}
	s.Members = append(s.Members, api.Member{Name: "dead"})
	return reply{status: s}
}

func TestWhatIsAwaitedIsExactlyTheGroupsAndThatTheyServe(t *testing.T) {
	groups := [][]string{{"a", "b"}, {"c"}}
	before := map[string]reply{"a": node("a", 1, "b"), "b": node("b", 1, "a"), "c": node("c", 1)}
	good := func() map[string]reply {
		return map[string]reply{"a": node("a", 2, "b"), "b": node("b", 2, "a"), "c": node("c", 2)}
	}
	if faults := unsettled(groups, good(), before, true); len(faults) > 0 {
		t.Fatalf("settled, but: %v", faults)
	}
	for _, test := range []struct {
		name, want string
		change     func(map[string]reply)
	}{
		{"one too many is seen", "c sees a,c, not c", func(m map[string]reply) { m["c"] = node("c", 2, "a") }},
		{"one too few is seen", "a sees a, not a,b", func(m map[string]reply) { m["a"] = node("a", 2) }},
		{"one stands still", "b admits nothing", func(m map[string]reply) { m["b"] = node("b", 1, "a") }},
		{"one does not answer", "gone", func(m map[string]reply) { m["b"] = reply{err: errors.New("gone")} }},
		{"one is not ready", "c is not ready", func(m map[string]reply) {
			r := node("c", 2)
			r.status.Ready = false
			m["c"] = r
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := good()
			test.change(now)
			if got := unsettled(groups, now, before, true); len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Errorf("faults %q, want one with %q", got, test.want)
			}
		})
	}
	if faults := unsettled(groups, good(), nil, true); len(faults) != 3 {
		t.Errorf("nobody was seen to serve in one poll, but the faults are %q", faults)
	}
}

func TestGroupsNameNodesOnly(t *testing.T) {
	names := []string{"ams", "fra", "iad"}
	got, err := split("iad,ams/fra", names)
	if err != nil || len(got) != 2 || !slices.Equal(got[0], []string{"ams", "iad"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := split("", names); err != nil || len(got) != 1 || len(got[0]) != 3 {
		t.Errorf("everybody is %v, %v", got, err)
	}
	if _, err := split("ams,lhr", names); err == nil {
		t.Error("an unknown name is taken")
	}
}

func TestTheVerdictIsTheLastLineAndTheExitCode(t *testing.T) {
	report := func(arrived, dropped uint64) origin.Report {
		return origin.Report{Phases: []origin.PhaseReport{{Arrivals: []uint64{arrived}}}, Dropped: dropped}
	}
	judged := func(peak int64, slower uint64) origin.Judgement {
		return origin.Judgement{
			Claim: origin.Claim{Limit: 600}, Slower: []uint64{slower},
			Bound: bound.Report{LevelOK: true, Results: []bound.Result{{Window: time.Second, Peak: peak, Bound: 900, Margin: 900 - peak}}},
		}
	}
	for _, test := range []struct {
		name string
		r    origin.Report
		j    origin.Judgement
		code int
		line string
	}{
		{"kept", report(5000, 0), judged(900, 100), 0, "budget kept: 600/s; the fullest window (1s) holds 900 of 900 requests"},
		{"one too many", report(5000, 0), judged(901, 0), exitNo, "budget BROKEN: worst in 1s: 901 of 900 requests"},
		{"broken counts more than doubt", report(5000, 7), judged(901, 4000), exitNo, "budget BROKEN: worst in 1s: 901 of 900 requests"},
		{"the log was full", report(5000, 7), judged(5, 0), exitNoVerdict, "no verdict: 7 arrivals came after the log was full; reset it sooner"},
		{"too many were slow", report(5000, 0), judged(5, 101), exitNoVerdict, "no verdict: 101 of 5,000 requests were slow; this machine is too busy"},
		{"hardly any came", report(999, 0), judged(5, 0), exitNoVerdict, "no verdict: only 999 requests arrived, 1000 are needed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			code := answer(0)
			if err := conclude(&out, test.r, test.j); err != nil && !errors.As(err, &code) {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != test.line || int(code) != test.code {
				t.Errorf("got %q, code %d", got, code)
			}
		})
	}
}

func TestACycleIsOneLine(t *testing.T) {
	r := load.Report{Phases: []string{"calm"}, Streams: []load.StreamReport{
		{Cells: []load.Cell{{Offered: 5, Admitted: 2, Refused: 1, Overflow: 1, Errors: map[string]uint64{"timeout": 1}}}},
		{Cells: []load.Cell{{Offered: 3, Admitted: 3}}},
	}}
	if got, want := summary(r), "calm: offered 8, admitted 5, refused 1, failed 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
