//go:build baseline

package main

import "github.com/spf13/pflag"

// variant marks the version of this build, so that nobody takes it for the
// product.
const variant = "+baseline"

// addBaseline adds the flag that makes a node one of those that the product is
// compared with.
func addBaseline(flags *pflag.FlagSet) *string {
	return flags.String("baseline", "", "FOR COMPARISONS ONLY: static keeps every node to its base; naive enforces what the own view gives and BREAKS the budget")
}
