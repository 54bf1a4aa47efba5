// Package evaluation plays demand against ways of sharing a budget and counts what
// is served.
//
// # Model
//
// Time is a row of cycles. In each cycle every location asks for a rate of each
// class (a [Trace]). A [Method] says how much each cell, a class at a location,
// may use; it is told the demand of this cycle (lag 0: what an ideal system knows)
// or of the one before (lag 1: what a deployed one knows). A cell serves at most
// what it may use; where the method lends revocably, the classes of a location also
// serve each other's unused part, as a node's buckets do (enforcement.md "Inside
// its own share").
//
// # Units and invariants
//
// Demand, targets and sums are micro-units per second, in integers: the figures are
// the same on every CPU. Percentages are made of exact sums at the end. What is
// committed is compared with the budget in every cycle: the largest excess is part
// of the result, and is 0 for every method that is worth anything.
//
// # Concurrency
//
// Traces and sharers belong to one goroutine. [Run] plays many at once.
package evaluation
