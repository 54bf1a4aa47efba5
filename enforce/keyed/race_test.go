//go:build race

package keyed

// strangers is how many new keys come: the race detector makes each word dear.
const strangers = 250_000
