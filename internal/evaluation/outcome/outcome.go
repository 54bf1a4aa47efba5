// Package outcome is what an evaluation came to, for people and programs: a table,
// JSON, CSV and Markdown of the same figures, and the claims that they support.
//
// Percentages are floating point here and nowhere before; they are printed, and
// compared with what is claimed to a tenth.
package outcome

import (
	"slices"

	"subak/allocator"
	"subak/internal/evaluation"
	"subak/internal/evaluation/through"
)

// Report is a whole evaluation.
type Report struct {
	About About  `json:"about"`
	Cases []Name `json:"cases"`
	Ways  []Name `json:"methods"`
	Lines []Line `json:"results"`
	// Protocol is the same demand through the protocol, where that was played.
	Protocol []through.Row `json:"protocol,omitempty"`
	Claims   []Claim       `json:"claims,omitempty"`
	// Vertices are what gonum's simplex serves of the first class by the two-class LP.
	Vertices []Vertex `json:"lp2_vertices,omitempty"`

	shifted *Line // see Judge
}

// Vertex is the part of the first class's demand, in percent, that is served by the
// optimum of the two-class LP in which gonum's simplex ends, over some cycles of the
// first seed.
type Vertex struct {
	Case    string  `json:"case"`
	Percent float64 `json:"percent"`
	Cycles  int     `json:"cycles"`
}

// About is what was asked for.
type About struct {
	// WhatIf says what the second case changes of the first; empty where the cases are
	// not one budget before and after a change.
	WhatIf string   `json:"what_if,omitempty"`
	Nodes  int      `json:"nodes"`
	Budget string   `json:"budget"`
	Cycles int      `json:"cycles"` // counted; the first ones are not
	Seeds  []uint64 `json:"seeds"`
	Lags   []int    `json:"lags"`
}

// Name of a case or a method, as typed and in words.
type Name struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Line is one case by one method at one lag. Figures are in percent, over the
// seeds.
type Line struct {
	Case    string               `json:"case"`
	Method  string               `json:"method"`
	Lag     int                  `json:"lag"`
	Classes []evaluation.Figures `json:"classes"` // demand served, by class
	Legit   evaluation.Figures   `json:"legit"`   // of the legitimate part of the last class
	All     evaluation.Figures   `json:"all"`     // of all demand
	Idle    evaluation.Figures   `json:"idle"`    // of the budget, not served while demand reached it
	// Unplaced is the part of the budget that no target held although the demand
	// that the targets were made from reached it.
	Unplaced evaluation.Figures `json:"unplaced"`
	// Worst is the least part of the first class served in any cycle.
	Worst evaluation.Figures `json:"worst"`
	// Over is the most by which targets exceeded the budget, in units per second.
	Over float64 `json:"over"`
	// Least and Most are the range of the two-class LP's optima for the first class.
	Least evaluation.Figures `json:"lp2_least"`
	Most  evaluation.Figures `json:"lp2_most"`
}

// High is the first class's figure.
func (l *Line) High() evaluation.Figures { return l.Classes[0] }

// New makes a report of what was played.
func New(p *evaluation.Plan, rows []evaluation.Row) *Report {
	r := &Report{About: About{Seeds: p.Seeds, Lags: p.Lags}}
	for i := range p.Cases {
		r.Cases = append(r.Cases, Name{p.Cases[i].Name, p.Cases[i].Title})
	}
	r.About.Nodes = len(p.Cases[0].Spec.Weights)
	for i := range p.Methods {
		r.Ways = append(r.Ways, Name{p.Methods[i].Name, p.Methods[i].Title})
	}
	for i := range rows {
		r.Lines = append(r.Lines, lineOf(&rows[i]))
		r.About.Cycles = max(r.About.Cycles, rows[i].Results[0].Cycles)
	}
	return r
}

func lineOf(row *evaluation.Row) Line {
	l := Line{
		Case: row.Case, Method: row.Method, Lag: row.Lag,
		Legit: row.Figures(evaluation.Legit), All: row.Figures(evaluation.Whole), Idle: row.Figures(evaluation.Idle),
		Unplaced: row.Figures(evaluation.Unplaced), Worst: row.Figures(evaluation.Worst),
		Least: row.Figures(func(r *evaluation.Result) float64 { least, _ := r.LP.Percent(); return least }),
		Most:  row.Figures(func(r *evaluation.Result) float64 { _, most := r.LP.Percent(); return most }),
	}
	for k := range row.Results[0].Classes {
		l.Classes = append(l.Classes, row.Figures(func(r *evaluation.Result) float64 { return r.Classes[k].Percent() }))
	}
	for i := range row.Results {
		l.Over = max(l.Over, float64(row.Results[i].Over)/float64(allocator.Unit))
	}
	return l
}

// Find returns the line of a case, a method and a lag; nil if it was not played.
func (r *Report) Find(name, method string, lag int) *Line {
	i := slices.IndexFunc(r.Lines, func(l Line) bool { return l.Case == name && l.Method == method && l.Lag == lag })
	if i < 0 {
		return nil
	}
	return &r.Lines[i]
}

// Mean is a figure's mean over all cases, for one method and lag; false where one of
// them was not played.
func (r *Report) Mean(method string, lag int, of func(*Line) float64) (mean float64, ok bool) {
	for _, c := range r.Cases {
		l := r.Find(c.Name, method, lag)
		if l == nil {
			return 0, false
		}
		mean += of(l) / float64(len(r.Cases))
	}
	return mean, len(r.Cases) > 0
}

func high(l *Line) float64  { return l.High().Mean }
func legit(l *Line) float64 { return l.Legit.Mean }
func idle(l *Line) float64  { return l.Idle.Mean }
func all(l *Line) float64   { return l.All.Mean }
