package allocator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sortedChoice is the set of the count largest of rem, ties to the lower index,
// by sorting.
func sortedChoice(rem []uint64, count int) (chosen uint64) {
	order := make([]int, len(rem))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case rem[x] > rem[y]:
			return -1
		case rem[x] < rem[y]:
			return 1
		}
		return 0
	})
	for _, i := range order[:count] {
		chosen |= 1 << i
	}
	return chosen
}

// padded is rem followed by stale memory.
func padded(rem []uint64) []uint64 {
	out := slices.Clone(rem)
	for len(out)%8 != 0 {
		out = append(out, 1<<63-1)
	}
	return out
}

func TestSelectFewChoosesAsSortingWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, fewCells).Draw(t, "n")
		// Few bits make ties and equal digits; high ones differ in the digit.
		width, shift := rapid.IntRange(1, 63).Draw(t, "width"), 0
		if rapid.Bool().Draw(t, "high") {
			shift = 63 - width
		}
		rem := make([]uint64, n)
		for i := range rem {
			rem[i] = rapid.Uint64Max(1<<width-1).Draw(t, "rem") << shift
		}
		count := rapid.IntRange(1, n-1).Draw(t, "count")
		if got, want := selectFew(padded(rem), n, uint64(count)), sortedChoice(rem, count); got != want {
			t.Fatalf("chose %b, want %b", got, want)
		}
	})
}

func TestSelectFewHandlesEqualAndZeroRemaindersAtEverySize(t *testing.T) {
	for n := 2; n <= fewCells; n++ {
		for count := 1; count < n; count++ {
			for _, x := range []uint64{0, 1, 1<<63 - 1} {
				rem := slices.Repeat([]uint64{x}, n)
				if got, want := selectFew(padded(rem), n, uint64(count)), uint64(1)<<count-1; got != want {
					t.Fatalf("of %d times %d chose %b, want %b", n, x, got, want)
				}
			}
		}
	}
}

func TestTransposeSwapsRowsAndColumns(t *testing.T) {
	for g := range 8 {
		for j := range 8 {
			if got, want := transpose(1<<(8*g+j)), uint64(1)<<(8*j+g); got != want {
				t.Errorf("bit %d goes to %b, want %b", 8*g+j, got, want)
			}
		}
	}
}
