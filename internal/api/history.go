package api

// History is the recent past of one budget, as columns of equal length, oldest
// first. The admin server keeps about five minutes at two samples a second.
type History struct {
	Budget string `json:"budget"`
	Unit   string `json:"unit"` // "/s" or "B/s"
	// Millis is when each sample was taken: Unix milliseconds that never step
	// back, also when the wall clock does.
	Millis []int64   `json:"t_ms"`
	Limit  []float64 `json:"limit"`
	Share  []float64 `json:"sum_share"`
	Demand []float64 `json:"sum_demand"`
}

// Sum is one point of a budget's history: what all locations that this node sees
// enforce and ask for together.
type Sum struct {
	Budget, Unit         string
	Limit, Share, Demand float64
}

// Sums returns the sums of every budget.
func (s *Status) Sums() []Sum {
	sums := make([]Sum, len(s.Budgets))
	for i := range s.Budgets {
		b := &s.Budgets[i]
		sums[i] = Sum{b.Name, b.Unit, b.Limit, b.SumShare, b.SumDemand}
	}
	return sums
}

// Frozen answers a freeze or unfreeze: the state asked for and accepted.
type Frozen struct {
	Frozen bool `json:"frozen"`
}
