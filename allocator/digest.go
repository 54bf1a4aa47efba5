package allocator

// Digest hashes rate vectors to a number that operators compare across nodes to
// see agreement. It is the same on every machine, depends on order and on the
// lengths, and is not meant to withstand an adversary.
func Digest(rates ...[]Rate) uint32 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(prime)
	mix := func(x uint64) {
		h = (h ^ x) * prime
		h ^= h >> 29
	}
	mix(uint64(len(rates)))
	for _, v := range rates {
		mix(uint64(len(v)))
		for _, r := range v {
			mix(uint64(r))
		}
	}
	return uint32(h >> 32)
}
