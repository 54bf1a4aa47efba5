package timed

import (
	"math"
	"strings"
	"testing"
	"time"

	"subak/allocator"
	"subak/internal/contention"
	"subak/testbed/topology"
)

// short is a contest over five cities.
func short(scenario string) Contest {
	c := DefaultContest()
	c.Scenario, c.Topology, c.Limit, c.Cycle, c.Cycles = scenario, topology.Five(), 2000, time.Second, 8
	return c
}

func played(t *testing.T, c Contest) Contested {
	t.Helper()
	r, err := c.Play()
	if err != nil {
		t.Fatal(err)
	}
	if r.Objection != "" || r.PeakPPM > 1_000_000 || r.PeakPPM < 990_000 {
		t.Errorf("%s: objection %q, peak %d ppm", c.Scenario, r.Objection, r.PeakPPM)
	}
	return r
}

func TestSharingServesMoreThanBasesAloneAndTheBudgetHolds(t *testing.T) {
	for _, name := range []string{"S2", "S4", "S5", "S8"} {
		c := short(name)
		c.Limit, c.Cycles = 1000, 6
		shared := played(t, c)
		c.Static = true
		alone := played(t, c)
		if got, least := shared.High.Percent(), alone.High.Percent(); got < least {
			t.Errorf("%s: %.1f %% of the high class served, %.1f %% by bases alone", name, got, least)
		}
		// Without sharing the flooded place leaves what the others do not use.
		if name == "S4" && (shared.High.Percent() < alone.High.Percent()+5 || shared.Used < 1.1*alone.Used) {
			t.Errorf("S4: sharing %+v, bases alone %+v: no gain", shared, alone)
		}
		if f := shared.Used / shared.Contended; f < 0.88 || f > 1.02 {
			t.Errorf("%s: %.3f of the budget used while it was all asked for", name, f)
		}
	}
}

func TestWhatIsOfferedIsTheTrace(t *testing.T) {
	c := short("S3")
	r := played(t, c)
	trace, err := contention.New("S3", c.Topology, c.Limit, c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	var want [3]float64
	dst, legit := make([]allocator.Rate, 10), make([]allocator.Rate, 5)
	for n := range c.Cycles {
		trace.Cycle(n, dst)
		trace.Legit(n, legit)
		for i := range 5 {
			want[0] += float64(dst[i]) / 1e6
			want[1] += float64(dst[5+i]) / 1e6
			want[2] += float64(legit[i]) / 1e6
		}
	}
	for i, got := range []Served{r.High, r.Low, r.Legit} {
		// Each cell may owe a request, and get one of the warm-up's.
		if math.Abs(got.Offered-want[i]) > 6 {
			t.Errorf("part %d: %.1f requests offered, the trace asks for %.1f", i, got.Offered, want[i])
		}
		if got.Admitted > got.Offered {
			t.Errorf("part %d: %.1f admitted of %.1f", i, got.Admitted, got.Offered)
		}
	}
}

func TestInsuranceServesMoreOfTheHighClassAndLeavesMoreIdle(t *testing.T) {
	c := short("S2")
	insured := played(t, c)
	c.InsurancePPM = 0
	bare := played(t, c)
	if insured.High.Percent() <= bare.High.Percent() || insured.Used >= bare.Used {
		t.Errorf("insured %+v, not insured %+v", insured, bare)
	}
}

func TestNewsTakesAsLongAsTheTopologySays(t *testing.T) {
	c := short("S4")
	p, err := c.begin()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range c.Topology.OneWay {
		for j, d := range row {
			if p.delay[i][j] != int64(d) {
				t.Errorf("%d to %d takes %d ns, want %s", i, j, p.delay[i][j], d)
			}
		}
	}
}

func TestAContestIsTheSameEachTime(t *testing.T) {
	c := short("S6")
	a, b := played(t, c), played(t, c)
	c.Seed = 2
	if other := played(t, c); a != b || a == other {
		t.Errorf("seed 1: %+v, then %+v; seed 2: %+v", a, b, other)
	}
}

func TestStaticNodesEnforceTheirBasesAndNothingElse(t *testing.T) {
	c := short("S4")
	for _, c.Static = range []bool{true, false} {
		p, err := c.begin()
		if err != nil {
			t.Fatal(err)
		}
		d := p.setup.document()
		a, err := allocator.New(d.Budgets[0].Spec)
		if err != nil {
			t.Fatal(err)
		}
		apart := false
		for n := range c.Cycles {
			p.offer(n)
			p.runUntil(p.now + int64(c.Cycle))
			for i, h := range p.hosts {
				apart = apart || h.share("b0") != a.NodeBase(i)
			}
		}
		if apart == c.Static {
			t.Errorf("static %v: shares other than bases: %v", c.Static, apart)
		}
	}
}

func TestAContestSeesAnOvercommittedBudget(t *testing.T) {
	p, err := short("S1").begin()
	if err != nil {
		t.Fatal(err)
	}
	p.stocks[0].limit--
	p.offer(0)
	p.runUntil(p.now + int64(time.Second))
	p.account()
	if r := p.end(); !strings.HasPrefix(r.Objection, "budget at ") || r.PeakPPM < 1_000_000 {
		t.Errorf("objection %q, peak %d", r.Objection, r.PeakPPM)
	}
}

func TestAContestThatCannotBePlayedSaysWhy(t *testing.T) {
	for want, change := range map[string]func(c *Contest){
		"one of S1":               func(c *Contest) { c.Scenario = "S0" },
		"cycle 1ms":               func(c *Contest) { c.Cycle = time.Millisecond },
		"0 cycles":                func(c *Contest) { c.Cycles = 0 },
		"from cycle -1":           func(c *Contest) { c.First = -1 },
		"hastened 0 times":        func(c *Contest) { c.Hasten = 0 },
		"at most 1000000/s":       func(c *Contest) { c.Limit = 2_000_000 },
		"insurance above 1000000": func(c *Contest) { c.InsurancePPM = 1_000_001 },
	} {
		c := short("S1")
		change(&c)
		if _, err := c.Play(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
