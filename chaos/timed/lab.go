package timed

import (
	"fmt"
	"time"

	"subak/allocator"
	"subak/chaos"
)

// lab is a world without faults of its own, for measuring: 22 cities, one
// budget of two classes, equal bases, the product's own settings.
type lab struct {
	*world
	r    chaos.Rand
	load []float64 // mean demand of each node, as a multiple of its base
	base int64     // units/s
}

const (
	labNodes = 22
	labBase  = 1_000_000 // units/s of each node: so many that counting is no noise
)

func newLab(seed uint64, lossPPM int64) *lab {
	s := Setup{
		Profile: "figures", Seed: seed, Nodes: labNodes, Budgets: 1, Classes: 2, Limits: []int64{labNodes * labBase}, Burst: time.Second,
		Tick: 200 * time.Millisecond, GapMin: 40 * time.Millisecond, Term: 3 * time.Second, EpsPPM: 10_000, Guard: 25 * time.Millisecond,
		RhoPPM: 100, Delay: cityDelays(labNodes), Swing: 10, LossPPM: lossPPM, TurnLag: int64(200 * time.Microsecond),
		Whole: true, CostMost: 1, Stretch: 10 * time.Millisecond,
	}
	for range labNodes {
		s.Weights, s.Disk = append(s.Weights, 1), append(s.Disk, true)
	}
	l := &lab{world: newWorld(s, nil), r: chaos.NewRand(seed), load: make([]float64, labNodes), base: labBase}
	l.start()
	return l
}

// wait lets time pass.
func (l *lab) wait(d time.Duration) { l.runUntil(l.now + int64(d)) }

// spread gives the nodes unequal loads, from a quarter to seven quarters of one
// another, that add up to total budgets.
func (l *lab) spread(total float64) {
	sum := 0.0
	for i := range l.load {
		l.load[i] = 0.25 + 1.5*float64(l.r.Int64N(1000))/1000
		sum += l.load[i]
	}
	for i := range l.load {
		l.set(i, l.load[i]/sum*total*labNodes)
	}
}

// set changes a node's mean demand.
func (l *lab) set(i int, load float64) {
	l.load[i] = load
	l.offer(i, load)
}

// offer lets requests arrive at a node at a multiple of its base from now on,
// split over the classes as the reservations are.
func (l *lab) offer(i int, load float64) {
	h := l.hosts[i]
	h.feed()
	all := int64(load * float64(l.base) * 1000)
	h.load[0][0], h.load[0][1] = all*6/10, all-all*6/10
}

// ideal is what the allocation gives at the mean demands, told at once to
// everybody; part are the nodes that hear each other, nil for all.
func (l *lab) ideal(part []bool) []allocator.Rate {
	d := l.setup.document()
	a, err := allocator.New(d.Budgets[0].Spec)
	if err != nil {
		panic(err)
	}
	ceilings, demand := make([]allocator.Rate, labNodes), make([]allocator.Rate, 2*labNodes)
	for i, x := range l.load {
		if part != nil && !part[i] {
			continue
		}
		all := allocator.Rate(x * float64(l.base) * 1e6)
		ceilings[i] = a.NodeBase(i)
		demand[i], demand[labNodes+i] = all*6/10, all-all*6/10
	}
	target := make([]allocator.Rate, 2*labNodes)
	if err := a.SetCeilings(ceilings); err == nil {
		err = a.Allocate(target, demand)
		if err != nil {
			panic(err)
		}
	}
	total := make([]allocator.Rate, labNodes)
	for i := range total {
		total[i] = target[i] + target[labNodes+i]
	}
	return total
}

// enforced is what node i enforces now.
func (l *lab) enforced(i int) allocator.Rate { return l.hosts[i].share(l.stocks[0].name) }

// sum is what all enforce now, as a part of the budget.
func (l *lab) sum() float64 {
	var sum allocator.Rate
	for i := range l.hosts {
		sum += l.enforced(i)
	}
	return float64(sum) / float64(l.stocks[0].limit)
}

// sound panics where a checker objected: then the figures mean nothing.
func (l *lab) sound() {
	if l.violation != nil {
		panic(fmt.Sprintf("figures: %s: %s", l.violation.Checker, l.violation.Detail))
	}
}

// reached runs for d and returns when ok became true for good, or false if it is
// not true at the end.
func (l *lab) reached(d time.Duration, ok func() bool) (time.Duration, bool) {
	begun, since := l.now, int64(-1)
	for end := l.now + int64(d); l.now < end; {
		l.wait(2 * time.Millisecond)
		switch {
		case !ok():
			since = -1
		case since < 0:
			since = l.now
		}
	}
	l.sound()
	return time.Duration(since - begun), since >= 0
}
