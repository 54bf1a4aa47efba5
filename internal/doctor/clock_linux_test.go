package doctor

import "testing"

func TestTheKernelsRateIsReadInItsOwnUnits(t *testing.T) {
	for _, tc := range []struct {
		tick, freq int64
		want       float64
	}{{10_000, 0, 0}, {10_001, 0, 100}, {9_900, 0, -10_000}, {10_000, 500 << 16, 500}, {10_000, -65536, -1}} {
		if got := ratePPM(tc.tick, tc.freq); got != tc.want {
			t.Errorf("tick %d, freq %d: %v ppm, want %v", tc.tick, tc.freq, got, tc.want)
		}
	}
}
