//go:build !race

package keyed

// strangers is how many new keys come to a table of a hundred thousand.
const strangers = 1_000_000
