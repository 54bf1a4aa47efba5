// Package chaos holds what the simulators of Subak share: modes, results,
// counters of what a run met, clocks that drift, and the shrinking of failing
// schedules.
//
// # Model
//
// A simulator is a [Runner]: it turns a seed and a [Mode] into a [Result],
// always the same one, over the product's own pure core in virtual time. It has
// no goroutine, no wall clock and no other randomness than the seed. Package
// chaos/schedule has no model of timing: any message ever sent may arrive
// anywhere at any step. Package chaos/timed has one: delays, loss, partitions.
//
// A campaign is many seeds. It says three things: that no checker objected, how
// near the sum came to the budget, and by the counters that the faults bit. A
// counter that had to rise and did not makes a campaign fail: then the checkers
// proved less than it seems.
//
// # Units
//
// Time is ns of virtual true time or of a process's own clock. Shares are parts
// per million.
//
// # Concurrency
//
// A Runner belongs to one goroutine and reuses its memory from seed to seed.
package chaos
