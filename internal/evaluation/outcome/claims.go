package outcome

import (
	"fmt"
	"math"
)

// Claim is a statement about figures of a report.
type Claim struct {
	Words  string `json:"claim"`
	Figure string `json:"figure"`
	Kept   bool   `json:"kept"`
	// Note explains a claim that is not kept, or a figure that differs from what was
	// published.
	Note string `json:"note,omitempty"`
}

func (c *Claim) verdict() string {
	if c.Kept {
		return "kept"
	}
	return "NOT KEPT"
}

func (r *Report) printClaims(out *printer) {
	if len(r.Claims) == 0 {
		return
	}
	out.line("\nclaims")
	for _, c := range r.Claims {
		out.line("  %-8s %-72s %s", c.verdict(), c.Words, c.Figure)
		if c.Note != "" {
			out.line("           %s", c.Note)
		}
	}
}

// Broken is the number of claims that are not kept.
func (r *Report) Broken() (n int) {
	for _, c := range r.Claims {
		if !c.Kept {
			n++
		}
	}
	return n
}

// reference is what the design's prototype served of the first class by the paper's
// rule at lag 1, in percent (evaluation.md); its demand was drawn otherwise.
func reference() map[string]float64 {
	return map[string]float64{"S1": 89.8, "S2": 86.1, "S3": 80.9, "S4": 93.2, "S5": 66.8, "S6": 77.2, "S7": 85.0, "S8": 68.4}
}

// Judge adds the claims of the source paper and our own, as far as the methods that
// they speak of were played over the eight scenarios. shifted is S7 from noon by the
// paper's rule at lag 1: 600 cycles are two and a half days, and it matters which half
// comes a third time. nil leaves a difference there unexplained.
func (r *Report) Judge(shifted *Line) {
	r.shifted = shifted
	for _, judge := range []func() (Claim, bool){
		r.neverOver, r.neverIdle, r.inTheRange, r.asReferred, r.likeTheLP, r.betterThanTwoClassLP,
		r.borrowingUnderBursts, r.borrowingWithoutBursts, r.poolFirst, r.withinReservations, r.withPreemption, r.likeItsIdeal, r.neverOverByProtocol,
	} {
		if c, ok := judge(); ok {
			r.Claims = append(r.Claims, c)
		}
	}
}

func (r *Report) neverOver() (Claim, bool) {
	over := r.over()
	return Claim{Words: "never over-committed, by any method", Figure: fmt.Sprintf("most %g/s over", over), Kept: over == 0}, true
}

func (r *Report) neverIdle() (Claim, bool) {
	worst := 0.0
	for _, c := range r.Cases {
		l := r.Find(c.Name, "paper", 0)
		if l == nil {
			return Claim{}, false
		}
		worst = max(worst, l.Unplaced.Most)
	}
	return Claim{Words: "paper, lag 0: nothing idle while demand reaches the budget", Figure: fmt.Sprintf("%.2f %%", worst), Kept: worst == 0}, true
}

// highs are the first class's figures of a method at lag 1 over S1 to S8.
func (r *Report) highs(method string) (all []float64, ok bool) {
	for i := 1; i <= 8; i++ {
		l := r.Find(fmt.Sprintf("S%d", i), method, 1)
		if l == nil {
			return nil, false
		}
		all = append(all, high(l))
	}
	return all, true
}

func (r *Report) inTheRange() (Claim, bool) {
	all, ok := r.highs("paper")
	if !ok {
		return Claim{}, false
	}
	least, most := all[0], all[0]
	for _, x := range all {
		least, most = min(least, x), max(most, x)
	}
	return Claim{
		Words:  "paper, lag 1: serves 66 to 93 % of the first class over the scenarios",
		Figure: fmt.Sprintf("%.1f to %.1f %%", least, most), Kept: least >= 65.5 && most <= 93.5,
	}, true
}

func (r *Report) asReferred() (Claim, bool) {
	if _, ok := r.highs("paper"); !ok {
		return Claim{}, false
	}
	c := Claim{Words: "paper, lag 1: within a point of the reference in every scenario, or explained", Kept: true}
	worst := 0.0
	for name, want := range reference() {
		got := high(r.Find(name, "paper", 1))
		d := math.Abs(got - want)
		if name == "S7" && d > 1 && r.shifted != nil {
			shifted := high(r.shifted)
			c.Note = fmt.Sprintf("S7: %.1f, reference %.1f. 600 cycles are two and a half days; begun at noon, so that the other half day comes a third time, the same trace gives %.1f", got, want, shifted)
			d = math.Abs(shifted - want)
		}
		if d > worst {
			worst, c.Figure = d, fmt.Sprintf("most %.1f points apart, at %s (%.1f, reference %.1f)", d, name, got, want)
		}
		c.Kept = c.Kept && d <= 1
	}
	return c, true
}

func (r *Report) likeTheLP() (Claim, bool) {
	paper, ok := r.Mean("paper", 1, high)
	lp, ok2 := r.Mean("lp1", 1, high)
	return Claim{
		Words: "paper, lag 1: like a single-class LP optimum, within a point", Figure: fmt.Sprintf("%.1f against %.1f %%", paper, lp),
		Kept: math.Abs(paper-lp) <= 1,
	}, ok && ok2
}

func (r *Report) betterThanTwoClassLP() (Claim, bool) {
	paper, ok := r.highs("paper")
	centre, ok2 := r.highs("lp2")
	if !ok || !ok2 {
		return Claim{}, false
	}
	better := 0
	for i := range paper {
		if paper[i] > centre[i] {
			better++
		}
	}
	return Claim{
		Words: "the two-class LP's centre serves less of the first class in most scenarios", Figure: fmt.Sprintf("in %d of 8", better), Kept: better > 4,
	}, true
}

// borrowing is what borrowing adds to the first class in a scenario, in points.
func (r *Report) borrowing(name string) (points float64, ok bool) {
	with, without := r.Find(name, "paper", 1), r.Find(name, "no-borrowing", 1)
	if with == nil || without == nil {
		return 0, false
	}
	return high(with) - high(without), true
}

func (r *Report) borrowingUnderBursts() (Claim, bool) {
	points, ok := r.borrowing("S6")
	return Claim{Words: "borrowing is worth about 1.5 points under bursts (S6)", Figure: fmt.Sprintf("%+.1f points", points), Kept: points >= 1 && points <= 2.5}, ok
}

func (r *Report) borrowingWithoutBursts() (Claim, bool) {
	worst := 0.0
	for _, name := range []string{"S1", "S2", "S3", "S4", "S8"} {
		points, ok := r.borrowing(name)
		if !ok {
			return Claim{}, false
		}
		if math.Abs(points) > math.Abs(worst) {
			worst = points
		}
	}
	return Claim{Words: "and nothing where the demand is stationary (S1 to S4, S8)", Figure: fmt.Sprintf("%+.1f points at most", worst), Kept: math.Abs(worst) < 0.25}, true
}

func (r *Report) poolFirst() (Claim, bool) {
	paper, ok := r.Mean("paper", 1, high)
	pool, ok2 := r.Mean("pool-first", 1, high)
	return Claim{Words: "pool-first serves the first class better than the paper's rule", Figure: fmt.Sprintf("%.1f against %.1f %%", pool, paper), Kept: pool > paper}, ok && ok2
}

// The figures that the design's prototype reached, to be beaten (evaluation.md,
// issue of the evaluation).
const (
	referenceKept      = 85.8 // reservations untouched
	referencePreempted = 94.3 // with preemption, the legitimate part falling by seven points
)

func (r *Report) withinReservations() (Claim, bool) {
	best, ok := r.Mean("revocable", 1, high)
	kept, ok2 := r.Mean("revocable", 1, legit)
	pool, ok3 := r.Mean("insurance10", 1, legit)
	bound, ok4 := r.Mean("pool-first", 0, high)
	return Claim{
		Words:  fmt.Sprintf("reservations untouched, lag 1: more of the first class than %.1f %%, legitimate part no worse", referenceKept),
		Figure: fmt.Sprintf("%.1f %% (bound %.1f), legitimate %.1f against %.1f %%", best, bound, kept, pool),
		Kept:   best > referenceKept && kept > pool-0.5,
	}, ok && ok2 && ok3 && ok4
}

func (r *Report) withPreemption() (Claim, bool) {
	best, ok := r.Mean("protect50", 1, high)
	kept, ok2 := r.Mean("protect50", 1, legit)
	plain, ok3 := r.Mean("pool-first", 1, legit)
	return Claim{
		Words:  fmt.Sprintf("with preemption, lag 1: more than %.1f %% for seven points of the legitimate part", referencePreempted),
		Figure: fmt.Sprintf("%.1f %%, legitimate %.1f down to %.1f %%", best, plain, kept),
		Kept:   best > referencePreempted && plain-kept <= 7,
	}, ok && ok2 && ok3
}

func (r *Report) likeItsIdeal() (Claim, bool) {
	if len(r.Protocol) == 0 {
		return Claim{}, false
	}
	var high, ideal float64
	for i := range r.Protocol {
		high += r.Protocol[i].High.Mean / float64(len(r.Protocol))
		ideal += r.Protocol[i].Ideal.Mean / float64(len(r.Protocol))
	}
	return Claim{
		Words:  "through the protocol: within two points of the lag-1 ideal of the same rule",
		Figure: fmt.Sprintf("%.1f against %.1f %%", high, ideal), Kept: math.Abs(high-ideal) <= 2,
	}, true
}

func (r *Report) neverOverByProtocol() (Claim, bool) {
	if len(r.Protocol) == 0 {
		return Claim{}, false
	}
	c := Claim{Words: "through the protocol: never over-committed, at any event", Kept: true}
	var peak int64
	for i := range r.Protocol {
		peak = max(peak, r.Protocol[i].PeakPPM)
		if o := r.Protocol[i].Objection; o != "" {
			c.Kept, c.Note = false, r.Protocol[i].Case+": "+o
		}
	}
	c.Figure = fmt.Sprintf("most %.4f %% of the budget", float64(peak)/10_000)
	c.Kept = c.Kept && peak <= 1_000_000
	return c, true
}
