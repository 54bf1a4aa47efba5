package evaluation

import (
	"math"
	"math/bits"

	"subak/allocator"
)

// Total is a sum of rates over cycles, exact for any number of them.
type Total struct{ hi, lo uint64 }

// Add adds a rate, 0 or more.
func (t *Total) Add(r allocator.Rate) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(r), 0)
	t.hi += carry
}

// Float is the sum in units.
func (t Total) Float() float64 {
	return (math.Ldexp(float64(t.hi), 64) + float64(t.lo)) / float64(allocator.Unit)
}

// Percent is the part that t is of whole; 100 of nothing.
func (t Total) Percent(whole Total) float64 {
	if whole == (Total{}) {
		return 100
	}
	return 100 * t.Float() / whole.Float()
}
