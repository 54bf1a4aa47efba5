package main

// dataPlane are the mutants of enforcement and allocation.
func dataPlane() []Mutant { return nil }
