package chaos

import "math/bits"

// Rand is a small random source for a simulator's hot path (splitmix64). The
// same seed gives the same numbers on every machine.
type Rand struct{ state uint64 }

// NewRand returns a source for the seed.
func NewRand(seed uint64) Rand { return Rand{seed} }

// Uint64 returns the next number.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// IntN returns a number in [0, n), n > 0. It is biased by less than n/2^64.
func (r *Rand) IntN(n int) int { return int(r.Int64N(int64(n))) }

// Int64N returns a number in [0, n), n > 0.
func (r *Rand) Int64N(n int64) int64 {
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int64(hi)
}

// Chance reports true p times in a hundred.
func (r *Rand) Chance(p int) bool { return r.IntN(100) < p }

// Pick returns one of the choices, which are not none.
func Pick[T any](r *Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// Hash folds values into a running hash, in order.
type Hash uint64

// Add folds x in.
func (h *Hash) Add(x uint64) {
	*h = Hash(bits.RotateLeft64(uint64(*h)^x*0x9e3779b97f4a7c15, 27) * 0xff51afd7ed558ccd)
}
