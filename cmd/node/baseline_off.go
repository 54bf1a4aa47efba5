//go:build !baseline

package main

import "github.com/spf13/pflag"

// variant marks the version of builds that are not the product.
const variant = ""

// addBaseline adds no flag: this build has no baselines.
func addBaseline(*pflag.FlagSet) *string { return new(string) }
