package scenario

import (
	"fmt"
	"slices"
	"time"

	"subak/testbed/topology"
)

// nearby is the delay one way between two nodes of one place.
const nearby = 250 * time.Microsecond

// Net returns the nodes and how far apart they are, Replicas of each place.
func (s *Scenario) Net() (topology.Topology, error) {
	t, err := topology.Find(s.Topology)
	if err != nil || s.Replicas <= 1 {
		return t, err
	}
	many := topology.Topology{Name: t.Name}
	var home []int
	for copy := 1; copy <= s.Replicas; copy++ {
		for i, p := range t.Places {
			if copy > 1 {
				p.Name = fmt.Sprintf("%s%d", p.Name, copy)
			}
			many.Places = append(many.Places, p)
			home = append(home, i)
		}
	}
	for i, from := range home {
		row := make([]time.Duration, len(home))
		for j, to := range home {
			switch {
			case i == j:
			case from == to:
				row[j] = nearby
			default:
				row[j] = t.OneWay[from][to]
			}
		}
		many.OneWay = append(many.OneWay, row)
	}
	return many, nil
}

// Present are the nodes of t that are not absent at first.
func (s *Scenario) Present(t topology.Topology) []string {
	return slices.DeleteFunc(t.Names(), func(n string) bool { return slices.Contains(s.Absent, n) })
}
