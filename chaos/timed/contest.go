package timed

import (
	"errors"
	"fmt"
	"time"

	"subak/allocator"
	"subak/enforce"
	"subak/internal/contention"
	"subak/testbed/topology"
)

// Contest is a contention scenario played over whole cores in virtual time.
//
// Requests cost one unit. A cell's requests come evenly at its demand, in a
// group each 10 ms, the high class before the low one, and each of them is
// decided by the node's own limiter; what is refused does not come again. A
// node's low class is served without regard to who asks, so that the legitimate
// part gets the same fraction as the flood there.
//
// The network is the topology's, with a tenth of each delay as jitter, and loses
// nothing. All nodes start together. For the first 8 s, the warm-up, the demand
// is that of the first cycle and nothing is measured.
type Contest struct {
	Scenario string // S1 to S8
	Topology topology.Topology
	Limit    int64         // requests/s
	Cycle    time.Duration // at least 10 ms
	First    int           // cycle of the trace to begin with
	Cycles   int           // at least 1
	Hasten   int           // how much faster the trace's slow shapes run; 1 for as they are
	Seed     uint64
	// Static cuts every node off from every other after the start: its base is all
	// it has. Otherwise they share.
	Static bool

	InsurancePPM      int64 // of the high class's demand
	Burst, Tick, Term time.Duration
}

// DefaultContest returns the settings of a node's configuration and of the
// testbed: insurance 10 %, burst 500 ms, tick 200 ms, term 3 s.
func DefaultContest() Contest {
	return Contest{
		Cycle: 2 * time.Second, Cycles: 30, Hasten: 5, Seed: 1,
		InsurancePPM: 100_000, Burst: 500 * time.Millisecond, Tick: 200 * time.Millisecond, Term: 3 * time.Second,
	}
}

// Contested is what a contest came to. Amounts are in requests, after the warm-up.
type Contested struct {
	High, Legit, Low Served // Low includes Legit
	// Contended is how much of the budget came due in cycles with a demand of the
	// budget or more, and Used what was admitted in them: more where buckets held
	// something from before.
	Contended, Used float64
	// PeakPPM is the most that was ever enforced at one instant, in ppm of the
	// limit.
	PeakPPM int64
	// Objection is what a checker found wrong: of the sum of the enforced rates, of
	// what was admitted in any window, or any other. Empty for nothing.
	Objection string
}

// Served is what was asked for and what was admitted of it.
type Served struct{ Offered, Admitted float64 }

func (s *Served) add(offered, admitted float64) {
	s.Offered += offered
	s.Admitted += admitted
}

// Percent is what was admitted of what was offered; 100 of nothing.
func (s Served) Percent() float64 {
	if s.Offered == 0 {
		return 100
	}
	return 100 * s.Admitted / s.Offered
}

// contestWarmUp is the first start, its quarantine, and a term for everything to
// settle.
const contestWarmUp = 2 * warmUp

// Play runs the contest. The error says what of it cannot be played.
func (c Contest) Play() (Contested, error) {
	p, err := c.begin()
	if err != nil {
		return Contested{}, err
	}
	for n := range c.Cycles {
		p.offer(c.First + n)
		p.runUntil(contestWarmUp + int64(n+1)*int64(c.Cycle))
		p.account()
	}
	return p.end(), nil
}

// begin checks the contest, starts its nodes and lets the warm-up pass.
func (c Contest) begin() (*play, error) {
	trace, err := contention.New(c.Scenario, c.Topology, c.Limit, c.Seed)
	if err == nil {
		err = errors.Join(trace.Hasten(c.Hasten), c.validate())
	}
	if err != nil {
		return nil, err
	}
	p := newPlay(c, trace)
	p.start()
	p.offer(c.First)
	p.runUntil(warmUp)
	if c.Static {
		for i := range p.hosts {
			p.net.cut = append(p.net.cut, Fault{Kind: Split, Arg: 1 << i})
		}
	}
	p.runUntil(contestWarmUp)
	p.count()
	return p, nil
}

// end is the result, once the checkers had their say on the whole run.
func (p *play) end() Contested {
	if p.violation == nil {
		p.judgeBounds()
	}
	p.result.PeakPPM = p.stocks[0].peak
	if v := p.violation; v != nil {
		p.result.Objection = fmt.Sprintf("%s at %s: %s", v.Checker, v.At, v.Detail)
	}
	return p.result
}

func (c Contest) validate() error {
	switch {
	case c.Cycle < stretch || c.Cycle > time.Hour:
		return fmt.Errorf("cycle %s; mend: %s to 1h", c.Cycle, stretch)
	case c.Cycles < 1 || c.First < 0:
		return fmt.Errorf("%d cycles from cycle %d; mend: at least 1 from 0 on", c.Cycles, c.First)
	case c.InsurancePPM < 0 || c.InsurancePPM > 1_000_000:
		return fmt.Errorf("insurance above 1000000 or below 0 ppm: %d", c.InsurancePPM)
	case c.Limit > 1_000_000:
		return fmt.Errorf("limit %d; mend: at most 1000000/s, for every request is decided", c.Limit)
	}
	return nil
}

// stretch is the time between two groups of requests.
const stretch = 10 * time.Millisecond

// play is a contest while it runs.
type play struct {
	*world
	trace         *contention.Trace
	demand, legit []allocator.Rate
	counts        []enforce.Counts
	offered       []int64 // by class and node, since the start, as of the last count
	admitted      []int64
	result        Contested
	cycle         time.Duration
}

func newPlay(c Contest, trace *contention.Trace) *play {
	n := len(c.Topology.Places)
	s := Setup{
		Profile: "contest", Seed: c.Seed, Nodes: n, Budgets: 1, Classes: contention.Classes, Weights: c.Topology.Weights(),
		Limits: []int64{c.Limit}, Burst: c.Burst, InsurancePPM: c.InsurancePPM,
		Tick: c.Tick, GapMin: 40 * time.Millisecond, Term: c.Term, EpsPPM: 10_000, Guard: 25 * time.Millisecond, RhoPPM: 100,
		Delay: matrix(n, func(i, j int) int64 { return int64(c.Topology.OneWay[i][j]) }), Swing: 10,
		TurnLag: int64(200 * time.Microsecond), Disk: make([]bool, n), CostMost: 1, Stretch: stretch,
	}
	for i := range s.Disk {
		s.Disk[i] = true
	}
	return &play{
		world: newWorld(s, nil), trace: trace, cycle: c.Cycle,
		demand: make([]allocator.Rate, contention.Classes*n), legit: make([]allocator.Rate, n),
		counts:  make([]enforce.Counts, contention.Classes),
		offered: make([]int64, contention.Classes*n), admitted: make([]int64, contention.Classes*n),
	}
}

// offer lets the demand of a cycle come from now on.
func (p *play) offer(cycle int) {
	p.trace.Cycle(cycle, p.demand)
	p.trace.Legit(cycle, p.legit)
	for i, h := range p.hosts {
		h.feed()
		for k := range contention.Classes {
			h.load[0][k] = int64(p.demand[k*len(p.hosts)+i]) / 1000
		}
	}
}

// count reads what the limiters counted since the start, and returns what came on
// top since the last time.
func (p *play) count() (offered, admitted []int64) {
	n := len(p.hosts)
	offered, admitted = make([]int64, contention.Classes*n), make([]int64, contention.Classes*n)
	for i, h := range p.hosts {
		h.feed()
		h.budget(p.stocks[0].name).Limiter.Counts(p.counts)
		for k, c := range p.counts {
			cell := k*n + i
			offered[cell], admitted[cell] = c.Offered-p.offered[cell], c.Admitted-p.admitted[cell]
			p.offered[cell], p.admitted[cell] = c.Offered, c.Admitted
		}
	}
	return offered, admitted
}

// account adds the cycle that is over to the result.
func (p *play) account() {
	r, n := &p.result, len(p.hosts)
	offered, admitted := p.count()
	var demand allocator.Rate
	used := 0.0
	for cell, d := range p.demand {
		demand += d
		o, a := float64(offered[cell]), float64(admitted[cell])
		used += a
		if cell < n {
			r.High.add(o, a)
			continue
		}
		r.Low.add(o, a)
		if d > 0 {
			part := float64(p.legit[cell-n]) / float64(d)
			r.Legit.add(o*part, a*part)
		}
	}
	if limit := p.stocks[0].limit; demand >= limit {
		r.Contended += float64(limit) / float64(allocator.Unit) * p.cycle.Seconds()
		r.Used += used
	}
}
