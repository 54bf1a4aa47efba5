//go:build !race

package ledger

const underRace = false
