package judge

import (
	"slices"
	"time"
)

// What the design promises, in figures of the run.

// eps and guard are the protocol's defaults: by how much longer than a term a
// lender waits, and how much earlier a borrower stops. Source: conservation.md,
// A2 and "Suggested"; internal/config.
const (
	epsPercent = 1
	guard      = 25 * time.Millisecond
)

// lease is how long a lender waits for a silent borrower: term x (1 + eps). Source:
// conservation.md L4.
func (j *judge) lease() time.Duration { return j.r.Term + j.r.Term*epsPercent/100 }

// news is how long it takes at most, without loss, until a change is known
// everywhere and answered: a round trip and a tick on either side.
func (j *judge) news() time.Duration { return j.r.MaxRTT + 2*j.r.Tick }

// settled is when a cluster that a cut has divided works as two: the loans across
// it have run out, those beyond are no longer counted as live, and each side
// has shared anew what it has.
func (j *judge) settled(cut time.Duration) time.Duration {
	return cut + j.lease() + 2*j.news() + j.r.Bin
}

// process is how long a process takes from its start until it is heard by all, on
// a busy machine.
const process = 1500 * time.Millisecond

// comeback is how long a restarted node may be without a share: its quarantine of
// one lease and its proof. Source: conservation.md L8 and "Proof after a restart".
func (j *judge) comeback() time.Duration { return process + j.lease() + 2*j.news() }

// limit is the budget in a bin, in requests/s; the smaller one while it changes.
func (j *judge) limit(b int) float64 {
	now := j.r.Limit
	t := time.Duration(b) * j.r.Bin
	for _, c := range j.r.Limits {
		switch {
		case t >= c.In:
			now = c.Limit
		case t >= c.At:
			now = min(now, c.Limit)
		}
	}
	return float64(now)
}

// base is a node's own part of the limit in a bin. It is that of the first
// roster: scenarios that change it make no claims by bases afterwards.
func (j *judge) base(i, b int) float64 {
	if slices.Contains(j.s.Absent, j.r.Nodes[i]) {
		return 0
	}
	sum := int64(0)
	for k, w := range j.r.Weights {
		if !slices.Contains(j.s.Absent, j.r.Nodes[k]) {
			sum += w
		}
	}
	if sum == 0 {
		return 0
	}
	return j.limit(b) * float64(j.r.Weights[i]) / float64(sum)
}

// flow is how much a set of nodes holds beyond its bases in a bin, as part of the
// limit; negative where it has lent to others.
func (j *judge) flow(nodes []int, b int) float64 {
	sum := 0.0
	for _, i := range nodes {
		sum += at(j.r.Series[i].Share, b) - j.base(i, b)
	}
	return sum / j.limit(b)
}
