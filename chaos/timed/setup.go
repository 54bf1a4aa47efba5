package timed

import (
	"fmt"
	"time"

	"subak/allocator"
	"subak/chaos"
	"subak/internal/epoch"
)

// Setup is the world before the first fault: who there is, how far apart, and
// what is always a little wrong. A seed draws it.
type Setup struct {
	Profile string
	Seed    uint64
	Mode    chaos.Mode

	Nodes, Budgets, Classes int
	Weights                 []int64
	Limits                  []int64 // units/s, by budget
	Burst                   time.Duration
	InsurancePPM            int64 // of every budget

	Tick, GapMin, Term time.Duration
	EpsPPM             int64
	Guard              time.Duration
	RhoPPM             int64 // clocks run at 1 +- this at most
	Sharp              bool  // clocks run at the extremes

	Delay        [][]int64 // one way, ns, by sender and receiver
	Jitter       int64     // ns
	Swing        int64     // jitter besides, in percent of the delay
	LossPPM      int64
	DuplicatePPM int64
	RelayPPM     int64 // of arrived rows, passed on to a random peer
	Pull         time.Duration
	TurnLag      int64  // from news to the turn of the loop, ns; news in between are batched
	Disk         []bool // by node
	EdgePPM      int64  // of turns after which the instants around the next lease end are used
	Whole        bool   // requests of a stretch come as one of that cost: for figures
	Stretch      time.Duration
	CostMost     int64 // units of one request
	OldMost      int   // requests that may hold an old reading, in the whole run
}

// name of a node, in roster order.
func nodeName(i int) string { return fmt.Sprintf("n%02d", i) }

// document is the first config of the cluster.
func (s *Setup) document() *epoch.Document {
	d := &epoch.Document{Cluster: "timed"}
	for i := range s.Nodes {
		d.Nodes = append(d.Nodes, epoch.Node{Name: nodeName(i), Weight: s.Weights[i]})
	}
	for b, limit := range s.Limits {
		rate := allocator.Rate(limit) * allocator.Unit
		spec := allocator.Spec{Budget: rate, Weights: append([]int64(nil), s.Weights...), InsurancePPM: s.InsurancePPM}
		if b%2 == 1 {
			spec.Mode = allocator.Paper
		}
		left := rate
		for k := range s.Classes {
			r := left
			if k < s.Classes-1 {
				r = rate * 6 / 10 / allocator.Rate(s.Classes-1)
			}
			left -= r
			c := allocator.ClassSpec{Name: fmt.Sprintf("c%d", k), Reservation: r, Lend: allocator.Whole, Borrow: allocator.Unlimited, Protect: allocator.Whole}
			if k > 0 && spec.Mode == allocator.PoolFirst {
				c.Rule = allocator.MaxMin
			}
			spec.Classes = append(spec.Classes, c)
		}
		d.Budgets = append(d.Budgets, epoch.Budget{
			Name: fmt.Sprintf("b%d", b), Unit: "/s", Burst: s.Burst, Revocable: b%2 == 0, Spec: spec,
		})
	}
	return d
}

// draw makes the world of a seed: of the profile that the seed chooses.
func draw(seed uint64, mode chaos.Mode) (Setup, *profile, chaos.Rand) {
	r := chaos.NewRand(seed*2 + 1)
	p := chooseProfile(&r)
	s := Setup{
		Profile: p.name, Seed: seed, Mode: mode,
		Nodes: chaos.Pick(&r, p.nodes...), Budgets: chaos.Pick(&r, 1, 1, 1, 2, 2, 3, 5), Classes: chaos.Pick(&r, 2, 2, 3),
		Burst: chaos.Pick(&r, 50*time.Millisecond, 200*time.Millisecond, time.Second),
		Tick:  200 * time.Millisecond, GapMin: 40 * time.Millisecond,
		Term:   chaos.Pick(&r, 2*time.Second, 3*time.Second),
		EpsPPM: chaos.Pick[int64](&r, 10_000, 10_000, 1001, 50_000), Guard: chaos.Pick(&r, 10*time.Millisecond, 25*time.Millisecond),
		Sharp: r.Chance(p.sharp), Stretch: 25 * time.Millisecond,
		Pull: chaos.Pick(&r, 0, 0, 3*time.Second, 10*time.Second), RelayPPM: chaos.Pick[int64](&r, 0, 20_000, 100_000),
		TurnLag: chaos.Pick[int64](&r, 0, 0, 20_000, 1_000_000), EdgePPM: int64(p.sharp) * 10_000,
	}
	s.RhoPPM = chaos.Rho(s.EpsPPM)
	if s.Sharp {
		s.Guard, s.TurnLag = 0, 0
	}
	s.drawPlaces(&r, p)
	perNode := chaos.Pick[int64](&r, 50, 5000, 5000, 20_000)
	for range s.Budgets {
		s.Limits = append(s.Limits, perNode*int64(s.Nodes)+r.Int64N(perNode))
	}
	s.CostMost = 1 + perNode/500
	for range s.Nodes {
		s.Weights = append(s.Weights, 10+r.Int64N(90))
		s.Disk = append(s.Disk, mode == chaos.FastQuarantine || mode != chaos.NoDurable && r.Chance(60))
	}
	if r.Chance(30) {
		s.LossPPM, s.DuplicatePPM = r.Int64N(50_000), r.Int64N(20_000)
	}
	return s, p, r
}

func (s *Setup) drawPlaces(r *chaos.Rand, p *profile) {
	var most int64
	switch chaos.Pick(r, p.places...) {
	case sameRack:
		most = int64(chaos.Pick(r, 2*time.Microsecond, 100*time.Microsecond))
	case sameLand:
		most = int64(10 * time.Millisecond)
		s.Jitter = int64(2 * time.Millisecond)
	case apart:
		most = int64(140 * time.Millisecond)
		s.Jitter = int64(10 * time.Millisecond)
	case around:
		s.Delay = cityDelays(s.Nodes)
		s.Jitter = int64(5 * time.Millisecond)
		return
	}
	s.Delay = matrix(s.Nodes, func(int, int) int64 { return most/2 + r.Int64N(most/2) })
}

// leaseWait is term(1+eps)+guard on any clock within rho, in true time, rounded
// up: the longest that a lender, or a quarantine, waits.
func (s *Setup) leaseWait() int64 {
	wait := int64(s.Term) + int64(s.Term)/1_000_000*s.EpsPPM + int64(s.Guard)
	return wait + wait/1_000_000*(s.RhoPPM+1) + int64(time.Millisecond)
}
