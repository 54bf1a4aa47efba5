package poison

import (
	"bytes"
	"math"
	"math/rand/v2"

	"github.com/vmihailenco/msgpack/v5"
)

// kinds are those of packets that have a number as their first own field, which
// is all but the wanted lineage; the last ones do not exist.
var kinds = [...]int{1, 2, 3, 4, 5, 7, 8, 9, 77, 1 << 40}

// nonsense is a packet that no reader may take. real are packets of the cluster,
// some of which are spoilt; root is what its packets name as theirs.
func nonsense(rng *rand.Rand, real [][]byte, root uint32) (packet []byte, spoilt bool) {
	if len(real) > 0 && rng.IntN(2) == 0 {
		return spoil(rng, real[rng.IntN(len(real))]), true
	}
	switch rng.IntN(4) {
	case 0:
		return noise(rng), false
	case 1:
		return bytes.Repeat([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, 1+rng.IntN(200)), false // arrays of 2^32-1 arrays
	case 2:
		return nil, false
	}
	return almost(rng, root), false
}

// noise begins with a byte that is no array, as every packet must be.
func noise(rng *rand.Rand) []byte {
	b := make([]byte, 1+rng.IntN(1199))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	b[0] &= 0x7f // a number
	return b
}

// spoil cuts a packet short or adds bytes to it.
func spoil(rng *rand.Rand, real []byte) []byte {
	if rng.IntN(2) == 0 {
		return bytes.Clone(real[:rng.IntN(len(real))])
	}
	return append(bytes.Clone(real), make([]byte, 1+rng.IntN(20))...)
}

// almost is a packet with a right beginning whose first field of its own is no
// number.
func almost(rng *rand.Rand, root uint32) []byte {
	const format = 1 << 4 // major 1
	wrong := []any{nil, -1, math.NaN(), math.Inf(1), "one", []int{1}, map[string]int{"a": 1}, true, int64(math.MinInt64)}
	fields := []any{format, kinds[rng.IntN(len(kinds))], root, wrong[rng.IntN(len(wrong))]}
	for range rng.IntN(20) {
		fields = append(fields, wrong[rng.IntN(len(wrong))])
	}
	b, err := msgpack.Marshal(fields)
	if err != nil {
		return []byte{0xc1} // never: the values are plain
	}
	return b
}
