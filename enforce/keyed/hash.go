// Package keyed is a bounded, lock-free table of token buckets by key.
package keyed

import "hash/maphash"

// Hash names a key: never 0, which means none. The seed is secret and the same
// one for all who mean the same keys.
func Hash(seed maphash.Seed, name string) uint64 { return max(maphash.String(seed, name), 2) }
