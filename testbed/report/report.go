// Package report shows what runs of scenarios have measured: HTML is the whole
// of it on one page, Table the claims for a terminal, Markdown a short summary
// for the docs with Origins and Reactions as pictures beside it.
//
// The page is one file: its styles and its plots (SVG) are inside, it runs no
// scripts and loads nothing. Colours are CSS variables, so that plots follow the
// reader's light or dark scheme; the palette is one that the colour-blind can
// tell apart, and dashes, labels and words repeat what colours say. Every main
// figure is drawn twice, for a wide and for a narrow screen.
//
// Units are those of package evidence. A long series is reduced to the lowest
// and the highest value of each column of pixels, never to a mean, so that no
// peak is hidden. All text from outside (names, labels, logs) is escaped.
//
// The same outcomes give the same bytes: nothing here reads a clock or a map in
// its order. All functions are safe for concurrent use.
package report

import (
	"time"

	"subak/testbed/evidence"
)

// About says what the outcomes are about. Every field may be left out.
type About struct {
	Version string    // of the binaries under test
	Machine string    // cores, memory, kernel
	Command string    // that made the outcomes
	Date    time.Time // of the runs

	// Comparisons set runs of the contention scenarios beside the simulator.
	Comparisons []Comparison
	// Figures are the pictures that Markdown shows.
	Figures []Figure
}

// Figure is a picture that lies beside the summary.
type Figure struct {
	Path    string // relative to the summary
	Caption string
}

// Score is how well one contention scenario was served, in percent. A field
// that is not known is below 0.
type Score struct {
	High  float64 `json:"high_percent"`  // of the highest class's demand, served
	Legit float64 `json:"legit_percent"` // of the low class's legitimate demand
	Low   float64 `json:"low_percent"`   // of the low class's demand, a flood included
	Total float64 `json:"total_percent"` // of all demand
	Idle  float64 `json:"idle_percent"`  // of the budget, unused while all of it was asked for
	Over  float64 `json:"over_percent"`  // of the budget, enforced above it at worst
}

// Comparison is one contention scenario on real processes and in the simulator.
type Comparison struct {
	Scenario  string           `json:"scenario"`
	Title     string           `json:"title"`
	Topology  string           `json:"topology"`
	Variant   evidence.Variant `json:"variant"`
	Real      Score            `json:"real"`
	Simulated Score            `json:"simulated"`
}
