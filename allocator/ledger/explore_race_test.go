//go:build race

package ledger

// underRace says that the race detector watches, which makes all of this ten times
// slower.
const underRace = true
