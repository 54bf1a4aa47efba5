package contention

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/testbed/topology"
)

const (
	limit  = 100_000
	cycles = 600
)

func newTrace(t testing.TB, name string, top topology.Topology, limit int64, seed uint64) *Trace {
	t.Helper()
	tr, err := New(name, top, limit, seed)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Every CPU must offer the same demand, or figures cannot be compared.
func TestGoldenTraces(t *testing.T) {
	want := map[string]uint64{
		"S1 five": 0x2aec650f8edbce91, "S2 five": 0x9e7ea3933d8f889c, "S3 five": 0xb6647f7f93255a85, "S4 five": 0xb38ab39989c46d23,
		"S5 five": 0x73d01ff676e1ffb4, "S6 five": 0x345551d44d55cb90, "S7 five": 0x1dfc093e69094dcc, "S8 five": 0xa09f1cba4742609e,
		"S1 cities22": 0x4d61d0490da61f17, "S2 cities22": 0xa51073449c838f9e, "S3 cities22": 0xaa7002818eb767c1, "S4 cities22": 0xdf72162074f614f7,
		"S5 cities22": 0xa58924b82b40fb2c, "S6 cities22": 0x7893e8ef9e8b608f, "S7 cities22": 0x1989e0b627c923cb, "S8 cities22": 0xcfa052496fde47f8,
	}
	for _, top := range []topology.Topology{topology.Five(), topology.Cities22()} {
		for _, name := range Names() {
			h := fnv.New64a()
			for seed := range uint64(2) {
				tr := newTrace(t, name, top, limit, seed)
				dst, legit := make([]allocator.Rate, Classes*tr.Nodes()), make([]allocator.Rate, tr.Nodes())
				for n := range cycles {
					tr.Cycle(n, dst)
					tr.Legit(n, legit)
					fmt.Fprintln(h, dst, legit)
				}
			}
			if key := name + " " + top.Name; h.Sum64() != want[key] {
				t.Errorf("%s hashes to %#x, want %#x", key, h.Sum64(), want[key])
			}
		}
	}
}

// totals adds up all places, in parts of the budget.
type totals struct{ high, legit, flood float64 }

func total(tr *Trace, n int, dst, legit []allocator.Rate) (s totals) {
	tr.Cycle(n, dst)
	tr.Legit(n, legit)
	b := float64(tr.limit)
	for i := range legit {
		s.high += float64(dst[i]) / b
		s.legit += float64(legit[i]) / b
		s.flood += float64(dst[tr.Nodes()+i]-legit[i]) / b
	}
	return s
}

func mean(tr *Trace, cycles int) (m totals) {
	dst, legit := make([]allocator.Rate, Classes*tr.Nodes()), make([]allocator.Rate, tr.Nodes())
	for n := range cycles {
		s := total(tr, n, dst, legit)
		m.high += s.high / float64(cycles)
		m.legit += s.legit / float64(cycles)
		m.flood += s.flood / float64(cycles)
	}
	return m
}

// The table's factor holds for the high class where nothing comes on top; what
// comes on top is worked out from the scenario's own words.
func TestMeanDemandsAreThoseOfTheTable(t *testing.T) {
	for _, top := range []topology.Topology{topology.Five(), topology.Cities22()} {
		base := newTrace(t, "S3", top, limit, 1)
		eu, na := 0.0, 0.0
		for i, p := range top.Places {
			switch p.Region {
			case topology.Europe:
				eu += float64(base.mix.part[i]) / float64(base.mix.sum)
			case topology.NorthAmerica:
				na += float64(base.mix.part[i]) / float64(base.mix.sum)
			}
		}
		crowd := (15*0.5 + 30 + 60*0.5) / 150 * 2.40
		for _, c := range []struct {
			name        string
			high, flood float64
			within      float64
		}{
			{"S1", 1.10, 1.5, 0.015},
			{"S2", 1.15, 1.5, 0.015},
			{"S3", 1.15 * (1 + 0.25*eu), 1.2, 0.015},
			{"S4", 1 + 1/float64(len(top.Places)), 1.5, 0.07}, // cities differ in size
			{"S5", 0.95 * (1 + na*crowd), 1, 0.015},
			{"S6", 1 + 1.5*6/31, (9*1.5 + 3*0.23) / 12, 0.05},
			{"S7", 1.10, 1.2, 0.015},
			{"S8", 1.45, 0.6, 0.015},
		} {
			m := mean(newTrace(t, c.name, top, limit, 3), cycles)
			if c.name == "S7" { // two and a half days: whole ones only
				m = mean(newTrace(t, c.name, top, limit, 3), 480)
			}
			if got := m.high / 0.6; math.Abs(got/c.high-1) > c.within {
				t.Errorf("%s %s: high class asks for %.3f of its reservation, want %.3f", c.name, top.Name, got, c.high)
			}
			if math.Abs(m.flood/c.flood-1) > 0.01 || math.Abs(m.legit/0.1-1) > 0.015 {
				t.Errorf("%s %s: flood %.3f of the budget, want %.3f; legitimate %.4f, want 0.1", c.name, top.Name, m.flood, c.flood, m.legit)
			}
		}
	}
}

func TestATraceScalesWithTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(Names()).Draw(t, "name")
		top := rapid.SampledFrom([]topology.Topology{topology.Five(), topology.Cities22()}).Draw(t, "topology")
		small := rapid.Int64Range(1, 1000).Draw(t, "limit")
		factor := rapid.Int64Range(1, MaxLimit/1000).Draw(t, "factor")
		seed := rapid.Uint64().Draw(t, "seed")
		a, err := New(name, top, small, seed)
		b, err2 := New(name, top, small*factor, seed)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		x, y := make([]allocator.Rate, Classes*a.Nodes()), make([]allocator.Rate, Classes*a.Nodes())
		n := rapid.IntRange(0, 40).Draw(t, "cycle")
		a.Cycle(n, x)
		b.Cycle(n, y)
		for i := range x {
			// Each of at most four steps drops less than a micro-unit, and what the
			// first ones drop grows with the factors after them.
			if least := x[i] * allocator.Rate(factor); x[i] < 0 || y[i] < least || y[i] > least+30*allocator.Rate(factor) {
				t.Fatalf("%s cell %d: %d at limit %d, %d at %d times as much", name, i, x[i], small, y[i], factor)
			}
		}
	})
}

func TestACycleIsTheSameHoweverItIsReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(Names()).Draw(t, "name")
		seed := rapid.Uint64Range(0, 5).Draw(t, "seed")
		a, err := New(name, topology.Five(), limit, seed)
		if err != nil {
			t.Fatal(err)
		}
		dst, again := make([]allocator.Rate, Classes*a.Nodes()), make([]allocator.Rate, Classes*a.Nodes())
		for range 4 {
			n := rapid.IntRange(0, 60).Draw(t, "cycle")
			a.Cycle(n, dst)
			b, err := New(name, topology.Five(), limit, seed)
			if err != nil {
				t.Fatal(err)
			}
			b.Cycle(n, again)
			if !slices.Equal(dst, again) {
				t.Fatalf("%s cycle %d: %v after others, %v at once", name, n, dst, again)
			}
		}
	})
}

func TestSeedsDifferAndTheMixDoesNot(t *testing.T) {
	one, two := newTrace(t, "S1", topology.Cities22(), limit, 1), newTrace(t, "S1", topology.Cities22(), limit, 2)
	if !slices.Equal(one.mix.part, two.mix.part) {
		t.Error("the mix depends on the seed")
	}
	x, y := make([]allocator.Rate, Classes*22), make([]allocator.Rate, Classes*22)
	one.Cycle(0, x)
	two.Cycle(0, y)
	if slices.Equal(x, y) {
		t.Error("two seeds give the same demand")
	}
	for i, p := range one.places {
		if f := float64(one.mix.part[i]) / float64(p.Weight) / 1000; f < 0.7 || f > 1.3 {
			t.Errorf("%s: %.3f times its weight, want 0.7 to 1.3", p.Name, f)
		}
	}
}

// floods returns where the flood is in a cycle, by name.
func floods(tr *Trace, n int) string {
	tr.play(n)
	var at []string
	for i, f := range tr.now.flood {
		if f > 0 {
			at = append(at, tr.places[i].Name)
		}
	}
	slices.Sort(at)
	return strings.Join(at, " ")
}

func TestFloodsAreWhereTheScenarioSays(t *testing.T) {
	csv, err := topology.FromCSV("own", strings.NewReader("x,weight,region,a,b,c\na,3,,0,1,1\nb,9,,,0,1\nc,9,europe,,,0\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		top  topology.Topology
		want string
	}{
		{"S1", topology.Five(), "ams fra gru iad sin"},
		{"S2", topology.Five(), "fra"},
		{"S2", topology.Cities22(), "fra"},
		{"S2", csv, "b"},
		{"S3", topology.Five(), "ams fra"},
		{"S3", topology.Cities22(), "ams arn cdg fra lhr mad"},
		{"S3", csv, "c"},
		{"S5", topology.Five(), "ams fra gru iad sin"},
	} {
		for n := range 20 {
			if got := floods(newTrace(t, c.name, c.top, limit, 1), n); got != c.want {
				t.Errorf("%s of %s, cycle %d: flood at %s, want %s", c.name, c.top.Name, n, got, c.want)
			}
		}
	}
	if _, err := New("S5", csv, limit, 1); err == nil || !strings.Contains(err.Error(), "north-america") {
		t.Errorf("S5 without North America: %v", err)
	}
}

func TestTheRotatingFloodMovesEveryFiveCyclesAndReachesAll(t *testing.T) {
	tr := newTrace(t, "S4", topology.Cities22(), limit, 1)
	seen := map[string]bool{}
	last := ""
	for n := range cycles {
		at := floods(tr, n)
		if moved := at != last; moved != (n%5 == 0) {
			t.Fatalf("cycle %d: flood at %s after %s", n, at, last)
		}
		seen[at], last = true, at
		i := topology.Cities22().Index(at)
		usual := float64(tr.mix.of(tr.limit*6/10, i))
		if f := float64(tr.now.high[i]) / usual; f < 1.2 || f > 3 {
			t.Errorf("cycle %d: high class at %s asks for %.2f of what is usual, want about 2", n, at, f)
		}
	}
	if len(seen) != 22 {
		t.Errorf("the flood came to %d places of 22", len(seen))
	}
}

func TestTheFlashCrowdRisesHoldsAndDecays(t *testing.T) {
	s5, err := Find("S5")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cycle, want int64
	}{{0, 0}, {20, 0}, {25, 80}, {34, 224}, {35, 240}, {64, 240}, {65, 240}, {95, 120}, {124, 4}, {125, 0}, {149, 0}, {150, 0}, {190, 240}} {
		if got := s5.Crowd.now(c.cycle) / int64(percent); got != c.want {
			t.Errorf("cycle %d: %d %% more, want %d", c.cycle, got, c.want)
		}
	}
	tr := newTrace(t, "S5", topology.Five(), limit, 1)
	crowded := func(n int) float64 {
		tr.play(n)
		return float64(tr.now.high[2]) / float64(tr.now.high[0]+tr.now.high[1])
	}
	before, within := crowded(10), crowded(50)
	if f := within / before; f < 2.4 || f > 4.8 {
		t.Errorf("iad against Europe grows %.2f-fold in the crowd, want about 3.4", f)
	}
	if err := tr.Hasten(5); err != nil {
		t.Fatal(err)
	}
	if f := crowded(10) / before; f < 2.4 || f > 4.8 {
		t.Errorf("hastened five times, the crowd of cycle 50 is not there in cycle 10: %.2f-fold", f)
	}
	if tr.Hasten(0) == nil || tr.Hasten(51) == nil {
		t.Error("hastened 0 and 51 times")
	}
}

func TestThePulseAndTheBurstsKeepTheirPeriodAndShare(t *testing.T) {
	tr := newTrace(t, "S6", topology.Cities22(), limit, 1)
	bursts := 0
	for n := range cycles {
		tr.play(n)
		var flood allocator.Rate
		for i, f := range tr.now.flood {
			flood += f
			if tr.now.burst[i] {
				bursts++
			}
		}
		want := 1.5
		if n%12 >= 9 {
			want = 0.23
		}
		if got := float64(flood) / float64(tr.limit); math.Abs(got/want-1) > 0.1 {
			t.Errorf("cycle %d: flood of %.2f of the budget, want %.2f", n, got, want)
		}
	}
	if share := float64(bursts) / (22 * cycles); math.Abs(share-6./31) > 0.02 {
		t.Errorf("places are in a burst %.3f of the time, want %.3f", share, 6./31)
	}
}

func TestDemandFollowsTheSun(t *testing.T) {
	for angle := int64(-2000); angle < 2000; angle++ {
		want := math.Sin(float64(angle) / 1440 * 2 * math.Pi)
		if got := float64(sine(angle)) / one; math.Abs(got-want) > 0.0017 {
			t.Fatalf("sine of %d/1440 of a turn is %.5f, want %.5f", angle, got, want)
		}
	}
	tr := newTrace(t, "S7", topology.Cities22(), limit, 1)
	for i, p := range tr.places {
		best, at := int64(0), 0
		for n := range 240 {
			tr.play(n)
			if f := tr.sun(i); f > best {
				best, at = f, n
			}
		}
		local := (time.Duration(at)*6*time.Minute + p.Offset + 24*time.Hour) % (24 * time.Hour)
		if local != 18*time.Hour || math.Abs(float64(best)/one-1.7) > 0.001 {
			t.Errorf("%s asks for most, %.2f of the mean, at %s local time, want 1.7 at 18h", p.Name, float64(best)/one, local)
		}
	}
}

func TestTheMismatchAsksForMostWhereTheWeightIsLeast(t *testing.T) {
	for _, top := range []topology.Topology{topology.Five(), topology.Cities22()} {
		tr := newTrace(t, "S8", top, limit, 1)
		for i, p := range tr.places {
			if f := float64(tr.mix.part[i]) / float64(120-p.Weight) / 1000; f < 0.7 || f > 1.3 {
				t.Errorf("%s of %s: %.3f times 120 - w", p.Name, top.Name, f)
			}
		}
	}
	heavy, err := topology.FromCSV("own", strings.NewReader("x,weight,a,b\na,500,0,1\nb,100,1,0\n"))
	if err != nil {
		t.Fatal(err)
	}
	tr := newTrace(t, "S8", heavy, limit, 1)
	if a, b := float64(tr.mix.part[0]), float64(tr.mix.part[1]); b/a < 5*0.7/1.3 || b/a > 5*1.3/0.7 {
		t.Errorf("weights 500 and 100 give a mix of %.0f to %.0f", a, b)
	}
}

// A seed's noise is as large and as lasting as the model says.
func TestNoiseHasTheDeviationAndTheMemoryOfTheModel(t *testing.T) {
	tr := newTrace(t, "S1", topology.Cities22(), limit, 1)
	var square, product float64
	last := make([]float64, 22)
	for n := range cycles {
		tr.play(n)
		for i, x := range tr.now.drift[High] {
			f := float64(x) / one
			square += f * f
			product += f * last[i]
			last[i] = f
		}
	}
	if sigma := math.Sqrt(square / (22 * cycles)); math.Abs(sigma-0.1) > 0.004 {
		t.Errorf("noise of %.4f, want 0.1", sigma)
	}
	if rho := product / square; math.Abs(rho-0.7) > 0.03 {
		t.Errorf("one cycle's noise is %.3f of the last one's, want 0.7", rho)
	}
}

func TestWhatCannotBePlayedIsRefused(t *testing.T) {
	light := topology.Five()
	light.Places[1].Weight = 0
	for _, c := range []struct {
		name  string
		top   topology.Topology
		limit int64
		want  string
	}{
		{"S9", topology.Five(), 1, "one of S1, S2"},
		{"S1", topology.Five(), 0, "limit 0"},
		{"S1", topology.Five(), MaxLimit + 1, "mend: 1 to 1000000000000"},
		{"S1", topology.Topology{}, 1, "0 places"},
		{"S1", light, 1, "weights from 0"},
	} {
		if _, err := New(c.name, c.top, c.limit, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	for _, name := range Names() {
		tr := newTrace(t, name, topology.Cities22(), MaxLimit, 1) // nothing overflows
		if m := mean(tr, 50); m.high < 0.5 || m.high > 2.5 || Title(name) == "" {
			t.Errorf("%s %q: high class asks for %.2f of the largest budget", name, Title(name), m.high)
		}
	}
}
