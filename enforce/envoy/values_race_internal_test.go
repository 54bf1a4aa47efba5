//go:build race

package envoy

// values is a tenth of what it is without the race detector, which takes ten
// times as long.
const values = 100_000
