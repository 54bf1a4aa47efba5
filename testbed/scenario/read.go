package scenario

import (
	"time"

	"subak/testbed/evidence"
)

// Bin is the resolution of a run's series; phases are whole numbers of bins.
const Bin = 100 * time.Millisecond

// Files returns every scenario of the testbed, by name.
func Files() ([]Scenario, error) { return nil, nil }

// Parse reads one scenario. The error holds every fault, with its line.
func Parse(name string, text []byte) (Scenario, error) { return Scenario{}, nil }

// For is the story of one variant: lengths of phases are the variant's; every
// fault has its name, its nodes and groups, an absolute At and, where its kind
// lasts, a For, and no In; every load and step names its nodes; steps have become
// phases, called step 1, step 2 and so on; and the claims are those about the
// variant.
func (s *Scenario) For(v evidence.Variant) Scenario { return *s }

// Rates is what is offered, in requests/s: Rates[class*nodes+node][phase].
func (s *Scenario) Rates() [][]float64 { return nil }

// Length is how long the load of a variant lasts.
func (s *Scenario) Length(v evidence.Variant) time.Duration { return 0 }
