package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"subak/internal/config"
	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// How well a fault must have been played to count.
const (
	lateMost = 2 * time.Second // beyond the plan, for its start
	// flowLeast is how much of the limit must have been lent from one side of a
	// cut to the other before it, or by or to a node that dies.
	flowLeast = 0.02
)

// happened is the verdict that everything planned was done and did bite.
func (j *judge) happened() []evidence.Verdict {
	if len(j.s.Faults) == 0 && j.s.Links == (scenario.Rule{}) {
		return nil
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for i := range j.s.Faults {
		f := &j.s.Faults[i]
		b, ok := j.band(f.Name)
		switch {
		case !ok:
			say("%s was never played", f.Name)
			continue
		case b.From > f.At+lateMost:
			say("%s began at %s instead of %s", f.Name, duration(b.From), duration(f.At))
		case b.To-b.From < f.For*9/10:
			say("%s lasted %s instead of %s", f.Name, duration(b.To-b.From), duration(f.For))
		}
		if why := j.toothless(f, b); why != "" {
			say("%s: %s", f.Name, why)
		}
	}
	for _, e := range j.events("", "failed") {
		say("%s", e.Text)
	}
	if j.s.Links.Loss > 0 && j.r.Network["lost"] == 0 {
		say("no packet was lost")
	}
	v := evidence.Verdict{
		Claim: "every fault happened and did bite", Bound: "as planned",
		Measured: fmt.Sprintf("%d of %d", len(j.s.Faults), len(j.s.Faults)), Kept: len(wrong) == 0,
	}
	if len(j.s.Faults) == 0 {
		v.Measured = count(j.r.Network["lost"]) + " packets lost"
	}
	if !v.Kept {
		v.Measured = "the fault did not bite: " + strings.Join(wrong, "; ")
	}
	return one(v)
}

// toothless says why a fault that was played changed nothing; "" where it did.
func (j *judge) toothless(f *scenario.Fault, b evidence.Band) string {
	inside := j.spanOf(b.From, b.To)
	switch f.Kind {
	case scenario.Partition, scenario.Isolate, scenario.Cut, scenario.OneWay:
		if j.r.Network["blocked"] == 0 {
			return "no packet was blocked"
		}
		return j.unlent(f, b)
	case scenario.Links:
		if f.Rule.Loss > 0 && j.r.Network["lost"] == 0 {
			return "no packet was lost"
		}
	case scenario.Kill, scenario.Pause:
		for _, i := range j.nodes(f.Nodes) {
			if downFor := j.down(i, inside); 2*downFor < inside.len() {
				return fmt.Sprintf("%s answered for %s of it", j.r.Nodes[i], duration(time.Duration(inside.len()-downFor)*j.r.Bin))
			}
		}
		return j.unlent(f, b)
	case scenario.Slow:
		return j.unslowed(f, inside)
	case scenario.Restart, scenario.Rotate:
		if len(j.events(f.Name, "start")) == 0 {
			return "nothing was restarted"
		}
	}
	return ""
}

// down counts the bins in which a node did not answer.
func (j *judge) down(i int, w span) (n int) {
	for b := w.from; b < w.to; b++ {
		if !j.up(i, b) {
			n++
		}
	}
	return n
}

// unlent says that no loans were out where the fault struck, in the second before
// it. Only the product has loans.
func (j *judge) unlent(f *scenario.Fault, b evidence.Band) string {
	before := j.spanOf(max(0, b.From-time.Second), b.From)
	if j.r.Variant != evidence.Subak || before.len() == 0 {
		return ""
	}
	for _, side := range j.struck(f) {
		for k := before.from; k < before.to; k++ {
			if flow := j.flow(side, k); flow >= flowLeast || flow <= -flowLeast {
				return ""
			}
		}
	}
	return fmt.Sprintf("less than %s of the limit was lent across it before", percent(flowLeast))
}

// struck are the sets of nodes that the fault parts from the others.
func (j *judge) struck(f *scenario.Fault) [][]int {
	switch f.Kind {
	case scenario.Partition, scenario.Isolate:
		return j.sides(f)
	case scenario.Cut, scenario.OneWay:
		return apart(append(j.nodes(f.From), j.nodes(f.To)...))
	}
	return apart(j.nodes(f.Nodes))
}

// apart makes a set of each node.
func apart(nodes []int) (sets [][]int) {
	for _, i := range nodes {
		sets = append(sets, []int{i})
	}
	return sets
}

// sides are the sets of nodes that a cut leaves together; of a one-way cut, its
// senders by themselves and all others.
func (j *judge) sides(f *scenario.Fault) [][]int {
	if f.Kind == scenario.Partition {
		var sides [][]int
		for _, g := range f.Groups {
			sides = append(sides, j.nodes(g))
		}
		return sides
	}
	alone := f.Nodes
	if f.Kind == scenario.OneWay {
		alone = f.From
	}
	sides := apart(j.nodes(alone))
	rest := slices.DeleteFunc(j.nodes(nil), func(i int) bool { return slices.Contains(alone, j.r.Nodes[i]) })
	if len(rest) > 0 {
		sides = append(sides, rest)
	}
	return sides
}

// unslowed says that a node used more of the CPU than it was left.
func (j *judge) unslowed(f *scenario.Fault, w span) string {
	const tolerance = config.Whole / 20 // CPU time is accounted in grains
	for _, i := range j.nodes(f.Nodes) {
		if used := j.coreUse(i, w); used > fraction(f.CPU+tolerance) {
			return fmt.Sprintf("%s used %s of a core, was left %s", j.r.Nodes[i], percent(used), part(f.CPU))
		}
	}
	return ""
}

// coreUse is the part of a core that a node used.
func (j *judge) coreUse(i int, w span) float64 {
	if w.len() < 2 {
		return 0
	}
	cpu := j.r.Series[i].CPU
	used := at(cpu, w.to-1) - at(cpu, w.from)
	return float64(used) / float64(time.Duration(w.len()-1)*j.r.Bin)
}
