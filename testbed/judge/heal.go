package judge

import (
	"fmt"
	"time"

	"subak/allocator"
	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// heldFor is how long a healed cluster must stay so to count as healed.
const heldFor = 500 * time.Millisecond

// convergedLeast is what of what could be used is, where a claim does not say.
const convergedLeast = 0.99

// healed judges how soon after the end of a fault a condition holds.
func (j *judge) healed(c *scenario.Claim) evidence.Verdict {
	claim, holds := j.condition(c)
	limit := "within " + duration(c.Within)
	b, ok := j.band(c.Fault)
	if !ok {
		return noBite(claim, limit, "%s was not played", c.Fault)
	}
	start, end := j.bin(b.To), j.bins()
	if why := j.whole(c, b); why != "" {
		return noBite(claim, limit, "%s", why)
	}
	if !j.allUp(c, b) {
		return evidence.Verdict{Claim: claim, Bound: limit, Measured: "not all nodes were up again"}
	}
	need := 1
	if c.Kind != scenario.Digest {
		need = max(1, int(heldFor/j.r.Bin))
	}
	for k, run := start, 0; k < end; k++ {
		if run++; !holds(k) {
			run = 0
		}
		if run == need {
			took := j.since(b.To, k-need+1)
			return evidence.Verdict{Claim: claim, Bound: limit, Measured: duration(took), Kept: took <= c.Within}
		}
	}
	return evidence.Verdict{Claim: claim, Bound: limit, Measured: fmt.Sprintf("not within %s", duration(j.r.Length-b.To))}
}

// condition is what a claim of healing waits for, in words and in a bin.
func (j *judge) condition(c *scenario.Claim) (claim string, holds func(k int) bool) {
	switch c.Kind {
	case scenario.Digest:
		return "after " + c.Fault + " all views agree", j.agreed
	case scenario.Live:
		return "after " + c.Fault + " every node sees all others", j.allLive
	}
	least := convergedLeast
	if c.Least > 0 {
		least = fraction(c.Least)
	}
	claim = fmt.Sprintf("after %s every node sees all others and %s of what could be used is", c.Fault, percent(least))
	return claim, func(k int) bool { return j.allLive(k) && j.useful(k) >= least }
}

// whole says why there was nothing to heal; "" where there was.
func (j *judge) whole(c *scenario.Claim, b evidence.Band) string {
	f, _ := j.s.FaultNamed(c.Fault)
	parts := f.Kind == scenario.Partition || f.Kind == scenario.Isolate
	if parts && c.Kind != scenario.Digest && j.allLive(j.bin(b.To)-1) {
		return "the nodes saw each other all the time"
	}
	return ""
}

// allUp reports whether the nodes that the fault took down came back.
func (j *judge) allUp(c *scenario.Claim, b evidence.Band) bool {
	f, _ := j.s.FaultNamed(c.Fault)
	if f.Kind == scenario.Leave || f.Kind == scenario.Forget || f.Kind == scenario.Kill && b.To >= j.r.Length {
		return true
	}
	for _, i := range j.nodes(f.Nodes) {
		back := false
		for k := j.bin(b.To); k < j.bins(); k++ {
			back = back || j.up(i, k)
		}
		if !back {
			return false
		}
	}
	return true
}

// allLive reports whether every node that is up counts as many as are.
func (j *judge) allLive(k int) bool {
	n := j.countUp(k)
	for i := range j.r.Nodes {
		if j.up(i, k) && at(j.r.Series[i].Live, k) != n {
			return false
		}
	}
	return n > 0
}

// agreed reports whether all nodes that are up show one digest.
func (j *judge) agreed(k int) bool {
	first := ""
	for i := range j.r.Nodes {
		if !j.up(i, k) {
			continue
		}
		d := ""
		if k < len(j.r.Series[i].Digest) {
			d = j.r.Series[i].Digest[k]
		}
		if d == "" || first != "" && d != first {
			return false
		}
		first = d
	}
	return first != ""
}

// useful is the part of what could be used that is: what each node's clients want
// of its target by the ideal view, that of all nodes that are up at one instant.
// Capacity beyond a node's demand (headroom, insurance) does not count.
func (j *judge) useful(k int) float64 {
	n := len(j.r.Nodes)
	alloc, err := allocator.New(j.spec(j.limit(k)))
	if err != nil {
		return 0
	}
	demand, target := make([]allocator.Rate, n*len(j.r.Classes)), make([]allocator.Rate, n*len(j.r.Classes))
	ceilings := make([]allocator.Rate, n)
	for i := range n {
		if !j.up(i, k) {
			continue
		}
		ceilings[i] = alloc.NodeBase(i)
		for c, d := range j.r.Series[i].Demand {
			demand[c*n+i] = micro(at(d, k))
		}
	}
	if alloc.SetCeilings(ceilings) != nil || alloc.Allocate(target, demand) != nil {
		return 0
	}
	var used, could allocator.Rate
	for i := range n {
		var want, asked allocator.Rate
		for c := range j.r.Classes {
			want, asked = want+target[c*n+i], asked+demand[c*n+i]
		}
		want = min(want, asked)
		used, could = used+min(want, micro(at(j.r.Series[i].Share, k))), could+want
	}
	if could == 0 {
		return 1
	}
	return float64(used) / float64(could)
}

func micro(perSecond float64) allocator.Rate {
	return allocator.Rate(max(0, perSecond) * float64(allocator.Unit))
}
