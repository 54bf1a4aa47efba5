package main

import (
	"fmt"
	"time"

	"subak/testbed/load"
)

// phase is a part of a cycle, and what it offers beyond the calm, as fractions of
// the limit: a flood of the lowest class at the first node, a flash crowd of the
// highest at the last one.
type phase struct {
	name         string
	part         float64
	flood, crowd float64
}

func phases() []phase {
	return []phase{
		{"calm", 0.2, 0, 0},
		{"flood", 0.4, 1.5, 0},
		{"crowd", 0.4, 1.5, 0.5},
	}
}

// Calm is offered all the time, spread over the nodes by weight.
const (
	calmHigh = 0.35
	calmLow  = 0.20
	conns    = 16 // of each stream
)

// plan is one cycle of load: a stream for each class at each node, in the order
// class*nodes + node. The classes in between offer nothing.
func plan(s *scene, seed uint64, cycle time.Duration) load.Config {
	cfg := load.Config{Seed: seed, Bin: time.Second}
	for _, p := range phases() {
		length := time.Duration(p.part * float64(cycle)).Round(time.Millisecond)
		cfg.Phases = append(cfg.Phases, load.Phase{Name: p.name, Length: length})
	}
	var weights int64
	for _, n := range s.nodes {
		weights += n.Weight
	}
	for k, class := range s.classes {
		for i, n := range s.nodes {
			st := load.Stream{
				Name: n.Name + "/" + class,
				URL:  fmt.Sprintf("http://%s/%s/item", at(n.Name, edgePort), class),
				// Distinct clients, so that none comes back within a Retry-After.
				Clients: 1 << 22,
				Conns:   conns,
			}
			for _, p := range phases() {
				fraction := 0.0
				part := float64(n.Weight) / float64(weights)
				switch k {
				case 0:
					fraction = calmHigh * part
					if i == len(s.nodes)-1 {
						fraction += p.crowd
					}
				case len(s.classes) - 1:
					fraction = calmLow * part
					if i == 0 {
						fraction += p.flood
					}
				}
				st.Rates = append(st.Rates, fraction*float64(s.limit))
			}
			cfg.Streams = append(cfg.Streams, st)
		}
	}
	return cfg
}
