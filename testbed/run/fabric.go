package run

import (
	"slices"
	"sync"

	"subak/testbed/scenario"
	"subak/testbed/topology"
	"subak/testbed/wan"
)

// fabric is what every link does: the topology's delays, the scenario's rule, and
// what the faults that hold now add. Links of the origin, the host after the last
// node, are perfect at all times.
type fabric struct {
	top    topology.Topology
	always scenario.Rule

	mu   sync.Mutex // guards what follows, and the order of apply
	next int
	now  map[int]tamper
}

// tamper changes the rule of the link from src to dst, both nodes.
type tamper func(src, dst int, r *wan.Rule)

func newFabric(t topology.Topology, always scenario.Rule) *fabric {
	return &fabric{top: t, always: always, now: map[int]tamper{}}
}

// setter is [wan.Net.Set].
type setter func(edit func(src, dst int, r *wan.Rule))

// apply puts the present rules in force.
func (f *fabric) apply(set setter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applyLocked(set)
}

// with puts one more tamper in force and returns what takes it away again.
func (f *fabric) with(set setter, t tamper) (undo func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next
	f.next++
	f.now[id] = t
	f.applyLocked(set)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.now, id)
		f.applyLocked(set)
	}
}

func (f *fabric) applyLocked(set setter) {
	nodes := len(f.top.Places)
	set(func(src, dst int, r *wan.Rule) {
		*r = wan.Rule{}
		if src >= nodes || dst >= nodes {
			return
		}
		r.Delay = f.top.OneWay[src][dst]
		addRule(r, f.always)
		for id := range f.next {
			if t := f.now[id]; t != nil {
				t(src, dst, r)
			}
		}
	})
}

// addRule adds what a scenario's rule does. Its jitter is from 0 up, the
// network's to both sides.
func addRule(r *wan.Rule, add scenario.Rule) {
	r.Delay += add.Delay + add.Jitter/2
	r.Jitter += add.Jitter / 2
	r.Loss += ppm(add.Loss)
	r.Duplicate += ppm(add.Duplicate)
	r.Reorder += ppm(add.Reorder)
}

// tamperOf is what a fault does to links; nil for a fault of another kind.
func tamperOf(f *scenario.Fault, index func(names []string) []int) tamper {
	from, to := index(f.From), index(f.To)
	between := func(src, dst int) bool { return slices.Contains(from, src) && slices.Contains(to, dst) }
	switch f.Kind {
	case scenario.Partition:
		side := map[int]int{}
		for g, names := range f.Groups {
			for _, i := range index(names) {
				side[i] = g
			}
		}
		return func(src, dst int, r *wan.Rule) { r.Block = r.Block || side[src] != side[dst] }
	case scenario.Cut:
		return func(src, dst int, r *wan.Rule) { r.Block = r.Block || between(src, dst) || between(dst, src) }
	case scenario.OneWay:
		return func(src, dst int, r *wan.Rule) { r.Block = r.Block || between(src, dst) }
	case scenario.Isolate:
		alone := index(f.Nodes)
		return func(src, dst int, r *wan.Rule) {
			r.Block = r.Block || slices.Contains(alone, src) || slices.Contains(alone, dst)
		}
	case scenario.Links:
		return func(src, dst int, r *wan.Rule) {
			if between(src, dst) || between(dst, src) {
				addRule(r, f.Rule)
			}
		}
	}
	return nil
}
