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

// Frozen answers a freeze or unfreeze: the state asked for and accepted.
type Frozen struct {
	Frozen bool `json:"frozen"`
}
