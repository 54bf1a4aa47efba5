// Command mutants shows that the simulators' checkers are worth something: it
// switches one rule of the protocol off at a time and demands that a checker
// objects.
//
//	go run ./chaos/mutants              every mutant; ends with one line of verdict
//	go run ./chaos/mutants -only NAME   one of them
//	go run ./chaos/mutants -list        names and rules
//
// # Model
//
// A [Mutant] is data: a rule, the patches that switch it off, and the adversary
// that has to catch it. A patch is a piece of source text and what replaces it.
// Patched copies go to a temporary directory and are compiled in by go build
// -overlay, into a simulator's binary that is thrown away. So the product holds
// no hooks, and a mutant is of the very code that ships. A test checks that every
// patch still fits its file exactly once and that the result type-checks.
//
// A mutant is caught when a checker of the simulator objects within the cap of
// seeds. The product itself then goes through the same adversary, seeds 1 to the
// cap: no checker may object.
//
// # Output
//
// One row per mutant: the rule, who caught it, after how many seeds, and the
// greatest sum of enforced rates as a share of the budget in that run. Exit
// status 0 means all caught, 1 that there are survivors or that the product was
// accused, 2 that something could not be built or run.
package main
