package judge

import (
	"fmt"
	"slices"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// megabyte is 10^6 bytes.
const megabyte = 1_000_000

// counter judges the sum of a Prometheus counter over nodes.
func (j *judge) counter(c *scenario.Claim) evidence.Verdict {
	claim, limit := c.Counter, "at most "+count(c.Count)
	if c.Kind == scenario.CounterAtLeast {
		limit = "at least " + count(c.Count)
	}
	sum, known := 0.0, false
	for _, i := range j.nodes(c.Nodes) {
		v, ok := j.r.Series[i].Counters[c.Counter]
		sum, known = sum+v, known || ok
	}
	if !known {
		return noBite(claim, limit, "no node has this counter")
	}
	kept := sum <= float64(c.Count)
	if c.Kind == scenario.CounterAtLeast {
		kept = sum >= float64(c.Count)
	}
	return evidence.Verdict{Claim: claim, Bound: limit, Measured: count(int64(sum)), Kept: kept}
}

// memory judges the resident memory of the largest node.
func (j *judge) memory(c *scenario.Claim) evidence.Verdict {
	claim, limit := "resident memory of a node", fmt.Sprintf("at most %d MB", c.Count)
	worst, most := 0, int64(0)
	for i := range j.r.Nodes {
		if rss := j.r.Series[i].RSS; len(rss) > 0 && slices.Max(rss) > most {
			worst, most = i, slices.Max(rss)
		}
	}
	if most == 0 {
		return noBite(claim, limit, "none was measured")
	}
	return evidence.Verdict{
		Claim: claim, Bound: limit, Measured: fmt.Sprintf("%.1f MB at %s", float64(most)/megabyte, j.r.Nodes[worst]),
		Kept: most <= c.Count*megabyte,
	}
}

// cpu judges the busiest node.
func (j *judge) cpu(c *scenario.Claim) evidence.Verdict {
	claim, limit := "of a core used by a node"+during(c.Phase), "at most "+part(c.Most)
	worst, most := 0, 0.0
	for i := range j.r.Nodes {
		if used := j.coreUse(i, j.phase(c.Phase)); used > most {
			worst, most = i, used
		}
	}
	if most == 0 {
		return noBite(claim, limit, "none was measured")
	}
	return evidence.Verdict{
		Claim: claim, Bound: limit, Measured: fmt.Sprintf("%.2f %% at %s", 100*most, j.r.Nodes[worst]), Kept: most <= fraction(c.Most),
	}
}

// gossip judges, or only reports, what a node sends to the others.
func (j *judge) gossip(c *scenario.Claim) evidence.Verdict {
	claim, limit := "gossip sent by a node"+during(c.Phase), "reported"
	if c.Count > 0 {
		limit = fmt.Sprintf("at most %s bytes/s", count(c.Count))
	}
	w := j.phase(c.Phase)
	worst, most, sum := 0, 0.0, 0.0
	for i := range j.r.Nodes {
		sent := j.r.Series[i].GossipSent
		if w.len() < 2 {
			continue
		}
		per := float64(at(sent, w.to-1)-at(sent, w.from)) / j.seconds(span{w.from + 1, w.to})
		if sum += per; per > most {
			worst, most = i, per
		}
	}
	if most == 0 {
		return noBite(claim, limit, "none was measured")
	}
	return evidence.Verdict{
		Claim: claim, Bound: limit, Kept: c.Count == 0 || most <= float64(c.Count),
		Measured: fmt.Sprintf("%s bytes/s, mean %s; most at %s", count(int64(most)), count(int64(sum/float64(len(j.r.Nodes)))), j.r.Nodes[worst]),
	}
}
