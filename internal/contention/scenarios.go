package contention

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"

	"subak/internal/config"
	"subak/internal/strict"
	"subak/testbed/topology"
)

//go:embed scenarios/*.yaml
var files embed.FS

// Scenario says what is asked for. It is what a scenario's file holds; the files
// of the eight are the examples.
type Scenario struct {
	// Name as typed, Title in a few words, Why in a few sentences. A name is
	// required.
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	Why   string `yaml:"why"`
	// High is the high class's demand.
	High Asks `yaml:"high"`
	// Legit is the legitimate part of the low class, of the budget. Default 10%.
	Legit config.Percent `yaml:"legit" default:"10%"`
	// Flood is the rest of the low class. Default none.
	Flood Flood `yaml:"flood"`
	// Mix is how legitimate demand of both classes spreads: weight, or reversed, so
	// that most is asked for where the weight is least. Default weight.
	Mix Mix `yaml:"mix" default:"weight"`
	// Crowd is a flash crowd of the high class, Pulse lets the flood come and go,
	// Bursts are of the high class at single places, and Sun lets legitimate demand
	// follow the local time. Default none.
	Crowd  *Crowd  `yaml:"crowd"`
	Pulse  *Pulse  `yaml:"pulse"`
	Bursts *Bursts `yaml:"bursts"`
	Sun    *Sun    `yaml:"sun"`
}

// Asks is the demand of the high class.
type Asks struct {
	// Demand is its mean, of its reservation. Required.
	Demand config.Percent `yaml:"demand"`
	// Hot is what it asks for where the flood is, of what it usually asks for there.
	// Default 100%.
	Hot config.Percent `yaml:"hot" default:"100%"`
}

// Flood is the part of the low class that nobody wants.
type Flood struct {
	// Part is its size, of the budget. Default 0%.
	Part config.Percent `yaml:"part" default:"0%"`
	// At says where it comes in: everywhere, by weight; at one place; in a region, by
	// weight; or rotating, at one place at a time. Default everywhere.
	At Where `yaml:"at" default:"everywhere"`
	// Place is the name of the place. Where a topology has none of it, and by
	// default, it is the first place of the greatest weight.
	Place string `yaml:"place"`
	// Region of the places, as the topology says it. Required at a region.
	Region string `yaml:"region"`
	// Stay is for how many cycles a rotating flood stays at a place. Default 5.
	Stay int64 `yaml:"stay" default:"5"`
}

// Crowd is a flash crowd, over and over. Times are in cycles.
type Crowd struct {
	Region string         `yaml:"region"`             // required
	More   config.Percent `yaml:"more"`               // what comes on top of the usual demand, at most; required
	Every  int64          `yaml:"every"`              // from one to the next; required
	Begins int64          `yaml:"begins" default:"0"` // in each of them
	Rises  int64          `yaml:"rises" default:"1"`  // until it is whole
	Stays  int64          `yaml:"stays" default:"0"`
	Falls  int64          `yaml:"falls" default:"1"`
}

// Pulse is a flood that comes and goes: whole for the first cycles of each period.
type Pulse struct {
	Every int64          `yaml:"every"`            // cycles of a period; required
	Stays int64          `yaml:"stays"`            // of them the flood is whole; required
	Low   config.Percent `yaml:"low" default:"0%"` // the flood in the others, of the budget
}

// Bursts begin and end at each place by itself. Chances are in whole percent.
type Bursts struct {
	Begin config.Percent `yaml:"begin"` // chance in each cycle; required
	End   config.Percent `yaml:"end"`   // likewise; required
	To    config.Percent `yaml:"to"`    // demand in a burst, of the usual; required
}

// Sun is a sine of the local time, greatest at 18 h.
type Sun struct {
	Swing config.Percent `yaml:"swing"`             // its height; required
	Day   int64          `yaml:"day" default:"240"` // cycles
	// Begins is the cycle of the day that the trace begins with. Default 0:
	// midnight UTC.
	Begins int64 `yaml:"begins" default:"0"`
}

// Where a flood comes in.
type Where string

// The places of a flood.
const (
	everywhere Where = "everywhere"
	atPlace    Where = "place"
	inRegion   Where = "region"
	rotating   Where = "rotating"
)

// Choices implements strict.Chooser.
func (Where) Choices() []string { return []string{"everywhere", "place", "region", "rotating"} }

// Mix is how legitimate demand spreads.
type Mix string

const reversed Mix = "reversed"

// Choices implements strict.Chooser.
func (Mix) Choices() []string { return []string{"weight", "reversed"} }

// builtIn are the eight, in order. Their files are part of the binary, and a test
// reads them.
func builtIn() []Scenario {
	entries, err := files.ReadDir("scenarios")
	var all []Scenario
	for _, e := range entries {
		text, readErr := files.ReadFile(path.Join("scenarios", e.Name()))
		s, faults := Read(e.Name(), text)
		all, err = append(all, s), errors.Join(err, readErr, faults)
	}
	if err != nil {
		panic("contention: " + err.Error())
	}
	return all
}

// Read reads one scenario; file is the name that messages repeat. The error is
// a [strict.Faults] with everything that is wrong.
func Read(file string, text []byte) (Scenario, error) {
	var s Scenario
	strict.SetDefaults(reflect.ValueOf(&s).Elem())
	r := strict.New(file, "start from a copy of an example: subak sim scenarios --show S1")
	r.Decode(file, text, &s)
	if !r.Bad("") {
		(&checker{r, &s}).check()
	}
	if r.OK() {
		return s, nil
	}
	return s, r.Faults()
}

// Source is the file of one of the eight; nil for an unknown name.
func Source(name string) []byte {
	text, err := files.ReadFile(path.Join("scenarios", name+".yaml"))
	if err != nil {
		return nil
	}
	return text
}

// checker finds what is wrong with a scenario.
type checker struct {
	*strict.Report
	s *Scenario
}

// What may be written at most.
const (
	mostPart   = 100 * config.Whole // of the budget or the usual
	mostCycles = 1_000_000
)

func (c *checker) check() {
	s := c.s
	if s.Name == "" || strings.ContainsFunc(s.Name, func(r rune) bool { return r <= ' ' || r == ',' }) {
		c.Fault("name", fmt.Sprintf("%q is no name", s.Name), "write a word, such as S1")
	}
	c.part("high.demand", s.High.Demand, true)
	c.part("high.hot", s.High.Hot, false)
	c.part("legit", s.Legit, false)
	c.part("flood.part", s.Flood.Part, false)
	if (s.Flood.Region != "") != (s.Flood.At == inRegion) {
		c.Fault("flood.region", "and at: region belong together", "write at: region and a region, or neither")
	}
	if s.Flood.Place != "" && s.Flood.At != atPlace {
		c.Fault("flood.place", "is given, but the flood is not at a place", "write at: place, or leave it out")
	}
	c.cycles("flood.stay", s.Flood.Stay, 1)
	if x := s.Crowd; x != nil {
		c.crowd(x)
	}
	if x := s.Pulse; x != nil {
		c.cycles("pulse.every", x.Every, 1)
		c.cycles("pulse.stays", x.Stays, 0)
		c.part("pulse.low", x.Low, false)
		if x.Stays > x.Every {
			c.Fault("pulse.stays", fmt.Sprintf("%d is longer than a period of %d", x.Stays, x.Every), "write fewer cycles")
		}
	}
	if x := s.Bursts; x != nil {
		c.chance("bursts.begin", x.Begin)
		c.chance("bursts.end", x.End)
		c.part("bursts.to", x.To, true)
	}
	if x := s.Sun; x != nil {
		if x.Swing < 0 || x.Swing > config.Whole {
			c.Fault("sun.swing", fmt.Sprintf("%v is not between 0%% and 100%%", x.Swing), "write 70%")
		}
		c.cycles("sun.day", x.Day, 2)
		c.cycles("sun.begins", x.Begins, 0)
	}
}

func (c *checker) crowd(x *Crowd) {
	if x.Region == "" {
		c.Fault("crowd.region", "is missing", "write one that the topology names, such as "+topology.NorthAmerica)
	}
	c.part("crowd.more", x.More, true)
	c.cycles("crowd.every", x.Every, 1)
	c.cycles("crowd.begins", x.Begins, 0)
	c.cycles("crowd.rises", x.Rises, 1)
	c.cycles("crowd.stays", x.Stays, 0)
	c.cycles("crowd.falls", x.Falls, 1)
	if x.Begins+x.Rises+x.Stays+x.Falls > x.Every {
		c.Fault("crowd.every", fmt.Sprintf("%d is shorter than what happens in it", x.Every), "make it at least begins + rises + stays + falls")
	}
}

// part checks a percentage; where it is required, it is above 0.
func (c *checker) part(field string, p config.Percent, required bool) {
	switch {
	case required && p == 0:
		c.Fault(field, "is missing", "write a percentage, such as 100%")
	case p < 0 || p > mostPart:
		c.Fault(field, fmt.Sprintf("%v is not between 0%% and %v", p, mostPart), "write a percentage, such as 100%")
	}
}

func (c *checker) cycles(field string, n, least int64) {
	if n < least || n > mostCycles {
		c.Fault(field, fmt.Sprintf("%d is not between %d and %d", n, least, mostCycles), "write a number of cycles")
	}
}

func (c *checker) chance(field string, p config.Percent) {
	if p <= 0 || p > config.Whole || p%percent != 0 {
		c.Fault(field, fmt.Sprintf("%v is not between 1%% and 100%%, in whole percent", p), "write a chance, such as 6%")
	}
}

// maxLimit is the largest limit, in requests/s, up to which the demands of any cycle add
// up to less than 2^63, whatever chance decides.
func (s *Scenario) maxLimit() int64 {
	high := times(ReserveHighPPM, int64(s.High.Demand), whole)
	high = times(high, max(whole, int64(s.High.Hot)), whole)
	if s.Crowd != nil {
		high = times(high, whole+int64(s.Crowd.More), whole)
	}
	if s.Bursts != nil {
		high = times(high, max(whole, int64(s.Bursts.To)), whole)
	}
	calm := high + int64(s.Legit)
	if s.Sun != nil {
		calm *= 2
	}
	flood := int64(s.Flood.Part)
	if s.Pulse != nil {
		flood = max(flood, int64(s.Pulse.Low))
	}
	// In millionths of the limit, as a rate is in millionths of a request/s. Noise that
	// lasts makes at most 1 + 0.714*0.6/(1-0.7) of a demand, fresh noise 1.3.
	return min(MaxLimit, math.MaxInt64/max(1, 3*calm+2*flood))
}

// percent is one in a hundred.
const percent = config.Whole / 100

// settle works out what never changes: the spread of demand, and which places
// the scenario means.
func (t *Trace) settle(top topology.Topology) error {
	least, greatest := t.places[0].Weight, t.places[0].Weight
	for _, p := range t.places {
		least, greatest = min(least, p.Weight), max(greatest, p.Weight)
	}
	if least < 1 || greatest > maxWeight {
		return fmt.Errorf("weights from %d to %d; mend: weights from 1 to %d in the topology", least, greatest, maxWeight)
	}
	around := int64(120)
	if greatest >= around {
		around = least + greatest
	}
	mix := make([]int64, len(t.places))
	for i, p := range t.places {
		w := p.Weight
		if t.scenario.Mix == reversed {
			w = around - w
		}
		r := draw(0, streamMix, 0, i)
		mix[i] = w * (700 + r.Int64N(601))
	}
	t.weights, t.mix = newSpread(top.Weights()), newSpread(mix)
	t.home, t.crowded = make([]bool, len(t.places)), make([]bool, len(t.places))
	var err error
	switch f := t.scenario.Flood; f.At {
	case inRegion:
		err = mark(t.home, top, f.Region)
	case atPlace:
		at := top.Index(f.Place)
		if at < 0 {
			at = slices.Index(top.Weights(), greatest)
		}
		t.home[at] = true
	}
	if x := t.scenario.Crowd; x != nil && err == nil {
		err = mark(t.crowded, top, x.Region)
	}
	t.homes = newSpread(only(top.Weights(), t.home))
	return err
}

// mark marks the places of a region.
func mark(places []bool, top topology.Topology, region string) error {
	for i, p := range top.Places {
		places[i] = p.Region == region
	}
	if !slices.Contains(places, true) {
		return fmt.Errorf("no place of topology %q is in region %s; mend: say so for some of its places", top.Name, region)
	}
	return nil
}

// only is the weights of some places, 0 for the others.
func only(weights []int64, some []bool) []int64 {
	part := make([]int64, len(weights))
	for i := range part {
		if some[i] {
			part[i] = weights[i]
		}
	}
	return part
}
