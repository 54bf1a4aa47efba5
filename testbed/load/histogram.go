package load

import (
	"math/bits"
	"time"
)

// The histogram has 2^subBits cells to each power of two, so a quantile is at
// most 1/32 (3.1 %) above the true value. Values under 2^subBits ns are exact.
const (
	subBits = 5
	subs    = 1 << subBits
	octaves = 37 - subBits // up to 2^37 ns, 137 s; slower ones share the last cell
)

// Histogram counts durations in log-spaced cells: a fixed 4 KiB, however many
// it counts. The zero value is ready. It is not safe for concurrent use.
type Histogram struct {
	cells [(octaves + 1) * subs]uint32
	count uint64
	max   time.Duration
}

// Add counts one duration; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.cells[cell(uint64(d))]++
	h.count++
	h.max = max(h.max, d)
}

// Merge adds the counts of other.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.cells {
		h.cells[i] += n
	}
	h.count += other.count
	h.max = max(h.max, other.max)
}

// Count is the number of durations counted.
func (h *Histogram) Count() uint64 { return h.count }

// Quantile returns an upper bound, at most 1/32 above, of the q-quantile
// (0 < q <= 1): at least a fraction q of the durations is not above it. It is 0
// when nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	if float64(rank) < q*float64(h.count) || rank == 0 {
		rank++
	}
	var seen uint64
	for i, n := range h.cells {
		if seen += uint64(n); seen >= rank {
			return min(top(i), h.max)
		}
	}
	return h.max
}

// cell returns the index of the cell that holds v.
func cell(v uint64) int {
	if v < subs {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - subBits
	if shift >= octaves {
		return (octaves+1)*subs - 1
	}
	return (shift+1)*subs + int(v>>shift) - subs
}

// top returns the greatest value of cell i.
func top(i int) time.Duration {
	if i < subs {
		return time.Duration(i)
	}
	shift := i/subs - 1
	return time.Duration(uint64(i%subs+subs+1)<<shift - 1)
}
