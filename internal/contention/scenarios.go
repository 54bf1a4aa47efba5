package contention

import (
	"fmt"
	"slices"

	"subak/testbed/topology"
)

// where is the places that a flood comes in at.
type where uint8

const (
	everywhere where = iota
	single
	region
	rotating
)

// scenario is one of the eight, in percent.
type scenario struct {
	name, title string
	flood       int64 // of the budget
	at          where
	high        int64 // mean demand of the high class, of its reservation
	hot         int64 // of its usual demand, what the high class asks for where the flood is
	region      string
	crowd       bool // a flash crowd in the region
	pulse       bool // the flood comes and goes
	bursts      bool // of the high class at single places
	sun         bool // demand follows the local time
	reversed    bool // most is asked for where the weight is least
}

func scenarios() []scenario {
	return []scenario{
		{name: "S1", title: "uniform flood", flood: 150, high: 110, hot: 100},
		{name: "S2", title: "flood at a single place", flood: 150, at: single, high: 115, hot: 100},
		{name: "S3", title: "regional flood", flood: 120, at: region, region: topology.Europe, high: 115, hot: 125},
		{name: "S4", title: "rotating flood", flood: 150, at: rotating, high: 100, hot: 200},
		{name: "S5", title: "flash crowd", flood: 100, region: topology.NorthAmerica, high: 95, hot: 100, crowd: true},
		{name: "S6", title: "pulsed flood and bursts", flood: 150, high: 100, hot: 100, pulse: true, bursts: true},
		{name: "S7", title: "follow the sun", flood: 120, high: 110, hot: 100, sun: true},
		{name: "S8", title: "demand against the weights", flood: 60, high: 145, hot: 100, reversed: true},
	}
}

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
		if t.scenario.reversed {
			w = around - w
		}
		r := draw(0, streamMix, 0, i)
		mix[i] = w * (700 + r.Int64N(601))
	}
	t.weights, t.mix = newSpread(top.Weights()), newSpread(mix)
	t.home = make([]bool, len(t.places))
	found := false
	for i, p := range t.places {
		t.home[i] = t.scenario.region != "" && p.Region == t.scenario.region
		found = found || t.home[i]
	}
	switch {
	case t.scenario.region != "" && !found:
		return fmt.Errorf("no place of topology %q is in region %s; mend: say so for some of its places", top.Name, t.scenario.region)
	case t.scenario.at == single:
		at := top.Index("fra")
		if at < 0 {
			at = slices.Index(top.Weights(), greatest)
		}
		t.home[at] = true
	}
	t.homes = newSpread(only(top.Weights(), t.home))
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
