package keyed

import "hash/maphash"

// Hash names a key. It is at least 2: 0 means no key, and 1 is the table's own.
// The seed is secret, so that nobody can aim at another key's set, and the same
// one for all who mean the same keys.
func Hash(seed maphash.Seed, name string) uint64 { return max(maphash.String(seed, name), 2) }

// HashBytes is Hash of the same bytes.
func HashBytes(seed maphash.Seed, name []byte) uint64 { return max(maphash.Bytes(seed, name), 2) }
