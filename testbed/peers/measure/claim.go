package measure

import (
	"fmt"
	"math"
	"slices"
)

// Relation is how a claim makes one figure of two sides' figures.
type Relation uint8

// The relations.
const (
	Ratio      Relation = iota // side / other
	Difference                 // side - other
	Alone                      // side; there is no other
)

// Sense says on which side of its bound a claim's value must be.
type Sense uint8

// The senses.
const (
	AtMost  Sense = iota
	AtLeast       // the other way round
	NoBound       // shown for what it is; never short
)

// Claim is a statement about the figures of a case.
type Claim struct {
	// ID is unique: the case's, and what is claimed of it.
	ID string
	// What says it in words, without the bound.
	What     string
	Metric   Metric
	Relation Relation
	// Side and Other are indices into the case's sides.
	Side, Other int
	Sense       Sense
	Bound       float64
	// Unit is that of the value, "" for a ratio.
	Unit string
}

// State is a verdict on one claim.
type State uint8

// The states.
const (
	OK      State = iota
	Short         // measured, and on the wrong side of its bound
	Noted         // without a bound
	Missing       // not measured: that is no proof of anything, and fails
)

// String is the state as reports have it.
func (s State) String() string {
	switch s {
	case OK:
		return "ok"
	case Short:
		return "SHORT"
	case Noted:
		return "-"
	}
	return "MISSING"
}

// Result is a claim beside what was measured.
type Result struct {
	Claim  Claim
	Rounds []float64 // the value in each round
	Value  float64   // their median
	State  State
	Why    string // of a Missing one
}

// Judge computes a claim's value from the figures.
func (c Claim) Judge(f Figures) Result {
	r := Result{Claim: c, Rounds: make([]float64, len(f))}
	for i := range f {
		a := f[i][c.Side][c.Metric]
		switch c.Relation {
		case Ratio:
			r.Rounds[i] = a / f[i][c.Other][c.Metric]
		case Difference:
			r.Rounds[i] = a - f[i][c.Other][c.Metric]
		default:
			r.Rounds[i] = a
		}
	}
	r.Value = Median(r.Rounds)
	switch {
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0):
		r.State, r.Why = Missing, "no figure"
	case c.Sense == NoBound:
		r.State = Noted
	case c.Sense == AtMost && r.Value > c.Bound, c.Sense == AtLeast && r.Value < c.Bound:
		r.State = Short
	}
	return r
}

// Fail is the result of a claim whose case could not be measured.
func (c Claim) Fail(why string) Result {
	return Result{Claim: c, Value: math.NaN(), State: Missing, Why: why}
}

// Spread is the least and the greatest value over the rounds.
func (r Result) Spread() (low, high float64) {
	if len(r.Rounds) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(r.Rounds), slices.Max(r.Rounds)
}

// BoundText is the claim's bound in words, "" without one.
func (c Claim) BoundText() string {
	switch c.Sense {
	case AtMost:
		return "<= " + Figure(c.Bound, c.Unit)
	case AtLeast:
		return ">= " + Figure(c.Bound, c.Unit)
	}
	return ""
}

// Figure writes a value with as many digits as it deserves.
func Figure(v float64, unit string) string {
	text := ""
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "?"
	case v == math.Trunc(v) && a < 1e15 && unit != "":
		text = fmt.Sprintf("%.0f", v)
	case a >= 100:
		text = fmt.Sprintf("%.0f", v)
	case a >= 10:
		text = fmt.Sprintf("%.1f", v)
	case unit == "":
		text = fmt.Sprintf("%.3f", v)
	default:
		text = fmt.Sprintf("%.2f", v)
	}
	if unit != "" {
		text += " " + unit
	}
	return text
}

// Untimed is a result without a verdict where the claim is about speed.
func (r Result) Untimed() Result {
	if r.Claim.OfTime() && r.State != Missing {
		r.State = Noted
	}
	return r
}

// Verdict is one line over all results, and whether they are all good: no claim
// may be short or missing.
func Verdict(all []Result) (line string, ok bool) {
	var count [Missing + 1]int
	for _, r := range all {
		count[r.State]++
	}
	if count[Short]+count[Missing] > 0 {
		return fmt.Sprintf("FAILED, %d claims short, %d not measured, %d ok", count[Short], count[Missing], count[OK]), false
	}
	return fmt.Sprintf("ok, %d claims hold", count[OK]), true
}

// OfTime says whether the claim is about speed, so that a few short batches say
// little about it.
func (c Claim) OfTime() bool { return c.Metric != Value }
