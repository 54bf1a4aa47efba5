package judge

import (
	"fmt"
	"strings"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// gap is a time between two events of a node.
type gap struct {
	node  int
	took  time.Duration
	never bool // the second one did not come
}

// gaps pairs each event of one kind with the next of another at the same node.
func (j *judge) gaps(fault, from, to string) (all []gap) {
	for _, a := range j.events(fault, from) {
		g := gap{node: a.Node, never: true}
		for _, b := range j.events("", to) {
			if b.Node == a.Node && b.At >= a.At {
				g.took, g.never = b.At-a.At, false
				break
			}
		}
		all = append(all, g)
	}
	return all
}

// slowest judges the longest of some gaps.
func (j *judge) slowest(claim string, all []gap, within time.Duration, nothing string) evidence.Verdict {
	limit := "within " + duration(within)
	if len(all) == 0 {
		return noBite(claim, limit, "%s", nothing)
	}
	worst := all[0]
	for _, g := range all {
		if g.never && !worst.never || g.never == worst.never && g.took > worst.took {
			worst = g
		}
	}
	v := evidence.Verdict{Claim: claim, Bound: limit, Kept: !worst.never && worst.took <= within}
	switch where := " at " + j.r.Nodes[max(0, worst.node)]; {
	case worst.never:
		v.Measured = "never" + where
	case len(all) == 1:
		v.Measured = duration(worst.took)
	default:
		v.Measured = fmt.Sprintf("%s%s, the last of %d", duration(worst.took), where, len(all))
	}
	return v
}

// ready judges how soon restarted nodes are ready.
func (j *judge) ready(c *scenario.Claim) evidence.Verdict {
	within := c.Within
	if within == 0 {
		within = j.comeback()
	}
	return j.slowest("nodes started by "+c.Fault+" are ready", j.gaps(c.Fault, "start", "ready"), within, "nothing was started")
}

// exit judges how soon a process told to stop has ended.
func (j *judge) exit(c *scenario.Claim) evidence.Verdict {
	return j.slowest("a node stopped by "+c.Fault+" has ended", j.gaps(c.Fault, "stop", "exit"), c.Within, "nothing was stopped")
}

// inForce judges how soon a change counts everywhere.
func (j *judge) inForce(c *scenario.Claim) evidence.Verdict {
	var all []gap
	for _, a := range j.events(c.Fault, "apply") {
		g := gap{node: a.Node, never: true}
		for _, b := range j.events(c.Fault, "in-force") {
			if b.At >= a.At {
				g.took, g.never = b.At-a.At, false
			}
		}
		all = append(all, g)
	}
	return j.slowest("what "+c.Fault+" applied is in force at every node", all, c.Within, "nothing was applied")
}

// leaveSeen judges how soon the others stop counting a node that was told to stop.
func (j *judge) leaveSeen(c *scenario.Claim) evidence.Verdict {
	var all []gap
	for _, e := range j.events(c.Fault, "stop") {
		g := gap{node: e.Node, never: true}
		if j.uncounted(e.Node, j.bin(e.At)-1) {
			return noBite("others see that a node leaves", "within "+duration(c.Within), "%s was not counted before", j.r.Nodes[e.Node])
		}
		for k := j.bin(e.At) + 1; k < j.bins(); k++ {
			if j.uncounted(e.Node, k) {
				g.took, g.never = j.since(e.At, k), false
				break
			}
		}
		all = append(all, g)
	}
	return j.slowest("others see that a node stopped by "+c.Fault+" leaves", all, c.Within, "nothing was stopped")
}

// uncounted reports whether no other node counts node n, which may be up: it has
// left, or its rows are old.
func (j *judge) uncounted(n, k int) bool {
	others := j.countUp(k)
	if j.up(n, k) {
		others--
	}
	for i := range j.r.Nodes {
		if i != n && j.up(i, k) && at(j.r.Series[i].Live, k) > others {
			return false
		}
	}
	return others > 0
}

// reuseSlack is by how much of the limit shares may be off while demand wanders.
const reuseSlack = 0.01

// reuse judges when the others use what a killed node had borrowed: not before
// its leases have run out everywhere, and soon after.
func (j *judge) reuse(c *scenario.Claim) []evidence.Verdict {
	const not, after = "what a killed node borrowed is not used before its lease is over", "and is used soon after"
	b, ok := j.band(c.Fault)
	// The last row that a lender can have heard left up to a tick before.
	first := j.spanOf(b.From, b.From+j.lease()-j.r.Tick)
	within := j.lease() + guard + 2*j.news() + 2*j.r.Bin
	if !ok || b.To < b.From+within {
		return one(noBite(not, "", "%s was back before its lease was over", c.Fault))
	}
	k := first.from - 1
	dead := map[int]bool{}
	held, base := 0.0, 0.0
	for _, i := range b.Nodes {
		dead[i] = true
		base += j.base(i, k)
		least := at(j.r.Series[i].Share, k)
		for m := k - int(time.Second/j.r.Bin); m <= k; m++ {
			least = min(least, at(j.r.Series[i].Share, m))
		}
		held += least
	}
	limit := j.limit(k)
	if held-base < flowLeast*limit {
		return one(noBite(not, "", "%s had borrowed less than %s of the limit", j.list(b.Nodes), percent(flowLeast)))
	}
	most := j.fullestShares(dead, first)
	allowed := limit - held
	early := evidence.Verdict{
		Claim: not, Measured: "others at most " + rate(most), Kept: most <= allowed+reuseSlack*limit,
		Bound: fmt.Sprintf("at most %s for %s", rate(allowed+reuseSlack*limit), duration(j.lease()-j.r.Tick)),
	}
	full := (limit - base) * convergedLeast
	late := evidence.Verdict{Claim: after, Bound: fmt.Sprintf("others at %s within %s", rate(full), duration(within)), Measured: "never"}
	for m := first.from; m < j.bin(b.To); m++ {
		if j.others(dead, m) >= full {
			took := j.since(b.From, m)
			late.Measured, late.Kept = "after "+duration(took), took <= within
			break
		}
	}
	return []evidence.Verdict{early, late}
}

// sampled is over how long shares of several nodes are averaged: they are not
// asked at one instant, and while capacity moves it is seen at two of them, or at
// none.
const sampled = time.Second

// fullestShares is the highest sum of shares of all nodes but some, as a mean over
// the time of sampling.
func (j *judge) fullestShares(but map[int]bool, w span) (most float64) {
	n := max(1, int(sampled/j.r.Bin))
	for b := w.from; b+n <= w.to; b++ {
		sum := 0.0
		for k := b; k < b+n; k++ {
			sum += j.others(but, k)
		}
		most = max(most, sum/float64(n))
	}
	return most
}

// others sums the shares of all nodes but some.
func (j *judge) others(but map[int]bool, k int) (sum float64) {
	for i := range j.r.Nodes {
		if !but[i] {
			sum += at(j.r.Series[i].Share, k)
		}
	}
	return sum
}

// refused judges that everything hostile was refused and that the nodes agree
// afterwards on what was in force before.
func (j *judge) refused(c *scenario.Claim) []evidence.Verdict {
	claim, limit := "everything that "+c.Fault+" sent was refused", "all of it"
	f, _ := j.s.FaultNamed(c.Fault)
	no, yes := j.events(c.Fault, "refused"), j.events(c.Fault, "accepted")
	if len(no)+len(yes) < len(f.Poison) {
		return one(noBite(claim, limit, "%d of %d were sent", len(no)+len(yes), len(f.Poison)))
	}
	v := evidence.Verdict{Claim: claim, Bound: limit, Measured: fmt.Sprintf("%d of %d", len(no), len(no)+len(yes)), Kept: len(yes) == 0}
	for _, e := range yes {
		v.Measured += ", not " + strings.TrimSpace(strings.TrimPrefix(e.Text, c.Fault))
	}
	epochs := map[uint64]bool{}
	last := j.bins() - 1
	for i := range j.r.Nodes {
		if j.up(i, last) {
			epochs[at(j.r.Series[i].Epoch, last)] = true
		}
	}
	return []evidence.Verdict{v, {
		Claim: "one configuration is in force at the end", Bound: "1",
		Measured: fmt.Sprint(len(epochs)), Kept: len(epochs) == 1,
	}}
}

// doctored judges what subak doctor said.
func (j *judge) doctored(c *scenario.Claim) evidence.Verdict {
	const claim, limit = "subak doctor finds nothing to complain of", "ok at every node asked"
	said := j.events(c.Fault, "doctor")
	if len(said) == 0 {
		return noBite(claim, limit, "nobody was asked")
	}
	var sick []string
	for _, e := range said {
		if words := strings.TrimSpace(strings.TrimPrefix(e.Text, c.Fault)); words != "ok" {
			sick = append(sick, j.r.Nodes[max(0, e.Node)]+": "+words)
		}
	}
	v := evidence.Verdict{Claim: claim, Bound: limit, Measured: fmt.Sprintf("ok at %d of %d", len(said)-len(sick), len(said)), Kept: len(sick) == 0}
	if len(sick) > 0 {
		v.Measured += "; " + strings.Join(sick, "; ")
	}
	return v
}
