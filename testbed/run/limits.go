package run

import (
	"slices"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/origin"
)

// limitChanges is the limit that binds over time, from first on: while a change is
// under way, the larger of the two. Changes come by time and may overlap; one that
// is in force ends those before it. Times become instants of the clock of which
// zero is time 0.
func limitChanges(first int64, changes []evidence.Limit, zero int64) (all []origin.Change) {
	var instants []time.Duration
	for _, c := range changes {
		instants = append(instants, c.At, c.In)
	}
	slices.Sort(instants)
	for _, t := range slices.Compact(instants) {
		all = append(all, origin.Change{At: zero + int64(t), Limit: limitAt(first, changes, t)})
	}
	return all
}

// limitAt is the limit that binds from t on, until the next change.
func limitAt(first int64, changes []evidence.Limit, t time.Duration) int64 {
	limit := first
	for _, c := range changes {
		switch {
		case c.At > t:
			return limit
		case c.In <= t:
			limit = c.Limit
		default:
			limit = max(limit, c.Limit)
		}
	}
	return limit
}
