package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/load"
	"subak/testbed/scenario"
)

// reaction judges the timed demand steps.
func (j *judge) reaction(c *scenario.Claim) []evidence.Verdict {
	claim, limit := "a demand step reaches 99 % of its target, mean", "at most "+duration(c.Within)
	planned := 0
	for _, p := range j.s.Phases {
		if strings.HasPrefix(p.Name, "step ") {
			planned++
		}
	}
	const least = 1.2 // of the share before, to be a step
	var took []time.Duration
	never := 0
	for _, s := range j.r.Steps {
		switch {
		case s.Target < least*s.Before:
			return one(noBite(claim, limit, "the step at %s is from %s to %s only", duration(s.At), rate(s.Before), rate(s.Target)))
		case s.Took < 0:
			never++
		default:
			took = append(took, s.Took)
		}
	}
	if len(j.r.Steps) < planned || planned == 0 {
		return one(noBite(claim, limit, "%d of %d steps were timed", len(j.r.Steps), planned))
	}
	if never > 0 {
		return one(evidence.Verdict{Claim: claim, Bound: limit, Measured: fmt.Sprintf("%d of %d never did", never, planned)})
	}
	slices.Sort(took)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	mean, p95 := sum/time.Duration(len(took)), quantile(took, 95)
	out := one(evidence.Verdict{
		Claim: claim, Bound: limit, Kept: mean <= c.Within,
		Measured: fmt.Sprintf("%s over %d steps, the slowest %s", duration(mean), len(took), duration(took[len(took)-1])),
	})
	if c.P95 > 0 {
		out = append(out, evidence.Verdict{
			Claim: "a demand step reaches 99 % of its target, 95th percentile", Measured: duration(p95),
			Bound: "at most " + duration(c.P95), Kept: p95 <= c.P95,
		})
	}
	return out
}

// quantile is the smallest value that q percent are not above. d is sorted.
func quantile(d []time.Duration, q int) time.Duration {
	return d[max(0, (len(d)*q+99)/100-1)]
}

// steady judges how far shares stray from their medians.
func (j *judge) steady(c *scenario.Claim) evidence.Verdict {
	claim, limit := "shares stay near their medians"+during(c.Phase), "within "+part(c.Most)
	w := j.phase(c.Phase)
	worst, far, seen := 0, 0.0, false
	for _, i := range j.nodes(c.Nodes) {
		var shares []float64
		for b := w.from; b < w.to; b++ {
			if j.up(i, b) {
				shares = append(shares, at(j.r.Series[i].Share, b))
			}
		}
		if len(shares) == 0 {
			continue
		}
		slices.Sort(shares)
		median := shares[len(shares)/2]
		if median == 0 {
			continue
		}
		seen = true
		if stray := max(shares[len(shares)-1]-median, median-shares[0]) / median; stray > far {
			worst, far = i, stray
		}
	}
	if !seen {
		return noBite(claim, limit, "no node had a share")
	}
	return evidence.Verdict{Claim: claim, Bound: limit, Measured: percent(far) + " at " + j.r.Nodes[worst], Kept: far <= fraction(c.Most)}
}

// changeLeast is the change of a share, as part of the base, that counts.
const changeLeast = 0.01

// changes judges how often shares change.
func (j *judge) changes(c *scenario.Claim) evidence.Verdict {
	claim, limit := "changes of a share by more than 1 % of its base"+during(c.Phase), "at most "+count(c.Count)
	w := j.phase(c.Phase)
	if w.len() < 2 {
		return noBite(claim, limit, "the phase is empty")
	}
	by := map[int]float64{}
	for _, i := range j.nodes(c.Nodes) {
		for b := w.from + 1; b < w.to; b++ {
			by0, by1 := at(j.r.Series[i].Share, b-1), at(j.r.Series[i].Share, b)
			if j.up(i, b-1) && j.up(i, b) && math.Abs(by1-by0) > changeLeast*j.base(i, b) {
				by[i]++
			}
		}
	}
	worst := j.most(by)
	return evidence.Verdict{
		Claim: claim, Bound: limit, Measured: fmt.Sprintf("%s at %s", count(int64(by[worst])), j.r.Nodes[worst]), Kept: by[worst] <= float64(c.Count),
	}
}

// latency judges the 99th percentile of the answers of a phase, averaged over the
// streams by their requests: a distribution of all is not kept.
func (j *judge) latency(c *scenario.Claim) evidence.Verdict {
	claim := "99th percentile of answers" + during(c.Phase)
	limit := "at most " + duration(c.Within)
	got, n := j.p99(c.Phase)
	if n == 0 {
		return noBite(claim, limit, "nothing was answered")
	}
	if c.Versus == "" {
		return evidence.Verdict{Claim: claim, Bound: limit, Measured: duration(got), Kept: got <= c.Within}
	}
	was, n := j.p99(c.Versus)
	if n == 0 {
		return noBite(claim, limit, "nothing was answered during %s", c.Versus)
	}
	return evidence.Verdict{
		Claim: claim + " is what it was" + during(c.Versus), Bound: fmt.Sprintf("at most %s more", duration(c.Within)),
		Measured: fmt.Sprintf("%s against %s", duration(got), duration(was)), Kept: got <= was+c.Within,
	}
}

func (j *judge) p99(phase string) (mean time.Duration, answers uint64) {
	at := slices.Index(j.r.Load.Phases, phase)
	var sum float64
	for _, s := range j.r.Load.Streams {
		if at < 0 || at >= len(s.Cells) {
			continue
		}
		c := &s.Cells[at]
		add := func(n uint64, l load.Latency) {
			answers += n
			sum += float64(n) * float64(l.P99)
		}
		add(c.Admitted, c.AdmittedLatency)
		add(c.Refused, c.RefusedLatency)
	}
	if answers == 0 {
		return 0, 0
	}
	return time.Duration(sum / float64(answers)), answers
}
