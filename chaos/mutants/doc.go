// Command mutants shows that the simulators' checkers are worth something: it
// switches one rule of the protocol off at a time and demands that a checker
// objects.
//
//	go run ./chaos/mutants              every mutant; ends with one line of verdict
//	go run ./chaos/mutants -only NAME   one of them
//	go run ./chaos/mutants -list        names, rules and what breaks without them
//	go run ./chaos/mutants -build -keep DIR
//	                                    leaves patched sources and simulators in DIR,
//	                                    to be run by hand: DIR/NAME/sim --seed 7 -v ...
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
// seeds. The product itself then goes through the same adversary and at least as
// many seeds: no checker may object.
//
// Which checker objects first says little: cover (a borrower uses more than its
// lender counts) and claims (bases add up to more than the budget) are steps of
// the proof that enforced rates stay within the budget, and break before those do.
//
// Where random adversaries take thousands of seeds, the simulator has an opening:
// a scripted first scene, of which the product must make nothing.
//
// # Output
//
// One row per mutant: the rule, who caught it, after how many seeds, and the
// greatest sum of enforced rates as a share of the budget in that run. Exit
// status 0 means all caught, 1 that there are survivors or that the product was
// accused, 2 that something could not be built or run.
package main
