package judge

import (
	"fmt"

	"subak/chaos/bound"
	"subak/internal/config"
	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// slowerMost is the part of all arrivals, one in so many, that may be left out of
// the judgement for a transit above the spread.
const slowerMost = 100

// fullest returns the most requests offered in any second.
func (j *judge) fullest() float64 {
	second := max(1, int(1e9/int64(j.r.Bin)))
	sum, most := 0.0, 0.0
	all, classes := j.nodes(nil), j.classes("")
	offered := make([]float64, j.bins())
	for b := range offered {
		for _, i := range all {
			offered[b] += total(j.r.Series[i].Offered, classes, span{b, b + 1})
		}
		if sum += offered[b]; b >= second {
			sum -= offered[b-second]
		}
		most = max(most, sum)
	}
	return most
}

// boundKept judges the origin's witness, of all windows at once.
func (j *judge) boundKept() []evidence.Verdict {
	const claim = "the origin never got more than the bound"
	o := &j.r.Origin
	worst := o.Bound.Worst()
	limit := fmt.Sprintf("at most %s in %v", count(worst.Bound), worst.Window)
	switch fullest := j.fullest(); {
	case o.Bound.Total == 0:
		return one(noBite(claim, "the bound", "nothing reached the origin"))
	case fullest <= float64(j.r.Limit):
		return one(noBite(claim, limit, "at most %s in a second were offered, the limit is %s", count(int64(fullest)), rate(float64(j.r.Limit))))
	case o.Slower*slowerMost > uint64(o.Bound.Total):
		return one(evidence.Verdict{
			Claim: claim, Bound: limit,
			Measured: fmt.Sprintf("cannot be told: %s of %s arrivals were under way for more than %s", count(int64(o.Slower)), count(o.Bound.Total+int64(o.Slower)), duration(o.Spread)),
		})
	}
	v := evidence.Verdict{Claim: claim, Measured: fmt.Sprintf("%s in the fullest %v", count(worst.Peak), worst.Window), Bound: limit, Kept: o.Bound.OK()}
	if worst.OK() && !o.Bound.LevelOK {
		v.Measured = fmt.Sprintf("a window of another length has %s more than its part of the limit", count(o.Bound.Level))
		v.Bound = "at most " + count(o.Bound.LevelMax)
	}
	return one(v)
}

// boundBroken says by how much a baseline broke the bound: in the window that is
// the furthest above it.
func (j *judge) boundBroken(c *scenario.Claim) []evidence.Verdict {
	claim := fmt.Sprintf("%s lets more than the bound through", j.r.Variant)
	limit := "above the bound by at least " + part(c.Least)
	if fullest, most := j.fullest(), float64(j.r.Limit); fullest <= most*(1+fraction(c.Least)) {
		return one(noBite(claim, limit, "at most %s in a second were offered, the limit is %s", count(int64(fullest)), rate(most)))
	}
	worst := furthest(j.r.Origin.Bound.Results)
	v := evidence.Verdict{Claim: claim, Bound: limit, Kept: worst.Bound > 0 && beyond(worst, int64(c.Least))}
	above := float64(worst.Peak-worst.Bound) / max(1, float64(worst.Bound))
	v.Measured = fmt.Sprintf("%s above: %s in %v where %s are allowed", percent(above), count(worst.Peak), worst.Window, count(worst.Bound))
	if worst.OK() {
		v.Measured = fmt.Sprintf("never above: %s in the fullest %v", count(worst.Peak), worst.Window)
	}
	return one(v)
}

// beyond reports whether a window holds at least so many millionths of its bound
// more than that. Counts of requests times a million stay far below 2^63.
func beyond(r bound.Result, ppm int64) bool {
	return (r.Peak-r.Bound)*int64(config.Whole) >= r.Bound*ppm
}

// furthest is the window that is the furthest above its bound, or the least below,
// in proportion to it.
func furthest(results []bound.Result) (worst bound.Result) {
	for _, r := range results {
		if r.Bound > 0 && (worst.Bound == 0 || (r.Peak-r.Bound)*worst.Bound > (worst.Peak-worst.Bound)*r.Bound) {
			worst = r
		}
	}
	return worst
}
