package judge

import (
	"fmt"
	"slices"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// usedLeast is what of the reachable a side uses, and baseLeast what of its own
// base it enforces, where a claim does not say.
const (
	usedLeast = 0.95
	baseLeast = 0.99
	// fullLeast is how much of its bases one side must have been asked for.
	fullLeast = 0.98
)

// cut returns a fault that parts nodes, with its band and its sides.
func (j *judge) cut(c *scenario.Claim) (b evidence.Band, sides [][]int, ok bool) {
	f, found := j.s.FaultNamed(c.Fault)
	b, played := j.band(c.Fault)
	if !found || !played {
		return b, nil, false
	}
	return b, j.sides(&f), true
}

// side is what one side of a cut did while it worked by itself.
type side struct {
	nodes               []int
	base, share, demand float64 // requests/s
	// could is what it was asked for or its bases allowed, second by second, and
	// reached the part of that which it served.
	could, reached float64
}

// used judges each side of a cut: what it served of what it could, and that it
// enforced its own base. Of more than two sides the worst is told.
func (j *judge) used(c *scenario.Claim) []evidence.Verdict {
	least := usedLeast
	if c.Least > 0 {
		least = fraction(c.Least)
	}
	claim := "each side of " + c.Fault + " uses what it can reach"
	limit := fmt.Sprintf("at least %s of what is asked or its bases allow; its bases enforced to %s", percent(least), percent(baseLeast))
	b, sides, ok := j.cut(c)
	w := j.spanOf(j.settled(b.From), b.To)
	if !ok || w.len() < int(time.Second/j.r.Bin) {
		return one(noBite(claim, limit, "it was over before the loans across it were"))
	}
	var all []side
	full := false
	for _, nodes := range sides {
		s := j.side(nodes, w)
		full = full || s.could >= fullLeast*s.base
		all = append(all, s)
	}
	if !full {
		return one(noBite(claim, limit, "no side was asked for more than its own bases"))
	}
	if len(all) > 2 {
		slices.SortStableFunc(all, func(a, b side) int { return int(1e6*a.reached) - int(1e6*b.reached) })
		all = all[:1]
	}
	var out []evidence.Verdict
	for _, s := range all {
		out = append(out, evidence.Verdict{
			Claim: fmt.Sprintf("cut off, %s use what they can reach", j.list(s.nodes)), Bound: limit,
			Measured: fmt.Sprintf("%s of %s; bases enforced to %s", percent(s.reached), rate(s.could), percent(s.share/s.base)),
			Kept:     s.reached >= least && s.share >= baseLeast*s.base,
		})
	}
	return out
}

// side measures a set of nodes over a span.
func (j *judge) side(nodes []int, w span) side {
	s := side{nodes: nodes}
	all, second := j.classes(""), max(1, int(time.Second/j.r.Bin))
	served, n := 0.0, 0.0
	for b := w.from; b+second <= w.to; b += second {
		base, demand := 0.0, 0.0
		for _, i := range nodes {
			for k := b; k < b+second; k++ {
				if j.up(i, k) {
					base += j.base(i, k) / float64(second)
					s.share += at(j.r.Series[i].Share, k) / float64(second)
				}
			}
			demand += total(j.r.Series[i].Offered, all, span{b, b + second})
			served += total(j.r.Series[i].Admitted, all, span{b, b + second})
		}
		s.base, s.demand, s.could = s.base+base, s.demand+demand, s.could+min(base, demand)
		n++
	}
	if s.could > 0 {
		s.reached = served / s.could
	}
	s.base, s.share, s.demand, s.could = s.base/n, s.share/n, s.demand/n, s.could/n
	return s
}

// ownBase judges that nodes that are cut off enforce no more than their own base
// once what they borrowed has run out.
func (j *judge) ownBase(c *scenario.Claim) evidence.Verdict {
	const rounding = 1.001
	nodes := j.nodes(c.Nodes)
	claim := "cut off, " + j.list(nodes) + " keeps to its own base"
	limit := fmt.Sprintf("at most %s of it, %s after the cut", percent(1), duration(j.lease()+j.r.Bin))
	b, _, ok := j.cut(c)
	w := j.spanOf(b.From+j.lease()+j.r.Bin, b.To)
	if !ok || w.len() == 0 {
		return noBite(claim, limit, "it was over before the loans across it were")
	}
	before := j.bin(b.From) - 1
	if j.flow(nodes, before) <= 0 {
		return noBite(claim, limit, "%s had borrowed nothing", j.list(nodes))
	}
	most := 0.0
	for _, i := range nodes {
		for k := w.from; k < w.to; k++ {
			if base := j.base(i, k); j.up(i, k) && base > 0 {
				most = max(most, at(j.r.Series[i].Share, k)/base)
			}
		}
	}
	return evidence.Verdict{Claim: claim, Bound: limit, Measured: percent(most), Kept: most <= rounding}
}

// unseen judges how soon nodes that are cut off stop counting one another.
func (j *judge) unseen(c *scenario.Claim) evidence.Verdict {
	within := c.Within
	if within == 0 { // the live window is the term; then the next look at it
		within = j.r.Term + j.news() + 3*j.r.Bin
	}
	claim := "nodes that " + c.Fault + " parts stop counting on each other"
	limit := "within " + duration(within)
	b, sides, ok := j.cut(c)
	if !ok {
		return noBite(claim, limit, "%s was not played", c.Fault)
	}
	apart := func(k int) bool {
		for _, nodes := range sides {
			for _, i := range nodes {
				if j.up(i, k) && at(j.r.Series[i].Live, k) > len(nodes) {
					return false
				}
			}
		}
		return true
	}
	if apart(j.bin(b.From) - 1) {
		return noBite(claim, limit, "they did not count on each other before")
	}
	w := j.spanOf(b.From, b.To)
	last := w.to
	for last > w.from && apart(last-1) {
		last--
	}
	if last == w.to {
		return evidence.Verdict{Claim: claim, Bound: limit, Measured: "never while it lasted"}
	}
	took := j.since(b.From, last)
	return evidence.Verdict{Claim: claim, Bound: limit, Measured: duration(took), Kept: took <= within}
}
