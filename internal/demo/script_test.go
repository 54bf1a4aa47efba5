package demo

import (
	"math"
	"testing"
	"time"

	"subak/testbed/load"
)

func sum(rates []float64) (s float64) {
	for _, r := range rates {
		s += r
	}
	return s
}

func TestTheScriptHasAMinuteOfTheStoryItTells(t *testing.T) {
	p := script(1000, 1)
	if p.length() != time.Minute {
		t.Errorf("length %v, want a minute", p.length())
	}
	want := []struct {
		name                 string
		confirmed, uncleared float64
		kill, start          int
	}{
		{"calm", 350, 200, -1, -1},
		{"flood", 350, 1700, -1, -1},
		{"crowd", 850, 1700, -1, -1},
		{"kill", 850, 1700, 1, -1},
		{"back", 850, 1700, -1, 1},
	}
	for i, w := range want {
		ph := p.phases[i]
		if ph.name != w.name || ph.kill != w.kill || ph.start != w.start ||
			math.Abs(sum(ph.rates[confirmed])-w.confirmed) > 1e-6 || math.Abs(sum(ph.rates[uncleared])-w.uncleared) > 1e-6 {
			t.Errorf("phase %d is %+v, want %+v", i, ph, w)
		}
	}
	// Calm must be calm: every cell below its own base.
	for k := range p.classes {
		for i := range p.nodes {
			if d, b := p.phases[0].rates[k][i], p.base(k, i); d > 0.9*b {
				t.Errorf("calm: %s at %s offers %.0f of its base of %.0f", p.classes[k].name, p.nodes[i].name, d, b)
			}
		}
	}
}

func TestTheBasesAddUpToTheLimit(t *testing.T) {
	p := script(1234, 1)
	total := 0.0
	for k := range p.classes {
		for i := range p.nodes {
			total += p.base(k, i)
		}
	}
	if math.Abs(total-1234) > 1e-6 {
		t.Errorf("bases add up to %g", total)
	}
}

func TestTheBoundIsTheOneOfTheDesign(t *testing.T) {
	p := script(1000, 1)
	// 1000*(1 + 0.5) for the window and its burst, 10 buckets; then 5 ms of spread.
	if got := p.bound(time.Second, 0); got != 1510 {
		t.Errorf("bound of 1 s = %d, want 1510", got)
	}
	if got := p.bound(100*time.Millisecond, 5*time.Millisecond); got != 615 {
		t.Errorf("bound of 100 ms = %d, want 615", got)
	}
}

func TestTheScriptIsALoadTheGeneratorTakes(t *testing.T) {
	for _, scale := range []float64{0.25, 1.0 / 3, 1, 3} {
		p := script(1000, scale)
		for _, ph := range p.phases {
			if ph.length%seriesBin != 0 || ph.length < 2*time.Second {
				t.Errorf("scale %g: phase %s of %v", scale, ph.name, ph.length)
			}
		}
		cfg := load.Config{Phases: p.loadPhases(), Streams: p.streams([]string{"127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1", "127.0.0.4:1", "127.0.0.5:1"})}
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
		if s := cfg.Streams[len(p.nodes)*uncleared+floodAt]; s.Name != "ams/uncleared" || s.URL != "http://127.0.0.1:1/uncleared/item" || s.Rates[1] < 1500 {
			t.Errorf("the flood is %+v", s)
		}
	}
}
