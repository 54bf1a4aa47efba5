// Command figures measures, in virtual time, how fast the cores of 22 cities
// react and how much of the budget they keep in use, beside what is claimed for
// that. It exits with 1 where a claim falls short.
//
//	go run ./chaos/figures
package main

import (
	"os"

	"subak/chaos/timed"
)

func main() {
	if !timed.Figures(os.Stdout) {
		os.Exit(1)
	}
}
