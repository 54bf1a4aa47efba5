package demo

import (
	"fmt"
	"time"

	"subak/testbed/load"
)

// The two classes of the demo, in order of priority. The class is the first
// segment of the path, for the nodes' rules as for the origin.
const (
	confirmed = iota
	uncleared
)

type classPlan struct {
	name    string
	percent int64 // of the limit, reserved
}

type nodePlan struct {
	name   string
	weight int64
	host   string // loopback address
}

type phasePlan struct {
	name   string
	title  string
	length time.Duration
	rates  [][]float64 // offered requests/s [class][node]
	kill   int         // node to kill -9 when the phase begins; -1 none
	start  int         // node to start again when the phase begins; -1 none
	down   bool        // a node is down or coming back
	flood  bool        // more is offered than the limit
}

// plan is the whole run, before any address is known.
type plan struct {
	limit int64         // requests/s over all nodes
	burst time.Duration // seconds of its rate that a bucket holds
	// insurance is headroom for the first class, in percent of its demand.
	insurance int64
	term      time.Duration // of a loan
	tick      time.Duration
	nodes     []nodePlan
	first     int // how many nodes the cluster begins with; 0 for all
	classes   []classPlan
	phases    []phasePlan
}

// seriesBin is the resolution of the offered series. Phases are whole numbers of
// bins, so that the references do not serve one phase's arrivals in another.
const seriesBin = 100 * time.Millisecond

// Where things happen: nodes by position in the plan.
const (
	floodAt = 0 // ams
	crowdAt = 4 // sin
	deadAt  = 1 // fra, a quarter of the weight
)

// script is the demo. Of the limit, the classes offer 35 % and 20 % by weight
// throughout; the flood adds 150 % of uncleared at one node, the flash crowd 50 %
// of confirmed at another. Then the largest but one node is killed for a phase
// and started again. scale stretches or shrinks every phase.
//
// The burst is half a second rather than the default one: the shorter it is, the
// less room the bound has for a mistake, but the more often a node that uses all
// of its share refuses for want of a buffer. Insurance of 10 % keeps some room for
// confirmed at the nodes that the flood would leave with exactly what they need.
func script(limit int64, scale float64) plan {
	p := plan{
		limit: limit, burst: 500 * time.Millisecond, insurance: 10, term: 2 * time.Second, tick: 200 * time.Millisecond,
		classes: []classPlan{{"confirmed", 60}, {"uncleared", 40}},
		nodes: []nodePlan{
			{"ams", 55, "127.0.0.1"}, {"fra", 80, "127.0.0.2"}, {"iad", 95, "127.0.0.3"},
			{"gru", 45, "127.0.0.4"}, {"sin", 45, "127.0.0.5"},
		},
	}
	flood, crowd := 1.5*float64(limit), 0.5*float64(limit)
	add := func(name, title string, seconds, flood, crowd float64) *phasePlan {
		length := time.Duration(seconds * scale * float64(time.Second)).Round(seriesBin)
		ph := phasePlan{name: name, title: title, length: length, kill: -1, start: -1, flood: flood > 0}
		ph.rates = [][]float64{p.byWeight(0.35), p.byWeight(0.20)}
		ph.rates[uncleared][floodAt] += flood
		ph.rates[confirmed][crowdAt] += crowd
		p.phases = append(p.phases, ph)
		return &p.phases[len(p.phases)-1]
	}
	add("calm", "every node below its own share", 8, 0, 0)
	add("flood", "a flood of uncleared at "+p.nodes[floodAt].name, 14, flood, 0)
	add("crowd", "and a flash crowd of confirmed at "+p.nodes[crowdAt].name, 14, flood, crowd)
	dead := p.nodes[deadAt].name
	kill := add("kill", "kill -9 of "+dead+", flood and crowd go on", 10, flood, crowd)
	kill.kill, kill.down = deadAt, true
	back := add("back", dead+" starts again", 14, flood, crowd)
	back.start, back.down = deadAt, true
	return p
}

// founders is how many nodes the cluster begins with.
func (p *plan) founders() int {
	if p.first > 0 {
		return p.first
	}
	return len(p.nodes)
}

// byWeight splits a fraction of the limit over the nodes by weight.
func (p *plan) byWeight(fraction float64) []float64 {
	rates := make([]float64, len(p.nodes))
	for i, n := range p.nodes {
		rates[i] = fraction * float64(p.limit) * float64(n.weight) / float64(p.weights())
	}
	return rates
}

func (p *plan) weights() (sum int64) {
	for _, n := range p.nodes {
		sum += n.weight
	}
	return sum
}

func (p *plan) length() (sum time.Duration) {
	for _, ph := range p.phases {
		sum += ph.length
	}
	return sum
}

// base is what a class has at a node when nobody borrows, in requests/s.
func (p *plan) base(k, i int) float64 {
	return float64(p.limit) * float64(p.classes[k].percent) / 100 * float64(p.nodes[i].weight) / float64(p.weights())
}

// extra is the constant part of the bound in requests: each bucket may hold one
// whole request however low its rate.
func (p *plan) extra() int { return len(p.nodes) * len(p.classes) }

// bound is how many requests may be admitted in any window of length w, in
// whole requests.
func (p *plan) bound(w, spread time.Duration) int {
	return int(float64(p.limit)*(w+spread+p.burst).Seconds()) + p.extra()
}

// streams is the load: one stream for each class at each node, in the order
// class*nodes + node, of so many clients that none comes back soon.
func (p *plan) streams(addresses []string) []load.Stream {
	var all []load.Stream
	for k, c := range p.classes {
		for i, n := range p.nodes {
			s := load.Stream{
				Name:    n.name + "/" + c.name,
				URL:     fmt.Sprintf("http://%s/%s/item", addresses[i], c.name),
				Clients: 1 << 22,
				Conns:   24,
			}
			for _, ph := range p.phases {
				s.Rates = append(s.Rates, ph.rates[k][i])
			}
			all = append(all, s)
		}
	}
	return all
}

func (p *plan) loadPhases() []load.Phase {
	var all []load.Phase
	for _, ph := range p.phases {
		all = append(all, load.Phase{Name: ph.name, Length: ph.length})
	}
	return all
}

func (p *plan) classNames() []string {
	var names []string
	for _, c := range p.classes {
		names = append(names, c.name)
	}
	return names
}
