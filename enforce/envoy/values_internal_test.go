//go:build !race

package envoy

const values = 1_000_000
