// Package timed is the adversary with a model of time: it simulates whole cores
// of the product (ledger, allocator, limiters, wire codec) in virtual time.
//
// # Model
//
// A world holds 3 to 60 machines. Each has a lease clock that drifts within rho,
// a wall clock that steps, a disk or none, and a process of its name: an
// [subak/internal/core.Core] whose outbox is the simulated network and whose
// timer is an event. Requests are decided by the process's own limiters. All
// that happens is one queue of events in true time; an event is the arrival of
// a packet, a timer, some requests, the begin or end of a fault.
//
// The faults are a schedule of [Fault]s, drawn from the seed: data, which can be
// printed, parsed, cut down and run again. Rounds of faults end with a Heal: all
// faults end, and for some seconds nothing happens but the demand. What an
// assumption of the design forbids is not done, even if the schedule says so:
// nobody loses its memory where too few others would remember (A6), nobody is
// declared dead who runs (A7), and bytes that no node made are let loose only if
// no node can read them (A1).
//
// Every node has its own stream of chance, so that taking out a fault leaves
// most of a run as it was.
//
// # Checkers
//
// On true values, after every event:
//
//   - budget: over all live processes the enforced rates add up to at most the
//     limit of the greatest epoch that was ever activated. Between events shares
//     only fall, by time, which is checked too (shares);
//   - cover (I2): no process uses more of a loan than its lender counts as lent;
//   - agreement: equal views give equal targets;
//   - starved: once a node's own target, as far as its base goes, has been x or
//     more for as long as a loan may last, it enforces x.
//
// At the end of each quiet time:
//
//   - heal: everybody is proved and has the newest epoch in force, every share is
//     at 99 % of what its target was for a second, and together they are 99 % of
//     the budget; within a second of the heal if all nodes ran, were proved and
//     settled and lost no life within a lease, else within a lease's wait and
//     2.5 s, for round trips to 283 ms;
//   - reservation: in the last two seconds each class was admitted what is
//     reserved for it.
//
// At the end of the run:
//
//   - window bound: what was admitted, by package bound.
//
// # Modes
//
// The product has no switches for the modes; the world makes them: without
// releases they are taken out of the rows on the wire, mixed versions add fields
// of a later format to the rows of every second node, and the others choose
// disks, restarts and edits. Majority proof needs no switch: without a disk
// every restart takes a strict majority.
//
// [Figures] measures reaction and use in the same world without faults, a
// [Contest] how much of each class's demand is served in it.
//
// # Concurrency
//
// A Runner belongs to one goroutine.
package timed
