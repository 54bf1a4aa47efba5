package show

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"subak/testbed/peers/measure"
)

// Report is a whole run as programs read it.
type Report struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"` // that it took
	Machine Machine   `json:"machine"`
	Rounds  int       `json:"rounds"`
	Smoke   bool      `json:"smoke"` // too short for a verdict on speed
	OK      bool      `json:"ok"`
	Verdict string    `json:"verdict"`
	Claims  []Claimed `json:"claims"`
	Cases   []Played  `json:"cases"`
}

// Machine is where a run took place.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
	Place string `json:"place"` // which cores what has
}

// Claimed is a claim and its result.
type Claimed struct {
	ID     string   `json:"id"`
	What   string   `json:"what"`
	Value  number   `json:"value"`
	Bound  *float64 `json:"bound,omitempty"`
	Sense  string   `json:"sense,omitempty"` // at_most or at_least
	Unit   string   `json:"unit,omitempty"`
	State  string   `json:"state"` // ok, short, noted or missing
	Why    string   `json:"why,omitempty"`
	Rounds []number `json:"rounds,omitempty"`
}

// Played is a case and its figures.
type Played struct {
	ID    string   `json:"id"`
	What  string   `json:"what"`
	Sides []Figure `json:"sides"`
}

// Figure is what one side measured, by round.
type Figure struct {
	Name   string              `json:"name"`
	Rounds map[string][]number `json:"rounds"`
}

// number is a float that may be none: JSON has no word for that but null.
type number float64

// MarshalJSON writes null for what is no number.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func numbers(v []float64) []number {
	out := make([]number, len(v))
	for i := range v {
		out[i] = number(v[i])
	}
	return out
}

// AddCase adds a case that was played.
func (r *Report) AddCase(c *measure.Case, f measure.Figures) {
	p := Played{ID: c.ID, What: c.What}
	for i, s := range c.Sides {
		side := Figure{Name: s.Name, Rounds: map[string][]number{}}
		for _, m := range c.Show {
			side.Rounds[m.String()] = numbers(f.Over(i, m))
		}
		p.Sides = append(p.Sides, side)
	}
	r.Cases = append(r.Cases, p)
}

// AddClaims adds results.
func (r *Report) AddClaims(all []measure.Result) {
	words := map[measure.State]string{measure.OK: "ok", measure.Short: "short", measure.Noted: "noted", measure.Missing: "missing"}
	for _, res := range all {
		c := Claimed{
			ID: res.Claim.ID, What: res.Claim.What, Value: number(res.Value), Unit: res.Claim.Unit,
			State: words[res.State], Why: res.Why, Rounds: numbers(res.Rounds),
		}
		if res.Claim.Sense != measure.NoBound {
			bound := res.Claim.Bound
			c.Bound, c.Sense = &bound, "at_most"
			if res.Claim.Sense == measure.AtLeast {
				c.Sense = "at_least"
			}
		}
		r.Claims = append(r.Claims, c)
	}
}

// JSON writes the report.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
