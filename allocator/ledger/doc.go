// Package ledger keeps a budget conserved over many nodes without a controller.
//
// # Model
//
// Every node has a base: its own part of each budget, fixed by a config epoch.
// Capacity moves only as loans out of a node's own base. A node publishes rows;
// a row says what the publisher lends, what it has heard of everybody, and
// which borrowed capacity it has given back. A [Ledger] is one node's state
// for all budgets. It is told the time, the rows and the epochs, and
// it answers what may be enforced now ([Ledger.Steps]) and what to publish
// ([Ledger.Publish]).
//
// # Units
//
// Rates are [allocator.Rate], micro-units per second, as totals of a node over
// classes. Time is the reading of a lease clock in nanoseconds: a clock that
// runs through process pause and machine suspend (CLOCK_BOOTTIME). Readings of
// different machines are never compared.
//
// # What holds
//
// At every instant the rates enforced by all processes add up to at most the
// budget, under loss, duplication, delay, reorder and replay of messages, under
// partitions, pauses, crashes and restarts, and during changes of the config
// epoch. The rules are those of the design document conservation.md; comments
// name them as L1 to L9 (loans), E1 to E6 (epochs) and by trap number, which is
// the number of the counterexample that shows why the rule exists. In short:
//
//   - a borrower's lease starts when the borrower published the row that the
//     lender had heard when it lent, so causality and not clock agreement makes
//     the borrower stop before the lender takes the capacity back;
//   - a lender counts as lent the most that any row still on its way allows;
//   - an epoch lowers bases when it is learned and raises them only when
//     everybody concerned has acknowledged exactly that epoch;
//   - a restarted node enforces none of its own base until its former life's
//     loans have run out and others confirm that its memory is current.
//
// # What is given up
//
// Two live processes of one name are detected, not made safe. An old copy of the
// memory is recognised by what peers had heard before they heard of the new life,
// not with certainty. A node that is cut off strands its own base, no more. Where
// half or more of a roster lost their memory at once, those nodes only borrow
// until the operator bootstraps the cluster: nobody is left to confirm what they
// should remember. A node without memory must not come back with a shorter term
// than any life of its name whose loans may still run: it could not know for how
// long.
//
// # Order of calls
//
// The caller lowers the data plane to Steps and writes [Stored] (when
// [Ledger.StoredVersion] moved) after Publish and before the row leaves. Stored
// is also written before an operator is told that an edit was taken up. After
// Control the data plane follows Steps before anybody is told of an activation.
// A caller whose disk may fail asks Remember before Publish, says Saved after each
// save and Hold when one failed: its rows then go on leaving.
//
// # Concurrency
//
// None of the types is safe for concurrent use; one goroutine owns a Ledger and
// its Directory. Rows and epochs are immutable once handed over and may be
// shared.
package ledger
