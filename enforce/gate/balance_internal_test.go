package gate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Every backend gets its part of each period exactly, and no run is longer than
// the weights force.
func TestRoundRobinIsExactAndSmooth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 60), 1, 6).Draw(t, "weights")
		table := roundRobin(weights)
		total, counts := 0, make([]int, len(weights))
		for _, w := range weights {
			total += w
		}
		for _, i := range table {
			counts[i]++
		}
		for i, w := range weights {
			if counts[i]*total != w*len(table) {
				t.Fatalf("weights %v give counts %v", weights, counts)
			}
		}
		// Smooth: in any prefix everyone is within one request per rival of
		// its due.
		clear(counts)
		for n, i := range table {
			counts[i]++
			for j, w := range weights {
				if due := w * (n + 1); counts[j]*total > due+len(weights)*total || counts[j]*total < due-len(weights)*total {
					t.Fatalf("weights %v: %d has %d of %d after %d", weights, j, counts[j], due, n+1)
				}
			}
		}
	})
}

func TestRoundRobinTableStaysSmallForAnyWeights(t *testing.T) {
	table := roundRobin([]int{maxWeight, 1, maxWeight - 1})
	if len(table) > slotsMax+3 {
		t.Fatalf("%d entries", len(table))
	}
	for i := range uint16(3) {
		if !slices.Contains(table, i) {
			t.Errorf("backend %d is never used", i)
		}
	}
}
