package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"subak/internal/api"
)

func TestASeriesHasTheLastValueOfEachBinAndKnowsWhenANodeWasDown(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	forever := func() time.Time { return time.Time{} }
	n := &node{
		lives:  []life{{at(-500), func() time.Time { return at(450) }}, {at(650), forever}},
		pauses: []span{{at(150), at(250)}},
		points: []Point{
			{At: at(-50), Got: at(-40), Share: 1, Digest: "a", Ready: true, Live: 3, Epoch: 1, Demand: []float64{5, 6}},
			{At: at(120), Got: at(450), Share: 2, Digest: "b", Ready: true, Live: 3, Epoch: 1, Demand: []float64{7, 8}},
			{At: at(690), Got: at(695), Share: 3, Digest: "c", Live: 1},
		},
		usage:    []usagePoint{{at(250), 100, 7}},
		meters:   []meterPoint{{at(10), 20, 30}, {at(660), 1, 2}},
		counters: map[string]counter{"x": {earlier: 2, now: 3}},
	}
	s := n.series(start, 100*time.Millisecond, 9, 2, 200*time.Millisecond)
	for name, c := range map[string]struct{ got, want any }{
		// Paused at 200, down from 450 to 650, no answer within 200 ms at 900.
		"up":       {s.Up, []uint8{1, 0, 1, 1, 0, 0, 1, 1, 0}},
		"ready":    {s.Ready, []uint8{1, 0, 1, 1, 0, 0, 0, 0, 0}},
		"share":    {s.Share, []float64{1, 2, 2, 2, 2, 2, 3, 3, 3}},
		"digest":   {strings.Join(s.Digest, ","), "a,,b,b,,,c,c,"},
		"demand":   {s.Demand[1], []float64{6, 8, 8, 8, 8, 8, 0, 0, 0}},
		"live":     {s.Live, []int{3, 3, 3, 3, 3, 3, 1, 1, 1}},
		"rss":      {s.RSS, []int64{0, 0, 100, 100, 100, 100, 100, 100, 100}},
		"received": {s.GossipReceived, []int64{30, 30, 30, 30, 30, 30, 2, 2, 2}},
		"counters": {s.Counters["x"], 5.0},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestAnAnswerIsOfTheInstantItNamesUnlessThatCannotBe(t *testing.T) {
	now := time.Unix(1000, 0)
	answer := func(at time.Time) *api.Status {
		return &api.Status{
			Time: at, Ready: true, Epoch: api.Epoch{Version: 4, Active: true},
			Members: []api.Member{{Name: "a", Self: true, Digest: "d"}, {Name: "b", Live: true}, {Name: "c"}, {Name: "d", Live: true, Gossip: "left"}},
			Budgets: []api.Budget{{Name: "idle-001", Share: 99}, {Name: BudgetName, Share: 10, Target: 11, Classes: []api.Class{{Demand: 5}, {Demand: 6}}}},
		}
	}
	n := &node{}
	n.take(answer(now.Add(-200*time.Millisecond)), now)
	n.take(answer(now.Add(-200*time.Millisecond)), now.Add(time.Second)) // the same snapshot again
	n.take(answer(now.Add(time.Hour)), now.Add(2*time.Second))           // the wall clock was set
	n.take(answer(now.Add(-time.Hour)), now.Add(3*time.Second))
	busy := &api.Status{Time: now.Add(4 * time.Second)} // the loop had no time
	n.take(busy, busy.Time)
	var got []string
	for _, p := range n.points {
		got = append(got, fmt.Sprintf("%v+%v", p.At.Sub(now), p.Got.Sub(p.At)))
	}
	if want := []string{"-200ms+1.2s", "2s+0s", "3s+0s", "4s+0s"}; !slices.Equal(got, want) {
		t.Errorf("points %v, want %v", got, want)
	}
	if p := n.points[0]; p.Share != 10 || p.Target != 11 || p.Live != 2 || p.Digest != "d" || p.Epoch != 4 || p.Demand[1] != 6 || !p.Ready {
		t.Errorf("point %+v", p)
	}
	first := &node{}
	first.take(answer(now.Add(-time.Hour)), now)
	if at := first.points[0].At; !at.Equal(now) {
		t.Errorf("a first answer of an hour ago is of %v, want of its arrival", at.Sub(now))
	}
	if p := n.points[3]; p.Share != 10 || p.Epoch != 4 || p.Ready || p.Live != 0 {
		t.Errorf("without budgets %+v, want the share of before", p)
	}
}

func TestCountersAreAddedOverLivesAndSelectedByLabels(t *testing.T) {
	const page = "# TYPE a_total counter\na_total{via=\"x\",to=\"y\"} 3\na_total{via=\"z\",to=\"y\"} 4\n# TYPE g gauge\ng 1.5\n"
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]float64{
		"a_total": 7, `a_total{via="x"}`: 3, `a_total{to="y"}`: 7, `a_total{via="x",to="y"}`: 3, `a_total{via="x",to="z"}`: 0, "g": 1.5, "b": 0,
	} {
		if got := read(families, selector); got != want {
			t.Errorf("%s: %v, want %v", selector, got, want)
		}
	}
	n := &node{counters: map[string]counter{}}
	for _, c := range []struct {
		value float64
		life  int
	}{{3, 1}, {5, 1}, {2, 2}, {4, 2}, {1, 3}} {
		n.countLocked("c", c.value, c.life)
	}
	if k := n.counters["c"]; k.earlier+k.now != 10 {
		t.Errorf("counter %+v, want 5+4+1", k)
	}
}
